#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support.hpp"

namespace belfry::softnic::test {
namespace {

int ioctl_error(int fd) {
  errno = 0;
  return ioctl(fd, RDMA_VERBS_IOCTL, nullptr) == -1 ? errno : 0;
}

// Guards against a child that drives its parent's NIC, or that cannot have one of its own.
TEST(Fork, ChildStartsAfresh) {
  const int fd = open(kDevice, O_RDWR);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(in_child([fd] {
              if (ioctl_error(fd) != ENODEV) return 1;
              const char command[8] = {};
              if (write(fd, command, sizeof command) != -1 || errno != ENODEV) return 2;
              const int own = open(kDevice, O_RDWR);
              if (own < 0 || ioctl_error(own) != EFAULT) return 3;
              if (close(fd) != 0 || close(own) != 0) return 4;
              return in_child([] { return open(kDevice, O_RDWR) >= 0 ? 0 : 1; });
            }),
            0);
  EXPECT_EQ(ioctl_error(fd), EFAULT) << "the parent's device lives on";
  close(fd);
}

// Guards against a child of vfork(), which shares memory with its parent, taking the parent's devices
// away when it closes its own descriptors before exec, as launchers do.
TEST(Fork, ChildOfVforkLeavesTheParentsDevices) {
  const int fd = open(kDevice, O_RDWR);
  ASSERT_GE(fd, 0);
  const pid_t child = vfork();
  if (child == 0) {
    close(fd);
    dup2(STDERR_FILENO, fd);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ioctl_error(fd), EFAULT);
  close(fd);
}

// Guards against the engine's thread taking the application's signals.
TEST(Process, EngineThreadTakesNoSignals) {
  const int fd = open(kDevice, O_RDWR);
  ASSERT_GE(fd, 0);
  unsigned others = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.' || std::stoi(entry->d_name) == getpid()) continue;
    std::ifstream status(std::string("/proc/self/task/") + entry->d_name + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) != 0) continue;
      ++others;
      const auto blocked = std::stoull(line.substr(7), nullptr, 16);
      EXPECT_NE(blocked & 1ull << (SIGUSR1 - 1), 0u) << entry->d_name;
      EXPECT_NE(blocked & 1ull << (SIGINT - 1), 0u) << entry->d_name;
    }
  }
  closedir(tasks);
  EXPECT_GE(others, 1u) << "there is an engine";
  close(fd);
}

// Guards against programs that are started with the library and see another tree than the settings say.
TEST(Preload, ExecutedProgramsReadTheirSettings) {
  const Outcome three = run_preloaded({"ls", "/sys/class/infiniband"}, {"BELFRY_SOFTNIC_DEVICES=3"});
  EXPECT_EQ(three.status, 0);
  EXPECT_EQ(three.output, "mlx5_0\nmlx5_1\nmlx5_2\n");
  const Outcome mtu = run_preloaded({"cat", "/sys/class/net/belfry0/mtu", "/sys/class/net/belfry0/address"},
                                    {"BELFRY_SOFTNIC_LINK=eth", "BELFRY_SOFTNIC_MTU=4200"});
  EXPECT_EQ(mtu.output, "4200\n02:be:1f:00:00:00\n");
  const Outcome type = run_preloaded({"cat", "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3",
                                      "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3"},
                                     {"BELFRY_SOFTNIC_LINK=eth"});
  EXPECT_EQ(type.output, "RoCE v2\nbelfry0\n");
}

// Guards against a switch that does not switch off.
TEST(Preload, OffPassesEverythingThrough) {
  const Outcome off =
      run_preloaded({"readlink", "-m", "/sys/class/infiniband/mlx5_0"}, {"BELFRY_SOFTNIC=off"});
  EXPECT_EQ(off.status, 0);
  EXPECT_EQ(off.output.find("be1f"), std::string::npos) << off.output;
  const Outcome on = run_preloaded({"readlink", "-m", "/sys/class/infiniband/mlx5_0"});
  EXPECT_NE(on.output.find("be1f"), std::string::npos) << on.output;
}

// Guards against settings that are refused in silence, or once for every path.
TEST(Preload, RefusedSettingsAreSaidOnce) {
  const Outcome bad =
      run_preloaded({"ls", "/sys/class/infiniband", "/dev/infiniband"}, {"BELFRY_SOFTNIC_DEVICES=no"});
  const std::string name = "BELFRY_SOFTNIC_DEVICES='no'";
  const auto first = bad.output.find(name);
  ASSERT_NE(first, std::string::npos) << bad.output;
  EXPECT_EQ(bad.output.find(name, first + 1), std::string::npos) << bad.output;
}

/// Names in a directory that a dead process might have left there.
std::set<std::string> listing(const char* path) {
  std::set<std::string> names;
  DIR* directory = opendir(path);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.find("belfry") != std::string::npos || name.find("mlx5") != std::string::npos) {
      names.insert(std::string(path) + "/" + name);
    }
  }
  closedir(directory);
  return names;
}

std::string sockets_of(const std::string& fabric) {
  std::ifstream file("/proc/net/unix");
  std::string found;
  for (std::string line; std::getline(file, line);) {
    if (line.find("/" + fabric + "/") != std::string::npos) found += line + "\n";
  }
  return found;
}

// Guards against anything that outlives a process which is killed with devices open.
TEST(Preload, KilledProcessLeavesNothing) {
  const std::string fabric = "killed-" + std::to_string(getpid());
  const std::set<std::string> before[] = {listing("/tmp"), listing("/dev/shm"), listing("/var/tmp"),
                                          listing("/run")};
  const int status = in_child([&] {
    const Outcome killed = run_preloaded(
        {"bash", "-c",
         "exec 7<>/dev/infiniband/uverbs0 8</sys/class/infiniband/mlx5_0/fw_ver; kill -KILL $$"},
        {"BELFRY_SOFTNIC_FABRIC=" + fabric});
    return killed.status == 128 + SIGKILL ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(listing("/tmp"), before[0]);
  EXPECT_EQ(listing("/dev/shm"), before[1]);
  EXPECT_EQ(listing("/var/tmp"), before[2]);
  EXPECT_EQ(listing("/run"), before[3]);
  EXPECT_EQ(sockets_of(fabric), "");
}

}  // namespace
}  // namespace belfry::softnic::test

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "cli/reexec.hpp"
#include "softnic/preload/location.hpp"
#include "support.hpp"

namespace belfry::cli {
namespace {

using softnic::test::Outcome;

/// Runs `belfry softnic ARGUMENTS`.
Outcome launch(std::vector<std::string> arguments, const std::vector<std::string>& settings = {}) {
  arguments.insert(arguments.begin(), {BELFRY_PROGRAM, "softnic"});
  return softnic::test::run(arguments, settings);
}

// Guards against an exit status that is the launcher's and not the command's.
TEST(Launcher, ExitStatusIsTheCommands) {
  EXPECT_EQ(launch({"--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(launch({"--", "sh", "-c", "kill -TERM $$"}).status, 128 + 15);
  EXPECT_EQ(launch({"--", "true"}).output, "");
}

// Guards against a command that is not there and nobody says so.
TEST(Launcher, CommandThatCannotRun) {
  const Outcome missing = launch({"--", "no-such-command"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_NE(missing.output.find("no-such-command: command not found"), std::string::npos) << missing.output;
  const Outcome plain = launch({"--", "/etc/passwd"});
  EXPECT_EQ(plain.status, 126);
  EXPECT_NE(plain.output.find("/etc/passwd"), std::string::npos) << plain.output;
}

// Guards against options that are taken for others, or that pass with values outside their range.
TEST(Launcher, RefusesWhatItDoesNotUnderstand) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "give a command"},
      {{"--devices", "17", "--", "true"}, "1..16"},
      {{"--mtu", "1500", "--", "true"}, "4096"},
      {{"--link", "infiniband", "--", "true"}, "ib or eth"},
      {{"--nonsense", "--", "true"}, "--nonsense"},
      {{"ibv_devinfo", "-v"}, "put -- before the command"},
  };
  for (const auto& [arguments, words] : cases) {
    const Outcome outcome = launch(arguments);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_NE(outcome.output.find(words), std::string::npos) << outcome.output;
  }
  const Outcome environment = launch({"--", "true"}, {"BELFRY_SOFTNIC_NODE=256"});
  EXPECT_EQ(environment.status, 2);
  EXPECT_NE(environment.output.find("BELFRY_SOFTNIC_NODE"), std::string::npos) << environment.output;
}

// Guards against words of the command that are changed on their way.
TEST(Launcher, PassesWordsUnchanged) {
  const Outcome outcome = launch(
      {"--devices", "2", "--", "printf", "<%s>", "[a,b]", "--", "-v", "", "--devices", "9", "a b", "%%"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "<[a,b]><--><-v><><--devices><9><a b><%%>");
}

// Guards against options that do not reach the library, and against an option that loses to its variable.
TEST(Launcher, OptionsReachTheCommand) {
  EXPECT_EQ(launch({"--devices", "2", "--", "ls", "/sys/class/infiniband"}).output, "mlx5_0\nmlx5_1\n");
  EXPECT_EQ(
      launch({"--devices", "2", "--", "ls", "/sys/class/infiniband"}, {"BELFRY_SOFTNIC_DEVICES=3"}).output,
      "mlx5_0\nmlx5_1\n");
  EXPECT_EQ(launch({"--", "ls", "/dev/infiniband"}, {"BELFRY_SOFTNIC_DEVICES=3"}).output,
            "uverbs0\nuverbs1\nuverbs2\n");
  const Outcome direct = launch({"--no-direct", "--enforce-memlock", "--", "sh", "-c",
                                 "echo $BELFRY_SOFTNIC_DIRECT $BELFRY_SOFTNIC_MEMLOCK"});
  EXPECT_EQ(direct.output, "0 enforce\n");
}

// Guards against a preloaded library of the user's that is lost, and against ours being listed twice when
// launchers nest.
TEST(Launcher, KeepsWhatIsPreloaded) {
  const std::string library = "/opt/somewhere/libbelfry-softnic.so";
  const std::string runtime(softnic::preload::kSanitizerRuntime);
  const std::string first = runtime.empty() ? library : runtime + ":" + library;
  EXPECT_EQ(preload_list(library, ""), first);
  EXPECT_EQ(preload_list(library, "a.so b.so:c.so"), first + ":a.so:b.so:c.so");
  EXPECT_EQ(preload_list(library, first), first);
  EXPECT_EQ(preload_list(library, "a.so:" + first), first + ":a.so");
  EXPECT_THROW(preload_list("/with space/lib.so", ""), std::runtime_error);
}

// Guards against a program that is silently not reached.
TEST(Program, SaysWhatCannotBeReached) {
  char name[] = "/tmp/softnic-program-XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_type = ET_EXEC;
  ASSERT_EQ(write(fd, &header, sizeof header), static_cast<ssize_t>(sizeof header));
  close(fd);
  EXPECT_NE(unreachable_reason(name).find("statically linked"), std::string::npos);

  std::ofstream(name) << "#!/bin/sh\n";
  EXPECT_EQ(unreachable_reason(name), "") << "a script's interpreter is reached";
  EXPECT_EQ(unreachable_reason("/proc/self/exe"), "");
  EXPECT_EQ(unreachable_reason("/no/such/file"), "");
  if (getuid() == 0) {
    ASSERT_EQ(chown(name, 65534, 65534), 0);
    ASSERT_EQ(chmod(name, 04755), 0);
    EXPECT_NE(unreachable_reason(name).find("other rights"), std::string::npos);
  }
  unlink(name);
}

// Guards against a search along PATH that differs from the shell's.
TEST(Program, IsFoundAsTheShellFindsIt) {
  EXPECT_EQ(find_program("sh").error, 0);
  EXPECT_EQ(find_program("/bin/sh").path, "/bin/sh");
  EXPECT_EQ(find_program("").error, ENOENT);
  EXPECT_EQ(find_program("no-such-command").error, ENOENT);
  EXPECT_EQ(find_program("/etc/passwd/x").error, ENOENT);
  EXPECT_EQ(find_program("/etc").error, EACCES) << "a directory";
}

// Guards against a second start that happens again in children, which inherit its mark.
TEST(Reexec, MarkIsOfOneProcess) {
  ASSERT_FALSE(is_under_softnic());
  ASSERT_EQ(setenv("BELFRY_SOFTNIC_STARTED", std::to_string(getpid()).c_str(), 1), 0);
  EXPECT_TRUE(is_under_softnic());
  EXPECT_EQ(softnic::test::in_child([] { return is_under_softnic() ? 1 : 0; }), 0);
  EXPECT_THROW(reexec_under_softnic(0, nullptr, softnic::Config{}), std::logic_error);
  unsetenv("BELFRY_SOFTNIC_STARTED");
}

// Guards against children of belfry that run under the software NIC without having asked for it, and
// against losing what the user had preloaded.
TEST(Reexec, EnvironmentIsRestored) {
  setenv("BELFRY_SOFTNIC_STARTED", std::to_string(getpid()).c_str(), 1);
  setenv("BELFRY_SOFTNIC_PRELOAD_BEFORE", "/users/own.so", 1);
  setenv("BELFRY_SOFTNIC_DEVICES", "3", 1);
  setenv("LD_PRELOAD", "/ours.so:/users/own.so", 1);
  restore_environment();
  EXPECT_STREQ(getenv("LD_PRELOAD"), "/users/own.so");
  EXPECT_EQ(getenv("BELFRY_SOFTNIC_DEVICES"), nullptr);
  EXPECT_EQ(getenv("BELFRY_SOFTNIC_PRELOAD_BEFORE"), nullptr);
  EXPECT_TRUE(is_under_softnic()) << "it still is";
  setenv("BELFRY_SOFTNIC_PRELOAD_BEFORE", "", 1);
  restore_environment();
  EXPECT_EQ(getenv("LD_PRELOAD"), nullptr);
  unsetenv("BELFRY_SOFTNIC_STARTED");
}

}  // namespace
}  // namespace belfry::cli

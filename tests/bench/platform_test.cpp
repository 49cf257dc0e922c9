#include "bench/platform.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "bench/record_json.hpp"

namespace belfry::bench {
namespace {

namespace fs = std::filesystem;

/// A root folder of a machine that is not this one.
class FakeRoot : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "belfry-platform-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

// Fault: a field read from the wrong line, or with its unit or quotes left in.
TEST_F(FakeRoot, ReadsTheMachine) {
  put("proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Fast  CPU 9000\nflags\t\t: a b\n\nprocessor\t: 1\nmodel name\t: Fast "
      "CPU 9000\n");
  put("proc/meminfo", "MemTotalHuge: 1 kB\nMemTotal:       2097152 kB\nMemFree: 1 kB\n");
  put("proc/sys/kernel/osrelease", "6.1.0-57-amd64\n");
  put("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3500000\n");
  put("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n");
  for (const auto& [state, name] : {std::pair{"0", "POLL"}, std::pair{"1", "C1"}, std::pair{"2", "C6"}})
    put(std::string("sys/devices/system/cpu/cpu0/cpuidle/state") + state + "/name", name);
  put("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "1\n");
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC: 12\n");
  put("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n");
  put("usr/local/cuda/version.json", R"({"cuda" : {"name" : "CUDA SDK", "version" : "12.4.1"}})");
  const Fields fields =
      capture_platform(root_, {NicKind::hardware, "mlx5_0", "28.39.1002", "MT_0838", "InfiniBand"});
  const Fields expected = {{"name", "Fast CPU 9000, mlx5_0"},
                           {"cpu", "Fast CPU 9000"},
                           {"cores", std::int64_t{2}},
                           {"governor", "performance"},
                           {"cpu_mhz", 3500.0},
                           {"idle_driver", "intel_idle"},
                           {"c_states", "POLL,C6"},
                           {"kernel", "6.1.0-57-amd64"},
                           {"os", "Debian GNU/Linux 12 (bookworm)"},
                           {"memory_mib", std::int64_t{2048}},
                           {"gpu", "NVIDIA H200"},
                           {"gpus", std::int64_t{1}},
                           {"gpu_driver", "550.54.15"},
                           {"cuda", "12.4.1"},
                           {"nic_software", false},
                           {"nic", "mlx5_0"},
                           {"nic_firmware", "28.39.1002"},
                           {"nic_board", "MT_0838"},
                           {"nic_link", "InfiniBand"}};
  EXPECT_EQ(dump(fields_to_json(fields)), dump(fields_to_json(expected)));
}

// Fault: another core's frequency, or a unit mistaken.
TEST_F(FakeRoot, FrequencyOfACore) {
  put("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2000.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3000.25\n");
  EXPECT_EQ(frequency_mhz(root_, 1), 3000.25);
  EXPECT_EQ(frequency_mhz(root_, 2), std::nullopt);
  EXPECT_EQ(frequency_mhz(root_, -1), std::nullopt);
  put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "800000\n");
  EXPECT_EQ(frequency_mhz(root_, 1), 800.0);
  EXPECT_EQ(frequency_mhz(root_, 0), 2000.5);
}

// Fault: what cannot be read is made up, or ends the program.
TEST_F(FakeRoot, LeavesOutWhatIsNotThere) {
  const Fields fields = capture_platform(root_, {});
  EXPECT_EQ(dump(fields_to_json(fields)), R"({"name":"unknown CPU"})");
}

// Fault: odd files crash the parsers.
TEST_F(FakeRoot, SurvivesGarbage) {
  put("proc/cpuinfo", std::string("model name") + '\0' + "\xff\xfe:");
  put("proc/meminfo", "MemTotal:");
  put("proc/driver/nvidia/version", "NVRM version:");
  fs::create_directories(root_ / "proc/driver/nvidia/gpus/x");
  put("usr/local/cuda/version.json", R"({"cuda" : {"version" : "12)");
  put("etc/os-release", "PRETTY_NAME");
  const Fields fields = capture_platform(root_, {NicKind::hardware, "\x80", "", "", ""});
  EXPECT_NO_THROW((void)dump(fields_to_json(fields)));
  EXPECT_EQ(find(fields, "memory_mib"), nullptr);
}

// Fault: a record of the software NIC whose platform reads like hardware.
TEST_F(FakeRoot, SoftwareNicIsInTheName) {
  for (const NicKind kind : {NicKind::soft_cpu, NicKind::soft_gpu}) {
    const Fields fields = capture_platform(root_, {kind, "mlx5_0", "", "", ""});
    EXPECT_THAT(text_of(fields, "name"), testing::HasSubstr(std::string(kSoftwareNicMark)));
    EXPECT_EQ(*find(fields, "nic_software"), Value(true));
  }
}

// Fault: the ABI version of libibverbs taken for the release of rdma-core.
TEST(Platform, RdmaCoreRelease) {
  EXPECT_EQ(rdma_core_release("libibverbs.so.1.14.44.0"), "44.0");
  EXPECT_EQ(rdma_core_release("libibverbs.so.1.14.50.0"), "50.0");
  EXPECT_EQ(rdma_core_release("libibverbs.so.1"), "");
  EXPECT_EQ(rdma_core_release("libibverbs.so.1.14."), "");
  EXPECT_EQ(rdma_core_release("libibverbs.so.1.14.x"), "");
  EXPECT_EQ(rdma_core_release("libmlx5.so.1.24.44.0"), "");
  EXPECT_EQ(rdma_core_release(""), "");
}

// Fault: versions left empty in the running program.
TEST(Platform, VersionsOfThisBuild) {
  const Fields versions = capture_versions();
  for (const char* key : {"belfry", "revision", "compiler"}) EXPECT_NE(text_of(versions, key), "") << key;
}

// Fault: control bytes and broken UTF-8 from sysfs end up in JSON.
TEST(Platform, CleanText) {
  EXPECT_EQ(clean_text("  a \t b\n"), "a b");
  EXPECT_EQ(clean_text("\xc3\xa4\x01"), "???");
  EXPECT_EQ(clean_text(std::string_view("\0\0", 2)), "");
}

}  // namespace
}  // namespace belfry::bench

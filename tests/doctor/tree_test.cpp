/// Reading below another root.

#include "doctor/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/pci.hpp"
#include "doctor/trials.hpp"
#include "doctor/world.hpp"

namespace belfry::doctor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Fault: numbers in names are compared as text, so that mlx5_10 comes before mlx5_2.
TEST(Tree, ListsInNumericOrder) {
  const FakeRoot root(Files{{"/a/mlx5_10", ""}, {"/a/mlx5_2", ""}, {"/a/mlx5_02", ""}, {"/a/eth0", ""}});
  EXPECT_THAT(Tree(root.path()).list("/a"), ElementsAre("eth0", "mlx5_02", "mlx5_2", "mlx5_10"));
}

// Fault: what is not there, or not a file, throws or crashes.
TEST(Tree, AbsentIsAbsent) {
  const FakeRoot root(Files{{"/a/empty", ""}, {"/a/words", "two words\n"}, {"/a/dangling", "-> nowhere"}});
  const Tree tree(root.path());
  EXPECT_FALSE(tree.live());
  for (const char* path : {"/none", "/a", "/a/dangling", ""}) {
    EXPECT_FALSE(tree.line(path)) << path;
    EXPECT_FALSE(tree.number(path)) << path;
  }
  EXPECT_FALSE(tree.line("/a/empty"));
  EXPECT_FALSE(tree.number("/a/words"));
  EXPECT_THAT(tree.list("/none"), IsEmpty());
  EXPECT_EQ(tree.resolve("/a/dangling"), "");
}

// Fault: a link that leaves the root reads the live machine.
TEST(Tree, LinksDoNotLeaveTheRoot) {
  const FakeRoot root(
      {{"/a/out", "-> ../../../../../../../../../../proc/self"}, {"/b/c", "x"}, {"/a/in", "-> ../b/c"}});
  const Tree tree(root.path());
  EXPECT_EQ(tree.resolve("/a/out"), "");
  EXPECT_EQ(tree.resolve("/a/in"), "/b/c");
}

// Fault: bytes of a device's own text end up in terminals and JSON.
TEST(Tree, LinesArePrintable) {
  const FakeRoot root(Files{{"/a", "x\x1b[31m\xff y \nsecond\n"}});
  EXPECT_EQ(*Tree(root.path()).line("/a"), "x?[31m? y");
}

// Fault: a large file is cut off, or fills memory without end.
TEST(Tree, LargeFiles) {
  const FakeRoot root(Files{{"/a", std::string(100000, 'x')}, {"/b", std::string(3 << 20, 'x')}});
  EXPECT_EQ(Tree(root.path()).text("/a")->size(), 100000u);
  EXPECT_LE(Tree(root.path()).text("/b")->size(), std::size_t{1} << 20);
}

// Fault: "Cpus_allowed" is taken for "Cpus_allowed_list".
TEST(Tree, ValueOfTakesTheWholeKey) {
  EXPECT_EQ(value_of("Cpus_allowed:\tf\nCpus_allowed_list:\t0-3\n", "Cpus_allowed_list"), "0-3");
  EXPECT_EQ(value_of("a : b:c", "a"), "b:c");
  EXPECT_EQ(value_of("ab: c", "a"), std::nullopt);
}

// Fault: a hostile list makes the doctor count for ever.
TEST(Tree, CpuLists) {
  EXPECT_THAT(parse_cpu_list("0-2,5\n"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_cpu_list("3-1,x,-1,0-99999999999,7"), ElementsAre(7));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
}

// Fault: a chain of capabilities that points to itself is followed for ever, or past the end.
TEST(PciConfig, HostileChains) {
  std::string loop = pci_config(0, 0, 0);
  loop[0x61] = 0x40;
  loop[0x60] = 0x05;
  std::string past = pci_config(0, 0, 0, std::uint16_t{0});
  past.resize(0x104);
  const FakeRoot root(
      Files{{"/sys/bus/pci/devices/a/config", loop}, {"/sys/bus/pci/devices/b/config", past}});
  const Tree tree(root.path());
  EXPECT_FALSE(PciConfig(tree, "a").express());
  EXPECT_TRUE(PciConfig(tree, "b").express());
  EXPECT_FALSE(PciConfig(tree, "b").acs_control());
  EXPECT_FALSE(PciConfig(tree, "none").express());
}

// Fault: the soname's numbers are taken for the release.
TEST(Versions, ReleaseOfAFileName) {
  EXPECT_EQ(rdma_core_release("libibverbs.so.1.14.44.0"), "44.0");
  EXPECT_EQ(rdma_core_release("libmlx5.so.1.24.44.0"), "44.0");
  for (const char* name :
       {"", "libibverbs.so.1", "libibverbs.so.1.14", "libmlx5-rdmav34.so", "x.so.1.2.beta"}) {
    EXPECT_EQ(rdma_core_release(name), "") << name;
  }
}

}  // namespace
}  // namespace belfry::doctor

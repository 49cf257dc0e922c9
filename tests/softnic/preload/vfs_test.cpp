#include "softnic/preload/vfs.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "softnic/preload/sysfs_tree.hpp"

namespace belfry::softnic::preload {
namespace {

class Walk : public testing::Test {
 protected:
  Walk() {
    tree_.add("/sys/class/ours/a/file", 2, NodeKind::file, "text\n");
    tree_.add("/sys/class/ours/b/link", 2, NodeKind::link, "../a");
    tree_.add("/sys/class/ours/b/absolute", 2, NodeKind::link, "/sys/class/ours/a/file");
    tree_.add("/sys/class/ours/loop", 2, NodeKind::link, "loop");
    tree_.add("/sys/class/ours/out", 2, NodeKind::link, "../../../proc");
  }

  Resolved::To walk(const std::string& path, bool follow = true, const Node* from = nullptr) {
    resolve(tree_, from, path.c_str(), follow, result_);
    return result_.to;
  }
  std::string node_path() {
    char buffer[PATH_MAX];
    return path_of(*result_.node, buffer, sizeof buffer) != 0 ? buffer : "";
  }

  Tree tree_;
  Resolved result_;
};

// Guards against ways of writing a path that lead elsewhere than the plain one.
TEST_F(Walk, FindsANodeHoweverThePathIsWritten) {
  for (const char* path :
       {"/sys/class/ours/a/file", "//sys///class/ours/./a/file", "/sys/class/ours/b/../a/file",
        "/sys/class/ours/b/link/file", "/sys/class/ours/b/absolute", "/sys/../sys/class/ours/a/file"}) {
    ASSERT_EQ(walk(path), Resolved::To::node) << path;
    EXPECT_EQ(node_path(), "/sys/class/ours/a/file") << path;
  }
}

// Guards against errors that differ from the kernel's.
TEST_F(Walk, FailsAsTheKernelDoes) {
  const std::pair<std::string, int> cases[] = {
      {"/sys/class/ours/none", ENOENT},
      {"/sys/class/ours/a/file/", ENOTDIR},
      {"/sys/class/ours/a/file/x", ENOTDIR},
      {"/sys/class/ours/a/file/..", ENOTDIR},
      {"/sys/class/ours/loop", ELOOP},
      {"/sys/class/ours/loop/x", ELOOP},
      {"", ENOENT},
      {std::string(PATH_MAX, 'x'), ENAMETOOLONG},
  };
  for (const auto& [path, error] : cases) {
    ASSERT_EQ(walk(path, true, &tree_.root()), Resolved::To::error) << path;
    EXPECT_EQ(result_.error, error) << path;
  }
}

// Guards against links that are followed where the caller means the link itself, or the reverse.
TEST_F(Walk, FollowsTheLastLinkOnlyWhenAsked) {
  ASSERT_EQ(walk("/sys/class/ours/b/link", false), Resolved::To::node);
  EXPECT_EQ(result_.node->kind, NodeKind::link);
  ASSERT_EQ(walk("/sys/class/ours/b/link/", false), Resolved::To::node);
  EXPECT_EQ(node_path(), "/sys/class/ours/a");
  ASSERT_EQ(walk("/sys/class/ours/loop", false), Resolved::To::node);
}

// Guards against the tree answering for files of the real file system, and against sending a path of
// ours there, where it would not be found.
TEST_F(Walk, HandsRealPathsOn) {
  EXPECT_EQ(walk("/sys/class/net/lo"), Resolved::To::outside);
  EXPECT_EQ(walk("/etc/passwd"), Resolved::To::outside);
  EXPECT_EQ(walk("/sys/class"), Resolved::To::outside);
  ASSERT_EQ(walk("/sys/class/ours/../net/lo"), Resolved::To::redirected);
  EXPECT_STREQ(result_.path, "/sys/class/net/lo");
  ASSERT_EQ(walk("/sys/class/ours/.."), Resolved::To::redirected);
  EXPECT_STREQ(result_.path, "/sys/class");
  ASSERT_EQ(walk("/sys/class/ours/out/self/fd"), Resolved::To::redirected);
  EXPECT_STREQ(result_.path, "/proc/self/fd");
}

// Guards against relative paths that start at the root.
TEST_F(Walk, StartsRelativePathsWhereItIsTold) {
  ASSERT_EQ(walk("/sys/class/ours/b"), Resolved::To::node);
  const Node* from = result_.node;
  ASSERT_EQ(walk("link/file", true, from), Resolved::To::node);
  EXPECT_EQ(node_path(), "/sys/class/ours/a/file");
  ASSERT_EQ(walk("../../net", true, from), Resolved::To::redirected);
  EXPECT_STREQ(result_.path, "/sys/class/net");
}

// Guards against a device whose number differs between stat() and the `dev` attribute.
TEST(SysfsTree, DeviceNumberIsTheOneInSysfs) {
  Config config;
  config.devices = 2;
  const auto tree = build_tree(config);
  Resolved device;
  resolve(*tree, nullptr, "/dev/infiniband/uverbs1", true, device);
  ASSERT_EQ(device.to, Resolved::To::node);
  struct stat status;
  fill_stat(*device.node, status);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(major(status.st_rdev), 231u);
  EXPECT_EQ(minor(status.st_rdev), 193u);
  Resolved number;
  resolve(*tree, nullptr, "/sys/class/infiniband_verbs/uverbs1/dev", true, number);
  ASSERT_EQ(number.to, Resolved::To::node);
  EXPECT_EQ(number.node->text, "231:193\n");
}

// Guards against links of the tree that lead nowhere, and against two nodes with one inode.
TEST(SysfsTree, EveryLinkLeadsSomewhereAndInodesAreUnique) {
  Config config;
  config.devices = 3;
  config.link = LinkLayer::ethernet;
  const auto tree = build_tree(config);
  std::vector<const Node*> rest{&tree->root()};
  std::set<ino_t> inodes;
  unsigned links = 0;
  while (!rest.empty()) {
    const Node* node = rest.back();
    rest.pop_back();
    EXPECT_TRUE(inodes.insert(node->inode).second) << node->name;
    for (const auto& child : node->children) rest.push_back(child.get());
    if (node->kind != NodeKind::link) continue;
    ++links;
    char path[PATH_MAX];
    ASSERT_NE(path_of(*node, path, sizeof path), 0u);
    Resolved target;
    resolve(*tree, nullptr, path, true, target);
    EXPECT_EQ(target.to, Resolved::To::node) << path << " -> " << node->text;
  }
  EXPECT_GT(links, 20u);
}

// Guards against the cheap look refusing a path that the tree has.
TEST(SysfsTree, CheapLookPassesEveryPathOfTheTree) {
  Config config;
  config.devices = 16;
  config.link = LinkLayer::ethernet;
  const auto tree = build_tree(config);
  std::vector<const Node*> rest{&tree->root()};
  while (!rest.empty()) {
    const Node* node = rest.back();
    rest.pop_back();
    for (const auto& child : node->children) rest.push_back(child.get());
    if (node->kind == NodeKind::outer) continue;
    char path[PATH_MAX];
    path_of(*node, path, sizeof path);
    EXPECT_TRUE(may_be_ours(path)) << path;
  }
  for (const char* foreign :
       {"/etc/infiniband", "/proc/self/fd/3", "/dev/null", "/sys/class/net/lo", "x", ""}) {
    EXPECT_FALSE(may_be_ours(foreign)) << foreign;
  }
  EXPECT_FALSE(may_be_ours(nullptr));
}

}  // namespace
}  // namespace belfry::softnic::preload

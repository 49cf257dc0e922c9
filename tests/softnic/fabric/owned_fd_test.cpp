#include "softnic/fabric/owned_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include "softnic/fabric/processes.hpp"
#include "softnic/fabric/support.hpp"

namespace belfry::softnic {
namespace {

using namespace testing;

bool is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

// Fault: a descriptor leaked or closed twice by a move.
TEST(OwnedFd, ClosesOnceAndMoves) {
  const std::size_t before = open_descriptors();
  OwnedFd a(eventfd(0, EFD_CLOEXEC));
  const int fd = a.get();
  OwnedFd b(std::move(a));
  EXPECT_FALSE(a);
  EXPECT_EQ(b.get(), fd);
  a = std::move(b);
  EXPECT_TRUE(is_open(fd));
  a.reset();
  EXPECT_FALSE(is_open(fd));
  EXPECT_EQ(open_descriptors(), before);
}

// Fault: a child of fork() that keeps the parent's sockets, and with them its blocks; a child whose
// destructors close a stranger's descriptor that has got the same number.
TEST(OwnedFd, IsClosedInAChild) {
  OwnedFd owned(eventfd(0, EFD_CLOEXEC));
  const int fd = owned.get();
  Child child([&] {
    if (is_open(fd)) return 1;
    const int other = eventfd(0, EFD_CLOEXEC);
    if (dup2(other, fd) != fd) return 2;
    owned.reset();
    return is_open(fd) ? 0 : 3;
  });
  EXPECT_EQ(child.join(20s), 0);
  EXPECT_TRUE(is_open(fd));
}

}  // namespace
}  // namespace belfry::softnic

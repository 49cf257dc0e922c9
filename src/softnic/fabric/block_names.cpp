#include "softnic/fabric/block_names.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace belfry::softnic {
namespace {

constexpr std::string_view kStem = "belfry-softnic/";
// NUL, stem, uid of up to 10 digits, slash, name, slash, block of up to 4 digits.
static_assert(1 + kStem.size() + 10 + 1 + kFabricNameMost + 1 + 4 <= sizeof(sockaddr_un::sun_path));

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;

  explicit Address(const std::string& text) {
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path + 1, text.data(), text.size());  // a NUL first: the abstract name space
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

OwnedFd make_socket() { return OwnedFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

}  // namespace

BlockNames::BlockNames(std::string_view fabric) {
  if (fabric.size() > kFabricNameMost) {
    throw std::system_error(ENAMETOOLONG, std::system_category(),
                            "softnic fabric: its name has " + std::to_string(fabric.size()) +
                                " bytes; choose one of at most " + std::to_string(kFabricNameMost));
  }
  prefix_ = std::string(kStem) + std::to_string(geteuid()) + "/" + std::string(fabric) + "/";
}

Result<OwnedFd> BlockNames::claim(std::uint32_t block) const {
  OwnedFd fd = make_socket();
  if (!fd) return Errno{errno};
  const Address address(prefix_ + std::to_string(block));
  if (bind(fd.get(), address.get(), address.length) != 0) return Errno{errno};
  if (listen(fd.get(), SOMAXCONN) != 0) return Errno{errno};
  return fd;
}

Result<OwnedFd> BlockNames::connect(std::uint32_t block) const {
  OwnedFd fd = make_socket();
  if (!fd) return Errno{errno};
  const Address address(prefix_ + std::to_string(block));
  if (::connect(fd.get(), address.get(), address.length) != 0) return Errno{errno};
  if (!peer_credentials(fd.get()).same_user) return Errno{EACCES};
  return fd;
}

PeerCredentials peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return {};
  return {credentials.uid == geteuid(), credentials.pid};
}

}  // namespace belfry::softnic

#pragma once
/// \file
/// Who owns which QPN block. A block belongs to the socket that is bound to its name in the kernel's
/// abstract name space: exclusive, and free again with its owner's death. There is no other registry.
///
/// The name: NUL, "belfry-softnic/<uid>/<fabric>/<block>".

#include <cstdint>
#include <string>
#include <string_view>

#include "softnic/fabric/owned_fd.hpp"
#include "softnic/result.hpp"

namespace belfry::softnic {

/// Longest name of a fabric, in bytes: what sockaddr_un leaves behind the rest of a block's name.
inline constexpr std::size_t kFabricNameMost = 72;

class BlockNames {
 public:
  /// Throws std::system_error (ENAMETOOLONG).
  explicit BlockNames(std::string_view fabric);

  /// Binds and listens. EADDRINUSE: somebody has the block; other errnos: no socket can be had.
  Result<OwnedFd> claim(std::uint32_t block) const;

  /// Connects to a block's owner; never blocks. ECONNREFUSED: nobody has it; EACCES: another user
  /// sits on the name; EAGAIN: its owner has not accepted for very long; other errnos: no socket.
  Result<OwnedFd> connect(std::uint32_t block) const;

 private:
  std::string prefix_;
};

/// The process at the other end of a connection, as the kernel vouches for it.
struct PeerCredentials {
  bool same_user = false;
  int pid = 0;
};
PeerCredentials peer_credentials(int socket);

}  // namespace belfry::softnic

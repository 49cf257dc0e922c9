#pragma once
/// \file
/// A bootstrap over TCP, IPv4 or IPv6: rank 0 listens, the others connect to it, and every exchange
/// goes through it. It carries set-up blobs, not data: nothing is encrypted or authenticated, so it
/// belongs on a network whose hosts trust each other. Whoever speaks another protocol is refused.

#include <memory>
#include <string>
#include <string_view>

#include "belfry/host/bootstrap.hpp"
#include "belfry/host/environment.hpp"

namespace belfry::host {

/// `HOST:PORT`, or `[IPV6]:PORT`; HOST may be empty for "any" where one listens.
struct TcpAddress {
  std::string host;
  std::string port;  ///< decimal, 0..65535

  /// Throws Error (bad_argument).
  static TcpAddress parse(std::string_view text);
  std::string to_string() const;
};

/// A listening socket, so that a port can be known before other processes start.
class TcpListener {
 public:
  /// Port 0 takes a free one. Throws Error: bad_argument (address), system (in use, no right).
  explicit TcpListener(const TcpAddress& address);
  ~TcpListener();
  TcpListener(TcpListener&& other) noexcept;
  TcpListener& operator=(TcpListener&& other) noexcept;

  /// Where it listens, with the port that was taken.
  TcpAddress address() const { return address_; }
  int descriptor() const { return descriptor_; }

 private:
  TcpAddress address_;
  int descriptor_ = -1;
};

/// Rank 0: waits until ranks 1..size-1 have come, then stops listening. Strangers, duplicates and ranks
/// of a group of another size are refused, and waiting goes on.
/// Throws Error: timed_out (which ranks are missing, and who was refused), bad_argument, system.
std::unique_ptr<Bootstrap> make_tcp_root(TcpListener listener, int size, Deadline deadline);

/// Any other rank: connects, again and again until the deadline, and waits until the group is complete.
/// Throws Error: timed_out (nobody listens, or others are missing), bad_argument (rank 0 refused this
/// rank: its reason), not_reachable (something else listens there, or the group broke up).
std::unique_ptr<Bootstrap> make_tcp_leaf(const TcpAddress& address, int rank, int size, Deadline deadline);

/// Either, by rank, from BELFRY_BOOTSTRAP_ADDRESS, _RANK, _SIZE and _TIMEOUT. Throws Error: bad_argument
/// that names the variables which are not set, and the above.
std::unique_ptr<Bootstrap> make_tcp_bootstrap(const Environment& environment);

}  // namespace belfry::host

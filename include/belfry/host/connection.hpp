#pragma once
/// \file
/// What two ends of an RC connection tell each other, and what follows from it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "belfry/host/gid.hpp"
#include "belfry/host/read_atomic.hpp"

namespace belfry::host {

/// One QP, as a peer needs to know it.
struct QueueAddress {
  std::uint32_t qpn = 0;  ///< 24 bits
  std::uint32_t psn = 0;  ///< 24 bits: the first one this end sends
  std::uint16_t lid = 0;  ///< 0 on Ethernet
  LinkLayer link = LinkLayer::infiniband;
  GidType gid_type = GidType::infiniband;
  Gid gid{};
  std::uint16_t path_mtu = 0;  ///< bytes: what this end can do
  ReadAtomicDepth depth;       ///< what this end offers
  bool operator==(const QueueAddress&) const = default;

  static constexpr std::size_t kEncodedBytes = 40;
  using Encoded = std::array<std::byte, kEncodedBytes>;
  Encoded encode() const;
  /// Throws Error (bad_argument) for anything that encode() would not have made.
  static QueueAddress decode(std::span<const std::byte> bytes);
};

/// The caller's wishes; the defaults fit a quiet data-centre network.
struct ConnectionParameters {
  std::uint8_t ack_timeout = 14;    ///< 4.096 us << n: 67 ms; 0 waits for ever
  std::uint8_t retry_count = 7;     ///< 0..7
  std::uint8_t rnr_retry = 7;       ///< 0..7; 7 retries for ever
  std::uint8_t min_rnr_timer = 12;  ///< code of 0.64 ms, IBTA table 45
  std::uint8_t service_level = 0;   ///< 0..15; on Ethernet the priority, 0..7
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;  ///< 20 bits
};

/// How to set up this end.
struct ConnectionPlan {
  QueueAddress remote;
  ConnectionParameters parameters;
  unsigned path_mtu = 0;  ///< bytes
  ReadAtomicDepth depth;
  bool global = false;  ///< packets carry a GRH (always on Ethernet)
  std::vector<std::string> decisions;
};

/// Puts both addresses and the wishes together. Throws Error: not_reachable if the ends lie on
/// different link layers, use different RoCE versions or address families, or a LID is missing;
/// bad_argument if a parameter is out of range.
ConnectionPlan plan_connection(const QueueAddress& local, const QueueAddress& remote,
                               const ConnectionParameters& parameters);

/// A random first PSN, 24 bits.
std::uint32_t random_psn();

}  // namespace belfry::host

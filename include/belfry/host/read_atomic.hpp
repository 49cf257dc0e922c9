#pragma once
/// \file
/// How many READs and atomics a QP keeps outstanding. Left at the default of 1, each waits for the
/// one before it; both ends have to agree on more.

#include <cstdint>
#include <string>

namespace belfry::host {

/// One end's offer, or what two ends agreed on.
struct ReadAtomicDepth {
  std::uint8_t initiator = 0;  ///< outstanding as requester (max_rd_atomic)
  std::uint8_t responder = 0;  ///< accepted as responder (max_dest_rd_atomic)
  bool operator==(const ReadAtomicDepth&) const = default;
};

/// All that the device offers.
/// \param max_initiator ibv_device_attr::max_qp_init_rd_atom
/// \param max_responder ibv_device_attr::max_qp_rd_atom
/// Values outside 0..255 are clamped.
ReadAtomicDepth offer_read_atomic_depth(int max_initiator, int max_responder);

/// What this end sets: never more in flight than the peer accepts, never more resources than it uses.
ReadAtomicDepth agree_read_atomic_depth(ReadAtomicDepth local, ReadAtomicDepth remote);

/// One line for a log.
std::string describe(ReadAtomicDepth depth);

}  // namespace belfry::host

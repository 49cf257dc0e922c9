#pragma once
/// \file
/// What a shared-memory port has seen and done, for tests and for people.

#include <cstdint>

namespace belfry::softnic {

struct SharedFabricCounters {
  std::uint64_t connects = 0;    ///< channels opened to peers
  std::uint64_t accepts = 0;     ///< channels taken from peers
  std::uint64_t hangups = 0;     ///< channels that ended because the peer did
  std::uint64_t refused = 0;     ///< peers turned away: another user, a bad hello or ring, no descriptors
  std::uint64_t corrupt = 0;     ///< channels dropped because the peer wrote nonsense into the ring
  std::uint64_t wakes_sent = 0;  ///< sleeping peers that were signalled
  std::uint64_t sleeps = 0;      ///< waits that really slept
};

}  // namespace belfry::softnic

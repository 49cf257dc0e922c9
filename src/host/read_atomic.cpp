#include "belfry/host/read_atomic.hpp"

#include <algorithm>

namespace belfry::host {

ReadAtomicDepth offer_read_atomic_depth(int max_initiator, int max_responder) {
  return {static_cast<std::uint8_t>(std::clamp(max_initiator, 0, 255)),
          static_cast<std::uint8_t>(std::clamp(max_responder, 0, 255))};
}

ReadAtomicDepth agree_read_atomic_depth(ReadAtomicDepth local, ReadAtomicDepth remote) {
  return {std::min(local.initiator, remote.responder), std::min(local.responder, remote.initiator)};
}

std::string describe(ReadAtomicDepth depth) {
  return "outstanding reads and atomics: " + std::to_string(depth.initiator) + " as requester, " +
         std::to_string(depth.responder) + " as responder";
}

}  // namespace belfry::host

#include "softnic/firmware/mover.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace belfry::softnic {
namespace {

// Guards against: a copy that takes source and target for disjoint. Both ends of a QP can be in one
// process, and a WRITE whose target overlaps its source arrived mangled.
TEST(MovePayload, OverlappingSourceAndTargetMoveAsIfThroughACopy) {
  constexpr std::size_t kMiddle = 64;
  for (std::size_t bytes = 0; bytes <= 40; ++bytes) {
    for (std::size_t target = kMiddle - 20; target <= kMiddle + 20; ++target) {
      std::vector<unsigned char> memory(256);
      std::iota(memory.begin(), memory.end(), static_cast<unsigned char>(0));
      std::vector<unsigned char> expected = memory;
      for (std::size_t i = 0; i < bytes; ++i) expected[target + i] = static_cast<unsigned char>(kMiddle + i);
      move_payload(memory.data() + target, memory.data() + kMiddle, bytes);
      ASSERT_EQ(memory, expected) << bytes << " B from " << kMiddle << " to " << target;
    }
  }
}

}  // namespace
}  // namespace belfry::softnic

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "belfry/host/device_endpoint.hpp"
#include "host/device_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

struct Shape {
  const char* name;
  DoorbellMode doorbell;
  CompletionLayout completions;
  std::uint32_t queues_a_register;
  bool self_queues;
  std::uint64_t queues_a_peer;
  int pes;
  std::uint64_t first_index;
};

DeviceEndpointOptions options_of(const Shape& shape) {
  DeviceEndpointOptions options = device_options();
  options.doorbell = shape.doorbell;
  options.completions = shape.completions;
  options.queues_a_register = shape.queues_a_register;
  options.self_queues = shape.self_queues;
  options.queues_a_peer = shape.queues_a_peer;
  options.first_index = shape.first_index;
  return options;
}

std::string name_of(const ::testing::TestParamInfo<Shape>& info) { return info.param.name; }

class NicDeviceEndpoint : public ::testing::TestWithParam<Shape> {};

/// Where PE `pe` writes through its queue `index`: words that nobody else writes.
device::Place target(const device::EndpointView& view, std::uint32_t pe, std::uint32_t index,
                     std::uint64_t slot) {
  return {0, ((pe * view.queues_a_peer + index) * 16 + slot) * 8};
}

std::uint64_t value_of(std::uint32_t from, std::uint32_t to, std::uint32_t index, std::uint64_t i) {
  return 1 + (std::uint64_t{from} << 48 | std::uint64_t{to} << 40 | std::uint64_t{index} << 32 | i);
}

// Fault: a pointer, key, index or register of the view that belongs to another queue, peer or window, or
// start values that a device does not share: then words arrive elsewhere, or none completes. 200 posts of
// each queue wrap its 64 blocks and its completion ring three times.
TEST_P(NicDeviceEndpoint, WordsArriveThroughEveryQueue) {
  const Shape& shape = GetParam();
  run_pes(shape.pes, [&](Bootstrap& bootstrap) {
    const DeviceEndpoint endpoint(bootstrap, options_of(shape));
    const device::EndpointView& view = endpoint.view();
    for (std::uint32_t pe = 0; pe < view.pe_count; ++pe) {
      for (std::uint32_t index = 0; index < view.queues_a_peer; ++index) {
        const device::SendQueue& queue = view.queues[pe * view.queues_a_peer + index];
        if (pe == view.pe && !shape.self_queues) {
          EXPECT_EQ(queue.state, nullptr);
          continue;
        }
        ASSERT_NE(queue.state, nullptr);
        ASSERT_EQ(queue.peer, pe);
        ViewPoster poster(view, pe, index);
        for (std::uint64_t i = 0; i < 200; ++i) {
          poster.write(target(view, view.pe, index, i % 16), value_of(view.pe, pe, index, i));
          // Batches of every size up to 16, so that doorbells announce more than their own WQE.
          if (i % 16 == i / 13) continue;
          poster.ring();
          if (i % 16 == 15) {
            ASSERT_TRUE(poster.drain());
          }
        }
        ASSERT_TRUE(poster.drain());
        EXPECT_EQ(poster.producer(), shape.first_index + 200);
      }
    }
    bootstrap.barrier(soon());
    for (std::uint32_t pe = 0; pe < view.pe_count; ++pe) {
      if (pe == view.pe && !shape.self_queues) continue;
      for (std::uint32_t index = 0; index < view.queues_a_peer; ++index) {
        for (std::uint64_t i = 184; i < 200; ++i) {
          EXPECT_EQ(word(endpoint, target(view, pe, index, i % 16)), value_of(pe, view.pe, index, i))
              << "from PE " << pe << " queue " << index;
        }
      }
    }
    bootstrap.barrier(soon());
  });
}

constexpr auto kRecord = DoorbellMode::record;
constexpr auto kNoRecord = DoorbellMode::no_record;
constexpr auto kRing = CompletionLayout::ring;
constexpr auto kCollapsed = CompletionLayout::collapsed;
constexpr std::uint64_t kBefore32Bits = (std::uint64_t{1} << 32) - 65536;

INSTANTIATE_TEST_SUITE_P(
    Shapes, NicDeviceEndpoint,
    ::testing::Values(Shape{"RecordRing", kRecord, kRing, 1, false, 1, 2, 0},
                      Shape{"RecordCollapsed", kRecord, kCollapsed, 1, false, 1, 2, 0},
                      Shape{"NoRecordRing", kNoRecord, kRing, 1, false, 1, 2, 0},
                      Shape{"NoRecordCollapsed", kNoRecord, kCollapsed, 1, false, 1, 2, 0},
                      Shape{"SharedRegisterRing", kRecord, kRing, 4, true, 3, 2, 0},
                      Shape{"SharedRegisterCollapsed", kRecord, kCollapsed, 64, true, 2, 2, 0},
                      Shape{"SelfQueues", kNoRecord, kRing, 1, true, 2, 3, 0},
                      Shape{"SelfQueuesCollapsed", kRecord, kCollapsed, 1, true, 2, 2, 0},
                      Shape{"OnePe", kRecord, kRing, 1, true, 2, 1, 0},
                      Shape{"FourPes", kRecord, kRing, 1, false, 2, 4, 0},
                      Shape{"LateIndexRing", kRecord, kRing, 1, false, 1, 2, kBefore32Bits},
                      Shape{"LateIndexCollapsed", kNoRecord, kCollapsed, 1, false, 1, 2, kBefore32Bits}),
    name_of);

}  // namespace
}  // namespace belfry::host

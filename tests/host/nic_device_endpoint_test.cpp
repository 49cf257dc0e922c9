#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "belfry/host/device_endpoint.hpp"
#include "host/counting_memory.hpp"
#include "host/device_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr auto kRecord = DoorbellMode::record;
constexpr auto kNoRecord = DoorbellMode::no_record;
constexpr auto kRing = CompletionLayout::ring;
constexpr auto kCollapsed = CompletionLayout::collapsed;
constexpr std::uint64_t kBefore32Bits = (std::uint64_t{1} << 32) - 65536;

#if defined(__SANITIZE_THREAD__)
constexpr bool kUnderTsan = true;
#else
constexpr bool kUnderTsan = false;
#endif
constexpr const char* kUnseenOrder =
    "NIC and poster map the register at two addresses, so without a record TSan sees no order between them";

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

class NicDeviceEndpointShapes : public ::testing::TestWithParam<Shape> {};

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
TEST_P(NicDeviceEndpointShapes, WordsArriveThroughEveryQueue) {
  const Shape& shape = GetParam();
  if (kUnderTsan && shape.doorbell == kNoRecord) GTEST_SKIP() << kUnseenOrder;
  run_pes(shape.pes, [&](Bootstrap& bootstrap) {
    const DeviceEndpoint endpoint = make_endpoint(bootstrap, options_of(shape));
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

INSTANTIATE_TEST_SUITE_P(
    Shapes, NicDeviceEndpointShapes,
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

// Fault: results of atomics that nobody wants overwrite each other's place, or a window.
TEST(NicDeviceEndpoint, TheSinkTakesResultsOfEveryQueue) {
  run_pes(2, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    options.queues_a_peer = 3;
    options.self_queues = true;
    const DeviceEndpoint endpoint = make_endpoint(bootstrap, options);
    const device::EndpointView& view = endpoint.view();
    ASSERT_EQ(view.sink.window, 1u);
    ASSERT_GE(view.windows[1].bytes, 8u * 6);
    for (std::uint32_t pe = 0; pe < 2; ++pe) {
      EXPECT_EQ(view.remotes[1 * 2 + pe].rkey.get(), 0u) << "peers must not reach a sink";
      for (std::uint32_t index = 0; index < 3; ++index) {
        const std::uint32_t slot = pe * 3 + index;
        ViewPoster poster(view, pe, index);
        const device::Place counter{0, 8 * (view.pe * 6 + slot)};
        poster.write(counter, 1000 + slot);
        poster.fetch_add(counter, 1, view.sink + 8 * slot);
        poster.ring();
        ASSERT_TRUE(poster.drain());
      }
    }
    for (std::uint64_t slot = 0; slot < 6; ++slot) {
      const auto* at = reinterpret_cast<const std::uint64_t*>(view.windows[1].address) + slot;
      EXPECT_EQ(port::load_acquire<port::Scope::system>(at), 1000 + slot);
    }
    bootstrap.barrier(soon());
  });
}

// Fault: a write from a window that takes the wrong key or base of the source.
TEST(NicDeviceEndpoint, PutsFromAWindow) {
  run_pes(2, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    options.windows.push_back({.bytes = 4096});
    const DeviceEndpoint endpoint = make_endpoint(bootstrap, options);
    for (std::uint64_t i = 0; i < 100; ++i)
      set_word(endpoint, {1, 96 + 8 * i}, value_of(endpoint.view().pe, 9, 9, i));
    ViewPoster poster(endpoint.view(), 1 - endpoint.view().pe);
    poster.put({0, 512}, {1, 96}, 800);
    poster.ring();
    ASSERT_TRUE(poster.drain());
    bootstrap.barrier(soon());
    for (std::uint64_t i = 0; i < 100; ++i)
      EXPECT_EQ(word(endpoint, {0, 512 + 8 * i}), value_of(1 - endpoint.view().pe, 9, 9, i));
    bootstrap.barrier(soon());
  });
}

// Fault: a part that lies elsewhere than its placement says, or outlives its endpoint.
TEST(NicDeviceEndpoint, PartsLieWhereThePlacementSays) {
  run_pes(2, [](Bootstrap& bootstrap) {
    std::array<std::shared_ptr<CountingMemory>, 5> memories;
    for (auto& memory : memories) memory = std::make_shared<CountingMemory>();
    DeviceEndpointOptions options = device_options();
    using device::MemoryKind;
    options.placement = {{MemoryKind::host, memories[0]},
                         {MemoryKind::peer, memories[1]},
                         {MemoryKind::own, memories[2]},
                         {MemoryKind::own, memories[3]},
                         {MemoryKind::own, memories[4]}};
    options.queues_a_peer = 2;
    {
      const DeviceEndpoint endpoint = make_endpoint(bootstrap, options);
      const device::EndpointView& view = endpoint.view();
      EXPECT_TRUE(memories[4]->contains(view.queues));
      EXPECT_TRUE(memories[4]->contains(view.windows));
      EXPECT_TRUE(memories[4]->contains(view.remotes));
      EXPECT_TRUE(
          memories[4]->contains(reinterpret_cast<const void*>(view.windows[view.sink.window].address)));
      for (std::uint32_t index = 0; index < 2; ++index) {
        const device::SendQueue& queue = view.queues[(1 - view.pe) * 2 + index];
        EXPECT_TRUE(memories[0]->contains(queue.blocks));
        EXPECT_TRUE(memories[1]->contains(queue.completions));
        EXPECT_TRUE(memories[2]->contains(queue.record));
        EXPECT_TRUE(memories[3]->contains(queue.state));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(queue.state) % 128, 0u);
        EXPECT_EQ(queue.blocks_kind, MemoryKind::host);
        EXPECT_EQ(queue.completions_kind, MemoryKind::peer);
        EXPECT_EQ(queue.record_kind, MemoryKind::own);
        EXPECT_EQ(std::memcmp(&queue, &endpoint.send_queue(1 - view.pe, index), sizeof queue), 0);
        ViewPoster poster(view, 1 - view.pe, index);
        poster.write({0, 8 * index}, 7 + index);
        poster.ring();
        ASSERT_TRUE(poster.drain());
      }
      bootstrap.barrier(soon());
      EXPECT_EQ(word(endpoint, {0, 0}), 7u);
      EXPECT_EQ(word(endpoint, {0, 8}), 8u);
      bootstrap.barrier(soon());
    }
    for (const auto& memory : memories) EXPECT_EQ(*memory->alive, 0);
  });
}

// Fault: an owned register that two queues ring, or a shared one that each takes for its own.
TEST(NicDeviceEndpoint, RegistersAreOwnedOrSharedAsAsked) {
  run_pes(2, [](Bootstrap& bootstrap) {
    const DeviceEndpoint first = make_endpoint(bootstrap, device_options());
    for (const std::uint32_t group : {1u, 2u, 100u}) {
      DeviceEndpointOptions options = device_options();
      options.queues_a_peer = 4;
      options.queues_a_register = group;
      const DeviceEndpoint endpoint(bootstrap, first.windows(), options);
      std::map<const void*, std::uint32_t> users;
      for (std::uint32_t index = 0; index < 4; ++index) {
        const device::SendQueue& queue = endpoint.send_queue(1 - endpoint.view().pe, index);
        ++users[queue.doorbell];
        EXPECT_EQ(queue.owns_register, group == 1);
      }
      EXPECT_EQ(users.size(), group == 1 ? 4u : group == 2 ? 2u : 1u);
      if (group != 1) {
        EXPECT_THAT(endpoint.decisions(), Contains(HasSubstr("doorbell registers: shared")));
      }
      bootstrap.barrier(soon());
    }
  });
}

// Fault: with several threads on one register a doorbell that is overwritten before the NIC looks is lost.
TEST(NicDeviceEndpoint, ThreadsShareARegister) {
  run_pes(2, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    options.queues_a_peer = 3;
    options.queues_a_register = 3;
    const DeviceEndpoint endpoint = make_endpoint(bootstrap, options);
    const device::EndpointView& view = endpoint.view();
    std::vector<std::thread> threads;
    for (std::uint32_t index = 0; index < 3; ++index) {
      threads.emplace_back([&view, index] {
        ViewPoster poster(view, 1 - view.pe, index);
        for (std::uint64_t i = 1; i <= 300; ++i) {
          poster.write({0, 8 * index}, i);
          poster.ring();
          if (i % 8 == 0 && !poster.drain()) return;
        }
        poster.drain();
      });
    }
    for (std::thread& thread : threads) thread.join();
    bootstrap.barrier(soon());
    for (std::uint32_t index = 0; index < 3; ++index) EXPECT_EQ(word(endpoint, {0, 8 * index}), 300u);
    bootstrap.barrier(soon());
  });
}

// Fault: a value that the device cannot do, found out by a kernel that hangs.
TEST(NicDeviceEndpoint, RefusesBadOptions) {
  run_pes(2, [](Bootstrap& bootstrap) {
    const DeviceEndpoint good = make_endpoint(bootstrap, device_options());
    const auto refuse = [&](const char* says, auto change, ErrorKind kind = ErrorKind::bad_argument) {
      DeviceEndpointOptions options = device_options();
      change(options);
      const Error error = expect_error(kind, [&] { DeviceEndpoint(bootstrap, good.windows(), options); });
      EXPECT_THAT(error.what(), HasSubstr(says));
      bootstrap.barrier(soon());
    };
    refuse("0 queues", [](auto& o) { o.queues_a_peer = 0; });
    refuse("queues to each peer",
           [](auto& o) { o.queues_a_peer = device::QueueMap::per_thread(1 << 20, 1024).queues(); });
    refuse("0 queues a register", [](auto& o) { o.queues_a_register = 0; });
    refuse("shared registers", [](auto& o) {
      o.queues_a_register = 2;
      o.doorbell = kNoRecord;
    });
    refuse("multiple of 65536", [](auto& o) { o.first_index = 1; });
    refuse("multiple of 65536", [](auto& o) { o.first_index = (std::uint64_t{1} << 32) - 32768; });
    refuse("power of two", [](auto& o) { o.blocks = 100; });
    refuse("power of two", [](auto& o) { o.blocks = 65536; });
    refuse("message limit", [](auto& o) { o.max_message = 0; });
    refuse("message limit", [](auto& o) { o.max_message = (std::uint64_t{1} << 30) + 1; });
    refuse("outstanding", [](auto& o) { o.depth = ReadAtomicDepth{200, 16}; });
    // One PE's mistake is every PE's error.
    const int rank = bootstrap.rank();
    refuse(rank == 1 ? "power of two" : "rank 1 could not make its queues", [rank](auto& o) {
      if (rank == 1) o.blocks = 3;
    });
    refuse("queues to each peer: rank 1 has 2, rank 0 has 1", [rank](auto& o) {
      if (rank == 1) o.queues_a_peer = 2;
    });
    refuse("self queues: rank 1 has 1", [rank](auto& o) {
      if (rank == 1) o.self_queues = true;
    });
  });
}

// Fault: a limit or depth that is dropped on the way, or that nobody can look up afterwards.
TEST(NicDeviceEndpoint, LimitsAreSetAndTold) {
  run_pes(2, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    const DeviceEndpoint all = make_endpoint(bootstrap, options);
    EXPECT_EQ(all.view().max_message, std::uint64_t{1} << 30);
    EXPECT_EQ(all.view().max_inline, 972u);
    EXPECT_THAT(all.decisions(), AllOf(Contains(HasSubstr("outstanding reads and atomics: 16")),
                                       Contains(HasSubstr("GID index")), Contains(HasSubstr("window 0"))));
    options.max_message = 4096;
    options.depth = ReadAtomicDepth{4, 4};
    options.blocks = 4;
    const DeviceEndpoint endpoint(bootstrap, all.windows(), options);
    EXPECT_EQ(endpoint.view().max_message, 4096u);
    EXPECT_EQ(endpoint.view().max_inline, 4u * 64 - 36);
    EXPECT_THAT(endpoint.decisions(), AllOf(Contains(HasSubstr("outstanding reads and atomics: 4 ")),
                                            Contains(HasSubstr("message limit 4 KiB: requested"))));
    bootstrap.barrier(soon());
  });
}

// Fault: the smallest and the largest queue, where every mask and logarithm has its edge.
TEST(NicDeviceEndpoint, DepthsFromOneToTheLargest) {
  run_pes(2, [](Bootstrap& bootstrap) {
    const DeviceEndpoint first = make_endpoint(bootstrap, device_options());
    for (const std::uint32_t blocks : {1u, 2u, 32768u}) {
      DeviceEndpointOptions options = device_options();
      options.blocks = blocks;
      const DeviceEndpoint endpoint(bootstrap, first.windows(), options);
      ViewPoster poster(endpoint.view(), 1 - endpoint.view().pe);
      ASSERT_EQ(1u << poster.queue().log_blocks, blocks);
      for (std::uint64_t i = 1; i <= 5; ++i) {
        poster.write({0, 0}, i);
        poster.ring();
        ASSERT_TRUE(poster.drain());
      }
      bootstrap.barrier(soon());
      EXPECT_EQ(word(endpoint, {0, 0}), 5u);
      bootstrap.barrier(soon());
    }
  });
}

// Fault: a policy that its queues cannot keep is let through, or the refusal does not say what to change.
TEST(NicDeviceEndpoint, AdmitsWhatFitsAndRefusesTheRest) {
  run_pes(2, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    options.doorbell = kNoRecord;
    options.windows.push_back({.bytes = 64, .kind = device::MemoryKind::host});
    const DeviceEndpoint endpoint = make_endpoint(bootstrap, options);
    device::Requirements requirements;
    requirements.doorbell_mode = kNoRecord;
    requirements.max_inline = 44;
    endpoint.admit(requirements);
    requirements.doorbell_mode = kRecord;
    requirements.own_memory = true;
    const Error error = expect_error(ErrorKind::unsupported, [&] { endpoint.admit(requirements); });
    EXPECT_THAT(error.what(), AllOf(HasSubstr("queue 0 to PE " + std::to_string(1 - bootstrap.rank())),
                                    HasSubstr("window 1 lies in host memory"),
                                    HasSubstr("DeviceEndpointOptions::doorbell to record")));
    bootstrap.barrier(soon());
  });
}

// Fault: a fault that the host reads of another queue, or with an index of another lap; queues that do not
// exist.
TEST(NicDeviceEndpoint, TheHostReadsFaults) {
  run_pes(3, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    options.queues_a_peer = 2;
    options.first_index = kBefore32Bits;
    DeviceEndpoint first = make_endpoint(bootstrap, options);
    const DeviceEndpoint endpoint = std::move(first);
    const std::uint32_t pe = endpoint.view().pe;
    const std::uint32_t peer = (pe + 1) % 3;
    EXPECT_EQ(endpoint.fault(peer, 1).kind, device::Fault::Kind::none);
    const std::uint64_t word = device::fault_word(device::Fault::Kind::root, kBefore32Bits + 5,
                                                  wire::Syndrome::transport_retry_exceeded, 0x83);
    port::store_release<port::Scope::system>(&endpoint.view().queues[peer * 2 + 1].state->fault, word);
    const device::Fault fault = endpoint.fault(peer, 1);
    EXPECT_EQ(fault.kind, device::Fault::Kind::root);
    EXPECT_EQ(fault.index, kBefore32Bits + 5);
    EXPECT_EQ(fault.qpn, endpoint.queue(peer, 1).qpn());
    EXPECT_EQ(fault.syndrome, wire::Syndrome::transport_retry_exceeded);
    EXPECT_EQ(fault.vendor, 0x83);
    EXPECT_EQ(endpoint.fault(peer, 0).kind, device::Fault::Kind::none);
    EXPECT_EQ(endpoint.queue(peer, 1).qpn(), endpoint.send_queue(peer, 1).qpn);
    expect_error(ErrorKind::bad_argument, [&] { endpoint.fault(pe); });
    expect_error(ErrorKind::bad_argument, [&] { endpoint.send_queue(3); });
    expect_error(ErrorKind::bad_argument, [&] { endpoint.queue(peer, 2); });
    bootstrap.barrier(soon());
  });
}

// Fault: windows that die with the handle that made them while an endpoint still names them.
TEST(NicDeviceEndpoint, SeveralEndpointsShareWindows) {
  if (kUnderTsan) GTEST_SKIP() << kUnseenOrder;
  run_pes(2, [](Bootstrap& bootstrap) {
    std::vector<DeviceEndpoint> endpoints;
    {
      const DeviceEndpoint maker = make_endpoint(bootstrap, device_options());
      for (const DoorbellMode mode : {kRecord, kNoRecord}) {
        DeviceEndpointOptions options = device_options();
        options.doorbell = mode;
        endpoints.emplace_back(bootstrap, maker.windows(), options);
      }
      bootstrap.barrier(soon());
    }
    for (std::uint64_t i = 0; i < 2; ++i) {
      ViewPoster poster(endpoints[i].view(), 1 - endpoints[i].view().pe);
      poster.write({0, 8 * i}, 5 + i);
      poster.ring();
      ASSERT_TRUE(poster.drain());
    }
    bootstrap.barrier(soon());
    EXPECT_EQ(word(endpoints[0], {0, 8}), 6u);
    EXPECT_EQ(word(endpoints[1], {0, 0}), 5u);
    bootstrap.barrier(soon());
  });
}

/// A GPU's driver that lets nobody map a device's registers.
class RefusingMapper : public RegisterMapper {
 public:
  std::shared_ptr<std::uint64_t> map(std::uint64_t*) override { throw register_refused(800); }
};

/// Has the registers where they are, and counts.
class CountingMapper : public RegisterMapper {
 public:
  std::shared_ptr<std::uint64_t> map(std::uint64_t* doorbell) override {
    ++maps;
    return std::shared_ptr<std::uint64_t>(doorbell, [this](std::uint64_t*) { ++unmaps; });
  }
  int maps = 0;
  int unmaps = 0;
};

/// Words through every queue of an endpoint, to and fro.
void exchange_words(Bootstrap& bootstrap, const DeviceEndpoint& endpoint) {
  const device::EndpointView& view = endpoint.view();
  const std::uint32_t peer = 1 - view.pe;
  for (std::uint32_t index = 0; index < view.queues_a_peer; ++index) {
    ViewPoster poster(view, peer, index);
    for (std::uint64_t i = 0; i < 200; ++i) {
      poster.write(target(view, view.pe, index, i % 16), value_of(view.pe, peer, index, i));
      if (i % 16 == i / 13) continue;
      poster.ring();
      if (i % 16 == 15) {
        ASSERT_TRUE(poster.drain());
      }
    }
    ASSERT_TRUE(poster.drain());
  }
  bootstrap.barrier(soon());
  for (std::uint32_t index = 0; index < view.queues_a_peer; ++index)
    for (std::uint64_t i = 184; i < 200; ++i)
      EXPECT_EQ(word(endpoint, target(view, peer, index, i % 16)), value_of(peer, view.pe, index, i));
  bootstrap.barrier(soon());
}

// Field case 17. Fault: an endpoint that fails, or rings a register that the GPU cannot reach, where its
// driver refuses to map one; a fallback of which nobody hears the reason and the remedy.
TEST(NicDeviceEndpoint, FieldCase17AUarThatCannotBeMappedMeansCpuAssisted) {
  for (const DoorbellMode mode : {kRecord, kNoRecord}) {
    if (kUnderTsan && mode == kNoRecord) continue;
    run_pes(2, [mode](Bootstrap& bootstrap) {
      DeviceEndpointOptions options = device_options();
      options.doorbell = mode;
      options.queues_a_peer = 2;
      options.placement.registers = std::make_shared<RefusingMapper>();
      const DeviceEndpoint endpoint = make_endpoint(bootstrap, options);
      EXPECT_EQ(endpoint.doorbell_path(), DoorbellPath::cpu_assisted);
      EXPECT_TRUE(endpoint.forwarder_alive());
      EXPECT_EQ(endpoint.forwarder_failure(), nullptr);
      EXPECT_THAT(endpoint.decisions(), Contains(AllOf(HasSubstr("CPU-assisted"), HasSubstr("fails with 800"),
                                                       HasSubstr("PeerMappingOverride=1"))));
      EXPECT_THAT(endpoint.decisions(), Contains(HasSubstr("doorbell thread CPUs:")));
      const device::SendQueue& queue = endpoint.send_queue(1 - endpoint.view().pe, 1);
      EXPECT_NE(queue.doorbell, endpoint.queue(1 - endpoint.view().pe, 1).view().uar_register);
      ASSERT_NE(queue.forwarder, nullptr);
      exchange_words(bootstrap, endpoint);
    });
  }
}

// Fault: a request for device code to ring that is changed behind the caller's back.
TEST(NicDeviceEndpoint, ARefusedUarIsAnErrorWhereDeviceCodeMustRing) {
  run_pes(1, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    options.self_queues = true;
    options.placement.registers = std::make_shared<RefusingMapper>();
    options.doorbell_path = DoorbellPath::gpu_rung;
    expect_error(ErrorKind::unsupported, [&] { make_endpoint(bootstrap, options); });
  });
}

// Fault: a request for the CPU that is ignored because the register can be reached; a register that is mapped
// for each of the queues that share it, or stays mapped.
TEST(NicDeviceEndpoint, TheDoorbellsWayCanBeChosen) {
  run_pes(2, [](Bootstrap& bootstrap) {
    DeviceEndpointOptions options = device_options();
    options.queues_a_peer = 3;
    options.queues_a_register = 3;
    options.doorbell_path = DoorbellPath::cpu_assisted;
    options.forwarder.pin = false;
    options.forwarder.idle.kind = IdlePolicy::Kind::sleep;
    auto mapper = std::make_shared<CountingMapper>();
    options.placement.registers = mapper;
    {
      const DeviceEndpoint assisted = make_endpoint(bootstrap, options);
      EXPECT_THAT(assisted.decisions(), AllOf(Contains(HasSubstr("(CPU-assisted), as requested")),
                                              Contains(HasSubstr("not pinned, as requested"))));
      EXPECT_EQ(mapper->maps, 0);
      exchange_words(bootstrap, assisted);
    }
    options.doorbell_path = DoorbellPath::automatic;
    {
      const DeviceEndpoint rung = make_endpoint(bootstrap, options);
      EXPECT_EQ(rung.doorbell_path(), DoorbellPath::gpu_rung);
      EXPECT_FALSE(rung.forwarder_alive());
      EXPECT_EQ(rung.send_queue(1 - rung.view().pe).forwarder, nullptr);
      EXPECT_THAT(rung.decisions(), Contains(HasSubstr("which has mapped the registers")));
      EXPECT_EQ(mapper->maps, 1);
      exchange_words(bootstrap, rung);
    }
    EXPECT_EQ(mapper->unmaps, 1);
  });
}

}  // namespace
}  // namespace belfry::host

// Fuzzes the engine through its queues: bytes become WQEs, doorbells, receives, key and state changes.
// An input is a setup of 4 bytes and a list of 24 B records: a step and its choices.
// Guards against: reads and writes beyond queues and keyed memory, whatever a WQE says; writes that a
// key does not grant; use of a QP, CQ or key after it is gone; queues that never come to rest.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "fuzz/engine_world.hpp"
#include "fuzz/harness.hpp"
#include "softnic/firmware/nic_core.hpp"

namespace belfry::fuzz {
namespace {

constexpr std::size_t kSetupBytes = 4;
constexpr std::size_t kRecordBytes = 24;
constexpr std::size_t kMaxRecords = 170;

using Step = void (EngineWorld::*)(Reader&);
constexpr Step kSteps[] = {
    &EngineWorld::post,    &EngineWorld::post_raw, &EngineWorld::ring,    &EngineWorld::post_receive,
    &EngineWorld::consume, &EngineWorld::modify,   &EngineWorld::corrupt, &EngineWorld::change_keys,
    &EngineWorld::advance, &EngineWorld::recreate, &EngineWorld::resize,  &EngineWorld::poll,
};

void record(Bytes& input, int step, std::initializer_list<int> choices = {}) {
  const std::size_t at = input.size();
  input.resize(at + kRecordBytes);
  input[at] = static_cast<std::uint8_t>(step);
  std::size_t i = at + 1;
  for (const int choice : choices) input[i++] = static_cast<std::uint8_t>(choice);
}

// Every operation, with and without a receive, in one shape of world.
Bytes tour(int shape, int sizes, int flags) {
  Bytes input = {static_cast<std::uint8_t>(shape), static_cast<std::uint8_t>(sizes),
                 static_cast<std::uint8_t>(flags), 0};
  constexpr int kQueueOf[] = {0, 0, 2};
  for (int opcode = 0; opcode < 13; ++opcode) {
    const int queue = kQueueOf[opcode % 3];
    const bool takes_receive = opcode >= 1 && opcode <= 3;
    const auto one = [&](std::initializer_list<int> post) {
      if (takes_receive) record(input, 3, {queue == 2 ? 2 : 1});
      record(input, 0, post);
      record(input, 11, {2});
    };
    one({queue, opcode});                          // small
    one({queue, opcode, 6, 0, 0, 0, 0, 0, 0x90});  // several pieces, several packets
    one({queue, opcode, 0x10});                    // inline
    record(input, 4, {queue, 8, 0, 1});
    record(input, 5, {0, 1});  // whatever failed: connect again
    record(input, 5, {queue == 2 ? 2 : 1, 1});
  }
  return input;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (int shape = 0; shape < 5; ++shape) {
    all.push_back(tour(shape, 0, 0));
    all.push_back(tour(shape, shape * 41 + 1, shape * 51 + 9));
  }
  Bytes churn = {2, 0, 0, 0};
  for (int queue = 0; queue < 3; ++queue) {
    record(churn, 0, {queue, 4, 0x40});  // a READ is on its way when ...
    record(churn, 9, {queue});           // ... its QP goes
    record(churn, 0, {queue, 0});
    record(churn, 7, {0, 0});
    record(churn, 0, {queue, 2});
    record(churn, 8, {200});
    record(churn, 10, {queue, 3});
    record(churn, 5, {queue, 3});
    record(churn, 5, {queue, 0});
  }
  all.push_back(churn);
  return all;
}

namespace {

void run_records(EngineWorld& world, const std::uint8_t* data, std::size_t size) {
  for (std::size_t at = kSetupBytes, n = 0; at < size && n < kMaxRecords; at += kRecordBytes, ++n) {
    Reader r(data + at, std::min(kRecordBytes, size - at));
    (world.*kSteps[r.byte() % std::size(kSteps)])(r);
  }
  world.settle();
  world.check();
}

Setup setup_of(const std::uint8_t* data, std::size_t size) {
  Reader choices(data, std::min(size, kSetupBytes));
  return Setup::read(choices);
}

}  // namespace

void check_reach() {
  for (int shape = 0; shape < 5; ++shape) {
    const Bytes input = tour(shape, 0, 0);
    EngineWorld world(setup_of(input.data(), input.size()));
    run_records(world, input.data(), input.size());
    // Each good operation small, most in pieces and inline; planned faults cost some their time.
    const bool faults = shape == 3;
    expect_reached(world.nic(0).impl().counters.wqes >= (faults ? 8u : 20u), "WQEs that complete");
    expect_reached((world.nic(0).impl().counters.frames_received > 0) == (shape != 0), "packets, or none");
  }
}

}  // namespace belfry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry::fuzz;
  EngineWorld world(setup_of(data, size));
  run_records(world, data, size);
  return 0;
}

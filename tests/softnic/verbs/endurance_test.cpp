/// \file
/// Long runs: index wraps under load, and peers that are killed at any moment.

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "softnic/verbs/target.hpp"

namespace belfry::softnic::test {
namespace {

// Fault: a slot reused too early, an index that wraps wrongly, a write lost or repeated. Ten million
// writes go through a ring of 64; each adds its number to a running sum at the target's side by way of
// distinct cells, whose last values are checked every lap.
TEST(Endurance, TenMillionWritesThroughASmallRing) {
  constexpr std::uint64_t kWrites = 10'000'000;
  constexpr std::uint64_t kCells = 4096;
  constexpr std::uint32_t kBatch = 16;
  Options options;
  options.bytes = kCells * 8;
  options.send_depth = 64;
  Endpoint a(options), b(options);
  a.connect(b.address());
  b.connect(a.address());
  const Address peer = b.address();

  std::uint64_t values[kBatch];
  ibv_sge sges[kBatch];
  ibv_send_wr wrs[kBatch];
  std::uint64_t posted = 0, completed = 0;
  while (completed < kWrites) {
    if (posted < kWrites && posted - completed + kBatch <= options.send_depth) {
      for (std::uint32_t i = 0; i < kBatch; ++i) {
        const std::uint64_t number = posted + i;
        values[i] = number * 0x9e3779b97f4a7c15ull;
        sges[i] = {reinterpret_cast<std::uint64_t>(&values[i]), 8, 0};
        wrs[i] = {};
        wrs[i].wr_id = number;
        wrs[i].next = i + 1 < kBatch ? &wrs[i + 1] : nullptr;
        wrs[i].sg_list = &sges[i];
        wrs[i].num_sge = 1;
        wrs[i].opcode = IBV_WR_RDMA_WRITE;
        wrs[i].send_flags = IBV_SEND_INLINE | (i + 1 == kBatch ? IBV_SEND_SIGNALED : 0);
        wrs[i].wr.rdma = {peer.memory + number % kCells * 8, peer.rkey};
      }
      a.post(wrs[0]);
      posted += kBatch;
    }
    ibv_wc wc;
    while (ibv_poll_cq(a.cq, 1, &wc) == 1) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, completed + kBatch - 1) << "out of order";
      completed += kBatch;
      if (completed % (kCells * 64) != 0) continue;
      // What is complete is in the target's memory, unless a later lap has overwritten it already.
      for (std::uint64_t n = completed - kCells + options.send_depth; n < completed; ++n) {
        std::uint64_t cell;
        std::memcpy(&cell, b.memory + n % kCells * 8, 8);
        ASSERT_EQ(cell, n * 0x9e3779b97f4a7c15ull) << n;
      }
    }
  }
  std::uint64_t expected = 0, found = 0;
  for (std::uint64_t n = kWrites - kCells; n < kWrites; ++n) {
    std::uint64_t cell;
    std::memcpy(&cell, b.memory + n % kCells * 8, 8);
    found += cell;
    expected += n * 0x9e3779b97f4a7c15ull;
  }
  EXPECT_EQ(found, expected);
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  DIR* d = opendir("/proc/self/fd");
  while (readdir(d)) ++n;
  closedir(d);
  return n;
}

// Fault: a peer's death that hangs the survivor, corrupts what it had, leaks its descriptors, or keeps a
// restarted peer from being reached.
TEST(Endurance, TwoHundredKillsOfAPeer) {
  constexpr int kRounds = 200;
  Options options;
  options.bytes = 1 << 16;
  options.timeout = 1;  // as short as the NIC lets it be
  options.retries = 4;
  Endpoint survivor(options);
  std::mt19937 random(17);
  std::size_t descriptors = 0;
  int exceeded = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    Target victim(Target::Kind::process, options);
    survivor.make_qp();
    const Address peer = victim.connect(survivor);
    fill(survivor.memory, 4096, static_cast<std::uint64_t>(round));
    const std::uint64_t die_after = random() % 300;
    bool killed = false;
    ibv_wc_status last = IBV_WC_SUCCESS;
    for (std::uint64_t n = 0; last == IBV_WC_SUCCESS; ++n) {
      ASSERT_LT(n, 100'000u) << "writes to a dead peer go on succeeding";
      if (n == die_after) {
        if (n > 1 && random() % 2 == 0) {
          ASSERT_EQ(victim.ask(Command::checksum, 0, 4096).value, checksum(survivor.memory, 4096));
        }
        victim.kill();
        killed = true;
      }
      ibv_sge sge{reinterpret_cast<std::uint64_t>(survivor.memory), 4096, survivor.mr->lkey};
      ibv_send_wr wr{};
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = n % 5 == 4 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.rdma = {peer.memory, peer.rkey};
      survivor.post(wr);
      last = survivor.complete().status;
      ASSERT_TRUE(last == IBV_WC_SUCCESS || killed) << ibv_wc_status_str(last);
    }
    EXPECT_EQ(last, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(last);
    exceeded += last == IBV_WC_RETRY_EXC_ERR;
    if (round == 10) descriptors = open_descriptors();
  }
  EXPECT_EQ(exceeded, kRounds);
  EXPECT_LE(open_descriptors(), descriptors + 4) << "descriptors leak with every death";
}

}  // namespace
}  // namespace belfry::softnic::test

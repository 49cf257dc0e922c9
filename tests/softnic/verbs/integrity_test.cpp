/// \file
/// Payload integrity of every verb through unmodified libibverbs and libmlx5, between threads of one
/// process and between processes, from 0 B to 64 MiB and at odd alignments.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <csignal>

#include "softnic/verbs/target.hpp"

namespace belfry::softnic::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class Integrity : public ::testing::TestWithParam<Target::Kind> {
 protected:
  void start(std::uint64_t bytes) {
    Options options;
    options.bytes = bytes;
    endpoint = std::make_unique<Endpoint>(options);
    target = std::make_unique<Target>(GetParam(), options);
    peer = target->connect(*endpoint);
  }

  /// Executes one work request on local [offset, offset + bytes) and expects success.
  void run(ibv_send_wr wr, std::uint64_t offset, std::uint32_t bytes) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(endpoint->memory) + offset, bytes, endpoint->mr->lkey};
    wr.sg_list = &sge;
    wr.num_sge = bytes != 0 ? 1 : 0;
    wr.send_flags |= IBV_SEND_SIGNALED;
    wr.wr_id = ++next_id;
    endpoint->post(wr);
    const ibv_wc wc = endpoint->complete();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    ASSERT_EQ(wc.wr_id, next_id);
  }
  ibv_send_wr to(ibv_wr_opcode opcode, std::uint64_t offset) const {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = peer.memory + offset;
    wr.wr.rdma.rkey = peer.rkey;
    return wr;
  }

  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Target> target;
  Address peer;
  std::uint64_t next_id = 0;
};

std::string kind_name(const ::testing::TestParamInfo<Target::Kind>& p) {
  return p.param == Target::Kind::thread ? "threads" : "processes";
}
INSTANTIATE_TEST_SUITE_P(Ends, Integrity, ::testing::Values(Target::Kind::thread, Target::Kind::process),
                         kind_name);

const std::uint32_t kSizes[] = {0,   1,    2,    3,    7,    8,    9,    63,    64,     65,
                                255, 1023, 1024, 1025, 4095, 4096, 4097, 65535, 1048577};

// Fault: bytes lost, repeated or moved, at some size, alignment or path.
TEST_P(Integrity, WritesOfAllSizesAndAlignments) {
  start(2 * kMiB);
  std::uint64_t seed = 1;
  for (std::uint32_t bytes : kSizes) {
    for (std::uint64_t shift : {0, 1, 13}) {
      fill(endpoint->memory + shift, bytes, ++seed);
      target->ask(Command::fill, 0, bytes + 64, 999);
      const std::uint64_t before = target->ask(Command::checksum, shift + 3 + bytes, 32).value;
      run(to(IBV_WR_RDMA_WRITE, shift + 3), shift, bytes);
      ASSERT_EQ(target->ask(Command::checksum, shift + 3, bytes).value,
                checksum(endpoint->memory + shift, bytes))
          << bytes << " B at " << shift;
      EXPECT_EQ(target->ask(Command::checksum, shift + 3 + bytes, 32).value, before)
          << "written past the end";
    }
  }
}

// Fault: inline data read from the wrong place, after the caller's buffer changed, or cut.
TEST_P(Integrity, InlineWritesAreTakenAtPostTime) {
  start(kMiB);
  for (std::uint32_t bytes = 1; bytes <= endpoint->max_inline; bytes += 3) {
    fill(endpoint->memory, bytes, bytes);
    const std::uint64_t sum = checksum(endpoint->memory, bytes);
    ibv_sge sge{reinterpret_cast<std::uint64_t>(endpoint->memory), bytes, 0};
    ibv_send_wr wr = to(IBV_WR_RDMA_WRITE, 5);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    endpoint->post(wr);
    std::memset(endpoint->memory, 0, bytes);
    ASSERT_EQ(endpoint->complete().status, IBV_WC_SUCCESS);
    ASSERT_EQ(target->ask(Command::checksum, 5, bytes).value, sum) << bytes;
  }
}

// Fault: READs that bring something else back.
TEST_P(Integrity, ReadsOfAllSizesAndAlignments) {
  start(2 * kMiB);
  std::uint64_t seed = 100;
  for (std::uint32_t bytes : kSizes) {
    for (std::uint64_t shift : {0, 5}) {
      target->ask(Command::fill, shift, bytes, ++seed);
      std::memset(endpoint->memory, 0, bytes + 64);
      run(to(IBV_WR_RDMA_READ, shift), 7, bytes);
      ASSERT_EQ(checksum(endpoint->memory + 7, bytes), target->ask(Command::checksum, shift, bytes).value)
          << bytes;
      EXPECT_EQ(endpoint->memory[7 + bytes], 0);
    }
  }
}

// Fault: a message whose length or immediate does not match its completion.
TEST_P(Integrity, SendsAndImmediates) {
  start(2 * kMiB);
  std::uint64_t seed = 500;
  for (std::uint32_t bytes : kSizes) {
    for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
      fill(endpoint->memory + 1, bytes, ++seed);
      target->ask(Command::post_receive, 9, opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : 1048577 + 64);
      ibv_send_wr wr = to(opcode, 9);
      wr.imm_data = 0x11223300u + opcode;
      run(wr, 1, bytes);
      const Answer got = target->ask(Command::receive);
      ASSERT_EQ(got.status, 0u);
      ASSERT_EQ(got.bytes, bytes);
      EXPECT_EQ(got.opcode, opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
      if (opcode != IBV_WR_SEND) {
        EXPECT_EQ(got.immediate, 0x11223300u + opcode);
      }
      ASSERT_EQ(target->ask(Command::checksum, 9, bytes).value, checksum(endpoint->memory + 1, bytes))
          << bytes;
    }
  }
}

// Fault: an atomic lost or executed twice; a result that is not the former value in host order.
TEST_P(Integrity, AtomicsCountExactly) {
  start(kMiB);
  target->ask(Command::set, 64, 1000);
  for (std::uint64_t i = 0; i < 500; ++i) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic = {peer.memory + 64, 7, 0, peer.rkey};
    run(wr, 128, 8);
    std::uint64_t old;
    std::memcpy(&old, endpoint->memory + 128, 8);
    ASSERT_EQ(old, 1000 + 7 * i);
  }
  EXPECT_EQ(target->ask(Command::get, 64).value, 4500u);
  for (std::uint64_t compare : {1ull, 4500ull}) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic = {peer.memory + 64, compare, 0x1122334455667788ull, peer.rkey};
    run(wr, 128, 8);
    std::uint64_t old;
    std::memcpy(&old, endpoint->memory + 128, 8);
    EXPECT_EQ(old, 4500u);
  }
  EXPECT_EQ(target->ask(Command::get, 64).value, 0x1122334455667788ull);
}

// Fault: PSNs, windows or lengths that break down in a long message.
TEST_P(Integrity, MessagesOf64MiB) {
  constexpr std::uint64_t kBytes = 64 * kMiB;
  start(kBytes + 64);
  fill(endpoint->memory + 3, kBytes, 42);
  const std::uint64_t sum = checksum(endpoint->memory + 3, kBytes);
  run(to(IBV_WR_RDMA_WRITE, 1), 3, kBytes);
  ASSERT_EQ(target->ask(Command::checksum, 1, kBytes).value, sum);
  std::memset(endpoint->memory, 0, kBytes);
  run(to(IBV_WR_RDMA_READ, 1), 0, kBytes);
  ASSERT_EQ(checksum(endpoint->memory, kBytes), sum);
  target->ask(Command::post_receive, 32, kBytes);
  run(to(IBV_WR_SEND, 0), 0, kBytes);
  EXPECT_EQ(target->ask(Command::receive).bytes, kBytes);
  ASSERT_EQ(target->ask(Command::checksum, 32, kBytes).value, sum);
}

// Fault: errors that reach the application with another status than rdma-core's for the same fault.
TEST_P(Integrity, ABadRemoteKeyIsARemoteAccessError) {
  start(kMiB);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(endpoint->memory), 8, endpoint->mr->lkey};
  ibv_send_wr wr = to(IBV_WR_RDMA_WRITE, 0);
  wr.wr.rdma.rkey ^= 0x5500;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  endpoint->post(wr);
  ibv_wc wc = endpoint->complete();
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wc.vendor_err, 0x88u);
  endpoint->post(wr);
  EXPECT_EQ(endpoint->complete().status, IBV_WC_WR_FLUSH_ERR);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // they have handlers of their own
volatile std::sig_atomic_t handled = 0;

// Fault: memory that went away under the NIC ends the program, or runs the program's handler on a thread it
// knows nothing of, because the program took SIGSEGV for itself after the device was opened.
TEST_P(Integrity, AProgramsHandlerDoesNotSeeTheNicsFaults) {
  start(kMiB);
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ibv_mr* mr = ibv_reg_mr(endpoint->pd, page, 4096, Endpoint::kAccess);
  ASSERT_NE(mr, nullptr);
  struct sigaction before {};
  struct sigaction action {};
  action.sa_handler = [](int) { handled = 1; };
  ASSERT_EQ(sigaction(SIGSEGV, &action, &before), 0);
  ::mprotect(page, 4096, PROT_NONE);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(page), 64, mr->lkey};
  ibv_send_wr wr = to(IBV_WR_RDMA_WRITE, 0);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  endpoint->post(wr);
  EXPECT_EQ(endpoint->complete().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(handled, 0);
  struct sigaction mine {};
  ASSERT_EQ(sigaction(SIGSEGV, &before, &mine), 0);
  EXPECT_EQ(mine.sa_handler, action.sa_handler) << "the program gets back what it set";
  ibv_dereg_mr(mr);
  ::munmap(page, 4096);
}
#endif

}  // namespace
}  // namespace belfry::softnic::test

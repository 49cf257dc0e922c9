// Queues in host memory whose payload is GPU memory, on the direct path, with packets, and between two NICs.
// What the NIC touches otherwise than by a copy faults, and is counted.

#include <gtest/gtest.h>

#include <random>

#include "softnic/firmware/rig.hpp"
#include "softnic/gpu/guarded_memory.hpp"

namespace belfry::softnic {
namespace {

using test::Buffer;
using test::GuardedLibrary;
using test::GuardedMemory;
using test::Sge;
using test::Side;

enum class Way { direct, packets, two_nics };

constexpr std::size_t kBytes = 3 << 20;

std::vector<unsigned char> random_bytes(std::size_t count, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::vector<unsigned char> bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random() >> 8);
  return bytes;
}

class GpuPayloadOn : public ::testing::TestWithParam<Way> {
 protected:
  GpuPayloadOn() {
    auto hub = MemoryHub::create();
    for (unsigned i = 0; i < (GetParam() == Way::two_nics ? 2 : 1); ++i) {
      Config config;
      config.seed = 1 + i;
      config.node = i;
      config.direct_loopback = GetParam() == Way::direct;
      config.gpu.copies = GpuCopies::cuda;
      nics_.push_back(std::make_unique<Nic>(config, hub->open_port()));
      nics_.back()->impl().gpu.use(std::make_unique<GuardedLibrary>(gpu_, states_[i]));
    }
    near_ = std::make_unique<Side>(*nics_.front());
    far_ = std::make_unique<Side>(*nics_.back());
    near_->connect(*far_);
    far_->connect(*near_);
    near_key_ = register_gpu(*near_);
    far_key_ = register_gpu(*far_);
  }
  ~GpuPayloadOn() override {
    near_->nic.destroy_mkey(near_key_);
    far_->nic.destroy_mkey(far_key_);
  }

  std::uint32_t register_gpu(Side& side) const {
    MkeyAttributes a;
    a.pd = side.pd;
    a.address = gpu_.address();
    a.length = gpu_.size();
    a.memory = gpu_.data();
    a.access = Side::kAll;
    a.memory_owner = side.nic.owner_of(gpu_.data(), gpu_.size());
    return *side.nic.create_mkey(a);
  }

  void poll(unsigned turns = 200) const {
    for (unsigned i = 0; i < turns; ++i)
      for (const auto& nic : nics_) nic->poll();
  }
  /// The next completion of a side.
  wire::Cqe wait(Side& side) const {
    wire::Cqe cqe{};
    for (unsigned i = 0; i < 20'000; ++i) {
      if (side.poll_cq(cqe)) return cqe;
      poll(1);
    }
    ADD_FAILURE() << "no completion";
    return cqe;
  }
  void expect_done(Side& side) const { EXPECT_EQ(wait(side).opcode(), wire::CqeOpcode::requester); }
  std::uint64_t faults() const {
    std::uint64_t sum = 0;
    for (const auto& nic : nics_) sum += nic->impl().counters.memory_faults;
    return sum;
  }
  std::uint64_t gpu(std::size_t offset) const { return gpu_.address() + offset; }

  GuardedLibrary::State& near_state() { return states_[0]; }
  GuardedLibrary::State& far_state() { return states_[nics_.size() - 1]; }

  const GuardedMemory gpu_{kBytes};
  GuardedLibrary::State states_[2];
  std::vector<std::unique_ptr<Nic>> nics_;
  std::unique_ptr<Side> near_;
  std::unique_ptr<Side> far_;
  std::uint32_t near_key_ = 0;
  std::uint32_t far_key_ = 0;
};

constexpr std::uint32_t kLengths[] = {1, 7, 8, 9, 1023, 1024, 1025, 4096, 70'001, 262'144, 262'145, 700'003};

// Fault: GPU memory that the CPU's NIC touches itself, and bytes that a copy leaves out, doubles or puts
// elsewhere.
TEST_P(GpuPayloadOn, WritesArriveFromAndToEitherMemory) {
  Buffer host(kBytes);
  const std::uint32_t near_host = near_->register_memory(host);
  const std::uint32_t far_host = far_->register_memory(host);
  for (const std::uint32_t bytes : kLengths) {
    const auto data = random_bytes(bytes + 32, bytes);
    const std::vector<unsigned char> guard(bytes + 32, 0xee);
    // Host to GPU.
    std::memcpy(host.data() + 3, data.data(), bytes);
    gpu_.write(0, guard.data(), guard.size());
    near_->write({gpu(5), far_key_}, {host.address() + 3, bytes, near_host});
    near_->ring();
    expect_done(*near_);
    auto image = guard;
    std::memcpy(image.data() + 5, data.data(), bytes);
    ASSERT_TRUE(gpu_.read(0, image.size()) == image) << bytes;
    // GPU to GPU.
    gpu_.write(1 << 20, guard.data(), guard.size());
    near_->write({gpu((1 << 20) + 5), far_key_}, {gpu(5), bytes, near_key_});
    near_->ring();
    expect_done(*near_);
    ASSERT_TRUE(gpu_.read(1 << 20, image.size()) == image) << bytes;
    // GPU to host.
    std::memcpy(host.data() + (1 << 20), guard.data(), guard.size());
    near_->write({host.address() + (1 << 20) + 5, far_host}, {gpu((1 << 20) + 5), bytes, near_key_});
    near_->ring();
    expect_done(*near_);
    ASSERT_EQ(std::memcmp(host.data() + (1 << 20), image.data(), image.size()), 0) << bytes;
  }
  EXPECT_EQ(faults(), 0u);
}

// Fault: a READ whose source or target is a GPU's, likewise.
TEST_P(GpuPayloadOn, ReadsArriveFromAndToEitherMemory) {
  Buffer host(kBytes);
  const std::uint32_t near_host = near_->register_memory(host);
  const std::uint32_t far_host = far_->register_memory(host);
  for (const std::uint32_t bytes : kLengths) {
    const auto data = random_bytes(bytes, bytes);
    std::memcpy(host.data(), data.data(), bytes);
    near_->read({host.address(), far_host}, {gpu(9), bytes, near_key_});
    near_->ring();
    expect_done(*near_);
    ASSERT_TRUE(gpu_.read(9, bytes) == data) << bytes;
    near_->read({gpu(9), far_key_}, {gpu(1 << 20), bytes, near_key_});
    near_->ring();
    expect_done(*near_);
    ASSERT_TRUE(gpu_.read(1 << 20, bytes) == data) << bytes;
    near_->read({gpu(1 << 20), far_key_}, {host.address() + (1 << 20), bytes, near_host});
    near_->ring();
    expect_done(*near_);
    ASSERT_EQ(std::memcmp(host.data() + (1 << 20), data.data(), bytes), 0) << bytes;
  }
  EXPECT_EQ(faults(), 0u);
}

// Fault: a message in pieces of both memories, of which one is taken for the other's.
TEST_P(GpuPayloadOn, PiecesOfBothMemoriesMakeOneMessage) {
  Buffer host(8192);
  const std::uint32_t near_host = near_->register_memory(host);
  const std::uint32_t far_host = far_->register_memory(host);
  const auto data = random_bytes(3000, 1);
  std::memcpy(host.data(), data.data(), 1000);
  gpu_.write(0, data.data() + 1000, 1500);
  std::memcpy(host.data() + 1000, data.data() + 2500, 500);
  far_->post_receive({{gpu(1 << 20), 700, far_key_}, {host.address() + 4096, 2300, far_host}});
  near_->begin();
  near_->put_sge({host.address(), 1000, near_host});
  near_->put_sge({gpu(0), 1500, near_key_});
  near_->put_sge({host.address() + 1000, 500, near_host});
  near_->finish(wire::WqeOpcode::send);
  near_->ring();
  expect_done(*near_);
  const wire::Cqe received = wait(*far_);
  EXPECT_EQ(received.opcode(), wire::CqeOpcode::responder_send);
  EXPECT_EQ(received.byte_count.get(), 3000u);
  EXPECT_TRUE(gpu_.read(1 << 20, 700) == std::vector(data.begin(), data.begin() + 700));
  EXPECT_EQ(std::memcmp(host.data() + 4096, data.data() + 700, 2300), 0);
  EXPECT_EQ(faults(), 0u);
}

// Fault: a completion, a signal in host memory or a later atomic that is there before the payload it follows.
TEST_P(GpuPayloadOn, WhatFollowsPayloadFindsIt) {
  Buffer host(4096);
  const std::uint32_t far_host = far_->register_memory(host);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const std::uint64_t value = round * 0x0101010101010101;
    far_->post_receive({});
    near_->write_inline({gpu(64), far_key_}, &value, sizeof value, 0);
    near_->begin();
    near_->put_remote({host.address(), far_host});
    near_->put_inline(&round, sizeof round);
    near_->finish(wire::WqeOpcode::rdma_write_immediate, wire::kWqeCompletionAlways, 7);
    near_->ring();
    auto* signal = reinterpret_cast<std::uint64_t*>(host.data());
    for (unsigned i = 0; std::atomic_ref(*signal).load() != round && i < 1000; ++i) poll(1);
    EXPECT_EQ(gpu_.word(64), value);
    expect_done(*near_);
    EXPECT_EQ(wait(*far_).opcode(), wire::CqeOpcode::responder_write_immediate);
  }
  EXPECT_EQ(faults(), 0u);
}

// Fault: an atomic that another one is lost in, or a former value that goes elsewhere.
TEST_P(GpuPayloadOn, AtomicsAddUpInGpuMemory) {
  for (std::uint64_t i = 0; i < 30; ++i) {
    near_->fetch_add({gpu(128), far_key_}, 5, {gpu(256 + 8 * i), 8, near_key_});
    near_->ring();
    expect_done(*near_);
  }
  EXPECT_EQ(gpu_.word(128), 150u);
  for (std::uint64_t i = 0; i < 30; ++i) EXPECT_EQ(gpu_.word(256 + 8 * i), 5 * i);
  EXPECT_EQ(faults(), 0u);
}

// Fault: a copy for each packet of a message, which then is as slow as they are many.
TEST_P(GpuPayloadOn, PacketsShareCopies) {
  near_state().copies = far_state().copies = 0;
  near_->write({gpu(1 << 20), far_key_}, {gpu(0), 256 * 1024, near_key_});
  near_->ring();
  expect_done(*near_);
  EXPECT_LE(states_[0].copies + states_[1].copies, 32u);  // of 256 packets, each read and written
}

// Fault: freed memory that takes the process with it, or that the other end is blamed for.
TEST_P(GpuPayloadOn, MemoryThatIsGoneFailsItsQueue) {
  near_state().gone = true;
  near_->write({gpu(0), far_key_}, {gpu(4096), 64, near_key_});
  near_->ring();
  const wire::Cqe cqe = wait(*near_);
  EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester_error);
  wire::ErrorCqe error;
  std::memcpy(&error, &cqe, sizeof error);
  EXPECT_EQ(static_cast<wire::Syndrome>(error.syndrome), wire::Syndrome::local_protection);
  EXPECT_EQ(near_->nic.query_qp(near_->qpn)->state, QpState::error);
  EXPECT_EQ(far_->nic.query_qp(far_->qpn)->state, QpState::rts);
  EXPECT_EQ(faults(), 1u);
}

// Fault: the same of the target, which then is the responder's failure.
TEST_P(GpuPayloadOn, ATargetThatIsGoneFailsBothEnds) {
  far_state().gone = true;
  const std::uint64_t value = 1;
  near_->write_inline({gpu(0), far_key_}, &value, sizeof value);
  near_->ring();
  const wire::Cqe cqe = wait(*near_);
  wire::ErrorCqe error;
  std::memcpy(&error, &cqe, sizeof error);
  EXPECT_EQ(static_cast<wire::Syndrome>(error.syndrome), wire::Syndrome::remote_operation);
  EXPECT_EQ(far_->nic.query_qp(far_->qpn)->state, QpState::error);
}

// Fault: a key of GPU memory that is gone and still takes host memory for a GPU's.
TEST_P(GpuPayloadOn, AKeyThatIsGoneNamesNothing) {
  Nic::Impl& core = near_->nic.impl();
  const std::uint32_t further = register_gpu(*near_);
  EXPECT_TRUE(core.gpu_payload.holds(gpu_.data()));
  EXPECT_FALSE(core.gpu_payload.holds(gpu_.data() + gpu_.size()));
  EXPECT_FALSE(core.gpu_payload.holds(gpu_.data() - 1));
  EXPECT_EQ(near_->nic.destroy_mkey(further), 0);
  EXPECT_TRUE(core.gpu_payload.holds(gpu_.data())) << "another key names it";
  near_->nic.destroy_mkey(near_key_);
  far_->nic.destroy_mkey(far_key_);
  EXPECT_FALSE(core.gpu_payload.holds(gpu_.data()));
  EXPECT_TRUE(core.gpu_payload.empty());
}

INSTANTIATE_TEST_SUITE_P(Ways, GpuPayloadOn, ::testing::Values(Way::direct, Way::packets, Way::two_nics),
                         [](const auto& way) {
                           return way.param == Way::direct    ? "direct"
                                  : way.param == Way::packets ? "packets"
                                                              : "two_nics";
                         });

}  // namespace
}  // namespace belfry::softnic

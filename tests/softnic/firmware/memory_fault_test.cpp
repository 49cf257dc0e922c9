/// \file
/// Memory that is unmapped while the NIC still has it. Fault: a segmentation fault of the application.

#include <sys/mman.h>

#include "softnic/firmware/rig.hpp"

// TSan's own signal handling does not outlive a handler that leaves by a jump.
#if !defined(__SANITIZE_THREAD__)

namespace belfry::softnic::test {
namespace {

/// Pages that can go away.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  ~Pages() { vanish(); }
  // Nothing else may be mapped there, so that an access faults for certain.
  void vanish() { ::mprotect(data_, bytes_, PROT_NONE); }
  unsigned char* data() { return static_cast<unsigned char*>(data_); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

class MemoryFaults : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    config.seed = 3;
    config.direct_loopback = GetParam();
    hub = MemoryHub::create(256);
    nic = std::make_unique<Nic>(config, hub->open_port());
    ManualClock::install(*nic);
    a = std::make_unique<Side>(*nic);
    b = std::make_unique<Side>(*nic);
    QpModify extra;
    extra.timeout = 1;
    extra.retry_count = 1;
    a->connect(*b, extra);
    b->connect(*a, extra);
    lkey = a->register_memory(local.data(), 4096);
    rkey = b->register_memory(remote.data(), 4096);
  }
  void poll() {
    for (int i = 0; i < 2000; ++i) {
      nic->poll();
      ManualClock::advance_us(50);
    }
  }
  wire::Syndrome first_error(Side& side) {
    wire::Cqe cqe;
    while (side.poll_cq(cqe)) {
      wire::ErrorCqe e;
      std::memcpy(&e, &cqe, sizeof e);
      if (e.opcode() == wire::CqeOpcode::requester_error) return static_cast<wire::Syndrome>(e.syndrome);
    }
    return wire::Syndrome::none;
  }

  Config config;
  std::shared_ptr<MemoryHub> hub;
  std::unique_ptr<Nic> nic;
  Pages local{4096}, remote{4096};
  std::unique_ptr<Side> a, b;
  std::uint32_t lkey = 0, rkey = 0;
};

std::string path_name(const ::testing::TestParamInfo<bool>& p) { return p.param ? "direct" : "packets"; }
INSTANTIATE_TEST_SUITE_P(Paths, MemoryFaults, ::testing::Bool(), path_name);

TEST_P(MemoryFaults, AGoneSourceFailsItsOwnQueue) {
  a->write({remote.address(), rkey}, {local.address(), 64, lkey});
  a->write({remote.address(), rkey}, {local.address(), 64, lkey});
  local.vanish();
  a->ring();
  poll();
  const QpState expected = QpState::error;
  EXPECT_EQ(nic->query_qp(a->qpn)->state == expected || nic->query_qp(b->qpn)->state == expected, true);
  EXPECT_NE(first_error(*a), wire::Syndrome::none);
  EXPECT_GE(nic->impl().counters.memory_faults, 1u);
}

TEST_P(MemoryFaults, AGoneTargetFailsItsQueueAndThenItsPeer) {
  a->write({remote.address(), rkey}, {local.address(), 64, lkey});
  remote.vanish();
  a->ring();
  poll();
  EXPECT_EQ(nic->query_qp(a->qpn)->state, QpState::error);
  EXPECT_EQ(first_error(*a), wire::Syndrome::remote_operation);
}

TEST_P(MemoryFaults, AGoneReadTargetIsALocalProtectionError) {
  a->read({remote.address(), rkey}, {local.address(), 64, lkey});
  local.vanish();
  a->ring();
  poll();
  EXPECT_EQ(first_error(*a), wire::Syndrome::local_protection);
}

// Fault: a READ that is owed from memory that is gone faults with every poll, and nobody else is served.
TEST_P(MemoryFaults, AGoneReadSourceStopsNothingElse) {
  a->read({remote.address(), rkey}, {local.address(), 64, lkey});
  remote.vanish();
  a->ring();
  poll();
  EXPECT_LE(nic->impl().counters.memory_faults, 3u);
  EXPECT_EQ(nic->query_qp(b->qpn)->state, QpState::error);
  EXPECT_EQ(nic->query_qp(a->qpn)->state, QpState::error);
  EXPECT_NE(first_error(*a), wire::Syndrome::none);
}

// A queue's own rings and records: nobody can be told through them, but nothing else may suffer.
TEST_P(MemoryFaults, OtherQueuesGoOnWhenOneLosesItsRings) {
  Pages ring(4096), records(4096), cq_ring(64 << 4);
  CqAttributes c;
  c.buffer = cq_ring.data();
  c.log_entries = 4;
  c.doorbell_record = records.data() + 64;
  c.uar = a->uar;
  RecordedSink sink;
  c.sink = &sink;
  const std::uint32_t cqn = *nic->create_cq(c);
  QpAttributes q;
  q.pd = a->pd;
  q.send_queue = ring.data();
  q.send_blocks = 16;
  q.doorbell_record = records.data();
  q.uar = a->uar;
  q.send_cq = q.receive_cq = cqn;
  q.sink = &sink;
  const std::uint32_t qpn = *nic->create_qp(q);
  QpModify rts;
  rts.state = QpState::rts;
  ASSERT_EQ(nic->modify_qp(qpn, rts), 0);
  reinterpret_cast<std::uint32_t*>(records.data())[1] = Be32(1).raw();
  ring.vanish();
  cq_ring.vanish();
  const auto nop = wire::make_control(wire::WqeOpcode::nop, 0, qpn, 1, wire::kWqeCompletionAlways);
  a->store_register(wire::send_doorbell(nop.opmod_index_opcode, nop.qpn_ds));
  poll();
  records.vanish();
  for (std::uint64_t i = 0; i < 3; ++i) {
    a->write_inline({remote.address(), rkey}, &i, 8);
    a->ring();
    poll();
    wire::Cqe cqe;
    ASSERT_TRUE(a->poll_cq(cqe));
    EXPECT_EQ(cqe.opcode(), wire::CqeOpcode::requester);
  }
  EXPECT_FALSE(sink.events.empty());
  EXPECT_EQ(nic->destroy_qp(qpn), 0);
  EXPECT_EQ(nic->destroy_cq(cqn), 0);
}

}  // namespace
}  // namespace belfry::softnic::test

#endif

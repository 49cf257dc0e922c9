#pragma once
/// \file
/// A NIC driven by hand: queues in plain memory, WQEs written by the test, doorbells stored by the
/// test, and poll() called by the test. No thread, no libmlx5, and time is the test's where it wants.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "belfry/wire/cqe.hpp"
#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/wqe.hpp"
#include "softnic/fabric/faulty_fabric.hpp"
#include "softnic/fabric/memory_fabric.hpp"
#include "softnic/firmware/nic.hpp"
#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic::test {

/// Memory with an alignment, zeroed.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes, std::size_t alignment = 4096)
      : bytes_(bytes),
        data_(static_cast<unsigned char*>(std::aligned_alloc(alignment, round(bytes, alignment)))) {
    std::memset(data_, 0, round(bytes, alignment));
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  unsigned char* data() { return data_; }
  std::size_t size() const { return bytes_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }

 private:
  static std::size_t round(std::size_t n, std::size_t a) { return (n + a - 1) / a * a + (n == 0 ? a : 0); }
  std::size_t bytes_;
  unsigned char* data_;
};

struct RecordedSink final : EventSink {
  std::vector<std::uint32_t> completions;
  std::vector<std::pair<AsyncEvent, std::uint32_t>> events;
  void completion(std::uint32_t cqn) override { completions.push_back(cqn); }
  void async(AsyncEvent e, std::uint32_t number) override { events.emplace_back(e, number); }
};

/// A scatter/gather entry of a test's work request.
struct Sge {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t key;
};

/// One side: a PD, a CQ and a QP on a NIC, with everything they lie in.
class Side {
 public:
  struct Options {
    unsigned log_cq = 8;
    std::uint32_t send_blocks = 64;
    std::uint32_t receive_entries = 64;
    std::uint32_t receive_stride = 64;
    bool no_record = false;
    bool collapsed = false;
    bool ignore_overrun = false;
    MemoryOwner owner = kHostMemory;  ///< whose memory rings and records say that they are
    unsigned device = 0;
    std::uint64_t start = 0;
  };

  explicit Side(Nic& on) : Side(on, Options{}) {}
  Side(Nic& on, const Options& chosen)
      : nic(on),
        options(chosen),
        page(wire::kUarBytes),
        cq_ring(std::size_t{64} << chosen.log_cq),
        send_ring(std::size_t{chosen.send_blocks} * 64),
        receive_ring(std::size_t{chosen.receive_entries} * chosen.receive_stride),
        records(4096) {
    std::memset(cq_ring.data(), 0xf0, cq_ring.size());  // opcode "invalid" everywhere
    pd = *nic.alloc_pd(options.device);
    uar = *nic.attach_uar(page.data());
    cqn = make_cq();
    qpn = make_qp();
  }
  ~Side() {
    nic.destroy_qp(qpn);
    nic.destroy_cq(cqn);
    nic.detach_uar(uar);
    for (std::uint32_t key : keys) nic.destroy_mkey(key);
    nic.dealloc_pd(pd);
  }

  std::uint32_t register_memory(void* at, std::uint64_t bytes, std::uint32_t access = kAll) {
    MkeyAttributes a;
    a.device = options.device;
    a.pd = pd;
    a.address = reinterpret_cast<std::uint64_t>(at);
    a.length = bytes;
    a.memory = at;
    a.access = access;
    a.memory_owner = nic.owner_of(at, bytes);
    const auto key = nic.create_mkey(a);
    EXPECT_TRUE(key);
    keys.push_back(*key);
    return *key;
  }
  std::uint32_t register_memory(Buffer& b, std::uint32_t access = kAll) {
    return register_memory(b.data(), b.size(), access);
  }

  /// Of a further queue pair, without a doorbell record, on this one's rings.
  QpAttributes further_queue() {
    QpAttributes a;
    a.pd = pd;
    a.send_queue = send_ring.data();
    a.send_blocks = options.send_blocks;
    a.no_record = true;
    a.uar = uar;
    a.send_cq = a.receive_cq = cqn;
    return a;
  }

  /// Takes the QP to RTS towards `other`.
  void connect(const Side& other, const QpModify& extra = {}) {
    QpModify init;
    init.state = QpState::init;
    init.access = kAll;
    ASSERT_EQ(nic.modify_qp(qpn, init), 0);
    QpModify rtr = extra;
    rtr.state = QpState::rtr;
    PathAttributes path;
    const DeviceIdentity& target = other.nic.device(other.options.device);
    path.dlid = target.lid;
    if (target.link == LinkLayer::ethernet) {
      path.global = true;
      path.dgid = target.gids[3].gid;
      path.sgid_index = 3;
    }
    rtr.path = path;
    if (!rtr.path_mtu) rtr.path_mtu = 1024;
    rtr.destination_qpn = other.qpn;
    rtr.receive_psn = 0xfffff0;  // wraps soon
    if (!rtr.responder_depth) rtr.responder_depth = 16;
    if (!rtr.min_rnr_timer) rtr.min_rnr_timer = 1;
    ASSERT_EQ(nic.modify_qp(qpn, rtr), 0);
    QpModify rts;
    rts.state = QpState::rts;
    rts.send_psn = 0xfffff0;
    rts.initiator_depth = extra.initiator_depth.value_or(16);
    rts.timeout = extra.timeout.value_or(10);
    rts.retry_count = extra.retry_count.value_or(7);
    rts.rnr_retry = extra.rnr_retry.value_or(7);
    ASSERT_EQ(nic.modify_qp(qpn, rts), 0);
  }

  // Building WQEs. -------------------------------------------------------------------------------
  struct Remote {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };

  /// Starts a WQE at the producer; segments follow with put(), finish() completes it.
  void begin() { wqe.assign(16, 0); }
  template <class Segment>
  void put(const Segment& s) {
    const auto* p = reinterpret_cast<const unsigned char*>(&s);
    wqe.insert(wqe.end(), p, p + sizeof s);
  }
  void put_remote(Remote r) {
    wire::RemoteAddressSegment s{};
    s.address.set(r.address);
    s.rkey.set(r.key);
    put(s);
  }
  void put_sge(Sge e) {
    wire::DataSegment s{};
    s.byte_count.set(e.bytes);
    s.lkey.set(e.key);
    s.address.set(e.address);
    put(s);
  }
  void put_inline(const void* data, std::size_t bytes) {
    put(wire::InlineHeader{Be32(wire::kInlineFlag | static_cast<std::uint32_t>(bytes))});
    const auto* p = static_cast<const unsigned char*>(data);
    wqe.insert(wqe.end(), p, p + bytes);
    while (wqe.size() % 16 != 0) wqe.push_back(0);
  }
  /// \return the first block's index
  std::uint64_t finish(wire::WqeOpcode opcode, std::uint8_t flags = wire::kWqeCompletionAlways,
                       std::uint32_t immediate = 0, std::uint8_t opmod = 0) {
    const std::uint64_t first = producer;
    const auto control = wire::make_control(opcode, first, qpn, static_cast<std::uint32_t>(wqe.size() / 16),
                                            flags, Be32(immediate), opmod);
    std::memcpy(wqe.data(), &control, sizeof control);
    for (std::size_t at = 0; at < wqe.size(); at += 16) {
      const std::uint64_t block = producer + at / 64;
      std::memcpy(send_ring.data() + (block & (options.send_blocks - 1)) * 64 + at % 64, wqe.data() + at, 16);
    }
    producer += (wqe.size() + 63) / 64;
    last_control = control;
    return first;
  }

  std::uint64_t write(Remote to, Sge from, std::uint8_t flags = wire::kWqeCompletionAlways) {
    begin();
    put_remote(to);
    if (from.bytes != 0) put_sge(from);
    return finish(wire::WqeOpcode::rdma_write, flags);
  }
  std::uint64_t write_inline(Remote to, const void* data, std::size_t bytes,
                             std::uint8_t flags = wire::kWqeCompletionAlways) {
    begin();
    put_remote(to);
    put_inline(data, bytes);
    return finish(wire::WqeOpcode::rdma_write, flags);
  }
  std::uint64_t read(Remote from, Sge to, std::uint8_t flags = wire::kWqeCompletionAlways) {
    begin();
    put_remote(from);
    if (to.bytes != 0) put_sge(to);
    return finish(wire::WqeOpcode::rdma_read, flags);
  }
  std::uint64_t send(Sge from, std::uint8_t flags = wire::kWqeCompletionAlways) {
    begin();
    if (from.bytes != 0) put_sge(from);
    return finish(wire::WqeOpcode::send, flags);
  }
  std::uint64_t fetch_add(Remote at, std::uint64_t add, Sge result) {
    begin();
    put_remote(at);
    wire::AtomicSegment s{};
    s.swap_or_add.set(add);
    put(s);
    put_sge(result);
    return finish(wire::WqeOpcode::atomic_fetch_add);
  }

  void post_receive(std::vector<Sge> list) {
    auto* entry =
        receive_ring.data() + (receive_producer++ & (options.receive_entries - 1)) * options.receive_stride;
    std::memset(entry, 0, options.receive_stride);
    list.push_back({0, 0, wire::kInvalidLkey});
    for (std::size_t i = 0; i < list.size() && (i + 1) * 16 <= options.receive_stride; ++i) {
      wire::DataSegment s{};
      s.byte_count.set(list[i].bytes);
      s.lkey.set(list[i].key);
      s.address.set(list[i].address);
      std::memcpy(entry + i * 16, &s, sizeof s);
    }
    record_word(0).store(Be32(static_cast<std::uint16_t>(receive_producer)).raw());
  }

  /// Record and doorbell for everything posted so far.
  void ring() {
    if (options.no_record) {
      const auto c = wire::make_control(wire::WqeOpcode::nop, producer, qpn, 0, 0);
      store_register(wire::send_doorbell(c.opmod_index_opcode, c.qpn_ds));
    } else {
      record_word(1).store(Be32(static_cast<std::uint16_t>(producer)).raw());
      store_register(wire::send_doorbell(last_control.opmod_index_opcode, last_control.qpn_ds));
    }
  }

  void arm(bool solicited = false) {
    const std::uint32_t word = (arm_sequence++ & 3) << 28 |
                               (solicited ? wire::kCqArmSolicited : wire::kCqArmNext) |
                               (static_cast<std::uint32_t>(consumer) & 0xffffff);
    cq_word(1).store(Be32(word).raw());
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(page.data() + wire::kUarCqDoorbell))
        .store(wire::cq_arm_doorbell(word, cqn));
  }

  /// The next completion, if there is one.
  bool poll_cq(wire::Cqe& out) {
    const std::uint32_t entries = 1u << options.log_cq;
    auto* entry = cq_ring.data() + (options.collapsed ? 0 : (consumer & (entries - 1))) * 64;
    std::memcpy(&out, entry, sizeof out);
    if (out.opcode() == wire::CqeOpcode::invalid || out.owner() != ((consumer & entries) != 0)) return false;
    ++consumer;
    cq_word(0).store(Be32(static_cast<std::uint32_t>(consumer) & 0xffffff).raw());
    return true;
  }

  std::atomic_ref<std::uint32_t> record_word(unsigned i) {
    return std::atomic_ref<std::uint32_t>(reinterpret_cast<std::uint32_t*>(records.data())[i]);
  }
  std::atomic_ref<std::uint32_t> cq_word(unsigned i) {
    return std::atomic_ref<std::uint32_t>(reinterpret_cast<std::uint32_t*>(records.data() + 64)[i]);
  }
  void store_register(std::uint64_t value, unsigned half = 0) {
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(page.data() + wire::kUarFirstRegister +
                                                                     half * wire::kUarRegisterHalfBytes))
        .store(value);
  }

  static constexpr std::uint32_t kAll =
      kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;

  Nic& nic;
  Options options;
  Buffer page, cq_ring, send_ring, receive_ring, records;
  RecordedSink sink;
  std::uint32_t pd = 0, uar = 0, cqn = 0, qpn = 0;
  std::uint64_t producer = 0, consumer = 0, receive_producer = 0;
  std::uint32_t arm_sequence = 0;
  std::vector<std::uint32_t> keys;
  std::vector<unsigned char> wqe;
  wire::ControlSegment last_control{};

 private:
  std::uint32_t make_cq() {
    CqAttributes a;
    a.device = options.device;
    a.buffer = cq_ring.data();
    a.log_entries = options.log_cq;
    a.doorbell_record = records.data() + 64;
    a.uar = uar;
    a.collapsed = options.collapsed;
    a.ignore_overrun = options.ignore_overrun;
    a.buffer_owner = a.record_owner = options.owner;
    a.sink = &sink;
    return *nic.create_cq(a);
  }
  std::uint32_t make_qp() {
    QpAttributes a;
    a.device = options.device;
    a.pd = pd;
    a.send_queue = send_ring.data();
    a.send_blocks = options.send_blocks;
    if (!options.no_record) {
      a.receive_queue = receive_ring.data();
      a.receive_entries = options.receive_entries;
      a.receive_stride = options.receive_stride;
    }
    a.doorbell_record = options.no_record ? nullptr : records.data();
    a.no_record = options.no_record;
    a.queues_owner = a.record_owner = options.owner;
    a.uar = uar;
    a.send_cq = a.receive_cq = cqn;
    a.user_index = 0x1234;
    a.sink = &sink;
    return *nic.create_qp(a);
  }
};

/// Time that a test moves.
struct ManualClock {
  static inline std::uint64_t now = 1'000'000'000;
  static std::uint64_t read() { return now; }
  static void install(Nic& nic) { nic.impl().clock = &read; }
  static void advance_us(std::uint64_t us) { now += us * 1000; }
};

}  // namespace belfry::softnic::test

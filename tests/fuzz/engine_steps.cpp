// The steps of EngineWorld: what an application does to its queues, right and wrong.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "belfry/wire/cqe.hpp"
#include "fuzz/engine_world.hpp"
#include "softnic/firmware/nic_core.hpp"

namespace belfry::fuzz {
namespace {

using wire::WqeOpcode;

constexpr WqeOpcode kOpcodes[] = {
    WqeOpcode::rdma_write,
    WqeOpcode::rdma_write_immediate,
    WqeOpcode::send,
    WqeOpcode::send_immediate,
    WqeOpcode::rdma_read,
    WqeOpcode::atomic_fetch_add,
    WqeOpcode::atomic_compare_swap,
    WqeOpcode::atomic_masked_fetch_add,
    WqeOpcode::atomic_masked_compare_swap,
    WqeOpcode::nop,
    WqeOpcode::umr,
    WqeOpcode::local_invalidate,
    WqeOpcode::send_invalidate,
};

bool atomic(WqeOpcode o) {
  return o == WqeOpcode::atomic_fetch_add || o == WqeOpcode::atomic_compare_swap ||
         o == WqeOpcode::atomic_masked_fetch_add || o == WqeOpcode::atomic_masked_compare_swap;
}
bool has_remote(WqeOpcode o) {
  return o == WqeOpcode::rdma_write || o == WqeOpcode::rdma_write_immediate || o == WqeOpcode::rdma_read ||
         atomic(o);
}

// A WQE's bytes, segment by segment.
class Image {
 public:
  template <class T>
  void add(const T& segment) {
    if (bytes_ + sizeof segment > sizeof image_) return;
    std::memcpy(image_ + bytes_, &segment, sizeof segment);
    bytes_ += sizeof segment;
  }
  void add_bytes(std::size_t count, std::uint8_t value) {
    count = std::min(count, sizeof image_ - bytes_);
    std::memset(image_ + bytes_, value, count);
    bytes_ += count;
  }
  void pad() { bytes_ = std::min(sizeof image_, (bytes_ + 15) / 16 * 16); }
  std::uint32_t segments() const { return static_cast<std::uint32_t>(bytes_ / 16); }
  std::uint32_t blocks() const { return static_cast<std::uint32_t>((bytes_ + 63) / 64); }
  std::uint8_t* bytes() { return image_; }

 private:
  std::size_t bytes_ = sizeof(wire::ControlSegment);
  alignas(16) std::uint8_t image_[wire::kMaxSegments * wire::kSegmentBytes] = {};
};

void add_operands(Image& image, WqeOpcode opcode, bool narrow, Reader& r) {
  const std::uint64_t a = r.byte();
  const std::uint64_t b = r.byte();
  switch (opcode) {
    case WqeOpcode::atomic_fetch_add:
    case WqeOpcode::atomic_compare_swap:
      image.add(wire::AtomicSegment{Be64(a), Be64(b)});
      break;
    case WqeOpcode::atomic_masked_fetch_add:
      if (narrow)
        image.add(wire::MaskedFetchAddSegment4{Be32(static_cast<std::uint32_t>(a)), Be32(0), Be64(0)});
      else
        image.add(wire::MaskedFetchAddSegment{Be64(a), Be64(b << 31)});
      break;
    case WqeOpcode::atomic_masked_compare_swap:
      if (narrow)
        image.add(wire::MaskedCompareSwapSegment4{Be32(1), Be32(2), Be32(3), Be32(4)});
      else
        image.add(wire::MaskedCompareSwapSegment{Be64(a), Be64(b), Be64(~a), Be64(b)});
      break;
    default:
      break;
  }
}

}  // namespace

std::uint32_t EngineWorld::any_key(Reader& r, unsigned side) const {
  const std::uint8_t choice = r.byte();
  if (choice >= 0xf0) return choice * 0x01010101u;
  const std::uint32_t good = key(side, static_cast<Region>(choice % static_cast<unsigned>(Region::count)));
  return choice < 0x80 ? good : good ^ (1u << choice % 32);
}

std::uint64_t EngineWorld::any_address(Reader& r) const {
  const std::uint8_t choice = r.byte();
  const std::uint64_t base = address(static_cast<Region>(choice % static_cast<unsigned>(Region::count)));
  const std::uint64_t length = kRegionBytes - 2 * kMargin;
  const std::uint8_t offset = r.byte();
  switch (choice / 32) {
    case 1:
      return base + length - offset;  // at the end
    case 2:
      return base - 1 - offset;
    case 3:
      return ~std::uint64_t{0} - offset;
    case 4:
      return offset;
    default:
      return base + offset * 8u;
  }
}

void EngineWorld::post(Reader& r) {
  Queue& q = any_queue(r);
  const WqeOpcode opcode = kOpcodes[r.pick(std::size(kOpcodes))];
  const std::uint8_t shape = r.byte();
  const bool narrow = (shape & 1) != 0;
  Image image;
  if (has_remote(opcode)) {
    const std::uint32_t rkey = any_key(r, setup_.two_nics && q.side == 0 && &q != &queues_[2] ? 1 : 0);
    image.add(wire::RemoteAddressSegment{Be64(any_address(r)), Be32(rkey), Be32(0)});
  }
  add_operands(image, opcode, narrow, r);
  const unsigned pieces = opcode == WqeOpcode::nop ? 0 : 1 + (shape >> 1) % 4 * (atomic(opcode) ? 0 : 1);
  for (unsigned i = 0; i < pieces; ++i) {
    const std::uint8_t size = r.byte();
    // Small, a few packets, none (which stands for 2^31), or a count that no memory holds.
    std::uint32_t bytes = size == 0 ? 8 : size - 1u;
    if (size >= 0x80) bytes = size < 0xf8 ? (size - 0x7fu) * 40 : 0x7fffffffu << (size & 7);
    if (atomic(opcode)) bytes = (narrow ? 4u : 8u) + size;
    if ((shape & 0x10) != 0) {
      image.add(wire::InlineHeader{Be32(wire::kInlineFlag | bytes)});
      image.add_bytes(std::min(bytes, 64u), 0x5a);
      image.pad();
    } else {
      image.add(wire::DataSegment{Be32(bytes & ~wire::kInlineFlag), Be32(any_key(r, q.side)),
                                  Be64(any_address(r))});
    }
  }
  const std::uint8_t flags = r.byte();
  const auto completion = static_cast<std::uint8_t>(wire::kWqeCompletionAlways ^ (flags & 0xee));
  const std::uint32_t lie = r.byte();  // about the number of segments
  const auto control =
      wire::make_control(opcode, q.producer, q.number, (image.segments() + lie) & 0x3f, completion,
                         Be32(0x01020304), narrow ? wire::kOpmodMaskedAtomic4 : wire::kOpmodMaskedAtomic8);
  std::memcpy(image.bytes(), &control, sizeof control);

  const std::uint32_t blocks = 1u << setup_.log_send;
  for (std::uint32_t i = 0; i < image.blocks(); ++i)
    std::memcpy(q.send.get() + ((q.producer + i) & (blocks - 1)) * wire::kBlockBytes,
                image.bytes() + i * wire::kBlockBytes,
                std::min<std::size_t>(wire::kBlockBytes, sizeof(Image) - i * wire::kBlockBytes));
  q.producer += image.blocks();
  if ((shape & 0x20) == 0)
    doorbell(q, static_cast<std::uint16_t>(q.producer), q.number, static_cast<unsigned>(q.producer), 0);
  if ((shape & 0x40) == 0) poll_times(1);
}

void EngineWorld::post_raw(Reader& r) {
  Queue& q = any_queue(r);
  const std::uint32_t blocks = 1u << setup_.log_send;
  std::uint8_t* block = q.send.get() + (q.producer & (blocks - 1)) * wire::kBlockBytes;
  const std::uint8_t fill = r.byte();
  std::memset(block, fill, wire::kBlockBytes);
  r.take(block, 20);
  q.producer += 1;
  doorbell(q, static_cast<std::uint16_t>(q.producer), q.number, 0, 0);
}

void EngineWorld::ring(Reader& r) {
  Queue& q = any_queue(r);
  const auto index = static_cast<std::uint16_t>(q.producer + r.get<std::uint16_t>());
  const std::uint8_t how = r.byte();
  const std::uint32_t qpn = (how & 0x80) != 0 ? r.get<std::uint32_t>() & 0xffffff : q.number;
  doorbell(q, index, qpn, r.byte(), how);
}

void EngineWorld::post_receive(Reader& r) {
  Queue& q = any_queue(r);
  if (!q.receive) return;
  const std::uint32_t entries = 1u << setup_.log_receive;
  std::uint8_t* entry = q.receive.get() + (q.receive_producer & (entries - 1)) * 64;
  const unsigned pieces = r.pick(5);
  for (unsigned i = 0; i < 4; ++i) {
    wire::DataSegment segment{Be32(0), Be32(wire::kInvalidLkey), Be64(0)};
    if (i <= pieces) segment = {Be32(128u + r.byte() * 16u), Be32(any_key(r, q.side)), Be64(any_address(r))};
    std::memcpy(entry + i * sizeof segment, &segment, sizeof segment);
  }
  q.receive_producer += 1 + r.byte();
  reinterpret_cast<wire::QpDoorbellRecord*>(q.record.get())->receive.set(q.receive_producer & 0xffff);
}

// Reads what is there, checks that it is a completion of this device's kinds, and arms the CQ.
void EngineWorld::consume(Reader& r) {
  Queue& q = any_queue(r);
  const std::uint64_t entries = std::uint64_t{1} << q.log_cq;
  for (unsigned budget = 1 + r.byte(); budget != 0; --budget) {
    const std::size_t slot = setup_.collapsed ? 0 : q.consumed & (entries - 1);
    wire::Cqe cqe;
    std::memcpy(&cqe, q.cq_ring.get() + (slot + 1) * setup_.cqe_bytes - sizeof cqe, sizeof cqe);
    if (cqe.opcode() == wire::CqeOpcode::invalid) break;
    if (cqe.owner() != ((q.consumed & entries) != 0) && !setup_.collapsed) break;
    const auto code = static_cast<unsigned>(cqe.opcode());
    require(code <= 5 || code == 13 || code == 14, "a CQE's opcode is one that this device writes");
    ++q.consumed;
  }
  auto* record = reinterpret_cast<wire::CqDoorbellRecord*>(q.cq_record.get());
  record->consumer.set(static_cast<std::uint32_t>(q.consumed + r.byte()) & 0xffffff);
  const std::uint8_t arm = r.byte();
  if (arm == 0) return;
  record->arm.set(static_cast<std::uint32_t>(q.consumed & 0xffffff) | (arm & 1u) << 24 | (arm & 3u) << 28);
  const std::uint64_t value = wire::cq_arm_doorbell(record->arm.get(), q.cq);
  std::memcpy(sides_[q.side].page.get() + wire::kUarCqDoorbell, &value, sizeof value);
}

void EngineWorld::modify(Reader& r) {
  using softnic::QpState;
  const unsigned index = r.pick(kQueues);
  Queue& q = queues_[index];
  const std::uint32_t peer = index == 2 ? q.number : queues_[1 - index].number;
  switch (r.pick(5)) {
    case 0:
      return step_to(q, QpState::error, peer);
    case 1:
      q.producer = q.receive_producer = 0;
      std::memset(q.record.get(), 0, sizeof(wire::QpDoorbellRecord));
      return connect(index, peer);
    case 2: {
      softnic::QpModify m;  // rights can be taken away at any time
      m.access = r.byte() & 0xfu;
      sides_[q.side].nic->modify_qp(q.number, m);
      return;
    }
    case 3: {
      softnic::QpModify m;
      const auto snapshot = sides_[q.side].nic->query_qp(q.number);
      require(snapshot, "a QP that exists can be queried");
      if (snapshot->state == QpState::rts) m.state = QpState::sqd;
      if (snapshot->state == QpState::sqd) m.state = QpState::rts;
      sides_[q.side].nic->modify_qp(q.number, m);
      return;
    }
    default: {
      q.producer = q.receive_producer = 0;
      std::memset(q.record.get(), 0, sizeof(wire::QpDoorbellRecord));
      return step_to(q, QpState::reset, peer);
    }
  }
}

void EngineWorld::change_keys(Reader& r) {
  const unsigned side = r.byte() & 1;
  if (!sides_[side].nic) return;
  const auto region = static_cast<Region>(r.pick(static_cast<unsigned>(Region::count)));
  sides_[side].nic->destroy_mkey(key(side, region));
  if (r.byte() == 0) make_key(side, region == Region::destroyed ? Region::everything : region);
}

void EngineWorld::corrupt(Reader& r) {
  Queue& q = any_queue(r);
  const std::size_t bytes = std::size_t{wire::kBlockBytes} << setup_.log_send;
  q.send.get()[r.get<std::uint16_t>() % bytes] ^= static_cast<std::uint8_t>(1 + r.byte());
}

// A QP goes away in the middle of whatever it does, its CQ with it, and new ones take their place.
void EngineWorld::recreate(Reader& r) {
  const unsigned index = r.pick(kQueues);
  Queue& q = queues_[index];
  softnic::Nic& nic = *sides_[q.side].nic;
  require(nic.destroy_cq(q.cq) != 0, "a CQ stays while a QP uses it");
  require(nic.destroy_qp(q.number) == 0, "a QP can be destroyed in any state");
  require(nic.destroy_cq(q.cq) == 0, "a CQ that no QP uses can be destroyed");
  make_queue(index);
  if (r.byte() != 0) return;
  connect(index, index == 2 ? q.number : queues_[1 - index].number);
  if (index != 2) connect(1 - index, q.number);
}

void EngineWorld::resize(Reader& r) {
  Queue& q = any_queue(r);
  const unsigned log_entries = r.pick(8);
  const std::size_t bytes = std::size_t{setup_.cqe_bytes} << log_entries;
  Memory ring = allocate(bytes);
  std::memset(ring.get(), 0xf0, bytes);
  if (sides_[q.side].nic->resize_cq(q.cq, ring.get(), log_entries) != 0) return;
  q.cq_ring = std::move(ring);
  q.log_cq = log_entries;
}

}  // namespace belfry::fuzz

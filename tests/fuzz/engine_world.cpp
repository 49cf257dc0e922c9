#include "fuzz/engine_world.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "belfry/wire/cqe.hpp"
#include "softnic/fabric/faulty_fabric.hpp"
#include "softnic/firmware/nic_core.hpp"

namespace belfry::fuzz {
namespace {

std::uint64_t g_now = 1;

std::uint64_t now() { return g_now; }

/// What a region holds at first, and for ever where no key opens it.
const std::array<std::uint8_t, EngineWorld::kRegionBytes>& pattern() {
  static const auto bytes = [] {
    std::array<std::uint8_t, EngineWorld::kRegionBytes> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::uint8_t>(i * 7 + 1);
    return made;
  }();
  return bytes;
}

/// The next of two timers, 0 standing for none.
std::uint64_t earlier(std::uint64_t a, std::uint64_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

constexpr std::uint32_t kAllAccess = softnic::kAccessLocalWrite | softnic::kAccessRemoteWrite |
                                     softnic::kAccessRemoteRead | softnic::kAccessRemoteAtomic;
constexpr std::uint64_t kShift = 0x123456789000u;

}  // namespace

Memory allocate(std::size_t bytes, std::size_t alignment) {
  void* p = nullptr;
  require(posix_memalign(&p, alignment, bytes) == 0, "there is memory");
  std::memset(p, 0, bytes);
  return Memory(static_cast<std::uint8_t*>(p));
}

Setup Setup::read(Reader& r) {
  Setup s;
  const unsigned shape = r.pick(5);
  s.two_nics = shape >= 2;
  s.direct = shape == 0;
  if (shape == 3) s.faults.drop = s.faults.duplicate = s.faults.reorder = 0.2;
  if (shape == 4) s.link = softnic::LinkLayer::ethernet;
  const std::uint8_t sizes = r.byte();
  s.log_send = (4 + sizes) % 8;
  s.log_receive = (3 + sizes / 8) % 8;
  s.log_cq = (5 + sizes / 64) % 7;
  const std::uint8_t flags = r.byte();
  s.cqe_bytes = (flags & 1) != 0 ? 128 : 64;
  s.collapsed = (flags & 2) != 0;
  s.ignore_overrun = (flags & 4) != 0;
  s.no_record = (flags & 8) != 0;
  s.mtu = 256u << (flags >> 4) % 3;
  return s;
}

EngineWorld::EngineWorld(const Setup& setup) : setup_(setup), hub_(softnic::MemoryHub::create(64)) {
  g_now = 1;
  for (Memory& region : regions_) {
    region = allocate(kRegionBytes, 16);
    std::memcpy(region.get(), pattern().data(), kRegionBytes);
  }
  make_side(0);
  if (setup.two_nics) make_side(1);
  for (unsigned i = 0; i < kQueues; ++i) {
    queues_[i].side = i == 1 && setup.two_nics ? 1 : 0;
    make_queue(i);
  }
  connect(0, queues_[1].number);
  connect(1, queues_[0].number);
  connect(2, queues_[2].number);
}

void EngineWorld::make_side(unsigned side) {
  softnic::Config config;
  config.node = side;
  config.link = setup_.link;
  config.direct_loopback = setup_.direct;
  config.faults = setup_.faults;
  config.seed = 7 + side;
  std::unique_ptr<softnic::Fabric> port = hub_->open_port();
  if (setup_.faults.any())
    port = std::make_unique<softnic::FaultyFabric>(std::move(port), setup_.faults, config.seed);
  Side& s = sides_[side];
  s.nic = std::make_unique<softnic::Nic>(config, std::move(port));
  s.nic->impl().clock = &now;
  s.page = allocate(wire::kUarBytes, wire::kUarBytes);
  s.uar = *s.nic->attach_uar(s.page.get());
  s.pd = *s.nic->alloc_pd(0);
  s.other_pd = *s.nic->alloc_pd(0);
  for (unsigned region = 0; region < static_cast<unsigned>(Region::count); ++region)
    make_key(side, static_cast<Region>(region));
  s.nic->destroy_mkey(key(side, Region::destroyed));
}

std::uint64_t EngineWorld::address(Region region) const {
  const auto at = reinterpret_cast<std::uint64_t>(regions_[static_cast<std::size_t>(region)].get() + kMargin);
  return region == Region::shifted ? at - kShift : at;
}

void EngineWorld::make_key(unsigned side, Region region) {
  Side& s = sides_[side];
  softnic::MkeyAttributes a;
  a.pd = region == Region::other_pd ? s.other_pd : s.pd;
  a.memory = regions_[static_cast<std::size_t>(region)].get() + kMargin;
  a.address = address(region);
  a.length = kRegionBytes - 2 * kMargin;
  a.access = region == Region::nothing       ? 0
             : region == Region::remote_read ? softnic::kAccessRemoteRead
                                             : kAllAccess;
  a.variant = static_cast<std::uint8_t>(0x40 + static_cast<unsigned>(region));
  const auto made = s.nic->create_mkey(a);
  require(made, "an MKey can be made");
  s.keys[static_cast<std::size_t>(region)] = *made;
}

void EngineWorld::make_cq(Queue& q) {
  const std::size_t bytes = std::size_t{setup_.cqe_bytes} << setup_.log_cq;
  q.log_cq = setup_.log_cq;
  q.cq_ring = allocate(bytes);
  std::memset(q.cq_ring.get(), 0xf0, bytes);
  q.cq_record = allocate(sizeof(wire::CqDoorbellRecord), 8);
  softnic::CqAttributes a;
  a.buffer = q.cq_ring.get();
  a.log_entries = setup_.log_cq;
  a.entry_bytes = setup_.cqe_bytes;
  a.doorbell_record = q.cq_record.get();
  a.uar = sides_[q.side].uar;
  a.collapsed = setup_.collapsed;
  a.ignore_overrun = setup_.ignore_overrun;
  a.sink = &sink_;
  const auto made = sides_[q.side].nic->create_cq(a);
  require(made, "a CQ can be made");
  q.cq = *made;
  q.consumed = 0;
}

void EngineWorld::make_queue(unsigned index) {
  Queue& q = queues_[index];
  make_cq(q);
  q.send = allocate(std::size_t{wire::kBlockBytes} << setup_.log_send);
  q.record = allocate(sizeof(wire::QpDoorbellRecord), 8);
  softnic::QpAttributes a;
  a.pd = sides_[q.side].pd;
  a.send_queue = q.send.get();
  a.send_blocks = 1u << setup_.log_send;
  a.no_record = setup_.no_record && index == 2;
  if (!a.no_record) {
    q.receive = allocate(std::size_t{64} << setup_.log_receive);
    a.receive_queue = q.receive.get();
    a.receive_entries = 1u << setup_.log_receive;
    a.receive_stride = 64;
    a.doorbell_record = q.record.get();
  }
  a.uar = sides_[q.side].uar;
  a.send_cq = a.receive_cq = q.cq;
  a.user_index = index;
  a.sink = &sink_;
  const auto made = sides_[q.side].nic->create_qp(a);
  require(made, "a QP can be made");
  q.number = *made;
  q.producer = q.receive_producer = 0;
}

// What each transition must bring is the caller's duty (control.hpp), so all of it always comes.
void EngineWorld::step_to(Queue& q, softnic::QpState state, std::uint32_t destination_qpn) {
  softnic::QpModify m;
  m.state = state;
  if (state == softnic::QpState::init) {
    m.access = kAllAccess;
    m.port = std::uint8_t{1};
    m.pkey_index = std::uint16_t{0};
  } else if (state == softnic::QpState::rtr) {
    const softnic::DeviceIdentity& peer = device(setup_.two_nics && &q != &queues_[2] ? 1 - q.side : q.side);
    softnic::PathAttributes path;
    path.dlid = peer.lid;
    path.global = setup_.link == softnic::LinkLayer::ethernet;
    path.sgid_index = path.global ? 3 : 0;
    path.dgid = peer.gids.back().gid;
    m.path = path;
    m.path_mtu = setup_.mtu;
    m.destination_qpn = destination_qpn;
    m.receive_psn = 0xfffff0u;  // the sequence wraps soon
    m.responder_depth = std::uint8_t{4};
    m.min_rnr_timer = std::uint8_t{1};
  } else if (state == softnic::QpState::rts) {
    m.send_psn = 0xfffff0u;
    m.initiator_depth = std::uint8_t{4};
    m.timeout = std::uint8_t{10};
    m.retry_count = std::uint8_t{3};
    m.rnr_retry = std::uint8_t{3};
  }
  require(sides_[q.side].nic->modify_qp(q.number, m) == 0, "a lawful transition is granted");
}

void EngineWorld::connect(unsigned index, std::uint32_t destination_qpn) {
  using softnic::QpState;
  for (const QpState state : {QpState::reset, QpState::init, QpState::rtr, QpState::rts})
    step_to(queues_[index], state, destination_qpn);
}

// \param what bit 0: not the record, bit 1: not the register
void EngineWorld::doorbell(Queue& q, std::uint16_t index, std::uint32_t qpn, unsigned half, unsigned what) {
  auto* record = reinterpret_cast<wire::QpDoorbellRecord*>(q.record.get());
  if ((what & 1) == 0) record->send.set(index);
  if ((what & 2) != 0) return;
  const std::uint64_t value =
      wire::send_doorbell(Be32(static_cast<std::uint32_t>(index) << 8), Be32((qpn << 8) | 3));
  auto* at = sides_[q.side].page.get() + wire::kUarFirstRegister + (half % 4) * wire::kUarRegisterHalfBytes;
  std::memcpy(at, &value, sizeof value);
}

void EngineWorld::advance(Reader& r) { g_now += (1 + r.byte()) * 100'000u; }

void EngineWorld::poll(Reader& r) { poll_times(1 + r.byte() % 16); }

std::size_t EngineWorld::poll_all() {
  std::size_t work = sides_[0].nic->poll();
  if (sides_[1].nic) work += sides_[1].nic->poll();
  DroppingReceiver nobody;
  if (outsider_) work += outsider_->poll(nobody, 1024);
  return work;
}

void EngineWorld::poll_times(unsigned times) {
  for (; times != 0; --times) poll_all();
}

void EngineWorld::settle() {
  // Retries end: four tries of some milliseconds each, and as many pauses for missing receives, for each
  // WQE that can stand in the queues. Whatever is still at work after this never ends.
  constexpr unsigned kMost = 100000;
  unsigned quiet = 0;
  for (unsigned i = 0; i < kMost; ++i) {
    quiet = poll_all() == 0 ? quiet + 1 : 0;
    if (quiet <= 2) continue;
    const std::uint64_t timer =
        earlier(sides_[0].nic->next_timer(), sides_[1].nic ? sides_[1].nic->next_timer() : 0);
    if (timer == 0) return;
    g_now = std::max(g_now + 1, timer);
  }
  require(false, "queues come to rest");
}

void EngineWorld::add_outsider() {
  outsider_ = hub_->open_port();
  const auto block = outsider_->claim_block();
  require(block, "the fabric has a block of QPNs");
  outsider_qpn_ = (*block << softnic::kQpnBlockBits) + 5;
  connect(0, outsider_qpn_);
}

void EngineWorld::send_as_outsider(std::uint32_t qpn, softnic::FrameHeader header, const Bytes& frame) {
  header.bytes = static_cast<std::uint32_t>(frame.size());
  const softnic::FramePart part{frame.data(), frame.size()};
  outsider_->send(qpn, header, {&part, 1});
}

void EngineWorld::check() const {
  constexpr const char* kKept = "memory that no key opens is as it was";
  for (std::size_t region = 0; region < std::size(regions_); ++region) {
    const auto which = static_cast<Region>(region);
    const bool open = which == Region::everything || which == Region::shifted;
    const std::uint8_t* bytes = regions_[region].get();
    const std::size_t watched = open ? kMargin : kRegionBytes;
    const std::size_t tail = kRegionBytes - watched;
    require(std::memcmp(bytes, pattern().data(), watched) == 0, kKept);
    require(std::memcmp(bytes + tail, pattern().data() + tail, watched) == 0, kKept);
  }
}

}  // namespace belfry::fuzz

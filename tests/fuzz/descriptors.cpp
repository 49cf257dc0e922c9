// Fuzzes a proxy ring's service: bytes become descriptors, as whoever can write to a ring may store them.
// An input is a setup of 4 bytes and a list of 24 B records: how to store, what the NIC does, a descriptor.
// Guards against: work that reaches beyond a window, to a peer or key that the descriptor does not name, or
// that differs from what the format says; a bad descriptor that is carried out, or not reported where it
// lies; anything posted after it; a descriptor of another lap that is taken.
#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>

#include "belfry/device/proxy/wait.hpp"
#include "fuzz/harness.hpp"
#include "proxy/ring_service.hpp"

namespace belfry::fuzz {
namespace {

using device::Fault;
using proxy::Work;

constexpr std::size_t kSetupBytes = 4;
constexpr std::size_t kRecordBytes = 24;
constexpr std::size_t kMaxRecords = 200;
constexpr std::uint32_t kPeers = 4;    // 0 is this PE, to which there is no queue
constexpr std::uint32_t kWindows = 3;  // the last is one of gigabytes where messages are long
constexpr std::uint64_t kLocalBase = 0x1000'0000'0000;
constexpr std::uint64_t kRemoteBase = 0x4000'0000'0000;
constexpr std::uint64_t kWindowStride = std::uint64_t{1} << 40;
constexpr std::uint64_t kSink = 0x777000;

struct Posted {
  std::uint32_t queue;
  Work work;
};

bool same(const Posted& a, const Posted& b) {
  const bool alike = a.queue == b.queue && a.work.kind == b.work.kind && a.work.bytes == b.work.bytes &&
                     a.work.rkey == b.work.rkey && a.work.remote == b.work.remote;
  if (!alike) return false;
  if (a.work.kind == Work::Kind::write_value) return a.work.value == b.work.value;
  return a.work.lkey == b.work.lkey && a.work.local == b.work.local && a.work.value == b.work.value &&
         a.work.second_value == b.work.second_value;
}

/// What the format says of a ring's descriptors, read from its description and not from its decoder.
class Reading {
 public:
  Reading(const proxy::Routes& routes, std::uint64_t first)
      : routes_(routes), index_(first), complete_(first) {}

  /// The next descriptor of the ring.
  void take(port::Vector16 d) {
    const std::uint64_t index = index_++;
    if (bad_) return;
    parts_.push_back(d);
    const bool more = (d.low >> 5 & 1) != 0;
    if (!part_is_good() || (more && parts_.size() == 4)) {
      bad_ = index;
      return;
    }
    if (more) return;
    if (!carry_out()) {
      bad_ = index;
      return;
    }
    complete_ = index_;
    parts_.clear();
  }

  const std::vector<Posted>& works() const { return works_; }
  std::optional<std::uint64_t> bad() const { return bad_; }
  std::uint64_t complete() const { return complete_; }  ///< one past the last descriptor of the last request

 private:
  static unsigned operation(port::Vector16 d) { return d.low >> 1 & 15; }
  static bool is_value(unsigned op) { return op >= 3 && op <= 5; }
  static std::size_t operands(unsigned op) { return op == 6 ? 1 : op == 7 ? 2 : 0; }

  bool part_is_good() const {
    const port::Vector16& d = parts_.back();
    const unsigned op = operation(parts_.front());
    if (parts_.size() == 1) return op >= 1 && op <= 8 && !(is_value(op) && (d.low >> 28 & 15) != 0);
    if ((d.low >> 6 & 0x3ffffff) != 0) return false;
    const bool length = d.low >> 32 != 0;
    const bool extended = operation(parts_[1]) == 14;
    if (operation(d) == 14) return parts_.size() == 2 && !(is_value(op) && length);
    return operation(d) == 15 && !length && parts_.size() - (extended ? 2 : 1) <= operands(op);
  }

  /// Adds what a whole request asks for. \return false if it must be refused
  bool carry_out() {
    const port::Vector16& d = parts_.front();
    const unsigned op = operation(d);
    const bool extended = parts_.size() > 1 && operation(parts_[1]) == 14;
    const std::size_t first_operand = extended ? 2 : 1;
    if (parts_.size() - first_operand != operands(op)) return false;
    if (op == 8) return true;
    const std::uint32_t peer = d.low >> 6 & 0x3fff;
    const std::uint32_t remote_window = d.low >> 20 & 63;
    const std::uint32_t local_window = d.low >> 26 & 63;
    const auto high = [&](unsigned shift) { return extended ? parts_[1].high >> shift << 32 : 0; };
    std::uint64_t bytes = is_value(op) ? std::uint64_t{1} << (d.low >> 26 & 3)
                                       : d.low >> 32 | (extended ? parts_[1].low >> 32 << 32 : 0);
    const std::uint64_t remote = (is_value(op) ? d.low >> 32 : d.high & 0xffffffff) |
                                 (extended ? (parts_[1].high & 0xffffffff) << 32 : 0);
    const std::uint64_t local = (d.high >> 32) | high(32);
    if (peer == 0 || peer >= kPeers || remote_window >= kWindows || !inside(remote_window, remote, bytes))
      return false;
    if ((op == 4 || op == 5 || op == 6 || op == 7) && bytes != 8) return false;
    if (!is_value(op) && (local_window >= kWindows || !inside(local_window, local, bytes))) return false;

    Posted next{peer - 1, {}};
    Work& w = next.work;
    w.kind = op == 1              ? Work::Kind::write
             : op == 2            ? Work::Kind::read
             : op == 3 || op == 4 ? Work::Kind::write_value
             : op == 7            ? Work::Kind::compare_swap
                                  : Work::Kind::fetch_add;
    const device::RemoteWindow& to = routes_.remotes[remote_window * kPeers + peer];
    w.rkey = to.rkey.get();
    w.remote = to.address + remote;
    w.lkey = is_value(op) ? routes_.sink_lkey : routes_.windows[local_window].lkey.get();
    w.local = is_value(op) ? routes_.sink : routes_.windows[local_window].address + local;
    if (is_value(op)) w.value = d.high;
    if (op == 6 || op == 7) w.value = parts_[first_operand].high;
    if (op == 7) w.second_value = parts_[first_operand + 1].high;
    do {
      w.bytes = static_cast<std::uint32_t>(std::min(bytes, routes_.max_message));
      works_.push_back(next);
      w.local += w.bytes;
      w.remote += w.bytes;
      bytes -= w.bytes;
    } while (bytes != 0);
    return true;
  }
  bool inside(std::uint32_t window, std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t size = routes_.windows[window].bytes;
    return offset <= size && bytes <= size - offset;
  }

  const proxy::Routes& routes_;
  std::uint64_t index_;
  std::uint64_t complete_;
  std::vector<port::Vector16> parts_;
  std::vector<Posted> works_;
  std::optional<std::uint64_t> bad_;
};

/// Takes as much of a chain as it is told, and completes in order.
class Nic : public proxy::Submitter {
 public:
  proxy::PostResult post(std::uint32_t queue, std::span<const Work> chain) override {
    require(queue + 1 < kPeers && !chain.empty(), "a post to a queue that exists, of something");
    const std::size_t room = depth() - waiting_[queue].size();
    require(chain.size() <= room, "no more posted than the queue holds");
    std::size_t accepted = chain.size();
    if (refuse != 0) accepted = std::min<std::size_t>(accepted, refuse - 1);
    refuse = 0;
    for (const Work& work : chain.first(accepted)) {
      posted.push_back({queue, work});
      waiting_[queue].push_back(work);
    }
    return {accepted, accepted == chain.size() ? 0 : ENOMEM};
  }
  std::size_t poll(std::span<proxy::WorkCompletion> out) override {
    std::size_t count = 0;
    for (std::uint32_t queue = 0; queue + 1 < kPeers; ++queue) {
      while (!waiting_[queue].empty() && count < out.size()) {
        const Work& work = waiting_[queue].front();
        if (work.signaled) out[count++] = {queue, work.id, wire::Syndrome::none, 0, qpn(queue)};
        waiting_[queue].pop_front();
      }
    }
    return count;
  }
  std::uint32_t depth() const override { return 70; }
  std::uint32_t qpn(std::uint32_t queue) const override { return 100 + queue; }

  unsigned refuse = 0;  ///< of the next post: takes one work less than this says; 0: all
  std::vector<Posted> posted;

 private:
  std::deque<Work> waiting_[kPeers - 1];
};

class World {
 public:
  explicit World(Reader& setup) {
    const std::uint8_t shape = setup.byte();
    log_slots_ = 2 + shape % 5;
    const bool long_messages = (shape & 0x80) != 0;
    const std::uint64_t start = (shape & 0x40) != 0 ? (std::uint64_t{1} << 32) - 128 : 0;
    slots_.resize(std::size_t{1} << log_slots_);
    for (auto& slot : slots_) slot.low = wire::proxy_parity((start >> log_slots_) + 1);
    next_ = taken_ = start;
    words_.completed = start;
    const std::uint64_t sizes[kWindows] = {4096, 0x123, std::uint64_t{1} << (long_messages ? 33 : 16)};
    for (std::uint32_t w = 0; w < kWindows; ++w) {
      routes_.windows.push_back({kLocalBase + w * kWindowStride, sizes[w], Be32(0x10 + w), 0});
      for (std::uint32_t pe = 0; pe < kPeers; ++pe)
        routes_.remotes.push_back(
            {kRemoteBase + (w * kPeers + pe) * kWindowStride, Be32(0x20 + w * kPeers + pe), 0});
    }
    routes_.queues = {proxy::Routes::kNoQueue, 0, 1, 2};
    routes_.sink = kSink;
    routes_.sink_lkey = 0x99;
    routes_.max_message = long_messages ? (std::uint64_t{1} << 30) - shape % 3 : 1000 + shape % 3;
    reading_.emplace(routes_, start);
    const std::uint8_t chain = setup.byte();
    service_ =
        std::make_unique<proxy::RingService>(proxy::RingReader(slots_.data(), log_slots_, &taken_, start),
                                             routes_, std::make_unique<proxy::MappedCounter>(&words_),
                                             proxy::ServiceOptions{1u + chain % 64, 1u + setup.byte() % 70u});
  }

  void store(Reader& record) {
    const std::uint8_t how = record.byte();
    nic_.refuse = record.byte() % 24;
    record.get<std::uint16_t>();
    port::Vector16 d = {record.get<std::uint64_t>(), record.get<std::uint64_t>()};
    const std::uint64_t parity = wire::proxy_parity(next_ >> log_slots_);
    // Most records are of this lap, or little would ever be taken.
    if (how % 8 != 0) d.low = (d.low & ~std::uint64_t{1}) | parity;
    while (next_ - taken_ >= slots_.size()) round();
    slots_[next_ & (slots_.size() - 1)] = d;
    if ((d.low & 1) == parity) {
      reading_->take(d);
      ++next_;
    }
    if (how % 3 == 0) round();
  }

  void check() {
    // Each round takes a descriptor and more, or posts a chain and more.
    for (std::size_t i = 0; i < 100 + 40 * kMaxRecords; ++i) round();
    require(taken_ == next_, "every descriptor of this lap taken, and none of another");
    const std::vector<Posted>& expected = reading_->works();
    check_works(expected);
    if (const auto bad = reading_->bad()) {
      const Fault fault = device::proxy::fault_of(words_, words_.fault);
      require(fault.kind == Fault::Kind::root && fault.index == *bad,
              "a bad descriptor reported where it lies");
      require(words_.completed <= reading_->complete(), "nothing counted that was refused");
    } else {
      require(words_.fault == 0, "no fault without a bad descriptor");
      require(nic_.posted.size() == expected.size(), "everything carried out");
      require(words_.completed == reading_->complete(), "everything counted");
    }
  }

  std::size_t posts() const { return nic_.posted.size(); }
  bool failed() const { return words_.fault != 0; }

 private:
  /// The works of each queue, in order, and none that was not asked for. What was not posted when a bad
  /// descriptor came is not posted any more.
  void check_works(const std::vector<Posted>& expected) const {
    for (std::uint32_t queue = 0; queue + 1 < kPeers; ++queue) {
      auto want = expected.begin();
      for (const Posted& got : nic_.posted) {
        if (got.queue != queue) continue;
        want = std::find_if(want, expected.end(), [&](const Posted& p) { return p.queue == queue; });
        require(want != expected.end() && same(got, *want), "work as the descriptor says, in order");
        ++want;
      }
    }
  }
  void round() {
    service_->serve(nic_);
    proxy::WorkCompletion done[8];
    const std::size_t count = nic_.poll(done);
    for (std::size_t i = 0; i < count; ++i) service_->complete(nic_, done[i]);
  }

  std::uint32_t log_slots_;
  std::vector<port::Vector16> slots_;
  std::uint64_t next_;  ///< the producer's
  std::uint64_t taken_;
  device::proxy::WorkerWords words_{};
  proxy::Routes routes_;
  std::optional<Reading> reading_;
  Nic nic_;
  std::unique_ptr<proxy::RingService> service_;
};

void append(Bytes& input, std::uint8_t how, port::Vector16 d) {
  Writer writer;
  writer.put(how).put(std::uint8_t{0}).put(std::uint16_t{0}).put(d.low).put(d.high).put(std::uint32_t{0});
  input.insert(input.end(), writer.done().begin(), writer.done().end());
}

/// Every operation, small and in several pieces and with an extension.
Bytes tour(std::uint8_t shape) {
  Bytes input = {shape, static_cast<std::uint8_t>(shape * 5), 9, 0};
  std::uint8_t how = 1;
  for (unsigned op = 1; op <= 8; ++op) {
    for (unsigned variant = 0; variant < 4; ++variant) {
      wire::ProxyRequest r;
      r.operation = static_cast<wire::ProxyOperation>(op);
      r.peer = 1 + (op + variant) % 3;
      const bool is_long = variant == 3 && (shape & 0x80) != 0;
      r.remote_window = r.local_window = is_long ? 2 : 0;
      r.bytes = wire::proxy_value_form(r.operation) || wire::proxy_operands(r.operation) != 0 ? 8
                : variant == 0                                                                ? 0
                               : variant * 1100;
      if (is_long) {
        r.remote_offset = (std::uint64_t{1} << 32) + 64;
        r.local_offset = op * 8;
        if (op <= 2) r.bytes = (std::uint64_t{3} << 30) + 5;
      }
      r.value = 0x1111 * op;
      r.second_value = 0x2222 * variant;
      for (std::uint32_t i = 0; i < wire::proxy_descriptors(r); ++i)
        append(input, how++ | 1, wire::proxy_descriptor(r, i));
    }
  }
  return input;
}

std::unique_ptr<World> run(const std::uint8_t* data, std::size_t size) {
  Reader setup(data, std::min(size, kSetupBytes));
  auto world = std::make_unique<World>(setup);
  for (std::size_t at = kSetupBytes, n = 0; at < size && n < kMaxRecords; at += kRecordBytes, ++n) {
    Reader record(data + at, std::min(kRecordBytes, size - at));
    world->store(record);
  }
  world->check();
  return world;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const int shape : {0x00, 0x01, 0x42, 0x83, 0xc4, 0x03, 0xc1})
    all.push_back(tour(static_cast<std::uint8_t>(shape)));
  // One request each, so that mutations change little else.
  const Bytes whole = tour(0xc4);
  for (std::size_t at = kSetupBytes; at + 2 * kRecordBytes <= whole.size(); at += kRecordBytes) {
    Bytes one(whole.begin(), whole.begin() + kSetupBytes);
    one.insert(one.end(), whole.begin() + static_cast<std::ptrdiff_t>(at),
               whole.begin() + static_cast<std::ptrdiff_t>(at + 2 * kRecordBytes));
    all.push_back(one);
  }
  // Values that claim a length, and unused bits: refused for nothing else.
  for (const unsigned op : {3u, 4u, 5u}) {
    for (const std::uint64_t low : {std::uint64_t{1} << 32, std::uint64_t{1} << 31, std::uint64_t{1} << 6}) {
      wire::ProxyRequest r;
      r.operation = static_cast<wire::ProxyOperation>(op);
      r.peer = 1;
      r.remote_window = 2;
      r.remote_offset = std::uint64_t{1} << 32;
      r.bytes = 8;
      Bytes input = {0x83, 3, 9, 0};
      append(input, 1, wire::proxy_descriptor(r, 0));
      port::Vector16 next = wire::proxy_descriptor(r, 1);
      next.low |= low;
      append(input, 1, next);
      all.push_back(input);
    }
  }
  return all;
}

void check_reach() {
  for (const int shape : {0x00, 0x83, 0xc4}) {
    const Bytes input = tour(static_cast<std::uint8_t>(shape));
    const auto world = run(input.data(), input.size());
    expect_reached(!world->failed(), "descriptors that are all good");
    expect_reached(world->posts() >= 28, "work of every operation");
  }
}

}  // namespace belfry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  belfry::fuzz::run(data, size);
  return 0;
}

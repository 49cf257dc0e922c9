#include "check/nic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/index.hpp"

namespace belfry::check {
namespace {

template <class T>
T as(std::uint64_t low, std::uint64_t high) {
  static_assert(sizeof(T) == 16);
  const std::uint64_t words[2] = {low, high};
  T value;
  std::memcpy(&value, words, sizeof value);
  return value;
}

}  // namespace

/// A fetched WQE: its segments, two words each.
struct Nic::Wqe {
  std::uint64_t index = 0;
  wire::ControlSegment control{};
  std::vector<std::uint64_t> words;

  template <class T>
  T segment(unsigned i) const {
    return as<T>(words[2 * i], words[2 * i + 1]);
  }
};

Nic::Nic(World& world, NicQueue queue, Ledger& ledger, NicBehaviour behaviour, const std::string& name)
    : world_(world),
      queue_(queue),
      ledger_(ledger),
      behaviour_(std::move(behaviour)),
      next_(queue.first_index),
      completions_(queue.first_completion) {
  retired_.assign(depth(), 0);
  continues_.assign(depth(), false);
  requester_ = world.add_daemon(name, nic_port(), [this] { run(); });
  responder_ = behaviour_.to_itself ? requester_ : world.add_port(name + ".responder", nic_port());
  if (behaviour_.device >= 0) world.memory().observer(requester_).device = behaviour_.device;
  world.watch_stores(
      [this](Observer& who, const Where&, const void* at, unsigned bytes, std::uint64_t value) {
        if (bytes == 8) watch_store(who, at, value);
      });
}

std::uint64_t* Nic::slot(std::uint64_t index) const {
  return reinterpret_cast<std::uint64_t*>(queue_.blocks + (index & (depth() - 1)) * wire::kBlockBytes);
}

bool Nic::is_relaxed(const void* at) const {
  return std::any_of(behaviour_.relaxed.begin(), behaviour_.relaxed.end(), [at](const auto& range) {
    const auto* first = static_cast<const std::byte*>(range.first);
    return at >= first && at < first + range.second;
  });
}

[[gnu::noinline]] std::uint64_t Nic::dma_read(int port, const void* at, unsigned bytes) {
  return world_.load(at, bytes, {Scope::system, true, false, false}, false, {port, true},
                     __builtin_return_address(0));
}

[[gnu::noinline]] void Nic::dma_write(int port, void* at, std::uint64_t value, unsigned bytes) {
  world_.store(at, bytes, value, {Scope::system, true, false, !is_relaxed(at)}, {port, false},
               __builtin_return_address(0));
}

// ---------------------------------------------------------------- work

void Nic::run() {
  for (;;) {
    const std::uint64_t target = wait_for_work();
    while (next_ < target) execute(next_);
  }
}

/// Polls the doorbell until there is something to do.
std::uint64_t Nic::wait_for_work() {
  constexpr Manner kDoorbell{Scope::system, true, true, false};
  const auto here = [] [[gnu::noinline]] { return __builtin_return_address(0); };
  for (;;) {
    const std::uint64_t bell = world_.load(queue_.doorbell, 8, kDoorbell, true, {}, here());
    // Told once: a doorbell whose record came too late is lost.
    if (bell != last_bell_) {
      last_bell_ = bell;
      if (const std::uint64_t target = target_of(bell); target > next_) return target;
    }
  }
}

/// How far a doorbell lets it go. With a record the NIC reads it now, and it must be there already. It may be
/// ahead of the doorbell: only A2 keeps the NIC from acting on that.
std::uint64_t Nic::target_of(std::uint64_t bell) {
  const std::uint64_t rung = wire::widen_index(next_, wire::doorbell_index(bell));
  if (!has_record() || rung <= next_) return rung;
  const auto here = [] [[gnu::noinline]] { return __builtin_return_address(0); };
  const std::uint64_t word =
      world_.load(queue_.record, 4, {Scope::system, true, true, false}, false, {}, here());
  const auto low = static_cast<std::uint16_t>(Be32::from_raw(static_cast<std::uint32_t>(word)).get());
  const std::uint64_t recorded = wire::widen_index(next_, low);
  return world_.settings().assumptions.doorbell_only ? std::min(rung, recorded) : recorded;
}

std::uint64_t Nic::fetch_word(std::uint64_t index, unsigned word) {
  // A WQE may go over the ring's end.
  const std::uint64_t* at = slot(index + word / 8) + word % 8;
  const std::uint64_t value = dma_read(requester_, at);
  world_.require(world_.last_was_newest(), Property::fetch_after_stores,
                 fmt::format("the NIC fetches block {} before the store to {} is visible to it", index,
                             describe(world_.memory(), at)));
  return value;
}

Nic::Wqe Nic::fetch(std::uint64_t index) {
  Wqe wqe;
  wqe.index = index;
  wqe.words = {fetch_word(index, 0), fetch_word(index, 1)};
  wqe.control = wqe.segment<wire::ControlSegment>(0);
  const bool good = wqe.control.index() == static_cast<std::uint16_t>(index) &&
                    wqe.control.qpn() == queue_.qpn && wqe.control.segments() != 0;
  world_.require(good, Property::fetch_after_stores,
                 fmt::format("the NIC fetches block {} and finds no WQE of that index", index));
  if (!good) return wqe;
  for (unsigned w = 2; w < 2 * wqe.control.segments(); ++w) wqe.words.push_back(fetch_word(index, w));
  return wqe;
}

void Nic::execute(std::uint64_t index) {
  const Wqe wqe = fetch(index);
  const wire::WqeOpcode opcode = wqe.control.opcode();
  const unsigned blocks = std::max(1u, wire::wqe_blocks(wqe.control.segments()));
  const std::uint64_t remote =
      wqe.control.segments() > 1 ? wqe.segment<wire::RemoteAddressSegment>(1).address.get() : 0;
  const std::size_t operation = ledger_.fetched(opcode, remote, index);
  const bool fails = failed_ || (behaviour_.fails_at && *behaviour_.fails_at == index);
  if (fails) {
    ledger_.refused(operation);
  } else {
    ledger_.executed(operation, move(wqe, operation));
  }
  retire(index, blocks);
  const wire::Syndrome why = failed_ ? wire::Syndrome::flushed : wire::Syndrome::remote_access;
  failed_ = fails;
  if (fails || wqe.control.signalled()) complete(index, opcode, fails, why);
  next_ = index + blocks;
}

/// The payload of a WRITE, 8 B at most: all that scenarios need.
std::uint64_t Nic::gather(const Wqe& wqe) {
  const std::uint64_t first = wqe.words[4];
  const std::uint32_t head = Be32::from_raw(static_cast<std::uint32_t>(first)).get();
  if ((head & wire::kInlineFlag) != 0) return first >> 32 | wqe.words[5] << 32;
  const auto data = wqe.segment<wire::DataSegment>(2);
  const auto* at = reinterpret_cast<const void*>(data.address.get());
  const std::uint64_t value = dma_read(requester_, at, data.byte_count.get());
  world_.require(
      world_.last_was_newest(), Property::payload_before_doorbell,
      fmt::format("the NIC reads {} before the payload is visible to it", describe(world_.memory(), at)));
  return value;
}

std::uint64_t Nic::move(const Wqe& wqe, std::size_t) {
  const wire::WqeOpcode opcode = wqe.control.opcode();
  if (opcode == wire::WqeOpcode::nop) return 0;
  auto* const remote =
      reinterpret_cast<std::uint64_t*>(wqe.segment<wire::RemoteAddressSegment>(1).address.get());
  if (opcode == wire::WqeOpcode::rdma_write) {
    const std::uint64_t value = gather(wqe);
    dma_write(responder_, remote, value);
    return value;
  }
  if (opcode == wire::WqeOpcode::rdma_read) {
    const std::uint64_t value = dma_read(responder_, remote);
    dma_write(requester_, reinterpret_cast<void*>(wqe.segment<wire::DataSegment>(2).address.get()), value);
    return 0;
  }
  const auto operands = wqe.segment<wire::AtomicSegment>(2);
  const bool adds = opcode == wire::WqeOpcode::atomic_fetch_add;
  // An atomic is a write as well, and not relaxed: it pushes what came before.
  const std::uint64_t before = world_.modify(remote, 8, adds ? Modify::add : Modify::compare_exchange,
                                             {Scope::system, true, false, true}, operands.swap_or_add.get(),
                                             operands.compare.get(), {responder_, false}, nullptr);
  dma_write(requester_, reinterpret_cast<void*>(wqe.segment<wire::DataSegment>(3).address.get()), before);
  return operands.swap_or_add.get();
}

void Nic::retire(std::uint64_t index, unsigned blocks) {
  for (std::uint64_t b = index; b < index + blocks; ++b) retired_[b & (depth() - 1)] = b + 1;
}

void Nic::complete(std::uint64_t index, wire::WqeOpcode opcode, bool failed, wire::Syndrome syndrome) {
  const std::uint64_t entry = queue_.collapsed ? 0 : completions_ & ((1u << queue_.log_completions) - 1);
  auto* const words = reinterpret_cast<std::uint64_t*>(queue_.completions + entry * wire::kCqeBytes);
  const bool owner = !queue_.collapsed && (completions_ >> queue_.log_completions & 1) != 0;
  ++completions_;
  wire::ErrorCqe cqe{};
  cqe.vendor_syndrome = failed ? 0x88 : 0;
  cqe.syndrome = static_cast<std::uint8_t>(failed ? syndrome : wire::Syndrome::none);
  cqe.opcode_qpn = Be32(static_cast<std::uint32_t>(opcode) << 24 | queue_.qpn);
  cqe.wqe_counter = Be16(static_cast<std::uint16_t>(index));
  cqe.op_own =
      wire::make_op_own(failed ? wire::CqeOpcode::requester_error : wire::CqeOpcode::requester, false, owner);
  std::uint64_t raw[8];
  std::memcpy(raw, &cqe, sizeof raw);
  // The last 8 B come last. Of the rest only what says something: zeros are there already.
  if (failed) dma_write(requester_, words + 6, raw[6]);
  dma_write(requester_, words + 7, raw[7]);
}

// ---------------------------------------------------------------- properties

void Nic::watch_store(const Observer& who, const void* at, std::uint64_t value) {
  if (at == queue_.doorbell) return watch_doorbell(who, value);
  const auto* byte = static_cast<const std::byte*>(at);
  if (byte < queue_.blocks || byte >= queue_.blocks + depth() * wire::kBlockBytes) return;
  const auto offset = static_cast<std::uint64_t>(byte - queue_.blocks);
  if (offset % wire::kBlockBytes == 0) watch_slot(who, offset / wire::kBlockBytes, value);
}

/// A WQE's first 8 B are stored: all of its blocks must be free. A store is made as soon as its agent comes
/// to it, so that an agent which knows too little of the NIC is early in some execution.
void Nic::watch_slot(const Observer& who, std::uint64_t block, std::uint64_t first_word) {
  if (continues_[block]) {
    continues_[block] = false;
    return;
  }
  const auto control = as<wire::ControlSegment>(first_word, 0);
  const std::uint64_t index = wire::widen_index(next_, control.index());
  const unsigned blocks = std::max(1u, wire::wqe_blocks(control.segments()));
  for (std::uint64_t b = index; b < index + blocks; ++b) {
    if (b > index) continues_[b & (depth() - 1)] = true;
    if (b < queue_.first_index + depth()) continue;
    world_.require(
        is_retired(b - depth()), Property::retired_before_overwrite,
        fmt::format("{} stores block {} to a slot whose block {} is not retired", who.name, b, b - depth()));
  }
}

bool Nic::is_retired(std::uint64_t index) const { return retired_[index & (depth() - 1)] > index; }

/// A doorbell is stored: whoever rings must have seen each WQE it announces.
void Nic::watch_doorbell(const Observer& who, std::uint64_t bell) {
  const Memory& memory = world_.memory();
  const std::uint64_t target = wire::widen_index(next_, wire::doorbell_index(bell));
  for (std::uint64_t index = next_; index < target;) {
    const Where where = memory.locate(slot(index), 8);
    const std::size_t newest = memory.newest(where);
    const auto control = as<wire::ControlSegment>(memory.value_at(where, newest), 0);
    const bool there = control.index() == static_cast<std::uint16_t>(index) && control.qpn() == queue_.qpn &&
                       who.now[where.first_cell] >= memory.line(where).order[newest].stamp;
    world_.require(there, Property::ready_before_doorbell,
                   fmt::format("{} rings for blocks up to {}, and has not seen block {} written", who.name,
                               target, index));
    if (!there) return;
    index += std::max(1u, wire::wqe_blocks(control.segments()));
  }
}

}  // namespace belfry::check

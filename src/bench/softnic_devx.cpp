/// \file
/// The stream of WQEs that this program writes itself, by belfry's own formats.

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "belfry/host/errors.hpp"
#include "belfry/wire/cqe.hpp"
#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/wqe.hpp"
#include "bench/softnic_streams.hpp"

namespace belfry::bench {
namespace {

/// A WRITE of 8 inline bytes: three segments of one block.
struct InlineWrite {
  wire::ControlSegment control;
  wire::RemoteAddressSegment remote;
  wire::InlineHeader header;
  std::byte data[kSlotBytes];
  std::byte padding[4];
};
static_assert(sizeof(InlineWrite) == 48);
constexpr std::uint32_t kSegments = sizeof(InlineWrite) / wire::kSegmentBytes;

/// Makes blocks up to `producer` known: record, then doorbell. The NIC is software and shares the host's
/// coherent memory, so release stores order the WQEs before both; a UAR of hardware would need the
/// barriers of a write-combining mapping besides.
void ring(const host::DevxQueueView& view, std::uint64_t producer, const wire::ControlSegment& last) {
  std::atomic_ref<std::uint32_t> record(*reinterpret_cast<std::uint32_t*>(&view.record->send));
  record.store(wire::record_word(producer).raw(), std::memory_order_release);
  std::atomic_ref<std::uint64_t> doorbell(*static_cast<std::uint64_t*>(view.uar_register));
  doorbell.store(wire::send_doorbell(last.opmod_index_opcode, last.qpn_ds), std::memory_order_release);
}

/// Waits for the entry at `index` of the ring. \return its WQE counter
std::uint16_t wait_for_cqe(const host::CompletionRing& completions, std::uint64_t index,
                           const PollPolicy& policy) {
  wire::Cqe& entry = completions.entries[index & (completions.count - 1)];
  const auto log_entries = static_cast<std::uint32_t>(std::countr_zero(completions.count));
  std::atomic_ref<std::uint8_t> op_own(entry.op_own);
  const auto ready = [&] {
    return wire::cqe_ready(op_own.load(std::memory_order_acquire), index, log_entries);
  };
  if (!wait_until(ready, policy)) {
    throw host::Error(host::ErrorKind::timed_out, fmt::format("no CQE within {} s", policy.limit.count()),
                      "The software NIC's thread is gone or starved");
  }
  if (entry.opcode() != wire::CqeOpcode::requester) {
    wire::ErrorCqe error;
    std::memcpy(&error, &entry, sizeof error);
    throw host::Error(
        host::ErrorKind::completion,
        fmt::format("a CQE of opcode {}, syndrome 0x{:02x}, vendor syndrome 0x{:02x}",
                    static_cast<unsigned>(entry.opcode()), error.syndrome, error.vendor_syndrome),
        "`belfry decode cqe` names the syndrome");
  }
  return entry.wqe_counter.get();
}

}  // namespace

Stream SoftnicStreams::devx_stream(std::uint64_t messages, const PollPolicy& policy, const Clock& clock) {
  const host::DevxQueueView& view = devx_.view();
  const host::WindowDescription window = memory_.window();
  clear_target(target());
  InlineWrite wqe{};
  wqe.remote.rkey.set(window.rkey);
  wqe.header.flag_byte_count.set(wire::kInlineFlag | static_cast<std::uint32_t>(kSlotBytes));
  const std::uint64_t begin = clock.now();
  const std::uint64_t first = devx_producer_;
  while (devx_producer_ - first < messages) {
    while (devx_producer_ + kBatch - devx_consumer_ > view.send_blocks) {
      const std::uint16_t counter = wait_for_cqe(view.send_completions, devx_cqe_++, policy);
      devx_consumer_ = wire::advance_consumer(devx_consumer_, counter);
    }
    for (std::uint32_t j = 0; j < kBatch; ++j, ++devx_producer_) {
      const std::uint64_t i = devx_producer_ - first;
      const bool signalled = (i + 1) % kSignalEvery == 0;
      wqe.control = wire::make_control(wire::WqeOpcode::rdma_write, devx_producer_, view.qpn, kSegments,
                                       signalled ? wire::kWqeCompletionAlways : std::uint8_t{0});
      wqe.remote.address.set(window.address + target_offset(i));
      const std::uint64_t value = target_value(seed_, i);
      std::memcpy(wqe.data, &value, sizeof value);
      std::memcpy(view.send_queue + (devx_producer_ & (view.send_blocks - 1)) * wire::kBlockBytes, &wqe,
                  sizeof wqe);
    }
    ring(view, devx_producer_, wqe.control);
  }
  while (devx_consumer_ < devx_producer_) {
    const std::uint16_t counter = wait_for_cqe(view.send_completions, devx_cqe_++, policy);
    devx_consumer_ = wire::advance_consumer(devx_consumer_, counter);
  }
  return {clock.seconds(clock.now() - begin), target_is_right(target(), seed_, messages)};
}

}  // namespace belfry::bench

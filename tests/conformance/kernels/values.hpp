#pragma once
/// \file
/// Puts from registers, and each group's form of them.

#include "belfry/device/announce.hpp"
#include "belfry/device/signal.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Where PutValues writes: each value into 16 B of its own, of which it must touch only its first bytes.
enum ValueSlot : std::uint32_t { kU8, kU16, kU32, kU64, kFloat, kDouble, kWarp, kBlock, kValueSlots };
inline constexpr std::uint64_t kValueSlotBytes = 16;

inline constexpr std::uint8_t kValueU8 = 0xa5;
inline constexpr std::uint16_t kValueU16 = 0xa5b6;
inline constexpr std::uint32_t kValueU32 = 0xa5b6c7d8;
inline constexpr std::uint64_t kValueU64 = 0xa5b6c7d8e9fa0b1c;
inline constexpr float kValueFloat = -1.5e-7f;
inline constexpr double kValueDouble = 6.02214076e23;

/// Run by one block of any size.
template <class Endpoint>
struct PutValues {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  device::Place remote;
  device::Signal after;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    using device::Announce;
    Report& report = reports[grid_thread()];
    auto channel = Endpoint(view).channel(peer);
    const auto slot = [&](std::uint32_t which) { return remote + which * kValueSlotBytes; };
    const auto thread = device::Thread{};
    if (port::thread_index() == 0) {
      report.note(kU8, channel.put_value(thread, slot(kU8), kValueU8, Announce::now, kPatient));
      report.note(kU16, channel.put_value(thread, slot(kU16), kValueU16, Announce::now, kPatient));
      report.note(kU32, channel.put_value(thread, slot(kU32), kValueU32, Announce::later, kPatient));
      report.note(kU64, channel.put_value(thread, slot(kU64), kValueU64, Announce::later, kPatient));
      report.note(kFloat, channel.put_value(thread, slot(kFloat), kValueFloat, Announce::now, kPatient));
      report.note(kDouble, channel.put_value(thread, slot(kDouble), kValueDouble, Announce::now, kPatient));
    }
    if (port::thread_index() < port::kWarpSize) {
      const auto warp = make_group<device::Warp>();
      report.note(kWarp, channel.put_value(warp, slot(kWarp), kValueU64, Announce::now, kPatient));
    }
    const auto block = device::Block{};
    report.note(kBlock, channel.put_value(block, slot(kBlock), kValueU64, Announce::now, kPatient));
    report.note(kValueSlots, channel.signal(block, after, kPatient));
    report.note(kValueSlots + 1, channel.flush(block, kPatient));
  }
};

}  // namespace belfry::conformance

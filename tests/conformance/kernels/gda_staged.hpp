#pragma once
/// \file
/// mini-gda's staged verbs, with time between the stages. Only for transports that have them.

#include "belfry/device/gda.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Each thread reserves, waits, builds, waits, publishes, on one queue under Publication::handoff. Its puts
/// count up in a word of its own; every fourth WQE adds 1 to a word of all instead.
template <class Policy>
struct DelayedStages {
  device::EndpointView view;
  std::uint32_t peer = 1;
  device::Place words;    ///< at the peer, 8 B a thread
  device::Place total;    ///< at the peer
  device::Place results;  ///< here, 8 B a thread
  std::uint32_t rounds = 0;
  std::uint32_t most_turns = 0;  ///< of each delay
  std::uint64_t seed = 0;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    const std::uint32_t me = grid_thread();
    Report& report = reports[me];
    device::gda::Channel<Policy> channel(view, peer);
    std::uint64_t random = mixed(seed + me + 1);
    for (std::uint32_t i = 1; i <= rounds; ++i) {
      random = mixed(random + i);
      const bool adds = i % 4 == 0;
      const bool announce = (random & 0x30) != 0 || i == rounds;
      const auto remote = device::gda::remote_of(view, peer, adds ? total : words + me * std::uint64_t{8});
      const device::gda::ValueWrite put{remote, i, 8};
      const device::gda::FetchAdd add{remote, device::gda::local_of(view, results + me * std::uint64_t{8}),
                                      1};
      const auto status = adds ? post(channel, add, announce, random) : post(channel, put, announce, random);
      if (!report.note(i, status)) return;
    }
    report.note(rounds + 1, channel.flush(device::Thread{}, kPatient));
  }

 private:
  template <class Wqe>
  BELFRY_FN device::Status post(device::gda::Channel<Policy>& channel, const Wqe& wqe, bool announce,
                                std::uint64_t random) const {
    using namespace device::gda;
    const device::SendQueue& queue = channel.queue();
    const std::uint32_t blocks = wire::wqe_blocks(wqe.segments());
    const Slots slots = reserve<Policy>(queue, channel.indices(), blocks, kPatient);
    if (slots.status != device::Status::done) return slots.status;
    const std::uint64_t end = slots.first + blocks;
    delay(random);
    const bool now = announce || ends_batch(queue, slots.first, end);
    build(queue, slots.first, wqe, now);
    delay(random >> 32);
    return publish<Policy>(queue, channel.indices(), slots.first, end, slots.first, now, kPatient);
  }
  BELFRY_FN void delay(std::uint64_t random) const {
    if (most_turns == 0 || (random & 3) == 0) return;
    const std::uint64_t turns = (random >> 8) % most_turns;
    for (std::uint64_t i = 0; i < turns; ++i)
      static_cast<void>(port::poll<port::Scope::gpu>(&view.queues[0].qpn));
  }
};

}  // namespace belfry::conformance

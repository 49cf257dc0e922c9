#pragma once
/// \file
/// put_signal, and whoever waits for it.

#include "belfry/device/signal.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Both ends of many rounds of put_signal, one thread each. The payload of a round is words that depend on
/// round and position; the reader looks at all of them the moment it sees the signal, and answers with a
/// signal of its own, so that the writer may overwrite them.
struct Rounds {
  std::uint32_t peer = 0;
  device::Place payload;    ///< at the reader; the writer's source lies at the same place of its window
  std::uint32_t words = 0;  ///< 8 B each
  std::uint32_t rounds = 0;
  device::Place signal;  ///< the reader's: grows by one a round, or is set to the round
  device::Place answer;  ///< the writer's, likewise
  device::SignalOperation operation = device::SignalOperation::add;
  Report* reports = nullptr;

  BELFRY_FN static std::uint64_t word_of(std::uint64_t round, std::uint64_t position) {
    return mixed(round << 20 | position);
  }
  BELFRY_FN device::Signal signal_of(device::Place place, std::uint64_t round) const {
    return {place, operation == device::SignalOperation::add ? 1 : round, operation};
  }
};

template <class Endpoint>
struct WriteRounds {
  typename Endpoint::View view;
  Rounds rounds;

  BELFRY_FN void operator()() const {
    const Rounds& r = rounds;
    Report& report = r.reports[grid_thread()];
    auto channel = Endpoint(view).channel(r.peer);
    const auto thread = device::Thread{};
    auto* source = local_pointer<std::uint64_t>(view, r.payload);
    for (std::uint64_t round = 1; round <= r.rounds; ++round) {
      for (std::uint32_t i = 0; i < r.words; ++i) source[i] = Rounds::word_of(round, i);
      const auto op = channel.put_signal(thread, r.payload, r.payload, std::uint64_t{8} * r.words,
                                         r.signal_of(r.signal, round), kPatient);
      if (!report.note(round, op)) return;
      const auto status =
          Endpoint(view).wait_signal(thread, r.answer, device::Compare::greater_equal, round, kPatient);
      if (!report.note(round, status)) return;
      // The answer says that the payload is there; that the source may be used again says only the
      // completion.
      if (!report.note(round, channel.wait(thread, op, kPatient))) return;
    }
    report.note(r.rounds + 1, channel.flush(thread, kPatient));
  }
};

template <class Endpoint>
struct ReadRounds {
  typename Endpoint::View view;
  Rounds rounds;

  BELFRY_FN void operator()() const {
    const Rounds& r = rounds;
    Report& report = r.reports[grid_thread()];
    Endpoint endpoint(view);
    auto channel = endpoint.channel(r.peer);
    const auto thread = device::Thread{};
    const auto* payload = local_pointer<const std::uint64_t>(view, r.payload);
    for (std::uint64_t round = 1; round <= r.rounds; ++round) {
      const auto status =
          endpoint.wait_signal(thread, r.signal, device::Compare::greater_equal, round, kPatient);
      if (!report.note(round, status)) return;
      // The last word first: it is what a signal that overtakes its payload overtakes.
      bool whole = true;
      for (std::uint32_t i = r.words; i-- > 0;) whole = whole && payload[i] == Rounds::word_of(round, i);
      report.check(round, whole);
      if (!report.note(round, channel.signal(thread, r.signal_of(r.answer, round), kPatient))) return;
    }
    report.note(r.rounds + 1, channel.flush(thread, kPatient));
  }
};

/// Waits for a word once; values[0] is the status, for cases that expect another than done.
template <class Endpoint, class Group>
struct WaitSignal {
  typename Endpoint::View view;
  device::Place word;
  device::Compare how = device::Compare::greater_equal;
  std::uint64_t value = 1;
  port::Timeout timeout = kPatient;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    Report& report = reports[grid_thread()];
    const std::uint64_t before = port::now_ns();
    const auto status = Endpoint(view).wait_signal(make_group<Group>(), word, how, value, timeout);
    report.elapsed_ns = port::now_ns() - before;
    report.values[0] = static_cast<std::uint64_t>(status);
    report.note(0, status);
  }
};

}  // namespace belfry::conformance

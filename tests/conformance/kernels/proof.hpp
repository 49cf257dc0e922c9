#pragma once
/// \file
/// Very many puts through shared queues, of which not one may be lost, doubled or overtaken unseen.
///
/// Each writer fills slots of its own at the reader, lap by lap, and signals after each lap; its reader
/// compares every slot, and answers. In even laps each put has a slot of its own: one that was lost leaves
/// the old value. In odd laps two puts in a row share a slot: one that overtakes the other leaves the wrong
/// one. What a word alone cannot show, an operation that is done twice, shows in what adds: a lap's signal
/// must stand exactly at the lap's number when it is seen, and the sum of all laps exactly at their number in
/// the end. A put that is done again later lands in a later lap's slots, or after the last, and the reader
/// looks there once more.

#include "belfry/device/announce.hpp"
#include "belfry/device/signal.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

struct Proof {
  device::EndpointView view;
  std::uint32_t peer = 0;
  std::uint32_t queues = 1;  ///< writer w uses queue w mod this
  std::uint32_t slots = 0;   ///< puts of a lap; even
  std::uint32_t batch = 16;  ///< puts a doorbell
  std::uint64_t laps = 0;
  device::Place data;     ///< slots * 8 B a writer, at the reader; the writer's sources at the same place
  device::Place signals;  ///< 8 B a writer, at the reader
  device::Place answers;  ///< 8 B a writer, at the writer
  device::Place total;    ///< 8 B at the reader: laps of all writers
  device::Place results;  ///< 8 B a writer, at the writer
  port::Timeout timeout = port::Timeout::seconds(60);
  Report* reports = nullptr;

  BELFRY_FN static std::uint64_t word_of(std::uint64_t writer, std::uint64_t lap, std::uint64_t put) {
    return mixed(writer << 56 ^ lap << 16 ^ put);
  }
  BELFRY_FN static std::uint64_t slot_of(std::uint64_t lap, std::uint64_t put) {
    return lap % 2 == 0 ? put : put / 2;
  }
  BELFRY_FN device::Place of_writer(device::Place base, std::uint64_t writer) const {
    return base + writer * 8;
  }
  BELFRY_FN device::Place slot(std::uint64_t writer, std::uint64_t number) const {
    return data + (writer * slots + number) * 8;
  }
};

/// values[0]: puts; [1]: sum of all words put.
template <class Endpoint>
struct ProveWriting {
  Proof proof;

  BELFRY_FN void operator()() const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    Report& report = p.reports[me];
    Endpoint endpoint(p.view);
    auto channel = endpoint.channel(p.peer, me % p.queues);
    for (std::uint64_t lap = 0; lap < p.laps; ++lap) {
      if (!write_lap(report, channel, lap)) return;
      const device::Signal seen{p.of_writer(p.signals, me), 1, device::SignalOperation::add};
      if (!report.note(lap, channel.signal(device::Thread{}, seen, p.timeout))) return;
      const auto add = channel.fetch_add(device::Thread{}, p.of_writer(p.results, me), p.total, 1,
                                         device::Announce::now, p.timeout);
      if (!report.note(lap, add)) return;
      // All of the lap is complete with it, so its sources may be written again.
      if (!report.note(lap, channel.wait(device::Thread{}, add, p.timeout))) return;
      const auto answered = endpoint.wait_signal(device::Thread{}, p.of_writer(p.answers, me),
                                                 device::Compare::greater_equal, lap + 1, p.timeout);
      if (!report.note(lap, answered)) return;
    }
  }

 private:
  template <class Channel>
  BELFRY_FN bool write_lap(Report& report, Channel& channel, std::uint64_t lap) const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    for (std::uint32_t put = 0; put < p.slots; ++put) {
      const std::uint64_t word = Proof::word_of(me, lap, put);
      const device::Place to = p.slot(me, Proof::slot_of(lap, put));
      const auto announce = (put + 1) % p.batch == 0 ? device::Announce::now : device::Announce::later;
      device::Operation op;
      if (me % 2 == 0) {
        op = channel.put_value(device::Thread{}, to, word, announce, p.timeout);
      } else {
        const device::Place from = p.slot(me, put);
        *local_pointer<std::uint64_t>(p.view, from) = word;
        op = channel.put(device::Thread{}, to, from, 8, announce, p.timeout);
      }
      if (!op.ok()) return report.note(lap, op);
      ++report.values[0];
      report.values[1] += word;
    }
    return true;
  }
};

/// values[0]: puts whose word was found; [1]: sum of the words that a lap's puts brought.
template <class Endpoint>
struct ProveReading {
  Proof proof;

  BELFRY_FN void operator()() const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    Report& report = p.reports[me];
    Endpoint endpoint(p.view);
    auto channel = endpoint.channel(p.peer, me % p.queues);
    const auto* signal = local_pointer<const std::uint64_t>(p.view, p.of_writer(p.signals, me));
    for (std::uint64_t lap = 0; lap < p.laps; ++lap) {
      const auto seen = endpoint.wait_signal(device::Thread{}, p.of_writer(p.signals, me),
                                             device::Compare::greater_equal, lap + 1, p.timeout);
      if (!report.note(lap, seen)) return;
      report.check(lap, port::load<port::Scope::system>(signal) == lap + 1);
      check_lap(report, lap);
      const device::Signal answer{p.of_writer(p.answers, me), 1, device::SignalOperation::add};
      if (!report.note(lap, channel.signal(device::Thread{}, answer, p.timeout))) return;
    }
    report.note(p.laps, channel.flush(device::Thread{}, p.timeout));
  }

 private:
  BELFRY_FN void check_lap(Report& report, std::uint64_t lap) const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    const auto* words = local_pointer<const std::uint64_t>(p.view, p.slot(me, 0));
    const bool pairs = lap % 2 == 1;
    std::uint64_t right = 0;
    for (std::uint32_t i = 0; i < p.slots; ++i) {
      // The word that must lie in slot i now: the later of a pair's two, and in the rest the lap before's.
      const bool old = pairs && i >= p.slots / 2;
      const std::uint64_t put = pairs && !old ? 2u * i + 1u : i;
      right += words[i] == Proof::word_of(me, old ? lap - 1 : lap, put);
    }
    if (report.check(lap, right == p.slots)) report.values[0] += p.slots;
    // The earlier of a pair is overwritten, so its part of the sum is what was to be there.
    for (std::uint32_t put = 0; put < p.slots; ++put)
      report.values[1] +=
          pairs && put % 2 == 0 ? Proof::word_of(me, lap, put) : words[Proof::slot_of(lap, put)];
  }
};

}  // namespace belfry::conformance

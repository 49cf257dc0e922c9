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
  std::uint32_t peer = 0;
  std::uint32_t queues = 1;  ///< to share
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

/// Warps share the queues, and each lap is another queue's. In two of sixteen laps every thread posts for
/// itself; in the others a warp's threads post together, one put each. values[0]: puts; [1]: sum of all words
/// put.
template <class Endpoint>
struct ProveWriting {
  typename Endpoint::View view;
  Proof proof;

  BELFRY_FN void operator()() const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    const std::uint32_t mask = port::warp_mask();
    Report& report = p.reports[me];
    const Endpoint endpoint(view);
    for (std::uint64_t lap = 0; lap < p.laps; ++lap) {
      const bool good = lap % 16 < 2 ? one_lap<device::Thread>(report, endpoint, lap)
                                     : one_lap<device::Warp>(report, endpoint, lap);
      // The warp's threads go on together, or not at all.
      if (port::ballot(mask, !good) != 0) return;
    }
  }

 private:
  template <class Group>
  BELFRY_FN bool one_lap(Report& report, const Endpoint& endpoint, std::uint64_t lap) const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    auto channel =
        endpoint.channel(p.peer, static_cast<std::uint32_t>((port::block_index() + lap) % p.queues));
    if (!write_lap(report, channel, make_group<Group>(), lap)) return false;
    const device::Signal seen{p.of_writer(p.signals, me), 1, device::SignalOperation::add};
    if (!report.note(lap, channel.signal(device::Thread{}, seen, p.timeout))) return false;
    const auto add = channel.fetch_add(device::Thread{}, p.of_writer(p.results, me), p.total, 1,
                                       device::Announce::now, p.timeout);
    if (!report.note(lap, add)) return false;
    // All of the lap is complete with it, so its sources may be written again.
    if (!report.note(lap, channel.wait(device::Thread{}, add, p.timeout))) return false;
    return report.note(lap, endpoint.wait_signal(device::Thread{}, p.of_writer(p.answers, me),
                                                 device::Compare::greater_equal, lap + 1, p.timeout));
  }

  template <class Channel, class Group>
  BELFRY_FN bool write_lap(Report& report, Channel& channel, Group group, std::uint64_t lap) const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    for (std::uint32_t put = 0; put < p.slots; ++put) {
      const std::uint64_t word = Proof::word_of(me, lap, put);
      const device::Place to = p.slot(me, Proof::slot_of(lap, put));
      const auto announce = (put + 1) % p.batch == 0 ? device::Announce::now : device::Announce::later;
      device::Operation op;
      if (put / p.batch % 2 == 0) {
        op = put_word(channel, group, to, word, announce);
      } else {
        const device::Place from = p.slot(me, put);
        *local_pointer<std::uint64_t>(view, from) = word;
        op = put_from(channel, group, to, from, announce);
      }
      if (!op.ok()) return report.note(lap, op);
      ++report.values[0];
      report.values[1] += word;
    }
    return true;
  }

  template <class Channel>
  BELFRY_FN device::Operation put_word(Channel& channel, device::Thread thread, device::Place to,
                                       std::uint64_t word, device::Announce announce) const {
    return channel.put_value(thread, to, word, announce, proof.timeout);
  }
  template <class Channel>
  BELFRY_FN device::Operation put_word(Channel& channel, device::Warp warp, device::Place to,
                                       std::uint64_t word, device::Announce announce) const {
    return channel.put_value_each(warp, to, word, announce, proof.timeout);
  }
  template <class Channel>
  BELFRY_FN device::Operation put_from(Channel& channel, device::Thread thread, device::Place to,
                                       device::Place from, device::Announce announce) const {
    return channel.put(thread, to, from, 8, announce, proof.timeout);
  }
  template <class Channel>
  BELFRY_FN device::Operation put_from(Channel& channel, device::Warp warp, device::Place to,
                                       device::Place from, device::Announce announce) const {
    return channel.put_each(warp, to, from, 8, announce, proof.timeout);
  }
};

/// values[0]: puts whose word was found; [1]: sum of the words that a lap's puts brought.
template <class Endpoint>
struct ProveReading {
  typename Endpoint::View view;
  Proof proof;

  BELFRY_FN void operator()() const {
    const Proof& p = proof;
    const std::uint32_t me = grid_thread();
    Report& report = p.reports[me];
    Endpoint endpoint(view);
    auto channel = endpoint.channel(p.peer, me % p.queues);
    const auto* signal = local_pointer<const std::uint64_t>(view, p.of_writer(p.signals, me));
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
    const auto* words = local_pointer<const std::uint64_t>(view, p.slot(me, 0));
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

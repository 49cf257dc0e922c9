#pragma once
/// \file
/// What scenarios of mini-gda are made of: policies, and posts that the ledger knows of.

#include <fmt/format.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "check/explore.hpp"
#include "check/gda_world.hpp"

namespace belfry::check {

template <device::Ordering order_, device::DoorbellMode mode_,
          device::Sharing sharing_ = device::Sharing::exclusive,
          device::Publication publication_ = device::Publication::handoff,
          device::CompletionLayout layout_ = device::CompletionLayout::collapsed>
struct GdaPolicy : device::DefaultPolicy {
  static constexpr device::Ordering ordering = order_;
  static constexpr device::DoorbellMode doorbell_mode = mode_;
  static constexpr device::Sharing sharing = sharing_;
  static constexpr device::Publication publication = publication_;
  static constexpr device::CompletionLayout completion_layout = layout_;
  static constexpr bool assume_doorbell_only = true;
  static constexpr bool unsafe_control = ordering == device::Ordering::none;
};

inline constexpr port::Timeout kLong = port::Timeout::seconds(1);

inline std::uint64_t payload_of(unsigned i) { return 0x100 + i; }

inline std::uintptr_t address(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

inline void expect_done(device::Status status, const char* call) {
  World::here().require(status == device::Status::done, Property::waits_end,
                        fmt::format("{} says {}", call, device::status_name(status)));
}

/// Posts WRITE number i from this thread's own word. Of a queue that has failed the answer may be
/// completion_error, and then nothing is posted (docs/device-api.md, "Statuses and deadlines").
/// \param number its number in the ledger
template <class Channel>
device::Operation put_unless_failed(GdaWorld& g, Channel& channel, unsigned i, std::size_t& number,
                                    device::Announce announce = device::Announce::now) {
  number = g.ledger.intend(fmt::format("WRITE {}", i), wire::WqeOpcode::rdma_write,
                           address(g.remote(g.word(i))), payload_of(i));
  port::store<Scope::block>(g.local(g.word(i)), payload_of(i));
  const device::Operation op = channel.put(device::Thread{}, g.word(i), g.word(i), 8, announce);
  if (op.status == device::Status::completion_error) {
    g.ledger.not_posted(number);
  } else {
    expect_done(op.status, "put");
    g.ledger.posted(number, op.index);
  }
  // Of a shared queue a channel holds nothing; its owner holds the indices.
  if constexpr (!std::is_same_v<typename Channel::Indices, device::gda::OwnedIndices>)
    World::here().remember_only({i, op.index, op.ok() ? 1u : 0u});
  return op;
}

/// The same where no WQE fails.
template <class Channel>
device::Operation put(GdaWorld& g, Channel& channel, unsigned i, std::size_t& number,
                      device::Announce announce = device::Announce::now) {
  const device::Operation op = put_unless_failed(g, channel, i, number, announce);
  expect_done(op.status, "put");
  return op;
}

template <class Policy>
Scenario gda_scenario(std::string name, const GdaSettings& settings,
                      std::function<void(World&, GdaWorld&)> agents) {
  Scenario s;
  s.name = "gda." + name;
  s.settings.assumptions.doorbell_only = false;
  s.build = [settings, agents = std::move(agents)](World& world) {
    GdaWorld& g = world.keep<GdaWorld>(world, settings, Policy::doorbell_mode, Policy::completion_layout);
    agents(world, g);
  };
  return s;
}

/// A thread for each number, of a block of its own or all of one, that posts so many WRITEs.
struct Posters {
  std::vector<unsigned> writes;  ///< [thread]
  bool wait = false;             ///< each then waits for all of its own
  bool one_block = false;
};

template <class Policy>
Scenario gda_writes(std::string name, const Posters& posters, const GdaSettings& settings = {}) {
  return gda_scenario<Policy>(std::move(name), settings, [posters](World& world, GdaWorld& g) {
    unsigned first = 0;
    for (unsigned t = 0; t < posters.writes.size(); ++t) {
      const int block = posters.one_block ? 0 : static_cast<int>(t);
      const unsigned end = first + posters.writes[t];
      const bool waits = posters.wait;
      world.add_agent(fmt::format("poster {}", t), gpu_thread(0, block), [&g, first, end, waits] {
        device::gda::Channel<Policy> channel(g.view, 0);
        std::vector<std::pair<device::Operation, std::size_t>> posted;
        for (unsigned i = first; i < end; ++i) {
          std::size_t number = 0;
          const device::Operation op = put(g, channel, i, number);
          posted.emplace_back(op, number);
        }
        if (!waits) return;
        for (const auto& [op, number] : posted) {
          expect_done(channel.wait(device::Thread{}, op, kLong).status, "wait");
          g.ledger.completed(number);
        }
      });
      first = end;
    }
  });
}

}  // namespace belfry::check

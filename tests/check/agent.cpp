#include "check/agent.hpp"

#include <utility>

#include "check/hash.hpp"

namespace belfry::check {

World::Agent::Agent(World& w, std::string agent_name, Place at, bool is_daemon, std::function<void()> body)
    : world(w), name(std::move(agent_name)), place(at), daemon(is_daemon) {
  coroutine.emplace([this, run = std::move(body)] {
    try {
      run();
    } catch (const boost::context::detail::forced_unwind&) {
      throw;
    } catch (...) {
      world.error_ = std::current_exception();
    }
  });
}

std::vector<World::Agent*> World::Agent::company(std::uint32_t mask, bool whole_block) const {
  std::vector<Agent*> all;
  for (auto& agent : world.agents_) {
    if (agent->place.kind != AgentKind::gpu || agent->place.gpu != place.gpu ||
        agent->place.block != place.block)
      continue;
    if (whole_block || (mask >> agent->lane & 1u) != 0) all.push_back(agent.get());
  }
  return all;
}

void World::Agent::meet(std::uint32_t mask, bool whole_block, bool orders, std::uint64_t value) {
  if (world.stopped()) return;
  meeting = {true, mask, whole_block, orders, value, {}};
  const auto all = company(mask, whole_block);
  for (const Agent* agent : all) {
    const Meeting& m = agent->meeting;
    if (!m.waits || m.mask != mask || m.whole_block != whole_block || m.orders != orders) {
      coroutine->suspend();  // the last one to come wakes us
      return;
    }
  }
  std::vector<Observer*> observers;
  for (Agent* agent : all) {
    agent->meeting.waits = false;
    observers.push_back(&world.memory_.observer(agent->observer));
    for (const Agent* other : all) {
      agent->meeting.heard[other->lane] = other->meeting.value;
      agent->chain = mix(agent->chain, other->meeting.value);
    }
  }
  ++world.steps_;
  if (orders) world.memory_.meet(observers);
  if (world.trace.on) {
    Event e;
    e.kind = EventKind::meet;
    e.step = world.steps_;
    e.observer = observer;
    e.text = orders ? "barrier of " : "vote or shuffle of ";
    for (const Agent* agent : all) e.text += agent->name + " ";
    world.trace.add(std::move(e));
    world.trace.look(world.memory_, world.steps_);
  }
}

void World::Agent::sync_warp(std::uint32_t mask) { meet(mask, false, true, 0); }
bool World::Agent::sync_block(bool vote) {
  meet(0, true, true, vote ? 1 : 0);
  for (std::uint64_t heard : meeting.heard)
    if (heard != 0) return true;
  return false;
}

std::uint32_t World::Agent::ballot(std::uint32_t mask, bool vote) {
  meet(mask, false, false, vote ? 1 : 0);
  std::uint32_t votes = 0;
  for (const Agent* agent : company(mask, false))
    if (meeting.heard[agent->lane] != 0) votes |= 1u << agent->lane;
  return votes;
}

std::uint64_t World::Agent::shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source) {
  meet(mask, false, false, value);
  return meeting.heard[source % port::kWarpSize];
}

}  // namespace belfry::check

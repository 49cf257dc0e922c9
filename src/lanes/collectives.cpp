#include <array>
#include <cstdio>
#include <exception>

#include "lanes/warp.hpp"

namespace belfry::lanes {

namespace {

std::string hex(std::uint32_t mask) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", mask);
  return text.data();
}

std::string call_with_mask(Call call, std::uint32_t mask) {
  return std::string(to_string(call)) + " with mask " + hex(mask);
}

}  // namespace

void Warp::fail(std::uint32_t lanes, const std::string& message) {
  launch_.fail(
      std::make_exception_ptr(DivergenceError(block_, index_, lanes, launch_.options.name + ": " + message)));
}

void Warp::refuse_mask(const Lane& lane, Call call, std::uint32_t mask, std::uint32_t source) {
  const std::string where = name_lanes(lane.bit()) + " calls " + call_with_mask(call, mask);
  if ((mask & lane.bit()) == 0) {
    fail(lane.bit(), where + ", which does not name itself");
  } else if (const std::uint32_t missing = mask & ~all_; missing != 0) {
    fail(missing, where + ", but this warp has no " + name_lanes(missing));
  } else if (const std::uint32_t exited = mask & ~live_; exited != 0) {
    fail(exited | lane.bit(), where + ", but " + name_lanes(exited) + " exited");
  } else {
    fail(lane.bit(), where + " from lane " + std::to_string(source) + ", which the mask does not name");
  }
}

Warp::Meeting* Warp::find_meeting(const Lane& lane, Call call, std::uint32_t mask) {
  for (std::uint32_t left = open_meetings_; left != 0; left &= left - 1) {
    Meeting& meeting = meetings_[port::first_lane(left)];
    if (meeting.mask != mask) continue;
    if (meeting.call == call) return &meeting;
    fail(meeting.arrived | lane.bit(), name_lanes(lane.bit()) + " calls " + call_with_mask(call, mask) +
                                           ", but " + name_lanes(meeting.arrived) + " called " +
                                           to_string(meeting.call));
    return nullptr;
  }
  // Each open meeting has a lane that waits in it, so there is room for this lane's.
  const std::uint32_t slot = port::first_lane(~open_meetings_);
  open_meetings_ |= 1u << slot;
  meetings_[slot] = {mask, 0, 0, call};
  return &meetings_[slot];
}

Warp::Meeting* Warp::join(const Lane& lane, Call call, std::uint32_t mask, std::uint32_t source) {
  if (launch_.stopped()) return nullptr;
  const bool possible = (mask & lane.bit()) != 0 && (mask & ~live_) == 0 &&
                        (call != Call::shuffle || (source < port::kWarpSize && (mask >> source & 1u) != 0));
  if (possible) return find_meeting(lane, call, mask);
  refuse_mask(lane, call, mask, source);
  return nullptr;
}

std::uint64_t Warp::meet(Lane& lane, Call call, std::uint32_t mask, std::uint64_t value,
                         std::uint32_t source) {
  Meeting* const meeting = join(lane, call, mask, source);
  if (meeting == nullptr) {
    heed_stop(lane, call);
    return 0;
  }
  lane.value_ = value;
  lane.source_ = source;
  lane.result_ = 0;
  meeting->arrived |= lane.bit();
  if (call == Call::ballot && value != 0) meeting->votes |= lane.bit();
  // On a GPU sync_warp orders memory, and the others do not.
  if (call == Call::sync_warp) tsan_release(meeting);
  if (meeting->arrived == mask) {
    complete(*meeting);
  } else {
    wait(lane, call);
  }
  if (call == Call::sync_warp) tsan_acquire(meeting);
  return lane.result_;
}

void Warp::complete(Meeting& meeting) {
  if (meeting.call != Call::sync_warp) {
    for (std::uint32_t left = meeting.mask; left != 0; left &= left - 1) {
      Lane& lane = lanes_[port::first_lane(left)];
      lane.result_ = meeting.call == Call::ballot ? meeting.votes : lanes_[lane.source_].value_;
    }
  }
  ready_ |= meeting.mask;
  progress_ = true;
  open_meetings_ &= ~(1u << static_cast<std::uint32_t>(&meeting - meetings_.data()));
}

bool Warp::sync_block(Lane& lane, bool vote) {
  if (launch_.stopped()) {
    heed_stop(lane, Call::sync_block);
    return false;
  }
  tsan_release(&barrier_);
  in_sync_block_ |= lane.bit();
  block_vote_ |= vote;
  wait(lane, Call::sync_block);
  tsan_acquire(&barrier_);
  return lane.result_ != 0;
}

void Warp::check_exit(const Lane& lane) {
  if (launch_.stopped()) {
    release_all();
    return;
  }
  for (std::uint32_t left = open_meetings_; left != 0; left &= left - 1) {
    const Meeting& meeting = meetings_[port::first_lane(left)];
    if ((meeting.mask & lane.bit()) == 0) continue;
    fail(meeting.arrived | lane.bit(), describe_meeting(meeting) + "; " + name_lanes(lane.bit()) + " exited");
    release_all();
    return;
  }
}

std::string Warp::describe_meeting(const Meeting& meeting) const {
  return name_lanes(meeting.arrived) + " in " + call_with_mask(meeting.call, meeting.mask) + " for " +
         name_lanes(meeting.mask & ~meeting.arrived);
}

void Warp::fail_stuck() {
  if (launch_.stopped()) return;
  std::string message = "all wait for each other";
  const char* separator = ": ";
  for (std::uint32_t left = open_meetings_; left != 0; left &= left - 1) {
    message += separator + describe_meeting(meetings_[port::first_lane(left)]);
    separator = "; ";
  }
  if (in_sync_block_ != 0) message += separator + name_lanes(in_sync_block_) + " in sync_block";
  fail(live_, message);
}

void Lane::sync_warp(std::uint32_t mask) {
  const RunnerSection section;
  warp_->meet(*this, Call::sync_warp, mask, 0, 0);
}

std::uint32_t Lane::ballot(std::uint32_t mask, bool vote) {
  const RunnerSection section;
  return static_cast<std::uint32_t>(warp_->meet(*this, Call::ballot, mask, vote ? 1 : 0, 0));
}

std::uint64_t Lane::shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source) {
  const RunnerSection section;
  return warp_->meet(*this, Call::shuffle, mask, value, source);
}

bool Lane::sync_block(bool vote) {
  const RunnerSection section;
  return warp_->sync_block(*this, vote);
}

}  // namespace belfry::lanes

#pragma once
/// \file
/// The choices that a kernel makes when it is compiled. A policy is a type with the members of
/// DefaultPolicy; derive from it and override what differs:
///
///     struct Shared : belfry::device::DefaultPolicy {
///       static constexpr Sharing sharing = Sharing::gpu;
///     };

#include <cstdint>

#include "belfry/device/ordering.hpp"
#include "belfry/device/requirements.hpp"
#include "belfry/port/scope.hpp"
#include "belfry/port/time.hpp"

namespace belfry::device {

/// Who else posts to the queue at the same time.
enum class Sharing : std::uint8_t {
  exclusive,  ///< one thread, which keeps the queue's indices in registers
  block,      ///< threads of one block
  gpu,        ///< threads of the whole GPU
};

/// How the WQEs of several producers become one sequence.
enum class Publication : std::uint8_t {
  handoff,  ///< each reserves slots, builds, and publishes in the order of reservation
  lock,     ///< a lock around each post: slow, kept as a control
};

/// Where the payload of put() comes from.
enum class Payload : std::uint8_t {
  pointer,  ///< the NIC reads it from the window
  inlined,  ///< it is copied into the WQE where it fits, read from the window by the posting thread
};

struct DefaultPolicy {
  static constexpr DoorbellMode doorbell_mode = DoorbellMode::record;
  static constexpr Ordering ordering = Ordering::gpu_release;
  static constexpr Sharing sharing = Sharing::exclusive;
  static constexpr Publication publication = Publication::handoff;
  static constexpr Payload payload = Payload::pointer;
  static constexpr CompletionLayout completion_layout = CompletionLayout::collapsed;
  /// Largest inline payload in bytes that the code is compiled for.
  static constexpr std::uint32_t max_inline = 220;
  /// The two assumptions of device/requirements.hpp, taken by whoever writes them down here; setup checks A1.
  static constexpr bool assume_own_memory = true;
  static constexpr bool assume_doorbell_only = false;
  /// An ordering that nothing makes safe compiles only for those who say that they measure a control.
  static constexpr bool unsafe_control = false;
  /// How long a producer waits at least for its turn to publish, whatever its call's own timeout: giving a
  /// turn up fails the queue for everybody, and so is for a producer that has died, not for one that is slow.
  static constexpr port::Timeout turn_timeout = port::Timeout::seconds(10);
  /// Windows, offsets, lengths and peers are checked before anything is posted.
  static constexpr bool check_arguments = true;
};

/// Refuses, when it is compiled, a policy whose ordering is not safe under its own assumptions.
template <class Policy>
BELFRY_FN constexpr bool policy_is_sound() {
  static_assert(Policy::unsafe_control || safety_of(Policy::ordering) != Safety::unsafe,
                "Ordering::none loses data: it is a control; say unsafe_control = true to measure it");
  static_assert(Policy::unsafe_control || !needs_own_memory(Policy::ordering) || Policy::assume_own_memory,
                "this ordering has GPU scope: it needs assume_own_memory (A1), or a system ordering");
  static_assert(Policy::unsafe_control || !needs_doorbell_only(Policy::ordering, Policy::doorbell_mode) ||
                    Policy::assume_doorbell_only,
                "gpu_fence with a doorbell record needs assume_doorbell_only (A2); gpu_release and "
                "gpu_fence_record do not");
  static_assert(Policy::max_inline <= 972, "a WQE of 63 segments holds 972 B of inline payload");
  return true;
}

/// What setup has to check (host::DeviceEndpoint::admit()).
template <class Policy>
constexpr Requirements requirements_of() {
  static_assert(policy_is_sound<Policy>());
  Requirements r;
  r.doorbell_mode = Policy::doorbell_mode;
  r.completion_layout = Policy::completion_layout;
  r.own_memory = needs_own_memory(Policy::ordering) && !Policy::unsafe_control;
  r.doorbell_only = needs_doorbell_only(Policy::ordering, Policy::doorbell_mode);
  r.max_inline = Policy::payload == Payload::inlined ? Policy::max_inline : 8;
  return r;
}

/// The scope in which the producers of a queue see each other.
BELFRY_FN constexpr port::Scope sharing_scope(Sharing sharing) {
  return sharing == Sharing::gpu ? port::Scope::gpu : port::Scope::block;
}

}  // namespace belfry::device

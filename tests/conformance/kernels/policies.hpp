#pragma once
/// \file
/// Policies of mini-gda that the cases run under, as data.

#include <type_traits>

#include "belfry/device/gda.hpp"

namespace belfry::conformance {

using device::CompletionLayout;
using device::DoorbellMode;
using device::Ordering;
using device::Payload;
using device::Publication;
using device::Sharing;

/// Compiled for CPU lanes every ordering is safe there: an x86 keeps stores in order, and elsewhere doorbells
/// fence; so the controls run too.
template <Sharing kSharing, Publication kPublication, DoorbellMode kMode, CompletionLayout kLayout,
          Ordering kOrdering, Payload kPayload = Payload::pointer>
struct PolicyOf : device::DefaultPolicy {
  static constexpr Sharing sharing = kSharing;
  static constexpr Publication publication = kPublication;
  static constexpr DoorbellMode doorbell_mode = kMode;
  static constexpr CompletionLayout completion_layout = kLayout;
  static constexpr Ordering ordering = kOrdering;
  static constexpr Payload payload = kPayload;
  static constexpr bool assume_doorbell_only = device::needs_doorbell_only(kOrdering, kMode);
  static constexpr bool unsafe_control = kOrdering == Ordering::none;
};

inline constexpr auto kExclusive = Sharing::exclusive;
inline constexpr auto kBlockwide = Sharing::block;
inline constexpr auto kGpuwide = Sharing::gpu;
inline constexpr auto kHandoff = Publication::handoff;
inline constexpr auto kLock = Publication::lock;
inline constexpr auto kRecord = DoorbellMode::record;
inline constexpr auto kNoRecord = DoorbellMode::no_record;
inline constexpr auto kRing = CompletionLayout::ring;
inline constexpr auto kCollapsed = CompletionLayout::collapsed;
inline constexpr auto kInlined = Payload::inlined;

// By what they share, and how; the ordering is the mode's default.
template <Sharing kSharing, Publication kPublication, DoorbellMode kMode, CompletionLayout kLayout,
          Payload kPayload = Payload::pointer>
using Usual = PolicyOf<kSharing, kPublication, kMode, kLayout, device::default_ordering(kMode), kPayload>;

using ExclusiveRecordRing = Usual<kExclusive, kHandoff, kRecord, kRing>;
using ExclusiveRecordCollapsed = Usual<kExclusive, kHandoff, kRecord, kCollapsed, kInlined>;
using ExclusiveNoRecordRing = Usual<kExclusive, kHandoff, kNoRecord, kRing, kInlined>;
using ExclusiveNoRecordCollapsed = Usual<kExclusive, kHandoff, kNoRecord, kCollapsed>;
using BlockHandoffRing = Usual<kBlockwide, kHandoff, kRecord, kRing, kInlined>;
using BlockHandoffCollapsed = Usual<kBlockwide, kHandoff, kNoRecord, kCollapsed>;
using BlockLockRing = Usual<kBlockwide, kLock, kNoRecord, kRing>;
using BlockLockCollapsed = Usual<kBlockwide, kLock, kRecord, kCollapsed, kInlined>;
using GpuHandoffRing = Usual<kGpuwide, kHandoff, kNoRecord, kRing>;
using GpuHandoffCollapsed = Usual<kGpuwide, kHandoff, kRecord, kCollapsed>;
using GpuHandoffInlined = Usual<kGpuwide, kHandoff, kRecord, kRing, kInlined>;
using GpuLockRing = Usual<kGpuwide, kLock, kRecord, kRing>;
using GpuLockCollapsed = Usual<kGpuwide, kLock, kNoRecord, kCollapsed, kInlined>;

// Every ordering in both modes; layouts and sharing alternate.
template <Ordering kOrdering>
using RecordOrdering = PolicyOf<kGpuwide, kHandoff, kRecord, kCollapsed, kOrdering>;
template <Ordering kOrdering>
using NoRecordOrdering = PolicyOf<kExclusive, kHandoff, kNoRecord, kRing, kOrdering>;

}  // namespace belfry::conformance

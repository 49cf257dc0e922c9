#pragma once
/// \file
/// What the cases are typed over: a transport's endpoint type, the world that its host side sets up, and a
/// name. A transport that comes later adds configurations, and the cases stay. Its world offers what
/// conformance::World does; cases that look at mini-gda's queues (silence, faults, wraps) ask for more than
/// that.

#include <gtest/gtest.h>

#include <string>

#include "conformance/kernels/policies.hpp"
#include "conformance/kernels/proxy_policies.hpp"
#include "conformance/proxy_world.hpp"
#include "conformance/world.hpp"

namespace belfry::conformance {

/// mini-gda under one policy.
template <class PolicyType>
struct Gda {
  using Policy = PolicyType;
  using Endpoint = device::gda::Endpoint<Policy>;
  using World = conformance::World;

  static constexpr bool kShares = Policy::sharing != Sharing::exclusive;
  static constexpr bool kSharesAcrossBlocks = Policy::sharing == Sharing::gpu;

  static device::Requirements requirements() { return device::requirements_of<Policy>(); }
  static std::string name() {
    std::string text = Policy::sharing == Sharing::exclusive ? "exclusive"
                       : Policy::sharing == Sharing::block   ? "block"
                                                             : "gpu";
    if (kShares) text += Policy::publication == Publication::handoff ? "_handoff" : "_lock";
    text += Policy::doorbell_mode == DoorbellMode::record ? "_record" : "_no_record";
    text += Policy::completion_layout == CompletionLayout::ring ? "_ring" : "_collapsed";
    text += Policy::payload == Payload::pointer ? "_pointer_" : "_inline_";
    return text + device::ordering_name(Policy::ordering);
  }
};

/// The same device code, its doorbells forwarded by a CPU.
template <class PolicyType>
struct Assisted : Gda<PolicyType> {
  using World = AssistedWorld;
  static std::string name() { return "assisted_" + Gda<PolicyType>::name(); }
};

/// mini-proxy under one policy.
template <class PolicyType>
struct Proxy {
  using Policy = PolicyType;
  using Endpoint = device::proxy::Endpoint<Policy>;
  using World = ProxyWorld;

  static constexpr bool kShares = Policy::protocol != Protocol::tuned;
  static constexpr bool kSharesAcrossBlocks = kShares;

  static device::Requirements requirements() { return {}; }
  static std::string name() {
    const std::string protocol = Policy::protocol == Protocol::tuned          ? "tuned"
                                 : Policy::protocol == Protocol::shared_tuned ? "shared_tuned"
                                                                              : "baseline";
    return "proxy_" + protocol + (Policy::form == Form::payload_published ? "_published" : "_visible");
  }
};

struct ConfigurationNames {
  template <class Configuration>
  static std::string GetName(int) {
    return Configuration::name();
  }
};

/// mini-gda by what its producers share, and how.
using GdaConfigurations =
    ::testing::Types<Gda<ExclusiveRecordRing>, Gda<ExclusiveRecordCollapsed>, Gda<ExclusiveNoRecordRing>,
                     Gda<ExclusiveNoRecordCollapsed>, Gda<BlockHandoffRing>, Gda<BlockHandoffCollapsed>,
                     Gda<BlockLockRing>, Gda<BlockLockCollapsed>, Gda<GpuHandoffRing>,
                     Gda<GpuHandoffCollapsed>, Gda<GpuHandoffInlined>, Gda<GpuLockRing>,
                     Gda<GpuLockCollapsed>, Assisted<ExclusiveRecordCollapsed>, Assisted<GpuHandoffRing>>;

template <class... Lists>
struct Joined;
template <class... First, class... Second>
struct Joined<::testing::Types<First...>, ::testing::Types<Second...>> {
  using Types = ::testing::Types<First..., Second...>;
};

/// Every transport, for kernels that publish the payload which they write.
using PublishingConfigurations =
    Joined<GdaConfigurations,
           ::testing::Types<Proxy<TunedPublished>, Proxy<SharedTuned>, Proxy<Baseline>>>::Types;
/// Every transport.
using SharingConfigurations = Joined<PublishingConfigurations, ::testing::Types<Proxy<TunedVisible>>>::Types;

/// One of each kind, for cases that take long or do not depend on the rest.
using FewConfigurations =
    ::testing::Types<Gda<ExclusiveRecordCollapsed>, Gda<ExclusiveNoRecordRing>, Gda<BlockLockCollapsed>,
                     Gda<GpuHandoffRing>, Gda<GpuHandoffCollapsed>, Gda<GpuLockRing>,
                     Assisted<GpuHandoffCollapsed>, Proxy<TunedPublished>, Proxy<SharedTuned>>;

using OrderingConfigurations = ::testing::Types<
    Gda<RecordOrdering<Ordering::none>>, Gda<RecordOrdering<Ordering::gpu_fence>>,
    Gda<RecordOrdering<Ordering::gpu_fence_record>>, Gda<RecordOrdering<Ordering::gpu_release>>,
    Gda<RecordOrdering<Ordering::threadfence>>, Gda<RecordOrdering<Ordering::system_release>>,
    Gda<RecordOrdering<Ordering::system_fence>>, Gda<NoRecordOrdering<Ordering::none>>,
    Gda<NoRecordOrdering<Ordering::gpu_fence>>, Gda<NoRecordOrdering<Ordering::gpu_fence_record>>,
    Gda<NoRecordOrdering<Ordering::gpu_release>>, Gda<NoRecordOrdering<Ordering::threadfence>>,
    Gda<NoRecordOrdering<Ordering::system_release>>, Gda<NoRecordOrdering<Ordering::system_fence>>>;

/// A case: its world is made when it asks for it.
template <class Configuration>
class Case : public ::testing::Test {
 protected:
  using Endpoint = typename Configuration::Endpoint;

  using World = typename Configuration::World;

  static World make_world(const WorldOptions& options = {}) {
    return World(options, Configuration::requirements());
  }
};

}  // namespace belfry::conformance

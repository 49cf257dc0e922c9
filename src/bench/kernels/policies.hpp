#pragma once
/// \file
/// The policies that are measured on one operation at a time, one list for the experiment's arms and for what
/// runs them.

#include <cstdint>

#include "belfry/device/gda.hpp"
#include "belfry/device/policy.hpp"
#include "belfry/device/proxy.hpp"

namespace belfry::bench {

/// Where a kernel takes the payload from.
enum class PutFrom : std::uint8_t {
  memory,          ///< put(): the window, written just before
  visible_memory,  ///< put(): the window, written and visible since before the clock started
  register_        ///< put_value()
};

template <device::Ordering ordering_, device::DoorbellMode mode_, device::Payload payload_,
          device::CompletionLayout layout_ = device::CompletionLayout::collapsed>
struct OpPolicy : device::DefaultPolicy {
  static constexpr device::Ordering ordering = ordering_;
  static constexpr device::DoorbellMode doorbell_mode = mode_;
  static constexpr device::Payload payload = payload_;
  static constexpr device::CompletionLayout completion_layout = layout_;
  // The arms are measured because of what they assume, or fail to.
  static constexpr bool assume_doorbell_only = true;
  static constexpr bool unsafe_control = ordering_ == device::Ordering::none;
};

/// The default on a queue that the whole GPU shares.
template <device::DoorbellMode mode, device::Publication publication_>
struct SharedOpPolicy : OpPolicy<device::default_ordering(mode), mode, device::Payload::inlined> {
  static constexpr device::Sharing sharing = device::Sharing::gpu;
  static constexpr device::Publication publication = publication_;
};

/// One way of making a put, as an arm.
template <class Channel_, class Policy_, PutFrom from_>
struct PutArm {
  using Policy = Policy_;
  using Channel = Channel_;
  using View = typename Channel::View;
  static constexpr PutFrom from = from_;
  const char* name;
  const char* description;
  const char* reference;  ///< published row
  bool assisted = false;  ///< a CPU forwards the doorbells
};

/// One way of posting.
template <class Policy, PutFrom from>
using OpArm = PutArm<device::gda::Channel<Policy>, Policy, from>;

template <device::proxy::Protocol protocol_, device::proxy::Form form_>
struct ProxyPolicy : device::proxy::DefaultProxyPolicy {
  static constexpr device::proxy::Protocol protocol = protocol_;
  static constexpr device::proxy::Form form = form_;
};

/// One way of handing an operation to a proxy's worker.
template <class Policy, PutFrom from>
using ProxyArm = PutArm<device::proxy::Channel<Policy>, Policy, from>;

/// Calls `visit(arm)` with each ProxyArm.
template <class Visit>
void for_each_proxy_arm(Visit&& visit) {
  using device::proxy::Form;
  using device::proxy::Protocol;
  visit(ProxyArm<ProxyPolicy<Protocol::tuned, Form::payload_visible>, PutFrom::visible_memory>{
      "proxy-tuned", "mini-proxy: one posted 16 B store, payload visible already", "op/mini-proxy-tuned"});
  visit(ProxyArm<ProxyPolicy<Protocol::tuned, Form::payload_published>, PutFrom::memory>{
      "proxy-tuned-published", "the same behind a fence.sys for payload just written", ""});
  visit(ProxyArm<ProxyPolicy<Protocol::tuned, Form::payload_visible>, PutFrom::register_>{
      "proxy-tuned-value", "the same, payload in the descriptor", ""});
  visit(ProxyArm<ProxyPolicy<Protocol::baseline, Form::payload_visible>, PutFrom::visible_memory>{
      "proxy-baseline", "mini-proxy: atomic, read of the worker's progress, release of system scope",
      "op/mini-proxy-baseline"});
  visit(ProxyArm<ProxyPolicy<Protocol::baseline, Form::payload_published>, PutFrom::memory>{
      "proxy-baseline-published", "the same behind a fence.sys for payload just written", ""});
}

/// Calls `visit(arm)` with each OpArm.
template <class Visit>
void for_each_op_arm(Visit&& visit) {
  using device::DoorbellMode;
  using device::Ordering;
  using device::Payload;
  constexpr auto kDefault = device::default_ordering(DoorbellMode::record);
  constexpr auto kDefaultNoRecord = device::default_ordering(DoorbellMode::no_record);
  constexpr auto kRecord = DoorbellMode::record;
  constexpr auto kNoRecord = DoorbellMode::no_record;
  constexpr auto kInline = Payload::inlined;
  constexpr auto kRing = device::CompletionLayout::ring;

  visit(OpArm<OpPolicy<kDefault, kRecord, kInline>, PutFrom::memory>{
      "gda-inline", "mini-gda, defaults, payload copied into the WQE", "op/mini-gda-inline"});
  visit(OpArm<OpPolicy<kDefault, kRecord, Payload::pointer>, PutFrom::memory>{
      "gda-pointer", "mini-gda, defaults, payload fetched by the NIC", "op/mini-gda-pointer"});
  visit(OpArm<OpPolicy<kDefault, kRecord, kInline>, PutFrom::register_>{
      "gda-value", "mini-gda, defaults, payload from a register", "op/mini-gda-inline"});
  visit(OpArm<OpPolicy<kDefault, kRecord, kInline, kRing>, PutFrom::memory>{
      "gda-cq-ring", "gda-inline with a completion ring in place of the collapsed CQ", ""});
  visit(OpArm<OpPolicy<kDefault, kRecord, kInline>, PutFrom::memory>{
      "gda-assisted", "gda-inline, doorbells forwarded by a CPU thread (CPU-assisted)", "", true});
  visit(OpArm<OpPolicy<kDefault, kRecord, kInline>, PutFrom::register_>{
      "gda-assisted-value", "gda-value, doorbells forwarded by a CPU thread", "", true});
  visit(OpArm<OpPolicy<kDefaultNoRecord, kNoRecord, Payload::pointer>, PutFrom::memory>{
      "gda-pointer-no-record", "gda-pointer without a doorbell record", ""});
  visit(OpArm<OpPolicy<kDefaultNoRecord, kNoRecord, kInline>, PutFrom::register_>{
      "gda-value-no-record", "gda-value without a doorbell record", ""});

  using device::Publication;
  visit(OpArm<SharedOpPolicy<kRecord, Publication::handoff>, PutFrom::register_>{
      "gda-value-shared", "gda-value on a queue that threads of the whole GPU may share", ""});
  visit(OpArm<SharedOpPolicy<kNoRecord, Publication::handoff>, PutFrom::register_>{
      "gda-value-shared-no-record", "the same without a doorbell record", ""});
  visit(OpArm<SharedOpPolicy<kRecord, Publication::lock>, PutFrom::register_>{
      "gda-value-locked", "gda-value-shared with a lock around each post", ""});

  visit(OpArm<OpPolicy<Ordering::none, kRecord, kInline>, PutFrom::memory>{
      "gda-none", "W R D: unsafe, the control", "ordering/none"});
  visit(OpArm<OpPolicy<Ordering::gpu_fence, kRecord, kInline>, PutFrom::memory>{
      "gda-gpu-fence", "W R fence.gpu D", "ordering/gpu_fence"});
  visit(OpArm<OpPolicy<Ordering::gpu_fence_record, kRecord, kInline>, PutFrom::memory>{
      "gda-gpu-fence-record", "W fence.gpu R fence.gpu D", "ordering/gpu_fence_record"});
  visit(OpArm<OpPolicy<Ordering::gpu_release, kRecord, kInline>, PutFrom::memory>{
      "gda-gpu-release", "W st.release.gpu R, st.release.gpu D: the default, as gda-inline",
      "ordering/gpu_release"});
  visit(OpArm<OpPolicy<Ordering::threadfence, kRecord, kInline>, PutFrom::memory>{
      "gda-threadfence", "W __threadfence R __threadfence D", "ordering/threadfence"});
  visit(OpArm<OpPolicy<Ordering::system_release, kRecord, kInline>, PutFrom::memory>{
      "gda-system-release", "W st.release.sys R, st.release.sys D", "ordering/system_release"});
  visit(OpArm<OpPolicy<Ordering::system_fence, kRecord, kInline>, PutFrom::memory>{
      "gda-system-fence", "W fence.sys R fence.sys D", "ordering/system_fence"});

  // gpu_fence and gpu_fence_record are one sequence where there is no record.
  visit(OpArm<OpPolicy<Ordering::none, kNoRecord, kInline>, PutFrom::memory>{"gda-none-no-record",
                                                                             "W D: unsafe, the control", ""});
  visit(OpArm<OpPolicy<Ordering::gpu_fence, kNoRecord, kInline>, PutFrom::memory>{"gda-gpu-fence-no-record",
                                                                                  "W fence.gpu D", ""});
  visit(OpArm<OpPolicy<Ordering::gpu_release, kNoRecord, kInline>, PutFrom::memory>{
      "gda-gpu-release-no-record", "W st.release.gpu D: the default without a record", ""});
  visit(OpArm<OpPolicy<Ordering::threadfence, kNoRecord, kInline>, PutFrom::memory>{
      "gda-threadfence-no-record", "W __threadfence D", ""});
  visit(OpArm<OpPolicy<Ordering::system_release, kNoRecord, kInline>, PutFrom::memory>{
      "gda-system-release-no-record", "W st.release.sys D", ""});
  visit(OpArm<OpPolicy<Ordering::system_fence, kNoRecord, kInline>, PutFrom::memory>{
      "gda-system-fence-no-record", "W fence.sys D", ""});
}

}  // namespace belfry::bench

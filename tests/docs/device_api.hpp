#pragma once
/// \file
/// Device code that docs/device-api.md shows and no example has. Between lines `// [name]` lies what is
/// shown.

#include "belfry/device/gda.hpp"
#include "belfry/device/queue_map.hpp"

namespace belfry::docs {

namespace device = belfry::device;
namespace gda = belfry::device::gda;
namespace port = belfry::port;
using device::Operation, device::Outcome, device::Place, device::Status, device::Thread, device::Warp;

// [policy]
/// Threads of the whole GPU post to one queue, without a doorbell record, payload in the WQE up to 64 B.
struct SharedPolicy : device::DefaultPolicy {
  static constexpr device::Sharing sharing = device::Sharing::gpu;
  static constexpr device::DoorbellMode doorbell_mode = device::DoorbellMode::no_record;
  static constexpr device::Ordering ordering = device::Ordering::gpu_fence;
  static constexpr device::Payload payload = device::Payload::inlined;
  static constexpr std::uint32_t max_inline = 64;
};
using Endpoint = gda::Endpoint<SharedPolicy>;
// [policy]

// [includes]
/// Any transport: what differs is in the type.
template <class Endpoint>
struct Kernel {
  device::EndpointView view;  // from host::DeviceEndpoint::view(), by value

  BELFRY_FN void operator()() const {
    const Endpoint endpoint(view);
    auto channel = endpoint.channel(0);
    // ...
    static_cast<void>(channel);
  }
};
// [includes]

// [queue-map]
template <class Endpoint>
BELFRY_FN auto my_channel(const Endpoint& endpoint, std::uint32_t peer, device::QueueMap map) {
  return endpoint.channel(peer, map.index(port::block_index(), port::thread_index()));
}
// [queue-map]

/// Puts of several pieces with one doorbell.
template <class Channel>
BELFRY_FN Outcome batch(Channel& channel, Place to, Place from, std::uint32_t pieces, std::uint32_t bytes,
                        port::Timeout timeout) {
  // [batch]
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const std::uint64_t at = std::uint64_t{i} * bytes;
    const Operation put = channel.put(Thread{}, to + at, from + at, bytes, device::Announce::later, timeout);
    if (!put.ok()) return channel.wait(Thread{}, put);
  }
  return channel.flush(Thread{}, timeout);
  // [batch]
}

/// What there is beside put.
template <class Endpoint>
BELFRY_FN bool counter(const Endpoint& endpoint, std::uint32_t peer, Place word, Place result,
                       port::Timeout timeout) {
  auto channel = endpoint.channel(peer);
  // [fetch-add]
  const Operation add = channel.fetch_add(Thread{}, result, word, 1);
  if (!channel.wait(Thread{}, add, timeout).ok()) return false;
  const std::uint64_t ticket = *endpoint.template local<std::uint64_t>(result);
  // [fetch-add]
  return ticket == 0;
}

/// A look at an operation between other work.
template <class Channel, class Work>
BELFRY_FN Outcome overlap(Channel& channel, const Operation& put, const Work& work, port::Timeout timeout) {
  // [test]
  Outcome outcome = channel.test(put);
  while (outcome.status == Status::timed_out && work()) outcome = channel.test(put);
  if (outcome.status == Status::timed_out) outcome = channel.wait(Thread{}, put, timeout);
  // [test]
  return outcome;
}

/// How an error is told apart.
// [errors]
BELFRY_FN inline bool is_my_fault(const Operation& op, const Outcome& outcome) {
  if (outcome.status != Status::completion_error) return false;  // done, or late: no verdict yet
  switch (outcome.fault.kind) {
    case device::Fault::Kind::root:
      // A call may have taken several WQEs. If none of them is the root, op was only flushed.
      return outcome.fault.index <= op.index && op.index - outcome.fault.index <= op.span;
    case device::Fault::Kind::unknown:      // a collapsed CQ has lost the cause
    case device::Fault::Kind::abandoned:    // a thread gave up its turn at fault.index
    case device::Fault::Kind::worker_lost:  // a CPU thread that posts or rings for it is gone
    case device::Fault::Kind::none:
      return false;
  }
  return false;
}
// [errors]

/// A payload and a flag in one reservation and with one doorbell, by hand.
template <class Policy>
BELFRY_FN Outcome staged(gda::Channel<Policy>& channel, const device::EndpointView& view, std::uint32_t peer,
                         Place to, Place from, std::uint32_t bytes, Place flag, port::Timeout timeout) {
  // [staged]
  const device::SendQueue& queue = channel.queue();
  auto& indices = channel.indices();
  const gda::PointerWrite payload{gda::remote_of(view, peer, to), gda::local_of(view, from), bytes};
  const gda::ValueWrite mark{gda::remote_of(view, peer, flag), 1, 8};

  Outcome outcome;
  const gda::Slots slots = gda::reserve<Policy>(queue, indices, 2, timeout);  // blocks of 64 B
  outcome.status = slots.status;
  if (!outcome.ok()) return outcome;
  const std::uint64_t last = slots.first + 1;
  gda::build(queue, slots.first, payload, false);
  gda::build(queue, last, mark, true);  // signalled: the last of each doorbell has to be
  outcome.status = gda::publish<Policy>(queue, indices, slots.first, last + 1, last, true, timeout);
  if (!outcome.ok()) return outcome;
  return gda::wait_for<Policy>(queue, indices, last, false, timeout);
  // [staged]
}

}  // namespace belfry::docs

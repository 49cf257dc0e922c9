#pragma once
/// \file
/// Any one call of the API, chosen at run time: for what every call must do alike (end in time, refuse).

#include "belfry/device/announce.hpp"
#include "belfry/device/signal.hpp"
#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

enum class Call : std::uint32_t {
  put,
  put_each,
  put_value,
  put_value_each,
  put_signal_add,
  put_signal_set,
  signal_add,
  signal_set,
  get,
  fetch_add,
  compare_swap,
  flush,
  flush_peer,
  quiet,
  wait_signal,
  count_,
};
inline constexpr Call kFirstWait = Call::flush;  ///< calls before it post

struct CallArguments {
  std::uint32_t peer = 1;
  std::uint32_t index = 0;  ///< of the queue
  device::Place remote;
  device::Place local;
  std::uint64_t bytes = 8;
  device::Place signal;
  device::Announce announce = device::Announce::now;
};

/// \return the status. Called by a whole warp for the forms of one.
template <class Endpoint>
BELFRY_FN device::Status call(const Endpoint& endpoint, typename Endpoint::Channel& channel, Call which,
                              const CallArguments& a, port::Timeout timeout) {
  using device::SignalOperation;
  const auto thread = device::Thread{};
  const auto warp = make_group<device::Warp>();
  const device::Signal add{a.signal, 1, SignalOperation::add};
  const device::Signal set{a.signal, 1, SignalOperation::set};
  switch (which) {
    case Call::put:
      return channel.put(thread, a.remote, a.local, a.bytes, a.announce, timeout).status;
    case Call::put_each:
      return channel
          .put_each(warp, a.remote, a.local, static_cast<std::uint32_t>(a.bytes), a.announce, timeout)
          .status;
    case Call::put_value:
      return channel.put_value(thread, a.remote, std::uint64_t{1}, a.announce, timeout).status;
    case Call::put_value_each:
      return channel.put_value_each(warp, a.remote, std::uint64_t{1}, a.announce, timeout).status;
    case Call::put_signal_add:
      return channel.put_signal(thread, a.remote, a.local, a.bytes, add, timeout).status;
    case Call::put_signal_set:
      return channel.put_signal(thread, a.remote, a.local, a.bytes, set, timeout).status;
    case Call::signal_add:
      return channel.signal(thread, add, timeout).status;
    case Call::signal_set:
      return channel.signal(thread, set, timeout).status;
    case Call::get:
      return channel.get(thread, a.local, a.remote, a.bytes, a.announce, timeout).status;
    case Call::fetch_add:
      return channel.fetch_add(thread, a.local, a.remote, 1, a.announce, timeout).status;
    case Call::compare_swap:
      return channel.compare_swap(thread, a.local, a.remote, 0, 1, a.announce, timeout).status;
    case Call::flush:
      return channel.flush(thread, timeout).status;
    case Call::flush_peer:
      return endpoint.flush_peer(thread, a.peer, timeout).status;
    case Call::quiet:
      return endpoint.quiet(thread, timeout).status;
    case Call::wait_signal:
      return endpoint.wait_signal(thread, a.signal, device::Compare::greater_equal, 1, timeout);
    case Call::count_:
      break;
  }
  return device::Status::bad_argument;
}

/// One call by one thread. values[0]: the status; [1], [2]: what was reserved and published before; [3], [4]:
/// after. The channel is gone before the latter are read.
template <class Endpoint>
struct OneCall {
  typename Endpoint::View view;
  Call which = Call::put;
  CallArguments arguments;
  port::Timeout timeout = kPatient;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    Report& report = reports[grid_thread()];
    const Endpoint endpoint(view);
    const std::uint64_t before = port::now_ns();
    {
      auto channel = endpoint.channel(arguments.peer, arguments.index);
      report.values[0] = static_cast<std::uint64_t>(call(endpoint, channel, which, arguments, timeout));
    }
    report.elapsed_ns = port::now_ns() - before;
  }
};

/// Posts value puts until one is refused or `most` are posted. values[0]: how many; [1]: the last status.
/// Values count on from `first`, to words of their own.
template <class Endpoint>
struct Fill {
  typename Endpoint::View view;
  std::uint32_t peer = 1;
  device::Place words;
  std::uint64_t first = 0;
  std::uint32_t most = 0;
  device::Announce announce = device::Announce::now;
  port::Timeout timeout = kPatient;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    Report& report = reports[grid_thread()];
    auto channel = Endpoint(view).channel(peer);
    const std::uint64_t before = port::now_ns();
    device::Operation op;
    std::uint32_t i = 0;
    for (; i < most; ++i) {
      const std::uint64_t value = first + i;
      op = channel.put_value(device::Thread{}, words + value * 8, mixed(value), announce, timeout);
      if (!op.ok()) break;
    }
    report.elapsed_ns = port::now_ns() - before;
    report.values[0] = i;
    report.values[1] = static_cast<std::uint64_t>(op.status);
  }
};

}  // namespace belfry::conformance

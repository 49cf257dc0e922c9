#include "bench/op_end.hpp"

#include <algorithm>
#include <cstring>

#include "bench/device_group.hpp"

namespace belfry::bench {
namespace {

/// The longest that one end waits for the other in an exchange, besides what the operations take.
constexpr std::chrono::seconds kExchangeLimit{60};
constexpr std::chrono::milliseconds kLimitPerOperation{1};

host::Deadline exchange_deadline(std::uint64_t operations = 0) {
  return host::deadline_after(kExchangeLimit + kLimitPerOperation * static_cast<std::int64_t>(operations));
}

host::EndpointOptions endpoint_options(const std::string& nic) {
  host::EndpointOptions options = host::EndpointOptions::from(host::Environment::of_this_process());
  options.context.nic = nic;
  options.window_bytes = kWindowBytes;
  options.verbs.send_depth = 128;
  options.verbs.receive_depth = 1;
  options.verbs.max_inline = kSlotBytes;
  options.timeout = kExchangeLimit;
  be_patient(options.connection);
  return options;
}

}  // namespace

std::uint64_t warm_up_of(std::uint64_t count) { return std::min<std::uint64_t>(count / 10 + 1, 1000); }

OpEnd::OpEnd(const std::string& nic, host::Bootstrap& group, std::uint64_t seed)
    : group_(group), endpoint_(group, endpoint_options(nic)), memory_(endpoint_.memory()), seed_(seed) {}

PutSamples OpEnd::measure_puts(OpPath& path, std::uint64_t count) {
  PutSamples samples;
  group_.barrier(exchange_deadline());
  path.puts(count, samples);
  group_.barrier(exchange_deadline());
  const auto blobs = group_.all_gather({}, exchange_deadline());
  samples.verified =
      target_is_right(blobs[static_cast<std::size_t>(peer())], seed_, warm_up_of(count) + count);
  return samples;
}

void OpEnd::serve_puts(std::uint64_t count) {
  const auto target = memory_.span().first(kTargetBytes);
  clear_target(target);
  group_.barrier(exchange_deadline());
  // The peer writes, and comes here when its last CQE is there. An acknowledgement is not visibility, but
  // the way of this barrier through the peer's CPU is longer than that of a write through the PCIe switch.
  group_.barrier(exchange_deadline(count));
  group_.all_gather(target, exchange_deadline());
}

void OpEnd::clear_flag() { std::memset(memory_.data() + kFlagOffset, 0, kSlotBytes); }

RoundTripSamples OpEnd::measure_round_trips(OpPath& path, std::uint64_t count) {
  RoundTripSamples samples;
  samples.verified = true;
  clear_flag();
  group_.barrier(exchange_deadline());
  path.round_trips(count, samples);
  group_.barrier(exchange_deadline());
  return samples;
}

void OpEnd::serve_round_trips(OpPath& path, std::uint64_t count) {
  clear_flag();
  group_.barrier(exchange_deadline());
  path.echo(count);
  group_.barrier(exchange_deadline());
}

}  // namespace belfry::bench

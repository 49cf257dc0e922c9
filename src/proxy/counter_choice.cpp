#include "proxy/counter_choice.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "belfry/host/errors.hpp"

namespace belfry::proxy {

namespace {

using device::proxy::WorkerWords;

void place_words(CounterChoice& choice, const EndpointOptions& options) {
  choice.provider = options.counter_memory.memory ? options.counter_memory.memory : host::host_queue_memory();
  const std::vector<WorkerWords> image(options.rings, WorkerWords{options.first_index, 0, 0, 0, 0, 0, {}});
  const std::size_t bytes = image.size() * sizeof(WorkerWords);
  choice.memory = choice.provider->allocate((bytes + 4095) / 4096 * 4096);
  choice.provider->write(choice.memory.get(), image.data(), bytes);
  choice.words = static_cast<WorkerWords*>(choice.memory.get());
}

/// Heartbeats over PCIe: often enough for whoever takes a worker for lost after `stall`.
std::uint64_t beat_interval(std::chrono::nanoseconds stall) {
  constexpr std::int64_t kMost = 100'000'000;
  const std::int64_t eighth = stall.count() / 8;
  return static_cast<std::uint64_t>(stall.count() == 0 ? kMost
                                                       : std::clamp<std::int64_t>(eighth, 100'000, kMost));
}

}  // namespace

std::string to_string(CounterPath path) {
  switch (path) {
    case CounterPath::automatic:
      return "automatic";
    case CounterPath::host:
      return "host";
    case CounterPath::gdrcopy:
      return "gdrcopy";
    case CounterPath::nic:
      return "nic";
  }
  return "unknown";
}

CounterChoice choose_counters(const host::ProtectionDomain& domain, const EndpointOptions& options) {
  const CounterPath wanted = options.counters;
  const bool automatic = wanted == CounterPath::automatic;
  CounterChoice choice;
  if (wanted == CounterPath::host || (automatic && options.counter_memory.memory == nullptr)) {
    choice.decision = std::string("completion counters: in host memory, written by the workers, ") +
                      (automatic ? "for no counter memory is named" : "as requested");
    return choice;
  }
  place_words(choice, options);
  const std::size_t bytes = options.rings * sizeof(WorkerWords);
  std::string why = automatic ? "" : ", as requested";
  const auto failed = [&](const host::Error& error) {
    why += (why.empty() ? ", for " : ", and ") + error.message();
  };
  if (automatic || wanted == CounterPath::gdrcopy) try {
      const auto mapper = options.cpu_mapper ? options.cpu_mapper : gdrcopy_mapper();
      choice.mapping = mapper->map(choice.words, bytes);
      choice.path = CounterPath::gdrcopy;
      choice.decision =
          "completion counters: in the counter memory, written by the workers through GDRCopy" + why;
      return choice;
    } catch (const host::Error& error) {
      if (!automatic) throw;
      failed(error);
    }
  try {
    choice.region = host::Memory::adopt(domain, choice.words, bytes,
                                        host::Access::local_write | host::Access::remote_write);
    choice.path = CounterPath::nic;
    choice.decision = "completion counters: in the counter memory, written by the NIC" + why;
    return choice;
  } catch (const host::Error& error) {
    if (!automatic) throw;
    failed(error);
  }
  choice = {};
  choice.decision = "completion counters: in host memory, written by the workers" + why;
  return choice;
}

std::unique_ptr<Counter> CounterChoice::make_counter(std::uint32_t ring, std::shared_ptr<NicWriter> writer,
                                                     const EndpointOptions& options) const {
  const std::uint64_t beat_ns = beat_interval(options.stall);
  if (path == CounterPath::gdrcopy)
    return std::make_unique<CombinedCounter>(static_cast<WorkerWords*>(mapping.get()) + ring, beat_ns);
  const host::RemoteAddress at{reinterpret_cast<std::uint64_t>(words + ring), region->rkey()};
  return std::make_unique<NicCounter>(
      [writer = std::move(writer), at](std::size_t offset, std::uint64_t value) {
        return writer->write({at.address + offset, at.rkey}, value);
      },
      options.first_index, beat_ns);
}

}  // namespace belfry::proxy

#include "bench/device_group.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include "belfry/device/policy.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "bench/experiment.hpp"
#include "bench/gpu_window.hpp"

namespace belfry::bench {

void on_each_rank(std::vector<std::unique_ptr<host::Bootstrap>>& members,
                  const std::function<void(std::size_t rank, host::Bootstrap& member)>& body) {
  std::vector<std::exception_ptr> failures(members.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank, *members[rank]);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

DeviceGroup::DeviceGroup(const RunContext& run, int pes, const host::DeviceEndpointOptions& asked)
    : members_(host::make_thread_bootstrap(pes)), endpoints_(members_.size()) {
  memories_.resize(members_.size());
  on_each_rank(members_, [&](std::size_t rank, host::Bootstrap& member) {
    host::DeviceEndpointOptions options = asked;
    options.context.nic = run.options().nic;
    place_for_lanes(run, rank, options);
    if (!options.windows.empty()) memories_[rank] = options.windows.front().memory;
    endpoints_[rank] = std::make_unique<host::DeviceEndpoint>(member, options);
  });
}

std::vector<std::byte> DeviceGroup::read_window(int rank) const {
  const std::span<std::byte> window = this->window(rank);
  std::vector<std::byte> copy(window.size());
  const auto& memory = memories_[static_cast<std::size_t>(rank)];
  if (memory == nullptr) {
    std::copy(window.begin(), window.end(), copy.begin());
  } else {
    memory->read(copy.data(), window.data(), window.size());
  }
  return copy;
}

void DeviceGroup::edit_window(int rank, const std::function<void(std::span<std::byte>)>& edit) const {
  const std::span<std::byte> window = this->window(rank);
  const auto& memory = memories_[static_cast<std::size_t>(rank)];
  if (memory == nullptr) return edit(window);
  std::vector<std::byte> copy = read_window(rank);
  edit(copy);
  memory->write(window.data(), copy.data(), copy.size());
}

void DeviceGroup::clear_start(int rank, std::uint32_t window, std::size_t bytes) const {
  std::byte* begin = pe(rank).windows().memory(window).data();
  const auto& memory = memories_[static_cast<std::size_t>(rank)];
  if (memory == nullptr) {
    std::fill_n(begin, bytes, std::byte{});
  } else {
    memory->fill(begin, std::byte{}, bytes);
  }
}

void be_patient(host::ConnectionParameters& connection) {
  constexpr std::uint8_t kHalfASecond = 17;  // 4.096 us << 17, eight times over
  if (connection.ack_timeout != 0) connection.ack_timeout = std::max(connection.ack_timeout, kHalfASecond);
}

host::DeviceEndpointOptions device_options(std::size_t window_bytes) {
  auto options = host::DeviceEndpointOptions::from(host::Environment::of_this_process());
  options.meet(device::requirements_of<device::DefaultPolicy>());
  be_patient(options.connection);
  options.windows.push_back({.bytes = window_bytes});
  return options;
}

}  // namespace belfry::bench

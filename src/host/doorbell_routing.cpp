#include "host/doorbell_routing.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "host/cpu_choice.hpp"
#include "host/queue_layout.hpp"

namespace belfry::host {

namespace {

std::uint64_t* register_of(const DevxQueue& queue) {
  return static_cast<std::uint64_t*>(queue.view().uar_register);
}

}  // namespace

std::string to_string(DoorbellPath path) {
  switch (path) {
    case DoorbellPath::automatic:
      return "automatic";
    case DoorbellPath::gpu_rung:
      return "gpu-rung";
    case DoorbellPath::cpu_assisted:
      return "cpu-assisted";
  }
  return "unknown";
}

Error register_refused(int result) {
  constexpr int kNotPermitted = 800;
  const std::string what =
      "registering the page of the NIC's doorbell register with the GPU's driver fails with " +
      std::to_string(result);
  if (result != kNotPermitted)
    return {ErrorKind::unsupported, what,
            "`belfry doctor doorbell` tells more, and CPU-assisted doorbells work"};
  return {ErrorKind::unsupported, what + " (CUDA_ERROR_NOT_PERMITTED)",
          "Load the nvidia module with NVreg_RegistryDwords=\"PeerMappingOverride=1;\", or run with "
          "CAP_SYS_ADMIN; `belfry doctor doorbell` has the steps"};
}

DoorbellRouting::DoorbellRouting(const Context& context, DoorbellPath path, const Placement& placement,
                                 const ForwarderOptions& options,
                                 std::span<const std::unique_ptr<DevxQueue>> queues)
    : path_(path), doorbells_(queues.size()) {
  std::string reason = "as requested";
  if (path != DoorbellPath::cpu_assisted) {
    for (std::size_t slot = 0; slot < queues.size(); ++slot)
      if (queues[slot] != nullptr) doorbells_[slot] = register_of(*queues[slot]);
    try {
      if (placement.registers != nullptr) map_registers(*placement.registers, queues);
      path_ = DoorbellPath::gpu_rung;
      decisions_.emplace_back(path == DoorbellPath::gpu_rung ? "doorbells: rung by device code, as requested"
                              : placement.registers == nullptr
                                  ? "doorbells: rung by device code, which runs on this host's CPUs"
                                  : "doorbells: rung by device code, which has mapped the registers");
      return;
    } catch (const Error& error) {
      if (path == DoorbellPath::gpu_rung || error.kind() != ErrorKind::unsupported) throw;
      mapped_.clear();
      reason = "for " + error.message();
      if (!error.remedy().empty()) reason += ". To have device code ring: " + error.remedy();
    }
  }
  path_ = DoorbellPath::cpu_assisted;
  decisions_.push_back("doorbells: forwarded by a CPU thread (CPU-assisted), " + reason);
  forward(context, placement, options, queues);
}

void DoorbellRouting::map_registers(RegisterMapper& mapper, Queues queues) {
  std::map<std::uint64_t*, std::uint64_t*> known;
  for (std::size_t slot = 0; slot < queues.size(); ++slot) {
    if (queues[slot] == nullptr) continue;
    std::uint64_t*& device_side = known[register_of(*queues[slot])];
    if (device_side == nullptr)
      device_side = mapped_.emplace_back(mapper.map(register_of(*queues[slot]))).get();
    doorbells_[slot] = device_side;
  }
}

void DoorbellRouting::forward(const Context& context, const Placement& placement,
                              const ForwarderOptions& options, Queues queues) {
  static_assert(sizeof(device::ForwarderWords) % kCacheLine == 0);
  check_rest(options.idle, options.stall, "doorbell thread");
  // The words lie side by side: one look brings eight of them.
  const std::size_t bytes = sizeof(device::ForwarderWords) + queues.size() * sizeof(std::uint64_t);
  memory_ = placement.doorbells.memory->allocate((bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  words_ =
      new (memory_.get()) device::ForwarderWords{0, static_cast<std::uint64_t>(options.stall.count()), {}};
  auto* next = new (words_ + 1) std::uint64_t[std::max<std::size_t>(queues.size(), 1)]{};
  std::vector<DoorbellLine> lines;
  for (std::size_t slot = 0; slot < queues.size(); ++slot) {
    doorbells_[slot] = next + slot;
    if (queues[slot] != nullptr) lines.push_back({doorbells_[slot], register_of(*queues[slot])});
  }
  const CpuChoice choice = choose_cpus(context, "doorbell thread", 1, options.pin);
  decisions_.push_back(choice.decision);
  PollingOptions thread;
  thread.idle = options.idle;
  thread.cpu = choice.of(0);
  forwarder_ =
      std::make_unique<DoorbellForwarder>(std::move(lines), words_, std::make_unique<RegisterBell>(), thread);
}

}  // namespace belfry::host

/// \file
/// PCIe links, and which NIC is near to which GPU and to which CPUs.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

constexpr std::array<Rule, 3> kPcieRules = {{
    {"pcie.full", Severity::ok, "the PCIe link runs at its full speed and width", "", ""},
    {"pcie.degraded", Severity::warning, "the PCIe link runs below what the device can do",
     "the slot, riser or switch limits the NIC, or lanes were lost: bandwidth and message rate fall with it",
     "`lspci -vv -s <pci>` (LnkCap, LnkSta); reseat the adapter, or use a slot of the full width"},
    {"pcie.unreadable", Severity::unknown, "the PCIe link's state cannot be read", "", ""},
}};

/// Leading number of "16.0 GT/s PCIe"; 0 for "Unknown".
double number_in(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

void look_at_link(Visit& visit, const PciFunction& pci, const std::string& subject, const std::string& device,
                  bool speed_counts) {
  const double speed = number_in(pci.link_speed);
  const double width = number_in(pci.link_width);
  Finding* finding = nullptr;
  if (speed <= 0 || width <= 0) {
    finding = &visit.report(kPcieRules[2], subject, pci.address + " shows no link");
  } else {
    const bool slow = speed_counts && speed < number_in(pci.link_speed_most);
    const bool narrow = width < number_in(pci.link_width_most);
    const std::string found = fmt::format("{} x{} of {} x{}", pci.link_speed, pci.link_width,
                                          pci.link_speed_most, pci.link_width_most);
    finding =
        &visit.report(slow || narrow ? kPcieRules[1] : kPcieRules[0], subject, found, {{"pci", pci.address}});
  }
  finding->device = device;
}

void check_pcie(Visit& visit) {
  for (const RdmaDevice& device : visit.machine.devices) {
    // The link of a virtual function is its physical function's.
    if (!device.pci || device.software_nic || device.pci->virtual_function) continue;
    look_at_link(visit, *device.pci, device.name, device.name, true);
  }
  for (const Gpu& gpu : visit.machine.gpus) {
    // An idle GPU lowers its link's speed; its width stays.
    look_at_link(visit, gpu.pci, gpu.pci.address, "", false);
  }
}

constexpr std::array<Rule, 8> kAffinityRules = {{
    {"affinity.switch", Severity::ok, "GPU and NIC share a PCIe switch", "", ""},
    {"affinity.host_bridge", Severity::note, "the nearest NIC of a GPU is behind the CPU's root complex",
     "peer-to-peer writes cross the CPU's root ports: they work, with less bandwidth and more latency than "
     "through a switch",
     ""},
    {"affinity.far", Severity::warning, "a GPU's nearest NIC belongs to another NUMA node",
     "every doorbell and every byte crosses the link between the sockets",
     "use a GPU and a NIC of one node: `nvidia-smi topo -m` shows them; choose with CUDA_VISIBLE_DEVICES and "
     "BELFRY_NIC"},
    {"affinity.unknown", Severity::unknown, "the platform does not tell which NUMA node GPU or NIC belong to",
     "common in virtual machines; nearness cannot be judged", ""},
    {"affinity.shared_nic", Severity::warning, "two GPUs take the same NIC while another is nobody's",
     "programs that each take the nearest NIC share one NIC's bandwidth, and another stays idle",
     "assign them by hand, one rank a GPU: <assignment>"},
    {"affinity.cpu_near", Severity::ok, "this process runs on CPUs near the NIC", "", ""},
    {"affinity.cpu_any", Severity::note, "this process may run on CPUs far from the NIC, too",
     "a proxy's worker, or a thread that forwards doorbells, is faster on the NIC's own node",
     "`numactl --cpunodebind=<node> --membind=<node> PROGRAM`"},
    {"affinity.cpu_far", Severity::warning, "this process may only run on CPUs far from the NIC",
     "each doorbell and completion of a proxy crosses the link between the sockets",
     "`numactl --cpunodebind=<node> --membind=<node> PROGRAM`, or change the job's CPU set"},
}};

enum class Distance : std::uint8_t { common_switch, host_bridge, same_node, unknown, other_node };

struct Nearness {
  Distance distance = Distance::unknown;
  std::size_t common_bridges = 0;
  bool operator==(const Nearness&) const = default;
  bool operator<(const Nearness& other) const {
    if (distance != other.distance) return distance < other.distance;
    return common_bridges > other.common_bridges;
  }
};

Nearness nearness(const PciFunction& a, const PciFunction& b) {
  Nearness near;
  while (near.common_bridges < std::min(a.bridges.size(), b.bridges.size()) &&
         a.bridges[near.common_bridges] == b.bridges[near.common_bridges]) {
    ++near.common_bridges;
  }
  if (near.common_bridges > 0) {
    near.distance = Distance::common_switch;
  } else if (!a.root.empty() && a.root == b.root) {
    near.distance = Distance::host_bridge;
  } else if (a.numa_node < 0 || b.numa_node < 0) {
    near.distance = Distance::unknown;
  } else {
    near.distance = a.numa_node == b.numa_node ? Distance::same_node : Distance::other_node;
  }
  return near;
}

struct Pairing {
  const Gpu* gpu = nullptr;
  Nearness nearness;
  std::vector<const RdmaDevice*> nearest;  ///< all that are equally near
};

std::vector<const RdmaDevice*> usable_nics(const Machine& machine) {
  std::vector<const RdmaDevice*> nics;
  for (const RdmaDevice& device : machine.devices) {
    if (device.mlx5() && !device.software_nic && device.first_active_port() != nullptr)
      nics.push_back(&device);
  }
  return nics;
}

Pairing pair_up(const Gpu& gpu, const std::vector<const RdmaDevice*>& nics) {
  Pairing pairing{&gpu, nearness(gpu.pci, *nics.front()->pci), {}};
  for (const RdmaDevice* nic : nics) {
    const Nearness near = nearness(gpu.pci, *nic->pci);
    if (near < pairing.nearness) {
      pairing.nearness = near;
      pairing.nearest.clear();
    }
    if (near == pairing.nearness) pairing.nearest.push_back(nic);
  }
  return pairing;
}

void report_pairing(Visit& visit, const Pairing& pairing) {
  std::string names;
  for (const RdmaDevice* nic : pairing.nearest) names += (names.empty() ? "" : ", ") + nic->name;
  const auto report = [&](const Rule& rule, const std::string& how) {
    visit.report(rule, pairing.gpu->pci.address, fmt::format("nearest NIC: {} ({})", names, how));
  };
  switch (pairing.nearness.distance) {
    case Distance::common_switch:
      return report(kAffinityRules[0], fmt::format("{} common bridges", pairing.nearness.common_bridges));
    case Distance::host_bridge:
      return report(kAffinityRules[1], "same root complex");
    case Distance::same_node:
      return report(kAffinityRules[1], fmt::format("same NUMA node {}", pairing.gpu->pci.numa_node));
    case Distance::other_node:
      return report(kAffinityRules[2],
                    fmt::format("NUMA node {}, the GPU is on {}", pairing.nearest.front()->pci->numa_node,
                                pairing.gpu->pci.numa_node));
    case Distance::unknown:
      return report(kAffinityRules[3], "no NUMA node is told");
  }
}

/// One NIC a GPU: the least used of the nearest, else the least used of all.
std::string assignment(const std::vector<Pairing>& pairings, const std::vector<const RdmaDevice*>& nics) {
  std::map<const RdmaDevice*, int> used;
  std::string text;
  for (const Pairing& pairing : pairings) {
    const auto less_used = [&](const RdmaDevice* a, const RdmaDevice* b) { return used[a] < used[b]; };
    const RdmaDevice* nic = *std::min_element(pairing.nearest.begin(), pairing.nearest.end(), less_used);
    if (used[nic] > 0) nic = *std::min_element(nics.begin(), nics.end(), less_used);
    ++used[nic];
    text += fmt::format("{}GPU {} with `BELFRY_NIC={}`", text.empty() ? "" : ", ", pairing.gpu->pci.address,
                        nic->name);
  }
  return text;
}

void look_for_sharing(Visit& visit, const std::vector<Pairing>& pairings,
                      const std::vector<const RdmaDevice*>& nics) {
  std::map<std::string, std::string> users;
  for (const Pairing& pairing : pairings) {
    std::string& gpus = users[pairing.nearest.front()->name];
    gpus += (gpus.empty() ? "" : ", ") + pairing.gpu->pci.address;
  }
  std::string idle;
  for (const RdmaDevice* nic : nics) {
    if (!users.contains(nic->name)) idle += (idle.empty() ? "" : ", ") + nic->name;
  }
  if (idle.empty()) return;
  for (const auto& [nic, gpus] : users) {
    if (gpus.find(',') == std::string::npos) continue;
    visit.report(kAffinityRules[4], nic, fmt::format("nearest to GPUs {}; idle: {}", gpus, idle),
                 {{"assignment", assignment(pairings, nics)}});
  }
}

void look_at_cpus(Visit& visit, const RdmaDevice& device) {
  const auto list = visit.tree().line(pci_file(device.pci->address, "local_cpulist"));
  const std::vector<unsigned> local = parse_cpu_list(list.value_or(""));
  const std::vector<unsigned>& own = visit.machine.process.cpus;
  if (local.empty() || own.empty()) return;
  const auto near = static_cast<std::size_t>(std::count_if(own.begin(), own.end(), [&](unsigned cpu) {
    return std::find(local.begin(), local.end(), cpu) != local.end();
  }));
  const Rule& rule = kAffinityRules[near == own.size() ? 5 : near > 0 ? 6 : 7];
  visit.report(rule, device,
               fmt::format("{} of the {} CPUs of this process are near (CPUs {})", near, own.size(), *list),
               {{"node", std::to_string(device.pci->numa_node)}});
}

void check_affinity(Visit& visit) {
  const std::vector<const RdmaDevice*> nics = usable_nics(visit.machine);
  for (const RdmaDevice* nic : nics) look_at_cpus(visit, *nic);
  if (nics.empty()) return;
  std::vector<Pairing> pairings;
  for (const Gpu& gpu : visit.machine.gpus) pairings.push_back(pair_up(gpu, nics));
  for (const Pairing& pairing : pairings) report_pairing(visit, pairing);
  look_for_sharing(visit, pairings, nics);
}

}  // namespace

extern const Check kPcieCheck{"pcie", "PCIe speed and width of NICs and GPUs", kPcieRules, check_pcie};
extern const Check kAffinityCheck{"affinity", "which NIC is near to which GPU, and to this process's CPUs",
                                  kAffinityRules, check_affinity};

}  // namespace belfry::doctor

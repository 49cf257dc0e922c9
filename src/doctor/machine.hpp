#pragma once
/// \file
/// What the tree shows of RDMA devices, GPUs and this process: facts, not judgements.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "belfry/host/errors.hpp"
#include "belfry/host/gid.hpp"
#include "doctor/pci.hpp"
#include "doctor/tree.hpp"

namespace belfry::doctor {

struct RdmaPort {
  unsigned number = 0;
  std::string state;           ///< "ACTIVE", "DOWN", "INIT"; empty where unreadable
  std::string physical_state;  ///< "LinkUp", "Disabled", "Polling"
  std::string rate;            ///< "400 Gb/sec (4X NDR)"
  double gigabits = 0;         ///< of `rate`; 0 where unknown
  unsigned lanes = 0;          ///< of `rate`; 0 where unknown
  host::LinkLayer link = host::LinkLayer::infiniband;
  std::vector<host::GidEntry> gids;
  std::string forced_traffic_class;  ///< the driver's override for the whole device; empty where none is set

  bool active() const { return state == "ACTIVE"; }
};

struct RdmaDevice {
  std::string name;
  std::string firmware;
  std::string board_id;
  std::string uverbs;  ///< "uverbs0"; empty where the kernel offers none
  std::string uverbs_abi;
  std::optional<PciFunction> pci;
  bool software_nic = false;
  std::vector<RdmaPort> ports;

  /// By vendor and driver, never by name.
  bool mlx5() const { return pci && pci->vendor == kPciMellanox && pci->driver == "mlx5_core"; }
  const RdmaPort* first_active_port() const;
};

/// What a PCI device id of Mellanox is called; empty for one that is not in the table.
std::string_view connectx_name(unsigned device_id);

struct Gpu {
  PciFunction pci;
  std::string model;  ///< empty where the driver does not say
};

/// What the kernel lets this process do.
struct ProcessRights {
  std::optional<host::LockedMemoryLimit> locked_memory;
  bool may_exceed_locked_memory = false;  ///< CAP_IPC_LOCK in the first user namespace
  bool administrator = false;             ///< CAP_SYS_ADMIN in the first user namespace
  std::vector<unsigned> cpus;             ///< those that it may run on
};

struct Machine {
  Tree tree;
  std::vector<RdmaDevice> devices;  ///< those that are looked at
  std::vector<Gpu> gpus;            ///< NVIDIA's
  ProcessRights process;

  bool only_software_nics() const;
};

/// \param names the devices to look at; empty: all
/// Throws host::Error (no_device) for a name that is not there.
Machine read_machine(const Tree& tree, const std::vector<std::string>& names);

}  // namespace belfry::doctor

#pragma once
/// \file
/// The RDMA devices of this machine, and which of them to use.

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belfry::host {

/// IEEE vendor id of NVIDIA/Mellanox devices, as ibv_device_attr::vendor_id shows it.
inline constexpr std::uint32_t kMellanoxVendorId = 0x02c9;

/// Whether a device is belfry's software NIC, by what its sysfs `board_id` says: a hardware board id is
/// a PSID of its maker (MT_...), the software NIC's begins with BELFRY.
bool is_software_board(std::string_view board_id);

/// What can be known of a device. The first group needs no opening; probe() fills in the second.
struct DeviceInfo {
  std::string name;
  std::string board_id;
  std::string node_description;
  std::uint64_t guid = 0;    ///< node GUID, host order
  bool mlx5_driver = false;  ///< the mlx5 provider took it (it matches PCI vendor and device ids)
  bool software_nic = false;

  bool probed = false;
  std::uint32_t vendor_id = 0;
  unsigned ports = 0;
  unsigned first_active_port = 0;  ///< 0: none
  std::string problem;             ///< why it could not be probed, with the remedy
  int problem_code = 0;            ///< errno behind it

  /// An mlx5 device: by driver and vendor id, never by name.
  bool mlx5() const { return mlx5_driver && vendor_id == kMellanoxVendorId; }
};

/// Owns the array of ibv_get_device_list.
class DeviceList {
 public:
  /// Throws Error (permission, system) if the list cannot be had; an empty list is no error.
  DeviceList();

  std::size_t size() const { return infos_.size(); }
  const DeviceInfo& operator[](std::size_t i) const { return infos_[i]; }
  std::span<const DeviceInfo> infos() const { return infos_; }
  ibv_device* device(std::size_t i) const { return devices_.get()[i]; }

  /// Opens device `i` for a moment to fill in the second group. A failure is kept in `problem`.
  const DeviceInfo& probe(std::size_t i);

 private:
  struct Free {
    void operator()(ibv_device** list) const { ibv_free_device_list(list); }
  };
  std::unique_ptr<ibv_device*, Free> devices_;
  std::vector<DeviceInfo> infos_;
};

/// `auto`, `soft`, `NAME` or `NAME:PORT`, taken apart.
struct DeviceRequest {
  enum class Kind : std::uint8_t { automatic, software, named };
  Kind kind = Kind::automatic;
  std::string name;              ///< named only
  std::optional<unsigned> port;  ///< 1..255

  /// Throws Error (bad_argument).
  static DeviceRequest parse(std::string_view text);
};

struct DeviceChoice {
  std::size_t index = 0;
  unsigned port = 1;
  std::string reason;  ///< one line: device, port and why
};

/// Chooses among probed devices. Automatic: the first mlx5 device with an active port; then the software
/// NIC; then any other with an active port.
/// Throws Error: no_device if there is none that fits, with what is there; permission if there are
/// some and none may be opened; not_reachable if the port is not active.
DeviceChoice choose_device(std::span<const DeviceInfo> devices, const DeviceRequest& request);

}  // namespace belfry::host

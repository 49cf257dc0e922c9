#pragma once
/// \file
/// PCI functions as sysfs shows them, and the few registers that matter here.
///
/// Register layout: PCI Express Base Specification; names as in Linux include/uapi/linux/pci_regs.h.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/tree.hpp"

namespace belfry::doctor {

inline constexpr unsigned kPciMellanox = 0x15b3;
inline constexpr unsigned kPciNvidia = 0x10de;

struct PciFunction {
  std::string address;  ///< "0000:3b:00.0"
  std::string path;     ///< "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"
  unsigned vendor = 0;
  unsigned device = 0;
  unsigned class_code = 0;           ///< 24 bits: class, subclass, interface
  std::string driver;                ///< empty where none is bound
  int numa_node = -1;                ///< -1: not told
  std::string root;                  ///< "pci0000:3a": the root complex's bus
  std::vector<std::string> bridges;  ///< addresses from the root port down to the last bridge
  bool virtual_function = false;
  std::string link_speed, link_speed_most;  ///< "16.0 GT/s PCIe"; empty where not told
  std::string link_width, link_width_most;  ///< "16"

  bool is_network() const { return class_code >> 16 == 0x02; }
  bool is_display() const { return class_code >> 16 == 0x03; }
};

/// The function at a sysfs path, symbolic links followed; nothing if there is none.
std::optional<PciFunction> read_pci_function(const Tree& tree, std::string_view path);

/// All functions of a vendor, by address.
std::vector<PciFunction> list_pci_functions(const Tree& tree, unsigned vendor);

/// The file of a function in /sys/bus/pci/devices.
std::string pci_file(std::string_view address, std::string_view file);

/// Configuration space as far as this process may read it (without CAP_SYS_ADMIN: 64 B).
class PciConfig {
 public:
  PciConfig(const Tree& tree, std::string_view address);

  /// Whether capabilities lie in what could be read.
  bool has_capabilities() const { return bytes_.size() > kHeaderBytes; }
  bool has_extended() const { return bytes_.size() > kConventionalBytes; }

  /// Access Control Services: the control register; nothing if the function has none.
  std::optional<std::uint16_t> acs_control() const;

  struct Express {
    unsigned type = 0;  ///< device/port type
    std::uint32_t device_capabilities2 = 0;
    std::uint16_t device_control2 = 0;
  };
  std::optional<Express> express() const;

 private:
  static constexpr std::size_t kHeaderBytes = 64;
  static constexpr std::size_t kConventionalBytes = 256;
  std::uint32_t read(std::size_t offset, unsigned bytes) const;  ///< 0 beyond the end
  std::string bytes_;
};

inline constexpr std::uint16_t kAcsRequestRedirect = 0x04;
inline constexpr std::uint16_t kAcsCompletionRedirect = 0x08;

inline constexpr unsigned kPciRootPort = 4;
inline constexpr unsigned kPciUpstreamPort = 5;
inline constexpr unsigned kPciDownstreamPort = 6;
inline constexpr std::uint32_t kAtomicRouting = 0x40;        ///< device capabilities 2
inline constexpr std::uint32_t kAtomicComplete64 = 0x100;    ///< device capabilities 2
inline constexpr std::uint16_t kAtomicRequester = 0x40;      ///< device control 2
inline constexpr std::uint16_t kAtomicEgressBlocked = 0x80;  ///< device control 2

}  // namespace belfry::doctor

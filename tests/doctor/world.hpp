#pragma once
/// \file
/// A machine made of small data: files below a temporary root, and trials whose outcome is said here.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doctor/doctor.hpp"

namespace belfry::doctor {

/// Path to content. A content that begins with "-> " makes a symbolic link.
using Files = std::map<std::string, std::string>;

/// Takes away a path and all below it.
void remove_below(Files& files, const std::string& path);

/// Files below a directory of their own, removed with the object.
class FakeRoot {
 public:
  explicit FakeRoot(const Files& files);
  ~FakeRoot();
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Configuration space with a PCIe capability, and an ACS capability where `acs` is given.
std::string pci_config(unsigned type, std::uint32_t capabilities2, std::uint16_t control2,
                       std::optional<std::uint16_t> acs = {});

struct NicShape {
  std::string name = "mlx5_0";
  std::string address = "0000:03:00.0";
  std::string above = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0";  ///< in /sys/devices
  std::string uverbs = "uverbs0";
  std::string netdev = "eth0";
  std::string gid_start = "a00";  ///< the IPv4 address behind ::ffff, hex, upper half
};
void add_nic(Files& files, const NicShape& shape);

struct GpuShape {
  std::string address = "0000:04:00.0";
  std::string above = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0";
};
void add_gpu(Files& files, const GpuShape& shape);

/// Where a NIC's PCI function, and a port of it, lie.
std::string pci_of(const NicShape& shape = {});
std::string port_of(const NicShape& shape = {}, unsigned port = 1);

class FakeTrials final : public Trials {
 public:
  FakeTrials();
  int open_node(const std::string&) override { return open_result; }
  const NicTrial& nic(const std::string&) override { return nic_result; }
  const GpuTrial& gpu(const std::vector<std::string>&) override { return gpu_result; }
  GdrCopyTrial gdrcopy() override { return gdrcopy_result; }
  std::vector<Proof> prove(const std::string&, unsigned) override { return proofs; }
  std::string choice(const std::string& request) override;

  GpuNicTrial& pair() { return gpu_result.pairs.at(0); }

  int open_result = 0;
  NicTrial nic_result;
  GpuTrial gpu_result;
  GdrCopyTrial gdrcopy_result = GdrCopyTrial::works;
  std::vector<Proof> proofs;
  bool choice_fails = false;
};

/// A machine on which everything is in order: a RoCE NIC and a GPU below one switch.
struct World {
  World();
  Diagnosis examine();

  Files files;
  FakeTrials trials;
  bool may_try = true;
  host::Environment environment;
  Options options;
};

std::set<std::string> ids_of(const Diagnosis& diagnosis);

}  // namespace belfry::doctor

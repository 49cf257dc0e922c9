#pragma once
/// \file
/// What the doctor tries instead of reading: devices opened, registers mapped, memory registered, WQEs
/// posted. An interface, so that tests can say how it turned out.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "belfry/host/context.hpp"

namespace belfry::doctor {

/// How opening a device and asking it for what GPU-initiated RDMA needs went.
struct NicTrial {
  bool opened = false;
  std::string problem;  ///< why not, with the remedy
  host::DevxCapabilities devx;
  bool register_allocated = false;  ///< a doorbell register (UAR)
  bool register_dedicated = false;  ///< it is nobody else's
  std::string register_problem;
  bool atomics = false;                   ///< the device offers RDMA atomics
  bool atomics_global = false;            ///< they are atomic towards the CPU, too
  std::map<unsigned, unsigned> path_mtu;  ///< port to its active path MTU, bytes
};

/// How one GPU fared with one NIC. Codes are CUresult (0: success) or errno, as named.
struct GpuNicTrial {
  std::string gpu;  ///< PCI address
  std::string device;
  std::optional<int> map_register;      ///< CUresult of registering the doorbell page; none: not tried
  std::optional<int> export_dma_buf;    ///< CUresult
  std::optional<int> register_dma_buf;  ///< errno of ibv_reg_dmabuf_mr; none: not tried
  std::optional<int> register_pointer;  ///< errno of ibv_reg_mr on a GPU address (peer memory)

  bool memory_works() const { return register_dma_buf == 0 || register_pointer == 0; }
};

struct GpuTrial {
  bool library = false;  ///< libcuda.so.1 was loaded
  int init = 0;          ///< CUresult of cuInit
  int driver_version = 0;
  std::vector<std::string> gpus;  ///< PCI addresses that CUDA sees
  std::vector<GpuNicTrial> pairs;
};

enum class GdrCopyTrial : std::uint8_t {
  works,       ///< gdr_open() gave a handle
  no_library,  ///< libgdrapi.so.2 is not installed
  refused,     ///< gdr_open() failed
};

/// Payload of a proof: more than fits in a WQE's own block, so that the NIC has to fetch it.
inline constexpr unsigned kProofBytes = 64;

/// One RDMA WRITE that was posted, waited for and checked; `problem` is empty if all went well.
struct Proof {
  std::string queue;  ///< "verbs", "DEVX"
  std::string problem;
  std::string remedy;
  bool wrong_payload = false;
  std::int64_t first_ns = 0;   ///< from posting to the completion, the first time
  std::int64_t median_ns = 0;  ///< of those after it
  unsigned repeats = 0;        ///< those after it
};

class Trials {
 public:
  virtual ~Trials() = default;

  /// Opens a device node for reading and writing. \return 0 or the errno
  virtual int open_node(const std::string& path) = 0;
  /// \param device a device's name; \return the same for every call
  virtual const NicTrial& nic(const std::string& device) = 0;
  /// Every GPU with every NIC. \param devices names
  virtual const GpuTrial& gpu(const std::vector<std::string>& devices) = 0;
  virtual GdrCopyTrial gdrcopy() = 0;
  /// Posts WRITEs from the device to itself, on each kind of queue that it has.
  virtual std::vector<Proof> prove(const std::string& device, unsigned port) = 0;
  /// Which device belfry would take, and why; what host::choose_device throws.
  virtual std::string choice(const std::string& request) = 0;
};

/// The real ones.
std::unique_ptr<Trials> live_trials();

/// "libibverbs.so.1.14.44.0" is release 44.0, "libmlx5.so.1.24.44.0" too; empty for another form.
std::string rdma_core_release(const std::string& file_name);

/// Files that libibverbs and libmlx5 were loaded from, symbolic links followed; empty where unknown.
struct LoadedLibraries {
  std::string libibverbs;
  std::string libmlx5;
};
LoadedLibraries loaded_libraries();

}  // namespace belfry::doctor

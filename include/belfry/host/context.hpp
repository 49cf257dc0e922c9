#pragma once
/// \file
/// An open device and the port, GID and path MTU that belfry uses on it.

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "belfry/host/environment.hpp"
#include "belfry/host/gid.hpp"
#include "belfry/host/mtu.hpp"
#include "belfry/host/read_atomic.hpp"

namespace belfry::host {

struct ContextOptions {
  std::string nic = "auto";          ///< auto, soft, NAME or NAME:PORT
  std::optional<int> gid_index;      ///< instead of the automatic choice
  std::optional<unsigned> path_mtu;  ///< bytes, an upper bound

  static ContextOptions from(const Environment& environment);
};

/// What the device's firmware offers to DEVX.
struct DevxCapabilities {
  bool available = false;
  std::string reason;                     ///< why not, with the remedy; empty if available
  unsigned cqe_version = 0;               ///< 1: CQEs name the QP by user index
  bool no_record = false;                 ///< QPs without a doorbell record can be made
  unsigned log_max_no_record_blocks = 0;  ///< their largest send queue, log2 of blocks; 0: not stated
};

/// A handle: copies share the device, which closes with the last of them and of the objects made on it.
class Context {
 public:
  /// Chooses and opens a device. Throws Error: no_device, permission, not_reachable (port not active),
  /// unsupported (no usable GID), bad_argument.
  static Context open(const ContextOptions& options = {});

  ibv_context* get() const;
  const std::string& device_name() const;
  std::uint8_t port() const;
  LinkLayer link() const;

  /// Device limits and port attributes, as they were when it was opened.
  const ibv_device_attr& limits() const;
  const ibv_port_attr& port_attributes() const;

  bool is_software_nic() const;
  bool is_mlx5() const;
  const DevxCapabilities& devx() const;

  const GidChoice& gid() const;
  const MtuChoice& mtu() const;
  ReadAtomicDepth depth() const;  ///< what this end offers

  /// One line for each choice made here, with its reason.
  std::span<const std::string> decisions() const;

 private:
  struct State;
  explicit Context(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// A handle of a protection domain; it keeps its context open.
class ProtectionDomain {
 public:
  /// Throws Error.
  explicit ProtectionDomain(const Context& context);

  ibv_pd* get() const { return pd_.get(); }
  const Context& context() const { return context_; }

 private:
  Context context_;
  std::shared_ptr<ibv_pd> pd_;
};

}  // namespace belfry::host

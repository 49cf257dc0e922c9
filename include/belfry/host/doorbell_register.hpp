#pragma once
/// \file
/// A doorbell register (UAR) of a device. A DEVX queue makes its own; made here, one serves several.

#include <cstdint>
#include <memory>

#include "belfry/host/context.hpp"

namespace belfry::host {

/// A handle: copies share the register, which is returned with the last of them.
class DoorbellRegister {
 public:
  /// A register of its own where the driver gives one, else the one that this context's queues share.
  /// Throws Error: unsupported (no DEVX), system.
  explicit DoorbellRegister(const Context& context);

  void* address() const;          ///< where an 8 B store rings
  std::uint32_t page_id() const;  ///< the device's
  bool dedicated() const;         ///< false: other queues of this process ring it, whether belfry's or not

  bool operator==(const DoorbellRegister& other) const { return impl_ == other.impl_; }

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace belfry::host

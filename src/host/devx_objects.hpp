#pragma once
/// \file
/// Owners of what mlx5dv's DEVX calls return. Each must be destroyed before the context it came from.

#include <infiniband/mlx5dv.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "belfry/host/errors.hpp"

namespace belfry::host {

/// Memory that DEVX commands name by an id.
class Umem {
 public:
  Umem() = default;
  /// Throws Error: locked_memory, permission, unsupported, system.
  Umem(ibv_context* context, void* address, std::size_t bytes);
  std::uint32_t id() const { return umem_->umem_id; }

 private:
  struct Free {
    void operator()(mlx5dv_devx_umem* umem) const { mlx5dv_devx_umem_dereg(umem); }
  };
  std::unique_ptr<mlx5dv_devx_umem, Free> umem_;
};

/// A doorbell register.
class Uar {
 public:
  Uar() = default;
  /// A register of its own (BlueFlame-capable) where the driver gives one, else the one that this
  /// context's queues share. Throws Error.
  explicit Uar(ibv_context* context);
  void* register_address() const { return uar_->reg_addr; }
  std::uint32_t page_id() const { return uar_->page_id; }
  bool dedicated() const { return dedicated_; }

 private:
  struct Free {
    void operator()(mlx5dv_devx_uar* uar) const { mlx5dv_devx_free_uar(uar); }
  };
  std::unique_ptr<mlx5dv_devx_uar, Free> uar_;
  bool dedicated_ = false;
};

/// A firmware object.
class DevxObject {
 public:
  DevxObject() = default;
  /// Runs a create command; `out` is cleared first. Throws Error.
  DevxObject(ibv_context* context, VerbsCall call, std::span<const std::uint8_t> in,
             std::span<std::uint8_t> out, const std::string& subject);
  /// Runs a command on it. Throws Error.
  void modify(VerbsCall call, std::span<const std::uint8_t> in, std::span<std::uint8_t> out,
              const std::string& subject);

 private:
  struct Destroy {
    void operator()(mlx5dv_devx_obj* object) const { mlx5dv_devx_obj_destroy(object); }
  };
  std::unique_ptr<mlx5dv_devx_obj, Destroy> object_;
};

}  // namespace belfry::host

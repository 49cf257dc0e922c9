#include "host/devx_objects.hpp"

#include <algorithm>
#include <cerrno>

#include "belfry/wire/prm_command.hpp"

namespace belfry::host {

namespace prm = wire::prm;

namespace {

int last_error() { return errno != 0 ? errno : EIO; }

Error command_error(VerbsCall call, int code, std::span<const std::uint8_t> out, const std::string& subject) {
  return devx_error(call, code, static_cast<std::uint8_t>(prm::CommandOut::status::get(out.data())),
                    prm::CommandOut::syndrome::get(out.data()), subject);
}

}  // namespace

Umem::Umem(ibv_context* context, void* address, std::size_t bytes) {
  errno = 0;
  umem_.reset(mlx5dv_devx_umem_reg(context, address, bytes, IBV_ACCESS_LOCAL_WRITE));
  if (umem_ == nullptr) {
    throw verbs_error(VerbsCall::devx_register_umem, last_error(), "a queue's " + format_bytes(bytes), bytes);
  }
}

Uar::Uar(ibv_context* context) {
  uar_.reset(mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_BF));
  dedicated_ = uar_ != nullptr;
  if (dedicated_) return;
  errno = 0;
  uar_.reset(mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC));
  if (uar_ == nullptr) throw verbs_error(VerbsCall::devx_alloc_uar, last_error(), "");
}

DevxObject::DevxObject(ibv_context* context, VerbsCall call, std::span<const std::uint8_t> in,
                       std::span<std::uint8_t> out, const std::string& subject) {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  errno = 0;
  object_.reset(mlx5dv_devx_obj_create(context, in.data(), in.size(), out.data(), out.size()));
  if (object_ == nullptr) throw command_error(call, last_error(), out, subject);
}

void DevxObject::modify(VerbsCall call, std::span<const std::uint8_t> in, std::span<std::uint8_t> out,
                        const std::string& subject) {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  errno = 0;
  const int code = mlx5dv_devx_obj_modify(object_.get(), in.data(), in.size(), out.data(), out.size());
  if (code != 0) throw command_error(call, code > 0 ? code : last_error(), out, subject);
}

}  // namespace belfry::host

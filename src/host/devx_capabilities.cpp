#include "host/devx_capabilities.hpp"

#include <infiniband/mlx5dv.h>

#include <array>
#include <cerrno>
#include <optional>

#include "belfry/host/errors.hpp"
#include "belfry/wire/prm_capability.hpp"

namespace belfry::host {

namespace prm = wire::prm;

namespace {

using Output = std::array<std::uint8_t, prm::QueryHcaCapOut::kBytes>;

/// \return nothing if the command worked, else why not
std::optional<Error> query(ibv_context* context, prm::CapabilityGroup group, Output& out) {
  std::array<std::uint8_t, prm::QueryHcaCapIn::kBytes> in{};
  prm::QueryHcaCapIn::opcode::set(in.data(), static_cast<unsigned>(prm::Opcode::query_hca_cap));
  prm::QueryHcaCapIn::op_mod::set(in.data(), prm::capability_op_mod(group));
  out.fill(0);
  errno = 0;
  const int code = mlx5dv_devx_general_cmd(context, in.data(), in.size(), out.data(), out.size());
  if (code == 0) return std::nullopt;
  return devx_error(VerbsCall::devx_query_caps, code > 0 ? code : errno,
                    static_cast<std::uint8_t>(prm::CommandOut::status::get(out.data())),
                    prm::CommandOut::syndrome::get(out.data()), "");
}

}  // namespace

DevxCapabilities query_devx_capabilities(ibv_context* context) {
  DevxCapabilities capabilities;
  Output out;
  if (const auto error = query(context, prm::CapabilityGroup::general, out)) {
    capabilities.reason = error->what();
    return capabilities;
  }
  const std::uint8_t* general = prm::QueryHcaCapOut::capability::at(out.data());
  capabilities.available = true;
  capabilities.cqe_version = prm::GeneralCapability::cqe_version::get(general);
  const bool has_second_group = prm::GeneralCapability::hca_cap_2::get(general) != 0;
  if (has_second_group && !query(context, prm::CapabilityGroup::general_2, out)) {
    const std::uint8_t* second = prm::QueryHcaCapOut::capability::at(out.data());
    capabilities.no_record = prm::GeneralCapability2::send_dbr_mode_no_dbr_ext::get(second) != 0;
    capabilities.log_max_no_record_blocks = prm::GeneralCapability2::log_max_send_dbr_less_qp_sq::get(second);
  }
  return capabilities;
}

}  // namespace belfry::host

#include "belfry/host/device_list.hpp"

#include <infiniband/mlx5dv.h>

#include <cerrno>

#include "belfry/host/errors.hpp"
#include "belfry/port/byte_order.hpp"
#include "host/sysfs.hpp"

namespace belfry::host {

namespace {

struct CloseContext {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
};

DeviceInfo describe(ibv_device* device) {
  const std::filesystem::path sysfs(device->ibdev_path);
  DeviceInfo info;
  info.name = ibv_get_device_name(device);
  info.board_id = read_sysfs_line(sysfs / "board_id").value_or("");
  info.node_description = read_sysfs_line(sysfs / "node_desc").value_or("");
  info.guid = Be64::from_raw(ibv_get_device_guid(device)).get();
  info.mlx5_driver = mlx5dv_is_supported(device);
  info.software_nic = is_software_board(info.board_id);
  return info;
}

void probe_open(ibv_context* context, DeviceInfo& info) {
  ibv_device_attr attributes{};
  if (const int code = ibv_query_device(context, &attributes); code != 0) {
    const Error error = verbs_error(VerbsCall::query_device, code, info.name);
    info.problem = error.what();
    info.problem_code = code;
    return;
  }
  info.vendor_id = attributes.vendor_id;
  info.ports = attributes.phys_port_cnt;
  for (unsigned port = 1; port <= info.ports; ++port) {
    ibv_port_attr state{};
    if (ibv_query_port(context, static_cast<std::uint8_t>(port), &state) == 0 &&
        state.state == IBV_PORT_ACTIVE) {
      info.first_active_port = port;
      return;
    }
  }
}

}  // namespace

bool is_software_board(std::string_view board_id) { return board_id.starts_with("BELFRY"); }

DeviceList::DeviceList() {
  int count = 0;
  errno = 0;
  devices_.reset(ibv_get_device_list(&count));
  if (devices_ == nullptr) {
    // A kernel without RDMA support answers ENOSYS: that is an empty machine, not a failure.
    if (errno == ENOSYS || errno == 0) return;
    throw verbs_error(VerbsCall::get_device_list, errno, "");
  }
  infos_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) infos_.push_back(describe(devices_.get()[i]));
}

const DeviceInfo& DeviceList::probe(std::size_t i) {
  DeviceInfo& info = infos_.at(i);
  if (info.probed) return info;
  info.probed = true;
  errno = 0;
  const std::unique_ptr<ibv_context, CloseContext> context(ibv_open_device(device(i)));
  if (context == nullptr) {
    info.problem_code = errno != 0 ? errno : EIO;
    info.problem = verbs_error(VerbsCall::open_device, info.problem_code, info.name).what();
    return info;
  }
  probe_open(context.get(), info);
  return info;
}

}  // namespace belfry::host

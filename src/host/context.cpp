#include "belfry/host/context.hpp"

#include <infiniband/mlx5dv.h>

#include <cerrno>

#include "belfry/host/device_list.hpp"
#include "belfry/host/errors.hpp"
#include "host/devx_capabilities.hpp"
#include "host/sysfs.hpp"

namespace belfry::host {

struct Context::State {
  std::shared_ptr<ibv_context> context;
  DeviceInfo device;
  std::uint8_t port = 1;
  LinkLayer link = LinkLayer::infiniband;
  ibv_device_attr limits{};
  ibv_port_attr port_attributes{};
  DevxCapabilities devx;
  GidChoice gid;
  MtuChoice mtu;
  ReadAtomicDepth depth;
  std::vector<std::string> decisions;
};

namespace {

struct OpenedDevice {
  std::shared_ptr<ibv_context> context;
  bool devx = false;
};

/// With DEVX where the driver has it: its objects belong to the user context that this flag asks for.
OpenedDevice open_device(ibv_device* device, const DeviceInfo& info) {
  const auto own = [](ibv_context* context) {
    return std::shared_ptr<ibv_context>(context, [](ibv_context* c) { ibv_close_device(c); });
  };
  if (info.mlx5()) {
    mlx5dv_context_attr attributes{};
    attributes.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    if (ibv_context* context = mlx5dv_open_device(device, &attributes)) return {own(context), true};
  }
  errno = 0;
  ibv_context* context = ibv_open_device(device);
  if (context == nullptr) throw verbs_error(VerbsCall::open_device, errno != 0 ? errno : EIO, info.name);
  return {own(context), false};
}

/// Devices that a request cannot mean are not opened: one that hangs or is denied does no harm then.
bool can_be_meant(const DeviceRequest& request, const DeviceInfo& info) {
  switch (request.kind) {
    case DeviceRequest::Kind::software:
      return info.software_nic;
    case DeviceRequest::Kind::named:
      return info.name == request.name;
    case DeviceRequest::Kind::automatic:
      break;
  }
  return true;
}

ibv_port_attr query_port(ibv_context* context, const DeviceInfo& info, std::uint8_t port) {
  ibv_port_attr attributes{};
  const std::string subject = info.name + " port " + std::to_string(port);
  if (const int code = ibv_query_port(context, port, &attributes); code != 0) {
    throw verbs_error(VerbsCall::query_port, code, subject);
  }
  if (attributes.state != IBV_PORT_ACTIVE) {
    throw Error(
        ErrorKind::not_reachable, subject + " is not active but " + ibv_port_state_str(attributes.state),
        "Check cable, switch and, on InfiniBand, the subnet manager (`ibv_devinfo`); on RoCE bring the "
        "network interface up");
  }
  return attributes;
}

DevxCapabilities devx_of(const OpenedDevice& opened, const DeviceInfo& info) {
  if (opened.devx) return query_devx_capabilities(opened.context.get());
  DevxCapabilities none;
  none.reason = info.mlx5() ? "the driver did not open the device with DEVX (mlx5_ib too old, or no right to)"
                            : "not an mlx5 device";
  return none;
}

std::string describe(const DevxCapabilities& devx) {
  if (!devx.available) return "DEVX: not available: " + devx.reason;
  return std::string("DEVX: available; queues without a doorbell record: ") +
         (devx.no_record ? "available" : "not offered by this device");
}

}  // namespace

ContextOptions ContextOptions::from(const Environment& environment) {
  return {environment.nic, environment.gid_index, environment.path_mtu};
}

Context::Context(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Context Context::open(const ContextOptions& options) {
  const DeviceRequest request = DeviceRequest::parse(options.nic);
  DeviceList list;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (can_be_meant(request, list[i])) list.probe(i);
  }
  const DeviceChoice choice = choose_device(list.infos(), request);

  auto state = std::make_shared<State>();
  state->device = list[choice.index];
  state->port = static_cast<std::uint8_t>(choice.port);
  const OpenedDevice opened = open_device(list.device(choice.index), state->device);
  state->context = opened.context;
  ibv_context* context = opened.context.get();

  if (const int code = ibv_query_device(context, &state->limits); code != 0) {
    throw verbs_error(VerbsCall::query_device, code, state->device.name);
  }
  state->port_attributes = query_port(context, state->device, state->port);
  state->link = state->port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET ? LinkLayer::ethernet
                                                                             : LinkLayer::infiniband;
  const auto table = read_gid_table(context, state->port, state->port_attributes.gid_tbl_len, state->link);
  state->gid = choose_gid(state->link, table, options.gid_index);
  const auto interface_mtu =
      state->link == LinkLayer::ethernet ? netdev_mtu(state->gid.entry.netdev) : std::nullopt;
  state->mtu = choose_mtu(mtu_bytes(state->port_attributes.active_mtu), interface_mtu, options.path_mtu);
  state->depth = offer_read_atomic_depth(state->limits.max_qp_init_rd_atom, state->limits.max_qp_rd_atom);
  state->devx = devx_of(opened, state->device);
  state->decisions = {choice.reason, state->gid.reason, state->mtu.reason, describe(state->devx)};
  return Context(std::move(state));
}

ibv_context* Context::get() const { return state_->context.get(); }
const std::string& Context::device_name() const { return state_->device.name; }
std::uint8_t Context::port() const { return state_->port; }
LinkLayer Context::link() const { return state_->link; }
const ibv_device_attr& Context::limits() const { return state_->limits; }
const ibv_port_attr& Context::port_attributes() const { return state_->port_attributes; }
bool Context::is_software_nic() const { return state_->device.software_nic; }
bool Context::is_mlx5() const { return state_->device.mlx5(); }
const DevxCapabilities& Context::devx() const { return state_->devx; }
const GidChoice& Context::gid() const { return state_->gid; }
const MtuChoice& Context::mtu() const { return state_->mtu; }
ReadAtomicDepth Context::depth() const { return state_->depth; }
std::span<const std::string> Context::decisions() const { return state_->decisions; }

ProtectionDomain::ProtectionDomain(const Context& context) : context_(context) {
  errno = 0;
  ibv_pd* pd = ibv_alloc_pd(context.get());
  if (pd == nullptr) throw verbs_error(VerbsCall::alloc_pd, errno != 0 ? errno : EIO, context.device_name());
  // The deleter's copy of the context keeps the device open until the domain is gone.
  pd_ = std::shared_ptr<ibv_pd>(pd, [context](ibv_pd* p) { ibv_dealloc_pd(p); });
}

}  // namespace belfry::host

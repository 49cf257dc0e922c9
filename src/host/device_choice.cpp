// Which device to use: a pure function over what is known of them.

#include <cerrno>
#include <charconv>

#include "belfry/host/device_list.hpp"
#include "belfry/host/errors.hpp"

namespace belfry::host {

namespace {

std::string list_names(std::span<const DeviceInfo> devices) {
  std::string text;
  for (const DeviceInfo& device : devices) {
    if (!text.empty()) text += ", ";
    text += device.name;
    if (device.software_nic) text += " (software NIC)";
    if (!device.problem.empty()) {
      text += " (cannot be opened)";
    } else if (device.probed && device.first_active_port == 0) {
      text += " (no active port)";
    }
  }
  return text.empty() ? "none" : text;
}

std::string what_it_is(const DeviceInfo& device) {
  if (device.software_nic) return "software NIC";
  return device.mlx5() ? "mlx5 hardware" : "not an mlx5 device: verbs queues only";
}

DeviceChoice make_choice(std::span<const DeviceInfo> devices, std::size_t index, unsigned port,
                         std::string_view reason) {
  DeviceChoice choice{index, port,
                      "device " + devices[index].name + " port " + std::to_string(port) + " (" +
                          what_it_is(devices[index]) + "): "};
  choice.reason += reason;
  return choice;
}

[[noreturn]] void refuse_problem(const DeviceInfo& device) {
  const bool permission = device.problem_code == EACCES || device.problem_code == EPERM;
  throw Error(permission ? ErrorKind::permission : ErrorKind::system,
              "device " + device.name + " cannot be opened: " + device.problem, "");
}

/// Smaller is better; 3 means not usable.
int automatic_rank(const DeviceInfo& device) {
  if (!device.problem.empty() || device.first_active_port == 0) return 3;
  if (device.software_nic) return 1;
  return device.mlx5() ? 0 : 2;
}

DeviceChoice choose_automatic(std::span<const DeviceInfo> devices) {
  static constexpr std::string_view kReasons[] = {"the first mlx5 device with an active port",
                                                  "no mlx5 hardware has an active port",
                                                  "the only kind of device with an active port"};
  std::size_t best = 0;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    if (automatic_rank(devices[i]) < automatic_rank(devices[best])) best = i;
  }
  if (devices.empty()) throw no_device_error("there is no RDMA device on this machine");
  const int rank = automatic_rank(devices[best]);
  if (rank < 3) return make_choice(devices, best, devices[best].first_active_port, kReasons[rank]);
  for (const DeviceInfo& device : devices) {
    if (!device.problem.empty()) refuse_problem(device);
  }
  throw no_device_error("no RDMA device has an active port; there are: " + list_names(devices));
}

DeviceChoice choose_software(std::span<const DeviceInfo> devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].software_nic) continue;
    if (!devices[i].problem.empty()) refuse_problem(devices[i]);
    return make_choice(devices, i, devices[i].first_active_port == 0 ? 1 : devices[i].first_active_port,
                       "the software NIC was asked for");
  }
  throw no_device_error("the software NIC was asked for, and this process does not run under it (devices: " +
                        list_names(devices) + ")");
}

DeviceChoice choose_named(std::span<const DeviceInfo> devices, const DeviceRequest& request) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceInfo& device = devices[i];
    if (device.name != request.name) continue;
    if (!device.problem.empty()) refuse_problem(device);
    if (request.port && *request.port > device.ports) {
      throw Error(ErrorKind::bad_argument,
                  "device " + device.name + " has no port " + std::to_string(*request.port),
                  "It has " + std::to_string(device.ports));
    }
    if (!request.port && device.first_active_port == 0) {
      throw Error(ErrorKind::not_reachable, "device " + device.name + " has no active port",
                  "Check cable, switch and, on InfiniBand, the subnet manager (`ibv_devinfo`); on RoCE bring "
                  "the network interface up");
    }
    return make_choice(devices, i, request.port.value_or(device.first_active_port), "requested by name");
  }
  throw no_device_error("there is no RDMA device named " + request.name +
                        " (devices: " + list_names(devices) + ")");
}

}  // namespace

DeviceRequest DeviceRequest::parse(std::string_view text) {
  const auto refuse = [&] {
    throw Error(ErrorKind::bad_argument, "\"" + std::string(text) + "\" names no device",
                "A device is asked for as auto, soft, NAME or NAME:PORT (BELFRY_NIC, --nic)");
  };
  DeviceRequest request;
  if (text == "auto") return request;
  if (text == "soft") {
    request.kind = Kind::software;
    return request;
  }
  request.kind = Kind::named;
  const std::size_t colon = text.find(':');
  request.name = text.substr(0, colon);
  if (request.name.empty()) refuse();
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    unsigned port = 0;
    const auto [stop, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (status != std::errc() || stop != digits.data() + digits.size() || port < 1 || port > 255) refuse();
    request.port = port;
  }
  return request;
}

DeviceChoice choose_device(std::span<const DeviceInfo> devices, const DeviceRequest& request) {
  switch (request.kind) {
    case DeviceRequest::Kind::software:
      return choose_software(devices);
    case DeviceRequest::Kind::named:
      return choose_named(devices, request);
    case DeviceRequest::Kind::automatic:
      break;
  }
  return choose_automatic(devices);
}

}  // namespace belfry::host

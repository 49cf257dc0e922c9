#include "doctor/pci.hpp"

#include <charconv>
#include <cstdlib>

namespace belfry::doctor {
namespace {

constexpr std::string_view kDevices = "/sys/bus/pci/devices/";

unsigned hex_line(const Tree& tree, const std::string& file) {
  const auto line = tree.line(file);
  if (!line) return 0;
  return static_cast<unsigned>(std::strtoul(line->c_str(), nullptr, 16));
}

/// DOMAIN:BUS:DEVICE.FUNCTION
bool is_pci_address(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot != 2 || dot < 8) return false;
  return name[dot - 3] == ':' && name[dot - 6] == ':' &&
         name.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

void place_in_tree(PciFunction& function) {
  std::string_view rest = function.path;
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    if (part.starts_with("pci") && function.root.empty()) {
      function.root = part;
    } else if (is_pci_address(part) && part != function.address) {
      function.bridges.emplace_back(part);
    }
  }
}

}  // namespace

std::optional<PciFunction> read_pci_function(const Tree& tree, std::string_view path) {
  PciFunction function;
  // What hangs below a function (a subfunction on the auxiliary bus) counts as the function.
  for (function.path = tree.resolve(path); !function.path.empty();
       function.path.resize(function.path.rfind('/'))) {
    function.address = function.path.substr(function.path.rfind('/') + 1);
    if (is_pci_address(function.address)) break;
  }
  if (function.path.empty()) return std::nullopt;
  const std::string base = function.path + "/";
  function.vendor = hex_line(tree, base + "vendor");
  function.device = hex_line(tree, base + "device");
  function.class_code = hex_line(tree, base + "class");
  const std::string driver = tree.resolve(base + "driver");
  function.driver = driver.substr(driver.rfind('/') + 1);
  function.numa_node = static_cast<int>(tree.number(base + "numa_node").value_or(-1));
  function.virtual_function = tree.exists(base + "physfn");
  function.link_speed = tree.line(base + "current_link_speed").value_or("");
  function.link_speed_most = tree.line(base + "max_link_speed").value_or("");
  function.link_width = tree.line(base + "current_link_width").value_or("");
  function.link_width_most = tree.line(base + "max_link_width").value_or("");
  place_in_tree(function);
  return function;
}

std::vector<PciFunction> list_pci_functions(const Tree& tree, unsigned vendor) {
  std::vector<PciFunction> functions;
  for (const std::string& address : tree.list(kDevices)) {
    if (hex_line(tree, pci_file(address, "vendor")) != vendor) continue;
    if (auto function = read_pci_function(tree, std::string(kDevices) + address)) {
      functions.push_back(std::move(*function));
    }
  }
  return functions;
}

std::string pci_file(std::string_view address, std::string_view file) {
  return std::string(kDevices).append(address).append("/").append(file);
}

PciConfig::PciConfig(const Tree& tree, std::string_view address)
    : bytes_(tree.text(pci_file(address, "config")).value_or("")) {}

std::uint32_t PciConfig::read(std::size_t offset, unsigned bytes) const {
  if (offset + bytes > bytes_.size()) return 0;
  std::uint32_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes_[offset + i])) << (8 * i);
  }
  return value;
}

std::optional<PciConfig::Express> PciConfig::express() const {
  constexpr unsigned kPointer = 0x34;
  constexpr unsigned kExpressId = 0x10;
  constexpr unsigned kMostCapabilities = 48;
  std::size_t at = read(kPointer, 1) & 0xfcu;
  for (unsigned i = 0; i < kMostCapabilities && at >= kHeaderBytes; ++i) {
    if (read(at, 1) == kExpressId) {
      Express express;
      express.type = (read(at + 2, 2) >> 4) & 0xf;
      express.device_capabilities2 = read(at + 0x24, 4);
      express.device_control2 = static_cast<std::uint16_t>(read(at + 0x28, 2));
      return express;
    }
    at = read(at + 1, 1) & 0xfcu;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> PciConfig::acs_control() const {
  constexpr unsigned kAcsId = 0x000d;
  constexpr unsigned kMostCapabilities = 480;
  std::size_t at = kConventionalBytes;
  for (unsigned i = 0; i < kMostCapabilities && at >= kConventionalBytes; ++i) {
    const std::uint32_t header = read(at, 4);
    if (header == 0) return std::nullopt;
    if ((header & 0xffff) == kAcsId) return static_cast<std::uint16_t>(read(at + 6, 2));
    at = (header >> 20) & 0xffc;
  }
  return std::nullopt;
}

}  // namespace belfry::doctor

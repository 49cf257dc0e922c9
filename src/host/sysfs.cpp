#include "host/sysfs.hpp"

#include <charconv>
#include <fstream>

namespace belfry::host {

std::optional<std::string> read_sysfs_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
  return line;
}

std::optional<unsigned> netdev_mtu(const std::string& netdev) {
  if (netdev.empty() || netdev.find('/') != std::string::npos) return std::nullopt;
  const auto line = read_sysfs_line(std::filesystem::path("/sys/class/net") / netdev / "mtu");
  if (!line) return std::nullopt;
  unsigned mtu = 0;
  const auto [stop, status] = std::from_chars(line->data(), line->data() + line->size(), mtu);
  if (status != std::errc() || stop != line->data() + line->size()) return std::nullopt;
  return mtu;
}

}  // namespace belfry::host

#include "belfry/host/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "belfry/host/errors.hpp"
#include "host/launchers.hpp"

extern char** environ;

namespace belfry::host {

namespace {

constexpr std::array<EnvironmentVariable, 12> kVariables = {{
    {"BELFRY_NIC", "auto | soft | NAME | NAME:PORT",
     "the device to use; auto prefers an active ConnectX port, then the software NIC (default auto)"},
    {"BELFRY_GID_INDEX", "0..255", "the GID index to use instead of the automatic choice"},
    {"BELFRY_PATH_MTU", "256 | 512 | 1024 | 2048 | 4096",
     "an upper bound on the path MTU, bytes (default: what port and network interface allow)"},
    {"BELFRY_SERVICE_LEVEL", "0..15", "service level; on RoCE the priority, 0..7 (default 0)"},
    {"BELFRY_TRAFFIC_CLASS", "0..255", "traffic class; DSCP in the upper six bits (default 0)"},
    {"BELFRY_ACK_TIMEOUT", "0..31", "time to an acknowledgement, 4.096 us << n; 0: for ever (default 14)"},
    {"BELFRY_RETRY_COUNT", "0..7", "retries without an acknowledgement (default 7)"},
    {"BELFRY_RNR_RETRY", "0..7", "retries while the receiver is not ready; 7: for ever (default 7)"},
    {"BELFRY_BOOTSTRAP_ADDRESS", "HOST:PORT | [IPV6]:PORT", "where rank 0 listens"},
    {"BELFRY_BOOTSTRAP_RANK", "0..size-1", "this process's rank"},
    {"BELFRY_BOOTSTRAP_SIZE", "1..65536", "number of ranks"},
    {"BELFRY_BOOTSTRAP_TIMEOUT", "1..86400", "seconds that each exchange may take (default 60)"},
}};

const EnvironmentVariable& variable(std::string_view name) {
  return *std::find_if(kVariables.begin(), kVariables.end(),
                       [&](const EnvironmentVariable& v) { return v.name == name; });
}

[[noreturn]] void refuse(std::string_view name, const std::string& value) {
  const EnvironmentVariable& v = variable(name);
  throw Error(ErrorKind::bad_argument, std::string(name) + "=\"" + value + "\" is not valid",
              "It takes " + std::string(v.values) + ": " + std::string(v.meaning));
}

class Reader {
 public:
  explicit Reader(const Environment::Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(std::string_view name) const {
    std::optional<std::string> value = lookup_(name);
    if (value && value->empty()) value.reset();
    return value;
  }

  template <class T>
  std::optional<T> number(std::string_view name, long long least, long long most) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    long long parsed = 0;
    const char* end = value->data() + value->size();
    const auto [stop, status] = std::from_chars(value->data(), end, parsed);
    if (status != std::errc() || stop != end || parsed < least || parsed > most) refuse(name, *value);
    return static_cast<T>(parsed);
  }

 private:
  const Environment::Lookup& lookup_;
};

std::optional<unsigned> read_path_mtu(const Reader& read) {
  const auto mtu = read.number<unsigned>("BELFRY_PATH_MTU", 256, 4096);
  if (mtu && (*mtu & (*mtu - 1)) != 0) refuse("BELFRY_PATH_MTU", std::to_string(*mtu));
  return mtu;
}

void ask_launcher(Environment& e, const Environment::Lookup& lookup) {
  if (e.bootstrap_rank || e.bootstrap_size) return;
  std::optional<LaunchedRank> launched = launched_rank(lookup);
  if (!launched) return;
  e.launcher = std::move(launched->launcher);
  e.bootstrap_rank = launched->rank;
  e.bootstrap_size = launched->size;
  if (!e.bootstrap_address) e.bootstrap_address = std::move(launched->address);
}

void check_bootstrap(const Environment& environment) {
  const auto& rank = environment.bootstrap_rank;
  const auto& size = environment.bootstrap_size;
  if (rank && size && *rank >= *size) refuse("BELFRY_BOOTSTRAP_RANK", std::to_string(*rank));
}

}  // namespace

Environment Environment::parse(const Lookup& lookup) {
  const Reader read(lookup);
  Environment e;
  if (auto nic = read.text("BELFRY_NIC")) e.nic = *nic;
  e.gid_index = read.number<int>("BELFRY_GID_INDEX", 0, 255);
  e.path_mtu = read_path_mtu(read);
  e.service_level = read.number<std::uint8_t>("BELFRY_SERVICE_LEVEL", 0, 15);
  e.traffic_class = read.number<std::uint8_t>("BELFRY_TRAFFIC_CLASS", 0, 255);
  e.ack_timeout = read.number<std::uint8_t>("BELFRY_ACK_TIMEOUT", 0, 31);
  e.retry_count = read.number<std::uint8_t>("BELFRY_RETRY_COUNT", 0, 7);
  e.rnr_retry = read.number<std::uint8_t>("BELFRY_RNR_RETRY", 0, 7);
  e.bootstrap_address = read.text("BELFRY_BOOTSTRAP_ADDRESS");
  e.bootstrap_rank = read.number<int>("BELFRY_BOOTSTRAP_RANK", 0, 65535);
  e.bootstrap_size = read.number<int>("BELFRY_BOOTSTRAP_SIZE", 1, 65536);
  if (auto seconds = read.number<long long>("BELFRY_BOOTSTRAP_TIMEOUT", 1, 86400)) {
    e.bootstrap_timeout = std::chrono::seconds(*seconds);
  }
  ask_launcher(e, lookup);
  check_bootstrap(e);
  return e;
}

Environment Environment::of_this_process() {
  return parse([](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

std::span<const EnvironmentVariable> Environment::variables() { return kVariables; }

std::vector<std::string> Environment::unknown(std::span<const std::string> names) {
  std::vector<std::string> strangers;
  for (const std::string& name : names) {
    if (!name.starts_with("BELFRY_") || name.starts_with("BELFRY_SOFTNIC")) continue;
    const bool known =
        std::any_of(kVariables.begin(), kVariables.end(), [&](const auto& v) { return v.name == name; });
    if (!known) strangers.push_back(name);
  }
  return strangers;
}

std::vector<std::string> Environment::names_of_this_process() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace belfry::host

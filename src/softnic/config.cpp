#include "softnic/config.hpp"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "softnic/config_variables.hpp"
#include "softnic/identity.hpp"

namespace belfry::softnic {
namespace {

/// The whole text as a number, or nothing: no sign, no space, no rest. "0x" is taken for integers.
template <class T>
bool parse_whole(std::string_view text, T& value) {
  int base = 10;
  if constexpr (std::is_integral_v<T>) {
    if (text.starts_with("0x") || text.starts_with("0X")) {
      text.remove_prefix(2);
      base = 16;
    }
  }
  const char* end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::is_integral_v<T>) {
    result = std::from_chars(text.data(), end, value, base);
  } else {
    result = std::from_chars(text.data(), end, value);
  }
  return result.ec == std::errc{} && result.ptr == end && !text.empty();
}

template <class T>
bool parse_between(std::string_view text, T least, T most, T& value) {
  T parsed{};
  if (!parse_whole(text, parsed) || !(parsed >= least && parsed <= most)) return false;
  value = parsed;
  return true;
}

constexpr std::int64_t kLongestWait = 1'000'000;  // microseconds

bool parse_microseconds(std::string_view text, std::int64_t least, std::chrono::microseconds& value) {
  std::int64_t count = 0;
  if (!parse_between<std::int64_t>(text, least, kLongestWait, count)) return false;
  value = std::chrono::microseconds(count);
  return true;
}

bool parse_sleep(Config& config, std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  IdlePolicy parsed;
  if (!parse_microseconds(text.substr(0, colon), 1, parsed.sleep_first)) return false;
  if (!parse_microseconds(text.substr(colon + 1), 1, parsed.sleep_most)) return false;
  if (parsed.sleep_first > parsed.sleep_most) return false;
  config.idle.sleep_first = parsed.sleep_first;
  config.idle.sleep_most = parsed.sleep_most;
  return true;
}

/// A fabric's name becomes part of a socket's name, so it is short and plain.
bool parse_fabric(Config& config, std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (text.empty() || text.size() > 40 || text.find_first_not_of(kAllowed) != text.npos) return false;
  config.fabric = text;
  return true;
}

bool parse_link(Config& config, std::string_view text) {
  if (text == "ib") config.link = LinkLayer::infiniband;
  if (text == "eth") config.link = LinkLayer::ethernet;
  return text == "ib" || text == "eth";
}

bool parse_poll(Config& config, std::string_view text) {
  if (text == "doorbell") config.gpu.poll = GpuPoll::doorbell;
  if (text == "record") config.gpu.poll = GpuPoll::record;
  return text == "doorbell" || text == "record";
}

bool parse_copies(Config& config, std::string_view text) {
  if (text == "auto") config.gpu.copies = GpuCopies::automatic;
  if (text == "cuda") config.gpu.copies = GpuCopies::cuda;
  return text == "auto" || text == "cuda";
}

bool parse_doorbells(Config& config, std::string_view text) {
  if (text == "host") config.gpu.doorbells = GpuDoorbells::host;
  if (text == "gpu") config.gpu.doorbells = GpuDoorbells::gpu;
  return text == "host" || text == "gpu";
}

bool parse_gpu(Config& config, std::string_view text) {
  config.gpu.gpu.reset();
  if (text == "auto") return true;
  unsigned gpu = 0;
  if (!parse_between(text, 0u, 63u, gpu)) return false;
  config.gpu.gpu = gpu;
  return true;
}

bool parse_rate(std::string_view text, double& value) { return parse_between(text, 0.0, 1.0, value); }

std::string text_of(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

std::string text_of(std::chrono::microseconds value) { return std::to_string(value.count()); }

template <auto Member>
bool read_limit(Config& config, std::string_view text, std::uint32_t least, std::uint32_t most) {
  return parse_between(text, least, most, config.limits.*Member);
}

template <auto Member>
std::string write_limit(const Config& config) {
  return std::to_string(config.limits.*Member);
}

/// Bounds that hold for every limit: what 24-bit numbers and the queue formats can express.
template <auto Member, std::uint32_t Least, std::uint32_t Most>
constexpr ConfigVariable limit(std::string_view suffix, std::string_view flag, std::string_view unit,
                               std::string_view accepted, std::string_view help) {
  return {suffix,
          flag,
          "N",
          unit,
          accepted,
          help,
          [](Config& c, std::string_view t) { return read_limit<Member>(c, t, Least, Most); },
          write_limit<Member>};
}

constexpr ConfigVariable kVariables[] = {
    {"DEVICES", "--devices", "N", "devices", "1..16", "how many devices the process sees",
     [](Config& c, std::string_view t) { return parse_between(t, 1u, 16u, c.devices); },
     [](const Config& c) { return std::to_string(c.devices); }},
    {"NODE", "--node", "N", "", "0..255",
     "number of the node; devices of different nodes have different addresses",
     [](Config& c, std::string_view t) { return parse_between(t, 0u, 255u, c.node); },
     [](const Config& c) { return std::to_string(c.node); }},
    {"FABRIC", "--fabric", "NAME", "", "1..40 letters, digits, '-', '_' or '.'",
     "name of the fabric; processes of one user on one fabric reach each other", parse_fabric,
     [](const Config& c) { return c.fabric; }},
    {"LINK", "--link", "ib|eth", "", "ib or eth", "link layer: InfiniBand, or Ethernet (RoCE)", parse_link,
     [](const Config& c) { return std::string(c.link == LinkLayer::ethernet ? "eth" : "ib"); }},
    {"MTU", "--mtu", "BYTES", "bytes",
     "ib: 256, 512, 1024, 2048 or 4096; eth: 352..65535; 0: 4096 (ib) or 1500 (eth)",
     "InfiniBand: the port's MTU; Ethernet: the netdev's MTU, from which the path MTU follows",
     [](Config& c, std::string_view t) { return parse_between(t, 0u, 65535u, c.mtu); },
     [](const Config& c) { return std::to_string(c.mtu); }},
    {"SPIN_US", "--spin-us", "US", "microseconds", "0..1000000", "an idle NIC spins this long",
     [](Config& c, std::string_view t) { return parse_microseconds(t, 0, c.idle.spin); },
     [](const Config& c) { return text_of(c.idle.spin); }},
    {"YIELD_US", "--yield-us", "US", "microseconds", "0..1000000", "then it yields its core this long",
     [](Config& c, std::string_view t) { return parse_microseconds(t, 0, c.idle.yield); },
     [](const Config& c) { return text_of(c.idle.yield); }},
    {"SLEEP_US", "--sleep-us", "FIRST:MOST", "microseconds", "FIRST:MOST, 1..1000000 each, FIRST <= MOST",
     "then it sleeps FIRST, twice as long each time, up to MOST", parse_sleep,
     [](const Config& c) { return text_of(c.idle.sleep_first) + ":" + text_of(c.idle.sleep_most); }},
    limit<&Limits::qps, 1, 1u << 23>("LIMIT_QPS", "--limit-qps", "queue pairs", "1..8388608", "most QPs"),
    limit<&Limits::cqs, 1, (1u << 24) - 1>("LIMIT_CQS", "--limit-cqs", "completion queues", "1..16777215",
                                           "most CQs"),
    limit<&Limits::mkeys, 1, (1u << 24) - 1>("LIMIT_MKEYS", "--limit-mkeys", "memory keys", "1..16777215",
                                             "most memory regions"),
    limit<&Limits::pds, 1, (1u << 24) - 1>("LIMIT_PDS", "--limit-pds", "protection domains", "1..16777215",
                                           "most PDs"),
    limit<&Limits::send_queue_blocks, 1, 32768>("LIMIT_SEND_QUEUE", "--limit-send-queue", "64-byte blocks",
                                                "1..32768", "most blocks of one send queue"),
    limit<&Limits::receive_entries, 1, 32768>("LIMIT_RECEIVE_QUEUE", "--limit-receive-queue", "entries",
                                              "1..32768", "most entries of one receive queue"),
    limit<&Limits::cq_entries, 1, 1u << 22>("LIMIT_CQ", "--limit-cq", "entries", "1..4194304",
                                            "most entries of one CQ"),
    limit<&Limits::max_message, 4096, 1u << 31>("LIMIT_MESSAGE", "--limit-message", "bytes",
                                                "4096..2147483648", "longest message"),
    limit<&Limits::read_atomic_depth, 1, 128>("LIMIT_READ_ATOMIC", "--limit-read-atomic", "operations",
                                              "1..128", "most READs and atomics in flight on one QP"),
    {"SEED", "--seed", "N", "", "0..18446744073709551615; 0: from the system",
     "seeds QPNs, first packet numbers and the faults below",
     [](Config& c, std::string_view t) {
       return parse_between(t, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), c.seed);
     },
     [](const Config& c) { return std::to_string(c.seed); }},
    {"DROP", "--drop", "RATE", "share of frames", "0..1", "frames lost between requester and responder",
     [](Config& c, std::string_view t) { return parse_rate(t, c.faults.drop); },
     [](const Config& c) { return text_of(c.faults.drop); }},
    {"DUPLICATE", "--duplicate", "RATE", "share of frames", "0..1", "frames delivered twice",
     [](Config& c, std::string_view t) { return parse_rate(t, c.faults.duplicate); },
     [](const Config& c) { return text_of(c.faults.duplicate); }},
    {"REORDER", "--reorder", "RATE", "share of frames", "0..1", "frames overtaken by the one behind them",
     [](Config& c, std::string_view t) { return parse_rate(t, c.faults.reorder); },
     [](const Config& c) { return text_of(c.faults.reorder); }},
    {"DIRECT", "--direct", "0|1", "", "0 or 1",
     "1: QPs of one process meet without packets; 0: they send packets too",
     [](Config& c, std::string_view t) {
       if (t == "0" || t == "1") c.direct_loopback = t == "1";
       return t == "0" || t == "1";
     },
     [](const Config& c) { return std::string(c.direct_loopback ? "1" : "0"); }},
    {"GPU", "--gpu", "N|auto", "CUDA's number", "0..63 or auto",
     "the GPU that executes queues in GPU memory; auto: each GPU those in its own memory", parse_gpu,
     [](const Config& c) { return c.gpu.gpu ? std::to_string(*c.gpu.gpu) : std::string("auto"); }},
    {"GPU_BLOCKS", "--gpu-blocks", "N", "blocks", "1..64", "blocks of the engine on a GPU",
     [](Config& c, std::string_view t) { return parse_between(t, 1u, 64u, c.gpu.blocks); },
     [](const Config& c) { return std::to_string(c.gpu.blocks); }},
    {"GPU_WARPS", "--gpu-warps", "N", "warps a block", "1..8", "warps in each of its blocks",
     [](Config& c, std::string_view t) { return parse_between(t, 1u, 8u, c.gpu.warps); },
     [](const Config& c) { return std::to_string(c.gpu.warps); }},
    {"GPU_IDLE_US", "--gpu-idle-us", "US", "microseconds", "1..1000000",
     "it leaves the GPU after so long without work, and so does the copier",
     [](Config& c, std::string_view t) { return parse_microseconds(t, 1, c.gpu.idle); },
     [](const Config& c) { return text_of(c.gpu.idle); }},
    {"GPU_POLL", "--gpu-poll", "doorbell|record", "", "doorbell or record",
     "where it looks for news of queues with a doorbell record", parse_poll,
     [](const Config& c) { return std::string(c.gpu.poll == GpuPoll::record ? "record" : "doorbell"); }},
    {"GPU_DOORBELLS", "--gpu-doorbells", "host|gpu", "", "host or gpu",
     "where kernels ring; gpu: registers in the memory of the engine's GPU, for tests, which no NIC has",
     parse_doorbells,
     [](const Config& c) { return std::string(c.gpu.doorbells == GpuDoorbells::gpu ? "gpu" : "host"); }},
    {"GPU_WRITES", "--gpu-writes", "ordered|unordered", "", "ordered or unordered",
     "unordered: WRITEs of a queue pass each other, as if all memory were of relaxed ordering",
     [](Config& c, std::string_view t) {
       if (t == "ordered" || t == "unordered") c.gpu.unordered_writes = t == "unordered";
       return t == "ordered" || t == "unordered";
     },
     [](const Config& c) { return std::string(c.gpu.unordered_writes ? "unordered" : "ordered"); }},
    {"GPU_COPIES", "--gpu-copies", "auto|cuda", "", "auto or cuda",
     "what moves payload in GPU memory for queues in host memory: a kernel there and CUDA, or CUDA alone",
     parse_copies,
     [](const Config& c) { return std::string(c.gpu.copies == GpuCopies::cuda ? "cuda" : "auto"); }},
};

}  // namespace

std::span<const ConfigVariable> config_variables() { return kVariables; }

void set_variable(Config& config, const ConfigVariable& variable, std::string_view value,
                  std::string_view spelled_as) {
  if (variable.read(config, value)) return;
  std::string message(spelled_as);
  message.append("='").append(value).append("' is not accepted: give ").append(variable.accepted);
  if (!variable.unit.empty()) message.append(" (unit: ").append(variable.unit).append(")");
  throw std::invalid_argument(message);
}

void check_together(const Config& config) {
  const unsigned mtu = config.mtu;
  if (mtu == 0) return;
  if (config.link == LinkLayer::ethernet && path_mtu_of_netdev(mtu) == 0) {
    throw std::invalid_argument("an Ethernet MTU of " + std::to_string(mtu) +
                                " bytes leaves no room for RoCE: give 352..65535 bytes");
  }
  const bool path_mtu = mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0;
  if (config.link == LinkLayer::infiniband && !path_mtu) {
    throw std::invalid_argument("an InfiniBand MTU of " + std::to_string(mtu) +
                                " bytes does not exist: give 256, 512, 1024, 2048 or 4096 bytes");
  }
}

Config Config::from_environment() {
  Config config;
  for (const ConfigVariable& variable : config_variables()) {
    const std::string name = std::string(kEnvironmentPrefix).append(variable.suffix);
    const char* value = std::getenv(name.c_str());
    if (value != nullptr) set_variable(config, variable, value, name);
  }
  // Read with each device that is opened; a slip of the pen must not switch the limit off unnoticed.
  const char* memlock = std::getenv("BELFRY_SOFTNIC_MEMLOCK");
  if (memlock != nullptr && std::string_view(memlock) != "enforce" && std::string_view(memlock) != "off")
    throw std::invalid_argument("BELFRY_SOFTNIC_MEMLOCK=" + std::string(memlock) + ": want enforce or off");
  check_together(config);
  return config;
}

std::vector<std::pair<std::string, std::string>> to_environment(const Config& config) {
  const Config defaults;
  std::vector<std::pair<std::string, std::string>> result;
  for (const ConfigVariable& variable : config_variables()) {
    std::string value = variable.write(config);
    if (value == variable.write(defaults)) continue;
    result.emplace_back(std::string(kEnvironmentPrefix).append(variable.suffix), std::move(value));
  }
  return result;
}

}  // namespace belfry::softnic

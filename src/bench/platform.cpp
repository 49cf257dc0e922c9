#include "bench/platform.hpp"

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "belfry/version.hpp"

namespace belfry::bench {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The value of the first "key : value" or "key=value" line.
std::string value_of_line(const std::string& text, const std::string& key, char separator) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos || clean_text(line.substr(0, at)) != key) continue;
    std::string value = clean_text(line.substr(at + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    return value;
  }
  return {};
}

void add_text(Fields& fields, const char* key, const std::string& text) {
  std::string clean = clean_text(text);
  if (!clean.empty()) set(fields, key, std::move(clean));
}

std::string cpu_model(const fs::path& root) {
  const std::string cpuinfo = read_text(root / "proc/cpuinfo");
  for (const char* key : {"model name", "CPU part", "Hardware"}) {
    std::string model = value_of_line(cpuinfo, key, ':');
    if (!model.empty()) return model;
  }
  return {};
}

std::int64_t core_count(const fs::path& root) {
  std::int64_t cores = 0;
  std::istringstream lines(read_text(root / "proc/cpuinfo"));
  for (std::string line; std::getline(lines, line);) cores += line.compare(0, 9, "processor") == 0;
  return cores;
}

/// "POLL,C1,C6": the idle states of core 0, those that are switched off left out.
std::string idle_states(const fs::path& root) {
  std::string names;
  for (int state = 0;; ++state) {
    const fs::path folder = root / ("sys/devices/system/cpu/cpu0/cpuidle/state" + std::to_string(state));
    const std::string name = clean_text(read_text(folder / "name"));
    if (name.empty()) return names;
    if (clean_text(read_text(folder / "disable")) == "1") continue;
    names += (names.empty() ? "" : ",") + name;
  }
}

std::int64_t memory_mib(const fs::path& root) {
  const std::string total = value_of_line(read_text(root / "proc/meminfo"), "MemTotal", ':');
  std::int64_t kib = 0;
  std::from_chars(total.data(), total.data() + total.size(), kib);
  return kib / 1024;
}

void add_gpu(Fields& fields, const fs::path& root) {
  std::error_code ignored;
  std::vector<fs::path> gpus;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", ignored)) {
    gpus.push_back(entry.path());
  }
  if (gpus.empty()) return;
  std::sort(gpus.begin(), gpus.end());
  add_text(fields, "gpu", value_of_line(read_text(gpus.front() / "information"), "Model", ':'));
  set(fields, "gpus", static_cast<std::int64_t>(gpus.size()));
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ..."
  std::istringstream words(
      value_of_line(read_text(root / "proc/driver/nvidia/version"), "NVRM version", ':'));
  for (std::string word; words >> word;) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) {
      add_text(fields, "gpu_driver", word);
      break;
    }
  }
}

void add_cuda(Fields& fields, const fs::path& root) {
  const std::string text = read_text(root / "usr/local/cuda/version.json");
  // {"cuda" : {"name" : "CUDA SDK", "version" : "12.4.1"}, ...}
  const std::size_t cuda = text.find("\"cuda\"");
  const std::size_t key = cuda == std::string::npos ? cuda : text.find("\"version\"", cuda);
  if (key == std::string::npos) return;
  const std::size_t open = text.find('"', text.find(':', key));
  const std::size_t close = open == std::string::npos ? open : text.find('"', open + 1);
  if (close != std::string::npos) add_text(fields, "cuda", text.substr(open + 1, close - open - 1));
}

void add_nic(Fields& fields, const NicDescription& nic) {
  if (nic.kind == NicKind::none) return;
  const bool software = nic.kind != NicKind::hardware;
  set(fields, "nic_software", software);
  add_text(fields, "nic", nic.name);
  add_text(fields, "nic_firmware", nic.firmware);
  add_text(fields, "nic_board", nic.board);
  add_text(fields, "nic_link", nic.link);
}

std::string platform_name(const std::string& cpu, const NicDescription& nic) {
  const std::string machine = cpu.empty() ? "unknown CPU" : cpu;
  switch (nic.kind) {
    case NicKind::none:
      return machine;
    case NicKind::hardware:
      return machine + ", " + clean_text(nic.name);
    case NicKind::soft_cpu:
      return machine + ", " + std::string(kSoftwareNicMark);
    case NicKind::soft_gpu:
      return machine + ", " + std::string(kSoftwareNicMark) + " on the GPU";
  }
  return machine;
}

/// The file that libibverbs was really loaded from, symbolic links followed.
std::string loaded_libibverbs() {
  Dl_info info{};
  // A cast through an integer: ISO C++ has none from a function's address to an object's.
  const auto address = reinterpret_cast<std::uintptr_t>(&ibv_get_device_list);
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).filename().string();
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
    if (!blank) {
      clean += (c > ' ' && c <= '~') ? c : '?';
    } else if (!clean.empty() && clean.back() != ' ') {
      clean += ' ';
    }
  }
  if (!clean.empty() && clean.back() == ' ') clean.pop_back();
  return clean;
}

std::string rdma_core_release(const std::string& library_file_name) {
  constexpr std::string_view kPrefix = "libibverbs.so.";
  if (library_file_name.compare(0, kPrefix.size(), kPrefix) != 0) return {};
  // ABI, private ABI, then the release: 1.14.44.0
  std::string_view rest = std::string_view(library_file_name).substr(kPrefix.size());
  for (int skipped = 0; skipped < 2; ++skipped) {
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return {};
    rest = rest.substr(dot + 1);
  }
  const bool digits = !rest.empty() && rest.find_first_not_of("0123456789.") == std::string_view::npos;
  return digits ? std::string(rest) : std::string();
}

std::optional<double> frequency_mhz(const fs::path& root, int cpu) {
  if (cpu < 0) return std::nullopt;
  const auto parse = [](const std::string& text, double unit) -> std::optional<double> {
    double value = 0;
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || value <= 0) return std::nullopt;
    return value * unit;
  };
  const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
  if (const auto khz = parse(clean_text(read_text(root / folder / "cpufreq/scaling_cur_freq")), 1e-3))
    return khz;
  const std::string cpuinfo = read_text(root / "proc/cpuinfo");
  std::size_t at = 0;
  for (int seen = 0; (at = cpuinfo.find("processor", at)) != cpuinfo.npos; at += 9, ++seen)
    if (seen == cpu) return parse(value_of_line(cpuinfo.substr(at), "cpu MHz", ':'), 1);
  return std::nullopt;
}

Fields capture_platform(const fs::path& root, const NicDescription& nic) {
  Fields fields;
  const std::string cpu = cpu_model(root);
  set(fields, "name", platform_name(cpu, nic));
  add_text(fields, "cpu", cpu);
  if (const std::int64_t cores = core_count(root); cores > 0) set(fields, "cores", cores);
  add_text(fields, "governor", read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  if (const auto mhz = frequency_mhz(root, 0)) set(fields, "cpu_mhz", *mhz);
  add_text(fields, "idle_driver", read_text(root / "sys/devices/system/cpu/cpuidle/current_driver"));
  add_text(fields, "c_states", idle_states(root));
  add_text(fields, "kernel", read_text(root / "proc/sys/kernel/osrelease"));
  add_text(fields, "os", value_of_line(read_text(root / "etc/os-release"), "PRETTY_NAME", '='));
  if (const std::int64_t mib = memory_mib(root); mib > 0) set(fields, "memory_mib", mib);
  add_gpu(fields, root);
  add_cuda(fields, root);
  add_nic(fields, nic);
  return fields;
}

Fields capture_versions() {
  Fields fields;
  add_text(fields, "belfry", kVersion);
  add_text(fields, "revision", kRevision);
#if defined(__clang__)
  add_text(fields, "compiler", "clang " __clang_version__);
#else
  add_text(fields, "compiler", "g++ " __VERSION__);
#endif
  add_text(fields, "rdma_core", rdma_core_release(loaded_libibverbs()));
  return fields;
}

}  // namespace belfry::bench

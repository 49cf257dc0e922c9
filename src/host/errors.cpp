#include "belfry/host/errors.hpp"

#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace belfry::host {

namespace {

std::string compose(const std::string& message, const std::string& remedy, int code) {
  std::string text = message;
  if (code != 0) {
    text += ": " + std::generic_category().message(code) + " (errno " + std::to_string(code) + ")";
  }
  if (!remedy.empty()) text += ". " + remedy;
  return text;
}

}  // namespace

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::no_device:
      return "no_device";
    case ErrorKind::permission:
      return "permission";
    case ErrorKind::locked_memory:
      return "locked_memory";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::not_reachable:
      return "not_reachable";
    case ErrorKind::timed_out:
      return "timed_out";
    case ErrorKind::bad_argument:
      return "bad_argument";
    case ErrorKind::system:
      return "system";
    case ErrorKind::completion:
      return "completion";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, std::string message, std::string remedy, int code)
    : std::runtime_error(compose(message, remedy, code)),
      kind_(kind),
      code_(code),
      message_(std::move(message)),
      remedy_(std::move(remedy)) {}

LockedMemoryLimit LockedMemoryLimit::of_this_process() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};
  const auto bytes = [](rlim_t value) {
    return value == RLIM_INFINITY ? kUnlimited : static_cast<std::uint64_t>(value);
  };
  return {bytes(limit.rlim_cur), bytes(limit.rlim_max)};
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes == LockedMemoryLimit::kUnlimited) return "unlimited";
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::uint64_t scale = 1;
  while (unit + 1 < kUnits.size() && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  std::array<char, 40> text{};
  if (bytes % scale == 0) {
    std::snprintf(text.data(), text.size(), "%llu %s", static_cast<unsigned long long>(bytes / scale),
                  kUnits[unit]);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f %s",
                  static_cast<double>(bytes) / static_cast<double>(scale), kUnits[unit]);
  }
  return text.data();
}

}  // namespace belfry::host

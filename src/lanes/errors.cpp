#include "belfry/lanes/errors.hpp"

#include <utility>

namespace belfry::lanes {

namespace {

std::string describe(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is not a std::exception";
  }
}

}  // namespace

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_argument:
      return "bad_argument";
    case ErrorKind::nested:
      return "nested";
    case ErrorKind::kernel:
      return "kernel";
    case ErrorKind::divergence:
      return "divergence";
    case ErrorKind::timed_out:
      return "timed_out";
    case ErrorKind::system:
      return "system";
  }
  return "unknown";
}

LaunchError::LaunchError(ErrorKind kind, const std::string& message, const std::string& remedy)
    : std::runtime_error(remedy.empty() ? message : message + ". " + remedy), kind_(kind) {}

KernelError::KernelError(const std::string& kernel, std::uint32_t block, std::uint32_t thread,
                         std::exception_ptr cause)
    : LaunchError(ErrorKind::kernel,
                  kernel + ", block " + std::to_string(block) + " thread " + std::to_string(thread) + ": " +
                      describe(cause),
                  ""),
      block_(block),
      thread_(thread),
      cause_(std::move(cause)) {}

DivergenceError::DivergenceError(std::uint32_t block, std::uint32_t warp, std::uint32_t lanes,
                                 const std::string& message)
    : LaunchError(ErrorKind::divergence,
                  "block " + std::to_string(block) + " warp " + std::to_string(warp) + ": " + message,
                  "Every lane that a mask names has to make the same call with the same mask"),
      block_(block),
      warp_(warp),
      lanes_(lanes) {}

}  // namespace belfry::lanes

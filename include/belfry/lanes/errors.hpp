#pragma once
/// \file
/// What a launch on CPU lanes throws.

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace belfry::lanes {

enum class ErrorKind : std::uint8_t {
  bad_argument,  ///< a grid or an option that cannot be run
  nested,        ///< launched from inside a lane
  kernel,        ///< a lane threw (KernelError)
  divergence,    ///< lanes wait for each other in a way that never ends (DivergenceError)
  timed_out,     ///< the launch's deadline passed
  system,        ///< no thread or no memory for stacks
};

/// The kind's name as it is spelled in the enum.
std::string_view to_string(ErrorKind kind);

/// A launch that did not run to its end. what() holds message and remedy.
class LaunchError : public std::runtime_error {
 public:
  LaunchError(ErrorKind kind, const std::string& message, const std::string& remedy);

  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// The first exception that a lane threw, and which lane that was.
class KernelError : public LaunchError {
 public:
  KernelError(const std::string& kernel, std::uint32_t block, std::uint32_t thread, std::exception_ptr cause);

  std::uint32_t block() const noexcept { return block_; }
  std::uint32_t thread() const noexcept { return thread_; }
  /// What the lane threw.
  std::exception_ptr cause() const noexcept { return cause_; }

 private:
  std::uint32_t block_;
  std::uint32_t thread_;
  std::exception_ptr cause_;
};

/// Lanes of a warp that can never meet: one has exited, or they stand at different collectives.
class DivergenceError : public LaunchError {
 public:
  DivergenceError(std::uint32_t block, std::uint32_t warp, std::uint32_t lanes, const std::string& message);

  std::uint32_t block() const noexcept { return block_; }
  /// In its block.
  std::uint32_t warp() const noexcept { return warp_; }
  /// One bit for each lane of the warp that is part of the mistake.
  std::uint32_t lanes() const noexcept { return lanes_; }

 private:
  std::uint32_t block_;
  std::uint32_t warp_;
  std::uint32_t lanes_;
};

/// Thrown inside the lanes of a launch that is being given up, out of whatever they wait in. Not a
/// std::exception, so that a kernel's own handlers let it pass; a kernel's `catch (...)` has to rethrow it.
struct Stopped {};

}  // namespace belfry::lanes

#pragma once
/// \file
/// KernelRunner on top of whatever launches a kernel. A launcher is a type with
///
///     const char* name() const;
///     std::shared_ptr<void> allocate(std::size_t bytes);   // zeroed
///     template <class Kernel> void launch(std::uint32_t blocks, std::uint32_t threads, const Kernel&
///     kernel);
///
/// where launch() returns when the kernel has ended, and throws std::runtime_error if it did not end well.

#include <stdexcept>
#include <string>
#include <utility>

#include "bench/kernel_runner.hpp"
#include "bench/kernels/put.hpp"

namespace belfry::bench {

template <class Launcher>
class RunnerOf final : public KernelRunner {
 public:
  template <class... Arguments>
  explicit RunnerOf(Arguments&&... arguments) : launcher_(std::forward<Arguments>(arguments)...) {}

  const char* name() const override { return launcher_.name(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return launcher_.allocate(bytes); }

  void puts(const std::string& arm, const PutJob& job) override {
    with_op_arm(arm, [&](auto a) {
      using Arm = decltype(a);
      launcher_.launch(1, 1, PutKernel<typename Arm::Policy, Arm::from>{job});
    });
  }
  void round_trips(const std::string& arm, const FlagJob& job) override {
    with_op_arm(arm, [&](auto a) {
      using Arm = decltype(a);
      launcher_.launch(1, 1, RoundTripKernel<typename Arm::Policy, Arm::from>{job});
    });
  }
  void echo(const std::string& arm, const FlagJob& job) override {
    with_op_arm(arm, [&](auto a) {
      using Arm = decltype(a);
      launcher_.launch(1, 1, EchoKernel<typename Arm::Policy, Arm::from>{job});
    });
  }
  void doorbells(const DoorbellJob& job) override { launcher_.launch(1, 1, DoorbellKernel{job}); }

 private:
  template <class Use>
  static void with_op_arm(const std::string& name, const Use& use) {
    bool found = false;
    for_each_op_arm([&](auto arm) {
      if (name != arm.name) return;
      found = true;
      use(arm);
    });
    if (!found) throw std::invalid_argument("no kernel for the arm '" + name + "'");
  }

  Launcher launcher_;
};

}  // namespace belfry::bench

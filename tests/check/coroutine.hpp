#pragma once
/// \file
/// One agent's stack: runs until it suspends itself, and goes on when it is resumed.

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace belfry::check {

/// Stacks are kept from one execution to the next: an exploration makes millions of them.
struct PooledStacks {
  static constexpr std::size_t kBytes = 128 * 1024;
  boost::context::stack_context allocate();
  void deallocate(boost::context::stack_context& stack);
};

class Coroutine {
 public:
  explicit Coroutine(std::function<void()> body);
  /// Unwinds a body that has not ended.
  ~Coroutine();
  Coroutine(const Coroutine&) = delete;
  Coroutine& operator=(const Coroutine&) = delete;

  /// Runs the body until it suspends or ends.
  void resume();
  /// From within the body: back to whoever resumed it.
  void suspend();
  bool ended() const { return ended_; }
  /// The body is being unwound: what its destructors ask for no longer matters.
  bool unwinding() const { return unwinding_; }

 private:
  boost::context::fiber main_(boost::context::fiber&& from);

  std::function<void()> body_;
  boost::context::fiber inside_;   // the body, while it is suspended
  boost::context::fiber outside_;  // whoever resumed it, while it runs
  bool ended_ = false;
  bool unwinding_ = false;
  // For AddressSanitizer, which must know which stack is in use.
  void* fake_stack_ = nullptr;
  const void* outer_bottom_ = nullptr;
  std::size_t outer_size_ = 0;
  const void* stack_bottom_ = nullptr;
};

}  // namespace belfry::check

#pragma once
/// \file
/// A stack and what runs on it. Boost's fcontext layer is used directly, for lanes switch to each other and
/// not to a scheduler, and sanitizers have to be told between the steps of a switch.

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <cstdint>

#include "lanes/sanitizers.hpp"

namespace belfry::lanes {

/// The part of the C++ runtime's per-thread state that belongs to a stack: exceptions being handled, and
/// how many are on their way. Its layout is given by the Itanium C++ ABI (2.2.2).
struct ExceptionState {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

/// The state of the calling CPU thread.
ExceptionState* exception_state_of_thread();

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The stack that the calling CPU thread runs on already.
  void adopt_thread();

  /// Makes it ready to begin `entry(argument)`, which must never return, with the next resume(). The stack is
  /// kept from use to use. \throws std::bad_alloc
  void prepare(std::size_t stack_bytes, Entry entry, void* argument);

  /// Leaves `from`, which is what runs now, and goes on with this one. Returns when `from` is resumed.
  /// \param state this thread's exception state
  void resume(Fiber& from, ExceptionState& state) { switch_from(from, state, false); }

  /// The same for a `from` that has ended: it never returns.
  [[noreturn]] void resume_last(Fiber& from, ExceptionState& state) {
    switch_from(from, state, true);
    __builtin_unreachable();
  }

 private:
  void allocate(std::size_t stack_bytes);

  struct Switch {
    Fiber* from;
    Fiber* to;
  };

  BELFRY_LANES_NO_TSAN void switch_from(Fiber& from, ExceptionState& state, [[maybe_unused]] bool ends) {
    from.exceptions_ = state;
    state = exceptions_;
    Switch both{&from, this};
#if defined(BELFRY_LANES_TSAN)
    __tsan_switch_to_fiber(tsan_, __tsan_switch_to_fiber_no_sync);
#elif defined(BELFRY_LANES_ASAN)
    __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack_, bottom_, size_);
#endif
    arrive(from, boost::context::detail::jump_fcontext(context_, &both));
  }

  /// The first thing on the new stack. \param here whose stack that is
  BELFRY_LANES_NO_TSAN static void arrive([[maybe_unused]] Fiber& here,
                                          boost::context::detail::transfer_t transfer) {
    Fiber& left = *static_cast<Switch*>(transfer.data)->from;
    left.context_ = transfer.fctx;
#if defined(BELFRY_LANES_ASAN)
    // The first switch of a thread tells where its own stack lies.
    __sanitizer_finish_switch_fiber(here.fake_stack_, &left.bottom_, &left.size_);
#endif
  }

  BELFRY_LANES_NO_TSAN static void begin(boost::context::detail::transfer_t transfer);

  boost::context::detail::fcontext_t context_ = nullptr;
  ExceptionState exceptions_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  boost::context::stack_context stack_;
  std::size_t stack_bytes_ = 0;
  // The usable part of the stack, lowest address first.
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
#if defined(BELFRY_LANES_TSAN)
  void* tsan_ = nullptr;
#elif defined(BELFRY_LANES_ASAN)
  void* fake_stack_ = nullptr;
#endif
};

}  // namespace belfry::lanes

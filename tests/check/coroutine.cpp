#include "check/coroutine.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define BELFRY_CHECK_ASAN 1
#endif

namespace belfry::check {
namespace {

void enter_stack([[maybe_unused]] void** save, [[maybe_unused]] const void* bottom,
                 [[maybe_unused]] std::size_t size) {
#if defined(BELFRY_CHECK_ASAN)
  __sanitizer_start_switch_fiber(save, bottom, size);
#endif
}
void entered_stack([[maybe_unused]] void* saved, [[maybe_unused]] const void** bottom,
                   [[maybe_unused]] std::size_t* size) {
#if defined(BELFRY_CHECK_ASAN)
  __sanitizer_finish_switch_fiber(saved, bottom, size);
#endif
}

/// Stacks that wait for the next coroutine; freed with the thread.
struct Pool {
  std::vector<void*> free;
  ~Pool() {
    for (void* stack : free) munmap(stack, PooledStacks::kBytes);
  }
};
Pool& pool() {
  static thread_local Pool stacks;
  return stacks;
}

}  // namespace

boost::context::stack_context PooledStacks::allocate() {
  void* bottom = nullptr;
  if (!pool().free.empty()) {
    bottom = pool().free.back();
    pool().free.pop_back();
  } else {
    bottom = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (bottom == MAP_FAILED) throw std::bad_alloc();
    // A guard page, so that an overflow is a fault and not a riddle.
    if (mprotect(bottom, static_cast<std::size_t>(getpagesize()), PROT_NONE) != 0) throw std::bad_alloc();
  }
  boost::context::stack_context stack;
  stack.size = kBytes;
  stack.sp = static_cast<char*>(bottom) + kBytes;
  return stack;
}

void PooledStacks::deallocate(boost::context::stack_context& stack) {
  void* bottom = static_cast<char*>(stack.sp) - stack.size;
#if defined(BELFRY_CHECK_ASAN)
  const auto guard = static_cast<std::size_t>(getpagesize());
  __asan_unpoison_memory_region(static_cast<char*>(bottom) + guard, kBytes - guard);
#endif
  pool().free.push_back(bottom);
}

Coroutine::Coroutine(std::function<void()> body) : body_(std::move(body)) {
  PooledStacks stacks;
  boost::context::stack_context stack = stacks.allocate();
  stack_bottom_ = static_cast<char*>(stack.sp) - stack.size;
  inside_ =
      boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                            stacks, [this](boost::context::fiber&& from) { return main_(std::move(from)); });
}

Coroutine::~Coroutine() {
  if (!inside_) return;
  unwinding_ = true;
  void* saved = nullptr;
  enter_stack(&saved, stack_bottom_, PooledStacks::kBytes);
  { boost::context::fiber dying = std::move(inside_); }
  entered_stack(saved, nullptr, nullptr);
}

boost::context::fiber Coroutine::main_(boost::context::fiber&& from) {
  entered_stack(nullptr, &outer_bottom_, &outer_size_);
  outside_ = std::move(from);
  try {
    body_();
  } catch (const boost::context::detail::forced_unwind&) {
    enter_stack(nullptr, outer_bottom_, outer_size_);
    throw;
  }
  ended_ = true;
  enter_stack(nullptr, outer_bottom_, outer_size_);
  return std::move(outside_);
}

void Coroutine::resume() {
  void* saved = nullptr;
  enter_stack(&saved, stack_bottom_, PooledStacks::kBytes);
  inside_ = std::move(inside_).resume();
  entered_stack(saved, nullptr, nullptr);
}

void Coroutine::suspend() {
  enter_stack(&fake_stack_, outer_bottom_, outer_size_);
  // An unwind is thrown from within the resume() below, so its way back must be noted first.
  struct Back {
    Coroutine* self;
    ~Back() { entered_stack(self->fake_stack_, &self->outer_bottom_, &self->outer_size_); }
  } back{this};
  outside_ = std::move(outside_).resume();
}

}  // namespace belfry::check

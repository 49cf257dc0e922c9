#include "lanes/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>

#include <boost/context/protected_fixedsize_stack.hpp>
#include <new>

namespace belfry::lanes {

using boost::context::protected_fixedsize_stack;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

ExceptionState* exception_state_of_thread() {
  return reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

Fiber::~Fiber() {
  if (stack_.sp == nullptr) return;
#if defined(BELFRY_LANES_TSAN)
  if (tsan_ != nullptr) __tsan_destroy_fiber(tsan_);
#elif defined(BELFRY_LANES_ASAN)
  // The outermost frame never returned, so that its redzones are still marked.
  __asan_unpoison_memory_region(bottom_, size_);
#endif
  protected_fixedsize_stack(stack_bytes_).deallocate(stack_);
}

void Fiber::adopt_thread() {
#if defined(BELFRY_LANES_TSAN)
  tsan_ = __tsan_get_current_fiber();
#endif
}

void Fiber::allocate(std::size_t stack_bytes) {
  const std::size_t page = boost::context::stack_traits::page_size();
  stack_ = protected_fixedsize_stack(stack_bytes).allocate();
  stack_bytes_ = stack_bytes;
  size_ = stack_.size - page;
  bottom_ = static_cast<std::byte*>(stack_.sp) - size_;
  // Boost does not say whether it could protect the guard, which a process with very many mappings cannot.
  if (mprotect(static_cast<std::byte*>(stack_.sp) - stack_.size, page, PROT_NONE) != 0)
    throw std::bad_alloc();
}

void Fiber::prepare(std::size_t stack_bytes, Entry entry, void* argument) {
  if (stack_.sp == nullptr) {
    allocate(stack_bytes);
  }
  entry_ = entry;
  argument_ = argument;
  exceptions_ = {};
#if defined(BELFRY_LANES_TSAN)
  if (tsan_ == nullptr) tsan_ = __tsan_create_fiber(0);
#elif defined(BELFRY_LANES_ASAN)
  __asan_unpoison_memory_region(bottom_, size_);
  fake_stack_ = nullptr;
#endif
  context_ = make_fcontext(stack_.sp, size_, &Fiber::begin);
}

void Fiber::begin(transfer_t transfer) {
  Fiber& self = *static_cast<Switch*>(transfer.data)->to;
  arrive(self, transfer);
  self.entry_(self.argument_);
}

}  // namespace belfry::lanes

#include "check/mutant.hpp"

#include "check/misuse.hpp"

namespace belfry::check {
namespace {
port::Step left_out = port::Step::count_;
}  // namespace

Mutant::Mutant(port::Step without) {
  if (left_out != port::Step::count_) throw Misuse("one mutant at a time");
  left_out = without;
}
Mutant::~Mutant() { left_out = port::Step::count_; }

const char* step_name(port::Step step) {
  using port::Step;
  switch (step) {
    case Step::order_wqe_before_record:
      return "order_wqe_before_record";
    case Step::order_record_before_doorbell:
      return "order_record_before_doorbell";
    case Step::order_wqe_before_doorbell:
      return "order_wqe_before_doorbell";
    case Step::acquire_published:
      return "acquire_published";
    case Step::warp_after_reservation:
      return "warp_after_reservation";
    case Step::wait_turn:
      return "wait_turn";
    case Step::acquire_turn:
      return "acquire_turn";
    case Step::release_turn:
      return "release_turn";
    case Step::warp_before_publication:
      return "warp_before_publication";
    case Step::block_before_publication:
      return "block_before_publication";
    case Step::lock_acquire:
      return "lock_acquire";
    case Step::lock_release:
      return "lock_release";
    case Step::lock_until_published:
      return "lock_until_published";
    case Step::check_space:
      return "check_space";
    case Step::check_written:
      return "check_written";
    case Step::check_owner:
      return "check_owner";
    case Step::acquire_completion:
      return "acquire_completion";
    case Step::acquire_flush:
      return "acquire_flush";
    case Step::acquire_error:
      return "acquire_error";
    case Step::release_fault:
      return "release_fault";
    case Step::acquire_fault:
      return "acquire_fault";
    case Step::warp_after_call:
      return "warp_after_call";
    case Step::acquire_signal:
      return "acquire_signal";
    case Step::check_counter:
      return "check_counter";
    case Step::signal_after_payload:
      return "signal_after_payload";
    case Step::forward_acquire:
      return "forward_acquire";
    case Step::proxy_payload_before_descriptor:
      return "proxy_payload_before_descriptor";
    case Step::proxy_room:
      return "proxy_room";
    case Step::proxy_parity:
      return "proxy_parity";
    case Step::proxy_baseline_release:
      return "proxy_baseline_release";
    case Step::proxy_acquire_descriptor:
      return "proxy_acquire_descriptor";
    case Step::proxy_acquire_taken:
      return "proxy_acquire_taken";
    case Step::proxy_acquire_cached:
      return "proxy_acquire_cached";
    case Step::proxy_release_completion:
      return "proxy_release_completion";
    case Step::proxy_acquire_completion:
      return "proxy_acquire_completion";
    case Step::proxy_release_fault:
      return "proxy_release_fault";
    case Step::proxy_acquire_fault:
      return "proxy_acquire_fault";
    case Step::proxy_count_in_order:
      return "proxy_count_in_order";
    case Step::count_:
      break;
  }
  return "unknown";
}

}  // namespace belfry::check

bool belfry::port::step_is_kept(Step step) { return step != belfry::check::left_out; }

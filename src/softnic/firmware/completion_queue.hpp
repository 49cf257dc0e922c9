#pragma once
/// \file
/// A completion queue as the device sees it: where CQEs go, and when an armed queue reports.

#include <cstdint>

#include "softnic/firmware/control.hpp"
#include "softnic/firmware/cqe_build.hpp"
#include "softnic/firmware/memory_fault.hpp"

namespace belfry::softnic {

class CompletionQueue {
 public:
  /// \param in_hand says, while the queue's memory is touched, that it is this queue's
  CompletionQueue(const CqAttributes& attributes, InHand& in_hand)
      : attributes_(attributes), in_hand_(in_hand) {}

  std::uint32_t number = 0;
  std::uint32_t users = 0;  ///< work queues that complete here

  // Where queues in GPU memory complete here, the GPU engine writes the entries and nobody else.
  std::uint32_t gpu_slot = 0;
  std::uint64_t gpu_generation = 0;  ///< 0: it is the CPU's
  MemoryOwner engine = kHostMemory;  ///< the GPU whose engine that is
  std::uint32_t sending_queues = 0;  ///< of those
  bool receives = false;             ///< one of them has receives that complete here

  const CqAttributes& attributes() const { return attributes_; }
  bool dead() const { return dead_; }
  /// Its memory is gone: it is not touched again, and its owner is told.
  void kill();

  /// Whether a push would overwrite an entry that its consumer has not released.
  bool full();

  /// Writes one CQE and reports it if the queue is armed for it. A push into a full queue kills the
  /// queue (unless it ignores overruns) and reports cq_error.
  /// \return false if the CQE was lost so
  bool push(const Completion& completion);

  /// Looks at the arm word; called when this queue's doorbell register changed. \return whether it is new
  bool check_arm();

  /// Whether a ring of that size holds what is not consumed yet, and the old one the mark of its end.
  bool can_resize(unsigned log_entries);
  /// Ends the old ring with a RESIZE_CQ entry and goes on in the new one at the next index.
  void resize(void* buffer, unsigned log_entries);

 private:
  std::uint32_t entries() const { return 1u << attributes_.log_entries; }
  void store(const wire::Cqe& cqe);
  void refresh_consumer();
  void report_if_armed();

  CqAttributes attributes_;
  InHand& in_hand_;
  std::uint64_t producer_ = 0;
  std::uint64_t consumer_ = 0;   ///< as last read from the doorbell record; never ahead of the truth
  std::uint64_t notified_ = 0;   ///< producer at the last event
  std::uint64_t solicited_ = 0;  ///< producer just after the last solicited or failed completion
  std::uint32_t arm_word_ = 0xffffffffu;
  std::uint32_t arm_consumer_ = 0;
  bool armed_ = false;
  bool armed_solicited_ = false;
  bool dead_ = false;
};

}  // namespace belfry::softnic

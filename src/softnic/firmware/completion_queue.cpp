#include "softnic/firmware/completion_queue.hpp"

#include <atomic>
#include <cstring>

#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/infiniband.hpp"

namespace belfry::softnic {

namespace {

constexpr std::uint32_t kIndexMask = 0xffffff;

std::uint32_t load_record_word(const void* record, std::size_t offset) {
  auto* word = reinterpret_cast<std::uint32_t*>(static_cast<char*>(const_cast<void*>(record)) + offset);
  // Acquire: the consumer releases an entry by moving its index after it has read the entry, so the
  // entry may be overwritten once the index is seen.
  return swap_bytes(std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire));
}

/// Marks the queue whose memory is touched, for as long as it lives.
class Touching {
 public:
  Touching(InHand& in_hand, CompletionQueue* cq) : in_hand_(in_hand) { in_hand_.cq = cq; }
  ~Touching() { in_hand_.cq = nullptr; }
  Touching(const Touching&) = delete;
  Touching& operator=(const Touching&) = delete;

 private:
  InHand& in_hand_;
};

}  // namespace

void CompletionQueue::refresh_consumer() {
  if (!attributes_.doorbell_record) return;
  const std::uint32_t index =
      load_record_word(attributes_.doorbell_record, offsetof(wire::CqDoorbellRecord, consumer)) & kIndexMask;
  const std::uint64_t ahead = (index - static_cast<std::uint32_t>(consumer_)) & kIndexMask;
  // An index beyond what was produced is an application's mistake; believing it would only hide the
  // overrun that follows.
  if (ahead <= producer_ - consumer_) consumer_ += ahead;
}

bool CompletionQueue::full() {
  if (attributes_.ignore_overrun || attributes_.collapsed) return false;
  if (producer_ - consumer_ < entries() || dead_) return false;
  const Touching touching(in_hand_, this);
  refresh_consumer();
  return producer_ - consumer_ >= entries();
}

void CompletionQueue::store(const wire::Cqe& cqe) {
  const std::uint64_t slot = attributes_.collapsed ? 0 : producer_ & (entries() - 1);
  auto* entry = static_cast<unsigned char*>(attributes_.buffer) + slot * attributes_.entry_bytes +
                (attributes_.entry_bytes - wire::kCqeBytes);
  constexpr std::size_t kTail = sizeof(std::uint64_t);
  std::memcpy(entry, &cqe, sizeof cqe - kTail);
  std::uint64_t tail;
  std::memcpy(&tail, reinterpret_cast<const unsigned char*>(&cqe) + sizeof cqe - kTail, kTail);
  // Release: op_own is the last byte of these eight, and whoever sees the new owner bit must see the
  // rest of the entry and the payload that the NIC moved before it.
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(entry + sizeof cqe - kTail))
      .store(tail, std::memory_order_release);
}

bool CompletionQueue::push(const Completion& completion) {
  if (dead_) return false;
  if (full()) {
    kill();
    return false;
  }
  const Touching touching(in_hand_, this);
  const bool owner = (producer_ & entries()) != 0;
  if (completion.error()) {
    const wire::ErrorCqe error = build_error_cqe(completion, owner);
    wire::Cqe cqe;
    std::memcpy(&cqe, &error, sizeof cqe);
    store(cqe);
  } else {
    store(build_cqe(completion, owner));
  }
  ++producer_;
  if (completion.solicited || completion.error()) solicited_ = producer_;
  if (armed_) report_if_armed();
  return true;
}

void CompletionQueue::kill() {
  dead_ = true;
  in_hand_.cq_died = true;
  if (attributes_.sink) attributes_.sink->async(AsyncEvent::cq_error, number);
}

void CompletionQueue::report_if_armed() {
  const std::uint64_t newest = armed_solicited_ ? solicited_ : producer_;
  // Nothing to report: all of it was reported before, or the application has already consumed it.
  if (newest <= notified_) return;
  if (wire::psn_distance(arm_consumer_, static_cast<std::uint32_t>(newest)) <= 0) return;
  armed_ = false;
  notified_ = producer_;
  if (attributes_.sink) attributes_.sink->completion(number);
}

bool CompletionQueue::check_arm() {
  if (!attributes_.doorbell_record || dead_) return false;
  const Touching touching(in_hand_, this);
  const std::uint32_t word =
      load_record_word(attributes_.doorbell_record, offsetof(wire::CqDoorbellRecord, arm));
  if (word == arm_word_ || word == wire::kCqNeverArmed) return false;
  arm_word_ = word;
  arm_consumer_ = word & kIndexMask;
  armed_solicited_ = (word & wire::kCqArmSolicited) != 0;
  armed_ = true;
  report_if_armed();
  return true;
}

bool CompletionQueue::can_resize(unsigned log_entries) {
  const Touching touching(in_hand_, this);
  refresh_consumer();
  const std::uint64_t kept = producer_ - consumer_ + 1;
  return !dead_ && kept <= entries() && kept <= std::uint64_t{1} << log_entries;
}

void CompletionQueue::resize(void* buffer, unsigned log_entries) {
  Completion marker;
  marker.opcode = wire::CqeOpcode::resize_cq;
  store(build_cqe(marker, (producer_ & entries()) != 0));
  ++producer_;
  attributes_.buffer = buffer;
  attributes_.log_entries = log_entries;
}

}  // namespace belfry::softnic

#include "proxy/worker.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "host/cpu_choice.hpp"

namespace belfry::proxy {

namespace {

constexpr std::size_t kCompletionsARound = 32;
constexpr std::chrono::seconds kLongestEnd{1};

}  // namespace

Worker::Worker(std::vector<std::unique_ptr<RingService>> rings, std::unique_ptr<Submitter> submitter,
               const WorkerOptions& options)
    : rings_(std::move(rings)), submitter_(std::move(submitter)), options_(options) {
  for (const auto& ring : rings_) {
    for (const std::uint32_t queue : ring->queues()) {
      if (queue == Routes::kNoQueue) continue;
      if (queue >= by_queue_.size()) by_queue_.resize(queue + 1, nullptr);
      by_queue_[queue] = ring.get();
    }
  }
  thread_ = std::thread([this] { run(); });
}

Worker::~Worker() {
  stop_.store(true, std::memory_order_release);
  thread_.join();
}

void Worker::run() {
  host::settle_thread(options_.name, options_.cpu);
  try {
    Idler idler(options_.idle);
    while (!stop_.load(std::memory_order_acquire)) {
      if (round()) {
        idler.work_came();
      } else {
        idler.rest();
      }
    }
    const auto end = std::chrono::steady_clock::now() + kLongestEnd;
    while (!idle() && std::chrono::steady_clock::now() < end) round();
  } catch (...) {
    failure_ = std::current_exception();
    for (const auto& ring : rings_)
      ring->fail({.kind = device::Fault::Kind::worker_lost, .index = ring->completed()});
  }
  alive_.store(false, std::memory_order_release);
}

bool Worker::idle() const {
  return std::all_of(rings_.begin(), rings_.end(),
                     [](const auto& ring) { return ring->idle() || ring->failed(); });
}

/// One look at everything. \return whether anything moved
bool Worker::round() {
  bool moved = false;
  for (const auto& ring : rings_) moved = ring->serve(*submitter_) || moved;
  std::array<WorkCompletion, kCompletionsARound> completions;
  const std::size_t count = submitter_->poll(completions);
  for (std::size_t i = 0; i < count; ++i) {
    const WorkCompletion& c = completions[i];
    if (c.queue < by_queue_.size() && by_queue_[c.queue] != nullptr)
      by_queue_[c.queue]->complete(*submitter_, c);
  }
  ++beat_;
  for (const auto& ring : rings_) ring->beat(beat_);
  return moved || count != 0;
}

}  // namespace belfry::proxy

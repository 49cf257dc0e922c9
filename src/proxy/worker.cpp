#include "proxy/worker.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace belfry::proxy {

namespace {

constexpr std::size_t kCompletionsARound = 32;
constexpr std::chrono::seconds kLongestEnd{1};

/// [submitter's queue] its ring
std::vector<RingService*> by_queue(const std::vector<std::unique_ptr<RingService>>& rings) {
  std::vector<RingService*> found;
  for (const auto& ring : rings) {
    for (const std::uint32_t queue : ring->queues()) {
      if (queue == Routes::kNoQueue) continue;
      if (queue >= found.size()) found.resize(queue + 1, nullptr);
      found[queue] = ring.get();
    }
  }
  return found;
}

host::PollingOptions named(host::PollingOptions options) {
  if (options.name.empty()) options.name = "belfry-proxy";
  return options;
}

}  // namespace

Worker::Worker(std::vector<std::unique_ptr<RingService>> rings, std::unique_ptr<Submitter> submitter,
               host::PollingOptions options)
    : rings_(std::move(rings)),
      submitter_(std::move(submitter)),
      by_queue_(by_queue(rings_)),
      thread_(named(std::move(options)), {.round = [this] { return round(); },
                                          .finish = [this] { finish(); },
                                          .ended =
                                              [this](bool failed) {
                                                if (failed) tell_rings();
                                              }}) {}

void Worker::finish() {
  const auto end = std::chrono::steady_clock::now() + kLongestEnd;
  while (!idle() && std::chrono::steady_clock::now() < end) round();
}

void Worker::tell_rings() {
  for (const auto& ring : rings_)
    ring->fail({.kind = device::Fault::Kind::worker_lost, .index = ring->completed()});
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

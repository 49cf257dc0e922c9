#pragma once
/// \file
/// From completions, which come in the order of each queue, to one count in the order of a ring.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "belfry/port/step.hpp"
#include "proxy/fifo.hpp"

namespace belfry::proxy {

/// Requests of one ring, from the moment they are taken until all before them are complete. Those that follow
/// each other to one queue, of a descriptor each, are one entry.
class CompletionOrder {
 public:
  /// \param queues that a ring's requests go to
  explicit CompletionOrder(std::size_t queues) : done_below_(queues + 1, 0) { done_below_.back() = ~0ull; }

  /// A request that ends with descriptor `last`, whose final work goes to `queue` next.
  /// \return its number
  std::uint64_t add(std::size_t queue, std::uint64_t last) {
    if (!runs_.empty() && runs_.back().queue == queue && runs_.back().last + runs_.back().count == last) {
      ++runs_.back().count;
    } else {
      runs_.push_back({next_, last, 1, queue});
    }
    return next_++;
  }

  /// A request with no work of its own: complete as soon as all before it are.
  void add_done(std::uint64_t last) { add(done_below_.size() - 1, last); }

  /// Every request of `queue` with a number below is complete.
  void complete_below(std::size_t queue, std::uint64_t number) {
    done_below_[queue] = std::max(done_below_[queue], number);
  }

  /// Last descriptor of the first request of `queue`, of this number or later, that is not complete.
  std::optional<std::uint64_t> first_waiting(std::size_t queue, std::uint64_t number = 0) const {
    for (const Run& run : runs_) {
      if (run.queue != queue) continue;
      const std::uint64_t first = std::max({run.first, number, done_below_[queue]});
      if (first - run.first < run.count) return run.last + (first - run.first);
    }
    return std::nullopt;
  }

  /// Descriptors of the requests that are complete with all before them, removed from the books.
  /// \param end one past the last descriptor, where it has moved
  /// \return whether it has
  bool advance(std::uint64_t& end) {
    bool moved = false;
    while (!runs_.empty()) {
      Run& run = runs_.front();
      const std::uint64_t done = done_of(run);
      if (done == 0) break;
      end = run.last + done;
      moved = true;
      if (done == run.count) {
        runs_.pop_front();
        continue;
      }
      run.first += done;
      run.last += done;
      run.count -= done;
      break;
    }
    // As if the last to be done were all (mutant: proxy_count_in_order).
    if (!port::kept(port::Step::proxy_count_in_order)) {
      for (const Run& run : runs_) {
        if (done_of(run) == 0) continue;
        end = run.last + done_of(run);
        moved = true;
      }
    }
    return moved;
  }

  bool empty() const { return runs_.empty(); }

 private:
  /// Requests with numbers in a row.
  struct Run {
    std::uint64_t first;  ///< number of the first
    std::uint64_t last;   ///< its last descriptor; each of the others has the next one
    std::uint64_t count;
    std::size_t queue;
  };

  /// How many of a run are complete.
  std::uint64_t done_of(const Run& run) const {
    const std::uint64_t below = done_below_[run.queue];
    return below <= run.first ? 0 : std::min(below - run.first, run.count);
  }

  std::uint64_t next_ = 0;  ///< number of the next request
  Fifo<Run> runs_;
  std::vector<std::uint64_t> done_below_;  ///< [queue]; the last: of requests without work, all
};

}  // namespace belfry::proxy

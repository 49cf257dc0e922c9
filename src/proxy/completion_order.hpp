#pragma once
/// \file
/// From completions, which come in the order of each queue, to one count in the order of a ring.

#include <cstdint>
#include <optional>
#include <vector>

#include "belfry/port/step.hpp"
#include "proxy/fifo.hpp"

namespace belfry::proxy {

/// Requests of one ring, from the moment they are taken until all before them are complete.
class CompletionOrder {
 public:
  /// \param queues that a ring's requests go to
  explicit CompletionOrder(std::size_t queues) : queues_(queues) {}

  /// A request that ends with descriptor `last`, whose final work goes to `queue` next.
  /// \return its number
  std::uint64_t add(std::size_t queue, std::uint64_t last) {
    const std::uint64_t number = first_ + requests_.size();
    requests_.push_back({last, false});
    queues_[queue].push_back(number);
    return number;
  }

  /// A request with no work of its own: complete as soon as all before it are.
  void add_done(std::uint64_t last) { requests_.push_back({last, true}); }

  /// Every request of `queue` with a number below is complete.
  void complete_below(std::size_t queue, std::uint64_t number) {
    Fifo<std::uint64_t>& waiting = queues_[queue];
    while (!waiting.empty() && waiting.front() < number) {
      requests_[waiting.front() - first_].done = true;
      waiting.pop_front();
    }
  }

  /// Last descriptor of the first request of `queue`, of this number or later, that is not complete.
  std::optional<std::uint64_t> first_waiting(std::size_t queue, std::uint64_t number = 0) const {
    for (const std::uint64_t waiting : queues_[queue])
      if (waiting >= number) return requests_[waiting - first_].last;
    return std::nullopt;
  }

  /// Descriptors of the requests that are complete with all before them, removed from the books.
  /// \return one past the last descriptor; nothing where it has not moved
  std::optional<std::uint64_t> advance() {
    std::optional<std::uint64_t> end;
    while (!requests_.empty() && requests_.front().done) {
      end = requests_.front().last + 1;
      requests_.pop_front();
      ++first_;
    }
    // As if the last to be done were all (mutant: proxy_count_in_order).
    if (!port::kept(port::Step::proxy_count_in_order))
      for (const Request& r : requests_)
        if (r.done) end = r.last + 1;
    return end;
  }

  std::size_t outstanding() const { return requests_.size(); }

 private:
  struct Request {
    std::uint64_t last;
    bool done;
  };
  std::uint64_t first_ = 0;  ///< number of requests_.front()
  Fifo<Request> requests_;
  std::vector<Fifo<std::uint64_t>> queues_;
};

}  // namespace belfry::proxy

/// \file
/// The books of a ring, against books that are kept request by request.

#include "proxy/completion_order.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace belfry::proxy {
namespace {

struct PlainBooks {
  struct Request {
    std::uint64_t last;
    std::size_t queue;
    bool done;
  };
  std::vector<Request> requests;
  std::size_t counted = 0;

  void complete_below(std::size_t queue, std::uint64_t number) {
    for (std::uint64_t n = 0; n < number; ++n)
      if (requests[n].queue == queue) requests[n].done = true;
  }
  std::optional<std::uint64_t> first_waiting(std::size_t queue, std::uint64_t number) const {
    for (std::uint64_t n = number; n < requests.size(); ++n)
      if (requests[n].queue == queue && !requests[n].done) return requests[n].last;
    return std::nullopt;
  }
  std::optional<std::uint64_t> advance() {
    std::optional<std::uint64_t> end;
    for (; counted < requests.size() && requests[counted].done; ++counted) end = requests[counted].last + 1;
    return end;
  }
};

// Fault: a request that is counted with its neighbours although it went to another queue, has more
// descriptors or is not complete; one that is never counted; a fault that is told of another request.
TEST(CompletionOrder, CountsAsBooksOfSingleRequestsDo) {
  constexpr std::size_t kQueues = 3;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    CompletionOrder order(kQueues);
    PlainBooks plain;
    std::uint64_t next = seed == 0 ? ~std::uint32_t{0} - 20 : 0;
    std::size_t queue = 0;
    for (int step = 0; step < 300; ++step) {
      if (below(3) == 0) queue = below(kQueues);
      if (below(12) == 0) {
        order.add_done(next);
        plain.requests.push_back({next++, kQueues, true});
      } else if (below(3) != 0) {
        next += below(8) == 0 ? below(4) : 0;
        EXPECT_EQ(order.add(queue, next), plain.requests.size());
        plain.requests.push_back({next++, queue, false});
      } else {
        const std::uint64_t number = below(plain.requests.size() + 1);
        const std::size_t completed = below(kQueues);
        order.complete_below(completed, number);
        plain.complete_below(completed, number);
      }
      for (std::size_t q = 0; q < kQueues; ++q) {
        const std::uint64_t from = plain.counted + below(plain.requests.size() - plain.counted + 1);
        EXPECT_EQ(order.first_waiting(q, from), plain.first_waiting(q, from));
      }
      std::uint64_t end = 0;
      const auto expected = plain.advance();
      ASSERT_EQ(order.advance(end), expected.has_value()) << "seed " << seed << ", step " << step;
      if (expected.has_value()) {
        ASSERT_EQ(end, *expected) << "seed " << seed << ", step " << step;
      }
      EXPECT_EQ(order.empty(), plain.counted == plain.requests.size());
    }
  }
}

// Fault: an element that is lost or doubled where a row grows, or moves to its memory's start.
TEST(Fifo, KeepsOrder) {
  std::mt19937 random(1);
  Fifo<int> fifo;
  std::deque<int> plain;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 100 < (i / 1000 % 2 == 0 ? 60u : 40u)) {
      fifo.push_back(i);
      plain.push_back(i);
    } else {
      const std::size_t count = random() % (std::min<std::size_t>(plain.size(), 3) + 1);
      fifo.pop_front(count);
      plain.erase(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(count));
    }
    ASSERT_TRUE(std::equal(fifo.begin(), fifo.end(), plain.begin(), plain.end())) << i;
  }
}

}  // namespace
}  // namespace belfry::proxy

#pragma once
/// \file
/// A NIC for the worker's tests: it keeps what it was given, and completes when the test says so.

#include <cerrno>
#include <deque>
#include <functional>
#include <vector>

#include "proxy/submitter.hpp"

namespace belfry::proxy::test {

class FakeSubmitter : public Submitter {
 public:
  explicit FakeSubmitter(std::uint32_t queues, std::uint32_t depth = 64) : depth_(depth), queues_(queues) {}

  PostResult post(std::uint32_t queue, std::span<const Work> chain) override {
    ++posts;
    PostResult result;
    if (fail) {
      result = fail(queue, chain);
      if (result.error == 0) result.accepted = chain.size();
    } else {
      result.accepted = chain.size();
    }
    for (std::size_t i = 0; i < result.accepted; ++i) {
      if (queues_[queue].size() == depth_) return {i, ENOMEM};
      queues_[queue].push_back(chain[i]);
      posted.push_back(chain[i]);
    }
    return result;
  }
  std::size_t poll(std::span<WorkCompletion> out) override {
    std::size_t count = 0;
    while (count < out.size() && !completions.empty()) {
      out[count++] = completions.front();
      completions.pop_front();
    }
    return count;
  }
  std::uint32_t depth() const override { return depth_; }
  std::uint32_t qpn(std::uint32_t queue) const override { return 100 + queue; }

  /// Executes `count` works of a queue, as a NIC would: in order, a completion where it is asked for.
  void execute(std::uint32_t queue, std::size_t count = ~std::size_t{0}) {
    for (; count != 0 && !queues_[queue].empty(); --count) {
      const Work work = queues_[queue].front();
      queues_[queue].pop_front();
      if (work.signaled) completions.push_back({queue, work.id, wire::Syndrome::none, 0, qpn(queue)});
    }
  }
  /// Fails the oldest work of a queue, and flushes the others.
  void break_queue(std::uint32_t queue, wire::Syndrome syndrome, std::uint8_t vendor) {
    bool first = true;
    while (!queues_[queue].empty()) {
      completions.push_back({queue, queues_[queue].front().id, first ? syndrome : wire::Syndrome::flushed,
                             first ? vendor : std::uint8_t{0xf9}, qpn(queue)});
      queues_[queue].pop_front();
      first = false;
    }
  }
  std::size_t waiting(std::uint32_t queue) const { return queues_[queue].size(); }

  /// What post() answers instead of taking all; null: takes all.
  std::function<PostResult(std::uint32_t queue, std::span<const Work> chain)> fail;
  std::vector<Work> posted;
  std::deque<WorkCompletion> completions;
  unsigned posts = 0;

 private:
  std::uint32_t depth_;
  std::vector<std::deque<Work>> queues_;
};

}  // namespace belfry::proxy::test

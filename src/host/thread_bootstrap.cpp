#include "belfry/host/thread_bootstrap.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "belfry/host/errors.hpp"

namespace belfry::host {

namespace {

/// What all ranks of a group share. A round ends when every rank has brought its blob; a rank may start
/// the next round while others still read the results of the last, so results are kept by pointer.
class Group {
 public:
  explicit Group(int size) : blobs_(static_cast<std::size_t>(size)) {}

  std::vector<Blob> exchange(int rank, std::span<const std::byte> mine, Deadline deadline) {
    std::unique_lock lock(mutex_);
    throw_if_broken();
    const std::uint64_t round = round_;
    blobs_[static_cast<std::size_t>(rank)] = Blob(mine.begin(), mine.end());
    if (++arrived_ == blobs_.size()) {
      finish_round();
    } else {
      const auto over = [&] { return round_ != round || broken_; };
      // Waiting on a deadline at the clock's end overflows in some implementations.
      if (deadline == Deadline::max()) {
        changed_.wait(lock, over);
      } else if (!changed_.wait_until(lock, deadline, over)) {
        break_group({ErrorKind::timed_out,
                     "rank " + std::to_string(rank) + " waited in vain for " + missing(),
                     "Raise the deadline, or see why the others do not come"});
      }
      if (round_ == round) throw_if_broken();
    }
    // Holding the pointer, not the lock, while copying lets the others go on.
    const std::shared_ptr<const std::vector<Blob>> results = results_;
    lock.unlock();
    return *results;
  }

  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    if (!broken_) {
      break_group({ErrorKind::not_reachable, "rank " + std::to_string(rank) + " has left the group",
                   "Its own error, before it left, says why"});
    }
  }

 private:
  void finish_round() {
    std::vector<Blob> all;
    all.reserve(blobs_.size());
    for (auto& blob : blobs_) {
      all.push_back(std::move(*blob));
      blob.reset();
    }
    results_ = std::make_shared<const std::vector<Blob>>(std::move(all));
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }

  void break_group(Error error) {
    broken_ = std::move(error);
    changed_.notify_all();
  }

  void throw_if_broken() const {
    if (broken_) throw Error(*broken_);
  }

  std::string missing() const {
    std::string text;
    for (std::size_t rank = 0; rank < blobs_.size(); ++rank) {
      if (blobs_[rank]) continue;
      text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
    }
    return text;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Blob>> blobs_;
  std::size_t arrived_ = 0;
  std::uint64_t round_ = 0;
  std::shared_ptr<const std::vector<Blob>> results_;
  std::optional<Error> broken_;
};

class ThreadBootstrap final : public Bootstrap {
 public:
  ThreadBootstrap(std::shared_ptr<Group> group, int rank, int size)
      : group_(std::move(group)), rank_(rank), size_(size) {}
  ~ThreadBootstrap() override { group_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::vector<Blob> all_gather(std::span<const std::byte> mine, Deadline deadline) override {
    if (mine.size() > kMaxBlobBytes) {
      throw Error(ErrorKind::bad_argument, "a blob of " + format_bytes(mine.size()),
                  "The limit is " + format_bytes(kMaxBlobBytes));
    }
    return group_->exchange(rank_, mine, deadline);
  }

 private:
  std::shared_ptr<Group> group_;
  int rank_;
  int size_;
};

}  // namespace

std::vector<std::unique_ptr<Bootstrap>> make_thread_bootstrap(int size) {
  if (size < 1 || size > 65536) {
    throw Error(ErrorKind::bad_argument, "a group of " + std::to_string(size) + " ranks", "It has 1..65536");
  }
  auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Bootstrap>> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<ThreadBootstrap>(group, rank, size));
  }
  return members;
}

}  // namespace belfry::host

#pragma once
/// \file
/// The NIC's lock. The thread that polls lets go of it for as long as it waits for a GPU, in the middle of a
/// poll: calls that take nothing away go on meanwhile, all others wait for the end of the poll.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace belfry::softnic {

class NicLock {
 public:
  // As the thread that polls takes it.

  /// A control call that waits goes first; it holds the lock for microseconds.
  void lock() {
    while (waiting_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

  /// Runs `work` without the lock. \pre the calling thread polls and has it
  template <class Work>
  void outside(Work&& work) {
    interrupted_ = true;
    mutex_.unlock();
    work();
    mutex_.lock();
    interrupted_ = false;
    if (waiting_.load(std::memory_order_relaxed) > 0) resumed_.notify_all();
  }

  // As control calls take it.

  /// \param beside whether the call may come in the middle of a poll that waits for a GPU: it removes
  /// nothing, and changes nothing of a queue pair
  void lock_control(bool beside) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    std::unique_lock guard(mutex_);
    if (!beside) resumed_.wait(guard, [this] { return !interrupted_; });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    guard.release();
  }

 private:
  std::mutex mutex_;
  std::condition_variable resumed_;
  std::atomic<int> waiting_{0};
  bool interrupted_ = false;  ///< under mutex_: a poll is in the middle, outside the lock
};

}  // namespace belfry::softnic

#include "host/polling_thread.hpp"

#include <utility>

#include "belfry/host/errors.hpp"
#include "host/cpu_choice.hpp"

namespace belfry::host {

PollingThread::PollingThread(const PollingOptions& options, PollingDuties duties)
    : thread_([this, options, duties = std::move(duties)] { run(options, duties); }) {}

PollingThread::~PollingThread() {
  stop_.store(true, std::memory_order_release);
  thread_.join();
}

void PollingThread::run(const PollingOptions& options, const PollingDuties& duties) {
  settle_thread(options.name, options.cpu);
  try {
    Idler idler(options.idle);
    while (!stop_.load(std::memory_order_acquire)) {
      if (duties.round()) {
        idler.work_came();
      } else {
        idler.rest();
      }
    }
    duties.finish();
  } catch (...) {
    failure_ = std::current_exception();
  }
  duties.ended(failure_ != nullptr);
  alive_.store(false, std::memory_order_release);
}

void check_rest(const IdlePolicy& idle, std::chrono::nanoseconds stall, const std::string& who) {
  // A heartbeat comes once a sleep, and over PCIe not with each (proxy::BeatPace).
  constexpr int kSleepsInAStall = 32;
  if (stall.count() == 0 || idle.kind != IdlePolicy::Kind::sleep || idle.longest * kSleepsInAStall <= stall)
    return;
  throw Error(ErrorKind::bad_argument,
              "a " + who + " that sleeps for up to " + std::to_string(idle.longest.count()) +
                  " us counts as lost after " + std::to_string(stall.count() / 1000) + " us",
              "Let it count as lost after " + std::to_string(kSleepsInAStall) +
                  " times its longest sleep at least (0: never), or sleep for less");
}

}  // namespace belfry::host

#include "host/doorbell_forwarder.hpp"

#include <utility>

#include "belfry/device/pulse.hpp"
#include "host/cpu_choice.hpp"

namespace belfry::host {

DoorbellForwarder::DoorbellForwarder(std::vector<DoorbellLine> lines, device::ForwarderWords* words,
                                     std::unique_ptr<Bell> bell, const ForwarderThread& options)
    : relay_(std::move(lines)), words_(words), bell_(std::move(bell)), options_(options) {
  thread_ = std::thread([this] { run(); });
}

DoorbellForwarder::~DoorbellForwarder() {
  stop_.store(true, std::memory_order_release);
  thread_.join();
}

void DoorbellForwarder::run() {
  settle_thread(options_.name, options_.cpu);
  constexpr auto kSystem = port::Scope::system;
  try {
    Idler idler(options_.idle);
    for (std::uint64_t beat = 1; !stop_.load(std::memory_order_acquire); ++beat) {
      if (relay_.relay(*bell_) != 0) {
        idler.work_came();
      } else {
        idler.rest();
      }
      port::store<kSystem>(&words_->heartbeat, beat);
    }
    relay_.relay(*bell_);
  } catch (...) {
    failure_ = std::current_exception();
  }
  port::store_release<kSystem>(&words_->heartbeat, device::kDeadBeat);
  alive_.store(false, std::memory_order_release);
}

}  // namespace belfry::host

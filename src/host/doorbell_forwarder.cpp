#include "host/doorbell_forwarder.hpp"

#include <utility>

#include "belfry/device/pulse.hpp"

namespace belfry::host {
namespace {

constexpr auto kSystem = port::Scope::system;

PollingOptions named(PollingOptions options) {
  if (options.name.empty()) options.name = "belfry-bells";
  return options;
}

}  // namespace

DoorbellForwarder::DoorbellForwarder(std::vector<DoorbellLine> lines, device::ForwarderWords* words,
                                     std::unique_ptr<Bell> bell, PollingOptions options)
    : relay_(std::move(lines)),
      words_(words),
      bell_(std::move(bell)),
      thread_(
          named(std::move(options)),
          {.round = [this] { return round(); },
           .finish = [this] { relay_.relay(*bell_); },
           .ended = [this](bool) { port::store_release<kSystem>(&words_->heartbeat, device::kDeadBeat); }}) {}

bool DoorbellForwarder::round() {
  const bool moved = relay_.relay(*bell_) != 0;
  port::store<kSystem>(&words_->heartbeat, ++beat_);
  return moved;
}

}  // namespace belfry::host

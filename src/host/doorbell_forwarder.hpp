#pragma once
/// \file
/// The CPU thread that forwards doorbells.

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "belfry/device/view.hpp"
#include "host/doorbell_relay.hpp"
#include "host/polling_thread.hpp"

namespace belfry::host {

/// Forwards until it is destroyed, and looks once more then. An exception out of the bell ends it: its
/// heartbeat then says so to device code, which finds it within a few turns of waiting, and failure() has the
/// cause.
class DoorbellForwarder {
 public:
  /// \param words reachable by device code, as the lines' words are; the caller keeps all of it for as long
  DoorbellForwarder(std::vector<DoorbellLine> lines, device::ForwarderWords* words,
                    std::unique_ptr<Bell> bell, PollingOptions options = {});

  bool alive() const { return thread_.alive(); }
  /// What ended it; null while alive, and after an orderly end.
  std::exception_ptr failure() const { return thread_.failure(); }

 private:
  bool round();

  DoorbellRelay relay_;
  device::ForwarderWords* words_;
  std::unique_ptr<Bell> bell_;
  std::uint64_t beat_ = 0;
  PollingThread thread_;
};

}  // namespace belfry::host

#pragma once
/// \file
/// mini-gda's view of a PE with one queue to one peer, over the checked memory, and the NIC at its other end.

#include <optional>
#include <vector>

#include "belfry/device/gda.hpp"
#include "check/nic.hpp"

namespace belfry::check {

struct GdaSettings {
  unsigned log_blocks = 2;
  unsigned log_completions = 2;  ///< of a completion ring
  unsigned words_apart = 2;      ///< of window 0
  bool relaxed_window = false;   ///< window 0 of the target is registered for relaxed ordering
  std::uint64_t first_index = 0;
  /// A completion ring that has been around once: all its entries are those of an earlier lap.
  bool second_lap = false;
  /// The block before the first one is complete, in a collapsed queue, and nobody has looked.
  bool unseen_completion = false;
  /// The WQE at this block fails, and those after it are flushed.
  std::optional<std::uint64_t> fails_at;
  /// Device code rings in host memory, and a CPU forwards (src/host/doorbell_relay.hpp).
  bool assisted = false;
  /// Where they lie, seen from the GPU that posts.
  device::MemoryKind blocks = device::MemoryKind::own, record = device::MemoryKind::own,
                     payload = device::MemoryKind::own, completions = device::MemoryKind::own;
};

/// Window 0 holds payload, window 1 signals; each has 16 words, of which two neighbours are used or each
/// other one.
struct GdaWorld {
  GdaWorld(World& world, const GdaSettings& settings, device::DoorbellMode mode,
           device::CompletionLayout layout);

  static constexpr unsigned kWords = 8;
  device::Place word(unsigned i) const { return {0, i * 8u * words_apart}; }
  static device::Place signal(unsigned i) { return {1, i * 16u}; }
  std::uint64_t* local(device::Place place) const;
  std::uint64_t* remote(device::Place place) const;

  /// A CPU thread that passes doorbells on, and the words that device code rings instead.
  void add_forwarder();
  void name_fields(std::size_t blocks, std::size_t entries, const Be32* record, const std::byte* completions);

  unsigned words_apart;
  World& world;
  Ledger ledger;
  device::EndpointView view;
  device::SendQueue queue;
  const Nic* nic = nullptr;
  std::vector<device::LocalWindow> windows;
  std::vector<device::RemoteWindow> remotes;
};

}  // namespace belfry::check

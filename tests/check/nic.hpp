#pragma once
/// \file
/// A NIC as the protocols see it: waits for doorbells, fetches WQEs, reads payload, writes to the peer,
/// writes CQEs. It reads and writes the formats of wire/ over the checked memory, and holds the properties.
///
/// Its requester and its responder are two observers: the network between them carries data and order, but
/// nothing of what the one knows of the other's memory. An acknowledgement is not visibility.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "belfry/wire/cqe.hpp"
#include "belfry/wire/wqe.hpp"
#include "check/ledger.hpp"
#include "check/world.hpp"

namespace belfry::check {

/// One send queue, as its NIC knows it.
struct NicQueue {
  std::byte* blocks = nullptr;
  unsigned log_blocks = 0;
  std::uint64_t* doorbell = nullptr;
  Be32* record = nullptr;  ///< null: the QP has none, and the NIC trusts the doorbell's index
  std::byte* completions = nullptr;
  unsigned log_completions = 0;
  bool collapsed = false;  ///< every CQE goes to entry 0
  std::uint32_t qpn = 0;
  std::uint64_t first_index = 0;
  std::uint64_t first_completion = 0;
};

struct NicBehaviour {
  /// Memory registered for relaxed ordering, as (first byte, bytes): a later write to it may pass an earlier
  /// one.
  std::vector<std::pair<const void*, std::size_t>> relaxed;
  /// The WQE at this block fails with a remote access error, and what follows is flushed.
  std::optional<std::uint64_t> fails_at;
  /// The queue's peer is this NIC: what it writes there goes the same way to memory as all that it writes.
  bool to_itself = false;
  int device = -1;  ///< an observer of the same NIC's, where it is not the first queue of it
};

class Nic {
 public:
  /// Adds itself to the world as a daemon.
  Nic(World& world, NicQueue queue, Ledger& ledger, NicBehaviour behaviour = {},
      const std::string& name = "nic");

  int requester() const { return requester_; }

 private:
  struct Wqe;

  void run();
  std::uint64_t wait_for_work();
  std::uint64_t target_of(std::uint64_t bell);
  void execute(std::uint64_t index);
  Wqe fetch(std::uint64_t index);
  std::uint64_t fetch_word(std::uint64_t index, unsigned word);
  std::uint64_t gather(const Wqe& wqe);
  std::uint64_t move(const Wqe& wqe, std::size_t operation);
  void retire(std::uint64_t index, unsigned blocks);
  void complete(std::uint64_t index, wire::WqeOpcode opcode, bool failed, wire::Syndrome syndrome);

  void watch_store(const Observer& who, const void* at, std::uint64_t value);
  void watch_slot(const Observer& who, std::uint64_t block, std::uint64_t first_word);
  void watch_doorbell(const Observer& who, std::uint64_t bell);
  bool is_retired(std::uint64_t index) const;

  std::uint64_t depth() const { return std::uint64_t{1} << queue_.log_blocks; }
  std::uint64_t* slot(std::uint64_t index) const;
  bool is_relaxed(const void* at) const;
  bool has_record() const { return queue_.record != nullptr; }

  // DMA. A posted write does not pass an earlier one, unless it is relaxed.
  std::uint64_t dma_read(int port, const void* at, unsigned bytes = 8);
  void dma_write(int port, void* at, std::uint64_t value, unsigned bytes = 8);

  World& world_;
  NicQueue queue_;
  Ledger& ledger_;
  NicBehaviour behaviour_;
  int requester_ = 0;
  int responder_ = 0;
  std::vector<std::uint64_t> retired_;  ///< by slot: one past the last block that was retired there
  std::uint64_t next_ = 0;
  std::uint64_t last_bell_ = 0;
  std::uint64_t completions_ = 0;
  bool failed_ = false;
  std::vector<bool> continues_;  ///< by slot: it holds the rest of a WQE that began before
};

}  // namespace belfry::check

#pragma once
/// \file
/// The sending side of a shared-memory port: a ring to each block that frames have gone to.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "softnic/fabric/block_names.hpp"
#include "softnic/fabric/counters.hpp"
#include "softnic/fabric/fabric.hpp"
#include "softnic/fabric/note.hpp"
#include "softnic/fabric/owned_fd.hpp"
#include "softnic/fabric/ring.hpp"
#include "softnic/fabric/watch.hpp"

namespace belfry::softnic {

class Outgoing {
 public:
  /// \param retry the least time between two attempts to reach one block
  Outgoing(Watch& watch, const BlockNames& names, SharedFabricCounters& counters, std::uint64_t sender,
           std::uint32_t ring_bytes, std::chrono::nanoseconds retry);
  ~Outgoing();

  /// \param header and parts are well-formed; `block` is below kQpnBlocks
  SendOutcome send(std::uint32_t block, const FrameHeader& header, std::span<const FramePart> parts);

  /// The block's owner has hung up.
  void hung_up(std::uint32_t block);

 private:
  using Clock = std::chrono::steady_clock;

  struct Channel {
    OwnedFd socket;
    RingProducer ring;
  };

  struct Peer {
    std::unique_ptr<Channel> channel;
    Clock::time_point not_before{};  ///< of the next attempt
    bool busy = false;               ///< the last attempt found somebody who does not accept
  };

  SendOutcome reach(std::uint32_t block, Peer& peer);
  int open_channel(std::uint32_t block, Peer& peer);
  void close_channel(Peer& peer);

  Watch& watch_;
  const BlockNames& names_;
  SharedFabricCounters& counters_;
  std::uint64_t sender_;
  std::uint32_t ring_bytes_;
  std::chrono::nanoseconds retry_;
  std::vector<Peer> peers_;  ///< by block
  NoteOnce note_resources_;
  NoteOnce note_corrupt_;
};

}  // namespace belfry::softnic

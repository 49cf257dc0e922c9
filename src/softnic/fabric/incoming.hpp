#pragma once
/// \file
/// The receiving side of a shared-memory port: its listeners and the rings that peers have handed in.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softnic/fabric/counters.hpp"
#include "softnic/fabric/fabric.hpp"
#include "softnic/fabric/note.hpp"
#include "softnic/fabric/owned_fd.hpp"
#include "softnic/fabric/ring.hpp"
#include "softnic/fabric/watch.hpp"

namespace belfry::softnic {

class Incoming {
 public:
  Incoming(Watch& watch, SharedFabricCounters& counters);
  ~Incoming();

  /// Serves a block's listening socket from now on. 0 or an errno.
  int add_listener(OwnedFd listener);

  /// Delivers arrived frames, every peer's in its order; the peer to begin with changes.
  std::size_t deliver(FrameReceiver& receiver, std::size_t budget);

  /// Tells every peer that this port is about to sleep. \return false: a frame has come, do not
  bool announce_sleep();
  void announce_awake();

  /// Takes in the peers that wait at a listener.
  void accept_peers(int listener);

  /// Looks at a peer's socket: its hello, its wake-ups, its end.
  void socket_ready(int socket);

  /// Lets go of the channels that are over.
  void reap();

 private:
  struct Channel {
    OwnedFd socket;  ///< closed once the peer has hung up
    std::optional<RingConsumer> ring;
    int pid = 0;
    bool over = false;  ///< to be dropped whatever the ring holds

    /// Frames of a peer that is gone are still delivered.
    bool finished() const { return over || (!socket && (!ring || ring->empty())); }
  };

  void take_hello(Channel& channel);
  void refuse(Channel& channel, const std::string& why);
  void close_socket(Channel& channel);
  void turn_one_away(int listener);

  Watch& watch_;
  SharedFabricCounters& counters_;
  std::vector<OwnedFd> listeners_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::size_t first_ = 0;  ///< channel that deliver() begins with
  OwnedFd spare_;          ///< given up to accept, and so turn away, a peer when no descriptor is left
  NoteOnce note_refused_;
  NoteOnce note_corrupt_;
  NoteOnce note_descriptors_;
};

}  // namespace belfry::softnic

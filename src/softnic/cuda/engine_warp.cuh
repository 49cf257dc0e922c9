#pragma once
/// \file
/// A warp of the NIC on a GPU. It owns queues, up to one a lane; a lane looks after its queue's doorbell, and
/// the warp together serves those that rang: a lane fetches and decodes a WQE each, and up to 32 are under
/// way at once. The members are defined in engine_doorbells, engine_hot, engine_serving and
/// engine_general.cuh.

#include "softnic/cuda/execute.cuh"
#include "softnic/cuda/hot_writes.cuh"

namespace belfry::softnic::cuda {

using port::kFullWarp;
using port::kWarpSize;

inline constexpr std::uint32_t kRounds = 16;  ///< fetches of one queue before others have their turn
inline constexpr std::uint32_t kStopLane = kWarpSize - 1;  ///< has a queue only where the engine is full
inline constexpr std::uint32_t kWorksALook = 8;
inline constexpr std::uint32_t kTurnsAPage =
    8;  ///< polls of the register that rang last between two looks at all
inline constexpr std::uint32_t kSettledTurnsAPage = 64;  ///< the same, once it is known that they ring there
inline constexpr std::uint32_t kTurnsALook = 32;         ///< idle polls between two looks at the clock

__device__ inline std::uint64_t clock_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// \tparam constant whether the tables are in constant memory
template <bool constant>
class EngineWarp {
 public:
  __device__ explicit EngineWarp(const EngineParameters& p)
      : p_(p),
        tables_{p},
        lane_(threadIdx.x % kWarpSize),
        warp_(blockIdx.x * (blockDim.x / kWarpSize) + threadIdx.x / kWarpSize),
        warps_(gridDim.x * (blockDim.x / kWarpSize)) {}

  /// In the kernel itself: a call would take the warp by its address, and its state out of registers.
  __device__ __forceinline__ void run() {
    take_queues();
    for (std::uint32_t turn = 0;; ++turn) {
      Early early;
      if (look(stopping_ || turn % (settled_ ? kSettledTurnsAPage : kTurnsAPage) == 0, early)) {
        serve_hot_singles(early);
      } else {
        if (turn % kTurnsALook != 0 && !unfinished_) continue;
        // Whoever rang behind this look, and the engine stops, finds it gone, and wakes it.
        if (stopping_ && port::ballot(kFullWarp, mine_.waits() && mine_.pause == 0) == 0) break;
        if (port::ballot(kFullWarp, mine_.waits()) == 0) {
          leave_if_idle();
          continue;
        }
      }
      // In one place: a function that is called takes the warp's state out of its registers.
      serve_all();
      note_work();
    }
    give_back_queues();
  }

 private:
  // The life of a warp ----------------------------------------------------------------------------------

  __device__ void take_queues();

  __device__ void take_queue();

  __device__ void give_back_queues();

  /// The clock is slow, and a warp that works reads it now and then only.
  __device__ void note_work();
  __device__ void tell_work(std::uint64_t now);
  __device__ void note_settled();

  __device__ void leave_if_idle();

  /// Whatever is rung after this is a change to who wakes the engine. A queue whose record is polled has not
  /// looked at them otherwise.
  __device__ void note_registers();

  // Stage one: doorbells --------------------------------------------------------------------------------

  /// The block at the front of a lane's queue, fetched behind its doorbell and before it is known what that
  /// says: if it announces the block, it is the WQE.
  struct Early {
    bool there = false;
    BlockWords block;
  };

  /// \return whether any queue of the warp has news
  /// \param all whether at every register: a read over PCIe that finds nothing keeps doorbells waiting
  __device__ bool look(bool all, Early& early);

  /// Where the last lane has a queue, and cannot look for it.
  __device__ void stop_if_asked();
  /// At the end of the next look that finds nothing.
  __device__ void stop();

  __device__ std::uint16_t ahead_of(std::uint32_t index) const;

  /// \param value, other at the queue's two places, of which at least one is new
  __device__ void take_doorbell(std::uint64_t value, std::uint64_t other);
  /// What only queues that share a page meet, and those that ring for the first time.
  /// \param strange the first place holds another queue's doorbell \param told ours has been seen there
  __device__ void take_others(bool strange, std::uint64_t other, bool told);

  /// \param asked false: nothing happens
  /// \param index one past the last block posted, of which 16 bits count
  /// \return whether there is something new
  __device__ bool announce(bool asked, std::uint32_t index);

  // Serving ---------------------------------------------------------------------------------------------

  /// Each lane the one WQE that waits in its queue, if it is a hot one.
  __device__ void serve_hot_singles(const Early& early);

  __device__ void serve_all();

  /// The front of one queue, by all lanes, as far as its WQEs are hot ones. \return whether there was nothing
  /// else, and the queue has had its turn
  __device__ bool serve_hot_batches(std::uint32_t owner);

  /// Unless they may pass each other, each WRITE is seen before the next one.
  __device__ void store_run(const HotWrites& hot, const HotWrite& w, std::uint32_t run, Reach& stored);

  __device__ void serve(std::uint32_t owner);

  /// One queue's service: the same in all lanes.
  struct Turn {
    std::uint64_t next, producer, completions, pause;
    std::uint64_t pending_index = 0;  ///< collapsed: of the WQE whose completion is owed
    std::uint32_t owner;
    std::uint32_t pending_bytes = 0;
    GpuQueueState state;
    wire::WqeOpcode pending_opcode = wire::WqeOpcode::nop;
    bool pending = false;
    Reach stored = Reach::none;  ///< since the last fence
  };

  __device__ const unsigned char* block_at(const GpuQueuePair& q, std::uint64_t index) const;

  /// Fetches up to 32 WQEs and carries out those at the front that are simple, or the first if it is not.
  __device__ void one_round(const GpuQueuePair& q, Turn& t);

  /// Lane 0's WQE has passed every check: those that are like it pass them, too.
  __device__ void heat(const GpuQueuePair& q, std::uint32_t owner, const SingleWqe& w, const Move& move);

  /// The first `count` WQEs. Writes to memory of relaxed ordering pass each other, everything else is seen in
  /// the order of the queue.
  __device__ void execute(Turn& t, const SingleWqe& w, const BlockWords& block, const Move& move,
                          std::uint32_t count);

  // Completing ------------------------------------------------------------------------------------------

  __device__ static Completion completion_of(const GpuQueuePair& q, std::uint64_t index,
                                             wire::WqeOpcode opcode, std::uint32_t bytes);

  /// Takes `count` entries of the queue's CQ. \return the first one's index
  __device__ std::uint64_t take_entries(const GpuRing& ring, Turn& t, std::uint32_t count);

  /// \return whether there is room; without it the queue is lost, and its CQ with it
  __device__ bool has_room(const GpuQueuePair& q, Turn& t, std::uint32_t count);

  /// \pre lane 0 may ask alone: slots are spread in steps of the number of warps
  __device__ std::uint32_t shuffled_slot(const Turn& t) const { return warp_ + t.owner * warps_; }

  __device__ void call_host();

  __device__ void complete(const GpuQueuePair& q, Turn& t, const SingleWqe& w, std::uint32_t count);

  __device__ void owe(Turn& t, std::uint64_t index, wire::WqeOpcode opcode, std::uint32_t bytes);

  __device__ void complete_pending(const GpuQueuePair& q, Turn& t);

  /// A WQE of one block or more, completed by all lanes together.
  __device__ void complete_one(const GpuQueuePair& q, Turn& t, std::uint32_t blocks, wire::WqeOpcode opcode,
                               bool signalled, std::uint32_t bytes);

  // Failing ---------------------------------------------------------------------------------------------

  __device__ void push_error(const GpuQueuePair& q, Turn& t, wire::WqeOpcode opcode, FailureWord why);

  /// The WQE at `next` fails, and the queue with it.
  __device__ void fail(const GpuQueuePair& q, Turn& t, std::uint32_t blocks, wire::WqeOpcode opcode,
                       FailureWord why);

  /// Everything that is posted completes as flushed, as far as there is room.
  __device__ void flush(const GpuQueuePair& q, Turn& t);

  /// The other end is not there, or not ready: packets are lost, and in the end the queue is.
  __device__ void await_peer(const GpuQueuePair& q, Turn& t, const SingleWqe& w, const BlockWords&);

  // General WQEs ----------------------------------------------------------------------------------------

  __device__ const DecodedWqe& fetch_general(const GpuQueuePair& q, const Turn& t);

  __device__ void one_general(const GpuQueuePair& q, Turn& t);

  /// \return false where the peer has none: the queue pauses, or has tried often enough and fails
  __device__ bool receive_posted(const GpuQueuePair& q, Turn& t, const DecodedWqe& w);

  __device__ void complete_receive(const GpuQueuePair& q, Turn& t, const DecodedWqe& w);

  const EngineParameters& p_;
  Tables<constant> tables_;
  const std::uint32_t lane_;
  const std::uint32_t warp_;
  const std::uint32_t warps_;
  LaneQueue mine_;
  bool full_ = false;             ///< the last lane has a queue of its own
  bool stopping_ = false;         ///< the engine has been asked to end
  bool settled_ = false;          ///< it knows where each of its queues rings
  bool unfinished_ = false;       ///< there is something to do that no doorbell will announce
  std::uint64_t idle_since_ = 0;  ///< ns; 0: it works
  std::uint32_t works_ = 0;
};

}  // namespace belfry::softnic::cuda

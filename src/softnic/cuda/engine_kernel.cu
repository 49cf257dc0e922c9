/// \file
/// The NIC's stages on a GPU. A warp owns queues, up to one a lane; a lane looks after its queue's
/// doorbell, and the warp together serves those that rang: a lane fetches and decodes a WQE each, and up to
/// 32 are under way at once.

#include "softnic/cuda/engine_kernel.hpp"
#include "softnic/cuda/execute.cuh"
#include "softnic/cuda/hot_writes.cuh"

namespace belfry::softnic::cuda {

namespace {

using port::kFullWarp;
using port::kWarpSize;

constexpr std::uint32_t kRounds = 16;               ///< fetches of one queue before others have their turn
constexpr std::uint32_t kStopLane = kWarpSize - 1;  ///< has a queue only where the engine is full
constexpr std::uint32_t kWorksALook = 8;
constexpr std::uint32_t kTurnsAPage = 8;   ///< polls of the register that rang last between two looks at all
constexpr std::uint32_t kTurnsALook = 32;  ///< idle polls between two looks at the clock

__device__ std::uint64_t clock_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

template <bool constant>
class EngineWarp {
 public:
  __device__ explicit EngineWarp(const EngineParameters& p)
      : p_(p),
        tables_{p},
        lane_(threadIdx.x % kWarpSize),
        warp_(blockIdx.x * (blockDim.x / kWarpSize) + threadIdx.x / kWarpSize),
        warps_(gridDim.x * (blockDim.x / kWarpSize)) {}

  __device__ void run() {
    take_queues();
    for (std::uint32_t turn = 0;; ++turn) {
      if (look(stopping_ || turn % kTurnsAPage == 0)) {
        serve_hot_singles();
        serve_all();
        note_work();
      } else if (turn % kTurnsALook == 0 || unfinished_) {
        // Whoever rang behind this look, and the engine stops, finds it gone, and wakes it.
        if (stopping_ && port::ballot(kFullWarp, mine_.waits() && mine_.pause == 0) == 0) break;
        if (port::ballot(kFullWarp, mine_.waits()) != 0) {
          serve_all();
          note_work();
        } else {
          leave_if_idle();
        }
      }
    }
    give_back_queues();
  }

 private:
  // The life of a warp -------------------------------------------------------------------------------

  __device__ void take_queues() {
    take_queue();
    full_ = port::ballot(kFullWarp, lane_ == kStopLane && mine_.exists) != 0;
    if (lane_ != kStopLane || full_) return;
    // It looks for the end as others look at records.
    mine_.record = &p_.control->stop;
    mine_.polls_word = true;
  }

  __device__ void take_queue() {
    const std::uint32_t slot = warp_ + lane_ * warps_;
    mine_.slot = slot;
    if (slot >= p_.slots) return;
    const GpuQueuePair& q = tables_.queue(slot);
    if (q.generation == 0 || q.state == GpuQueueState::idle) return;
    mine_.exists = true;
    mine_.doorbell = q.doorbell;
    mine_.record = q.record;
    mine_.number = q.number;
    mine_.block_mask = q.block_mask;
    mine_.no_record = q.no_record;
    mine_.polls_word = q.polls_record;
    mine_.state = q.state;
    const GpuProgress& progress = p_.progress[slot];
    mine_.producer = progress.producer;
    mine_.next = progress.next;
    mine_.silent_since = progress.silent_since;
    if (progress.failed != 0) mine_.state = GpuQueueState::flushing;
    if (!q.completions.shared) mine_.completions = p_.cq_producers[q.completions.slot];
    if (mine_.state == GpuQueueState::active) mine_.hot = hot_writes_of(q);
  }

  __device__ void give_back_queues() {
    if (mine_.exists) {
      GpuProgress& progress = p_.progress[mine_.slot];
      progress.producer = mine_.producer;
      progress.next = mine_.next;
#pragma unroll
      for (unsigned i = 0; i < kGpuRegisters; ++i) progress.seen[i] = mine_.seen[i];
      progress.silent_since = mine_.silent_since;
      const GpuRing& ring = tables_.queue(mine_.slot).completions;
      if (!ring.shared) p_.cq_producers[ring.slot] = mine_.completions;
    }
    port::fence<Scope::system>();
    port::sync_warp(kFullWarp);
    if (lane_ != 0) return;
    port::fence<Scope::system>();
    if (port::fetch_add<Scope::gpu, port::Order::acquire_release>(&p_.control->ended, 1u) + 1 != warps_)
      return;
    port::store_release<Scope::system>(&p_.status->finished, p_.launch);
  }

  /// The clock is slow, and a warp that works reads it now and then only.
  __device__ void note_work() {
    idle_since_ = 0;
    if (++works_ % kWorksALook == 1) tell_work(clock_ns());
  }
  __device__ void tell_work(std::uint64_t now) {
    if (lane_ == 0) port::store<Scope::gpu>(&p_.control->worked, now);
  }

  __device__ void leave_if_idle() {
    const std::uint64_t now = clock_ns();
    if (idle_since_ == 0) {
      idle_since_ = now;
      tell_work(now);
    }
    if (now - idle_since_ < p_.idle_ns || lane_ != 0) return;
    const std::uint64_t others = port::load<Scope::gpu>(&p_.control->worked);
    if (now > others && now - others >= p_.idle_ns) port::store<Scope::gpu>(&p_.control->stop, kStopWord);
  }

  /// Whatever is rung after this is a change to who wakes the engine. A queue whose record is polled has not
  /// looked at them otherwise.
  __device__ void note_registers() {
    if (mine_.exists && mine_.polls_word) read_registers(mine_.seen);
    port::fence<Scope::system>();
  }

  // Stage one: doorbells -----------------------------------------------------------------------------

  /// \return whether any queue of the warp has news
  /// \param all whether at every register: a read over PCIe that finds nothing keeps doorbells waiting
  __device__ bool look(bool all) {
    if (stopping_) note_registers();
    std::uint64_t rung[kGpuRegisters] = {mine_.seen[0], mine_.seen[1]};
    std::uint32_t word = 0;
    // All loads are under way before the first is looked at.
    if (mine_.polls_word) word = port::load<Scope::system>(mine_.record);
    if (mine_.exists && !mine_.polls_word) {
      if (all) {
        read_registers(rung);
      } else if (mine_.second_rings) {
        rung[1] = read_register(1);
      } else {
        rung[0] = read_register(0);
      }
    }
    if (all && full_) stop_if_asked();
    const bool news = mine_.polls_word ? ahead_of(swap_bytes(word)) != 0
                                       : rung[0] != mine_.seen[0] || rung[1] != mine_.seen[1];
    const std::uint32_t any = port::ballot(kFullWarp, news);
    if (any == 0) return false;
    // What posters stored before they rang is visible behind this.
    acquire_fence();
    if (news && mine_.exists) take_doorbell(rung, word);
    port::sync_warp(kFullWarp);
    if (full_ || (any >> kStopLane & 1u) == 0) return true;
    stop();
    return any != 1u << kStopLane;
  }

  /// Where the last lane has a queue, and cannot look for it.
  __device__ void stop_if_asked() {
    if (port::load<Scope::system>(&p_.control->stop) != 0) stop();
  }
  /// At the end of the next look that finds nothing.
  __device__ void stop() {
    stopping_ = true;
    unfinished_ = true;
    if (!mine_.exists) mine_.polls_word = false;
  }

  __device__ std::uint16_t ahead_of(std::uint32_t index) const {
    return static_cast<std::uint16_t>(index - static_cast<std::uint32_t>(mine_.producer));
  }

  __device__ std::uint64_t read_register(unsigned i) const {
    return port::load<Scope::system>(mine_.doorbell + i * (wire::kUarRegisterBytes / sizeof(std::uint64_t)));
  }
  __device__ void read_registers(std::uint64_t (&rung)[kGpuRegisters]) const {
#pragma unroll
    for (unsigned i = 0; i < kGpuRegisters; ++i) rung[i] = read_register(i);
  }

  __device__ void take_doorbell(const std::uint64_t (&rung)[kGpuRegisters], std::uint32_t word) {
    if (mine_.polls_word) {
      announce(swap_bytes(word));
      return;
    }
    bool told = mine_.no_record;
#pragma unroll
    for (unsigned i = 0; i < kGpuRegisters; ++i) {
      if (rung[i] == mine_.seen[i]) continue;
      mine_.seen[i] = rung[i];
      // A page's other register is another queue's. One that queues share may hold any of theirs.
      if (wire::doorbell_qpn(rung[i]) != mine_.number) continue;
      mine_.second_rings = i == 1;
      if (announce(wire::doorbell_index(rung[i]))) told = true;
    }
    // Where the doorbell did not say it the record does, and its WQEs are there before it is.
    if (!told) announce(swap_bytes(port::load_acquire<Scope::gpu>(mine_.record)));
  }

  /// \param index one past the last block posted, of which 16 bits count
  /// \return whether there is something new
  __device__ bool announce(std::uint32_t index) {
    const std::uint16_t ahead = ahead_of(index);
    // Never more outstanding than the queue holds: what says otherwise is old, or nonsense.
    if (ahead == 0 || mine_.producer + ahead - mine_.next > mine_.block_mask + 1)
      return false;
    mine_.producer += ahead;
    return true;
  }

  // Serving ------------------------------------------------------------------------------------------

  /// Each lane the one WQE that waits in its queue, if it is a hot one.
  __device__ void serve_hot_singles() {
    const bool single = mine_.next + 1 == mine_.producer && mine_.hot.memory != nullptr &&
                        mine_.state == GpuQueueState::active;
    if (!single) return;
    const BlockWords block = fetch_block(mine_.hot.blocks + hot_offset(mine_.hot, mine_.next));
    HotWrite w;
    if (!take_hot(mine_.hot, block, w)) return;
    if (!mine_.hot.unordered) release_fence(mine_.stored);
    store_hot(w);
    mine_.stored = Reach::gpu;
    if (w.signalled) {
      push_hot(mine_.hot, mine_.next, mine_.completions++);
      mine_.stored = Reach::none;
    }
    mine_.next = mine_.producer;
  }

  __device__ static std::uint64_t hot_offset(const HotWrites& hot, std::uint64_t index) {
    return (static_cast<std::uint32_t>(index) & hot.block_mask) * std::uint64_t{wire::kBlockBytes};
  }

  __device__ void serve_all() {
    std::uint32_t waiting = port::ballot(kFullWarp, mine_.exists && mine_.waits());
    for (; waiting != 0; waiting &= waiting - 1) {
      const std::uint32_t owner = port::first_lane(waiting);
      if (!serve_hot_batches(owner)) serve(owner);
    }
    unfinished_ = stopping_ || port::ballot(kFullWarp, mine_.waits()) != 0;
  }

  /// The front of one queue, by all lanes, as far as its WQEs are hot ones. \return whether there was nothing
  /// else, and the queue has had its turn
  __device__ bool serve_hot_batches(std::uint32_t owner) {
    const bool able = mine_.hot.memory != nullptr && mine_.state == GpuQueueState::active;
    if (port::shuffle(kFullWarp, able ? 1u : 0u, owner) == 0) return false;
    const HotWrites hot = shuffle_all(mine_.hot, owner);
    const auto next = port::shuffle(kFullWarp, mine_.next, owner);
    auto left = static_cast<std::uint32_t>(port::shuffle(kFullWarp, mine_.producer, owner) - next);
    Reach stored =
        static_cast<Reach>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(mine_.stored), owner));
    std::uint32_t done = 0;
    bool all_hot = true;
    std::uint32_t owed = 0;  // one more than the last signalled one, counted from `next`; 0: none
    BlockWords block{};
    if (lane_ < left) block = fetch_block(hot.blocks + hot_offset(hot, next + lane_));
    for (std::uint32_t round = 0; round < kRounds && done < left; ++round) {
      HotWrite w;
      const bool good = lane_ < left - done && take_hot(hot, block, w);
      // The next ones travel while these are carried out.
      if (left - done > kWarpSize + lane_)
        block = fetch_block(hot.blocks + hot_offset(hot, next + done + kWarpSize + lane_));
      const std::uint32_t bad = ~port::ballot(kFullWarp, good);
      const std::uint32_t run = bad == 0 ? kWarpSize : port::first_lane(bad);
      store_run(hot, w, run, stored);
      const std::uint32_t signalled = port::ballot(kFullWarp, lane_ < run && w.signalled);
      if (signalled != 0) owed = done + port::last_lane(signalled) + 1;
      done += run;
      if (run < kWarpSize) {
        all_hot = done == left;
        break;
      }
    }
    port::sync_warp(kFullWarp);
    if (lane_ == owner) {
      if (owed != 0) push_hot(hot, next + owed - 1, mine_.completions++);
      mine_.stored = owed != 0 ? Reach::none : stored;
      mine_.next += done;
    }
    return all_hot;
  }

  /// Unless they may pass each other, each WRITE is seen before the next one.
  __device__ void store_run(const HotWrites& hot, const HotWrite& w, std::uint32_t run, Reach& stored) {
    if (run == 0) return;
    if (hot.unordered) {
      if (lane_ < run) store_hot(w);
    } else {
      for (std::uint32_t i = 0; i < run; ++i) {
        if (lane_ == i) {
          release_fence(stored);
          store_hot(w);
        }
        stored = Reach::gpu;
        port::sync_warp(kFullWarp);
      }
    }
    stored = Reach::gpu;
  }

  template <class T>
  __device__ static T shuffle_all(const T& value, std::uint32_t owner) {
    static_assert(sizeof(T) % 4 == 0);
    std::uint32_t words[sizeof(T) / 4];
    memcpy(words, &value, sizeof value);
#pragma unroll
    for (std::uint32_t& word : words) word = port::shuffle(kFullWarp, word, owner);
    T result;
    memcpy(&result, words, sizeof result);
    return result;
  }

  __device__ void serve(std::uint32_t owner) {
    const std::uint64_t pause = port::shuffle(kFullWarp, mine_.pause, owner);
    if (pause != 0 && clock_ns() < pause) return;
    const std::uint32_t slot = port::shuffle(kFullWarp, mine_.slot, owner);
    const GpuQueuePair& q = tables_.queue(slot);
    Turn t;
    t.owner = owner;
    t.next = port::shuffle(kFullWarp, mine_.next, owner);
    t.producer = port::shuffle(kFullWarp, mine_.producer, owner);
    t.completions = port::shuffle(kFullWarp, mine_.completions, owner);
    t.state =
        static_cast<GpuQueueState>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(mine_.state), owner));
    t.pause = 0;
    t.stored = static_cast<Reach>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(mine_.stored), owner));
    for (std::uint32_t round = 0; round < kRounds && t.next < t.producer && t.pause == 0; ++round) {
      if (t.state == GpuQueueState::flushing) {
        flush(q, t);
        break;
      }
      one_round(q, t);
    }
    complete_pending(q, t);
    if (lane_ == owner) {
      mine_.next = t.next;
      mine_.completions = t.completions;
      mine_.state = t.state;
      mine_.pause = t.pause;
      mine_.stored = t.stored;
    }
  }

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

  __device__ const unsigned char* block_at(const GpuQueuePair& q, std::uint64_t index) const {
    return q.blocks + (index & q.block_mask) * wire::kBlockBytes;
  }

  /// Fetches up to 32 WQEs and carries out those at the front that are simple, or the first if it is not.
  __device__ void one_round(const GpuQueuePair& q, Turn& t) {
    const std::uint64_t left = t.producer - t.next;
    const auto fetched = static_cast<std::uint32_t>(left < kWarpSize ? left : kWarpSize);
    BlockWords block{};
    SingleWqe w;
    bool single = false;
    if (lane_ < fetched) {
      const auto* at = reinterpret_cast<const ulonglong2*>(block_at(q, t.next + lane_));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const ulonglong2 two = __ldcv(at + i);
        block.word[2 * i] = two.x;
        block.word[2 * i + 1] = two.y;
      }
      single = decode_single(block, q.number, w);
    }
    const std::uint32_t others = ~port::ballot(kFullWarp, single);
    const std::uint32_t run = others == 0 ? kWarpSize : port::first_lane(others);
    if (run == 0) return one_general(q, t);
    if (!q.reachable) return await_peer(q, t, w, block);
    Move move;
    if (lane_ < run) move = check_single(tables_, q, w);
    const std::uint32_t failed = port::ballot(kFullWarp, lane_ < run && move.failure != 0);
    const std::uint32_t good = failed != 0 ? port::first_lane(failed) : run;
    if (good != 0) heat(q, t.owner, w, move);
    execute(t, w, block, move, good);
    complete(q, t, w, good);
    t.next += good;
    if (failed == 0) return;
    const FailureWord why = port::shuffle(kFullWarp, move.failure, good);
    const auto opcode = port::shuffle(kFullWarp, static_cast<std::uint32_t>(w.opcode), good);
    fail(q, t, 1, static_cast<wire::WqeOpcode>(opcode), why);
  }

  /// Lane 0's WQE has passed every check: those that are like it pass them, too.
  __device__ void heat(const GpuQueuePair& q, std::uint32_t owner, const SingleWqe& w, const Move& move) {
    const bool hot = w.inlined && w.bytes != 0 && move.reach == Reach::gpu;
    if (port::shuffle(kFullWarp, hot ? 1u : 0u, 0) == 0) return;
    const std::uint32_t key = port::shuffle(kFullWarp, w.remote_key, 0);
    if (lane_ != owner || mine_.hot.blocks == nullptr) return;
    const MkeyEntry& entry = tables_.key(key >> 8);
    if (entry.length < HotWrites::kMostBytes) return;
    mine_.hot.memory = entry.memory;
    mine_.hot.address = entry.address;
    mine_.hot.last_offset = entry.length - HotWrites::kMostBytes;
    mine_.hot.raw_key = Be32(key).raw();
    mine_.hot.unordered = q.unordered_writes || (entry.access & kAccessRelaxedOrdering) != 0;
  }

  /// The first `count` WQEs. Writes to memory of relaxed ordering pass each other, everything else is seen in
  /// the order of the queue.
  __device__ void execute(Turn& t, const SingleWqe& w, const BlockWords& block, const Move& move,
                          std::uint32_t count) {
    const bool in_count = lane_ < count;
    const bool small = w.bytes <= kLaneBytes;
    const std::uint32_t far =
        port::ballot(kFullWarp, in_count && w.bytes != 0 && move.reach == Reach::system);
    const Reach reach = far != 0 ? Reach::system : Reach::gpu;
    if (count == 0) return;
    if (port::ballot(kFullWarp, in_count && !move.unordered) == 0) {
      release_fence(t.stored);
      if (in_count) execute_small(w, block, move);
      t.stored = wider(t.stored, reach);
      port::sync_warp(kFullWarp);
      return;
    }
    const std::uint32_t moving = port::ballot(kFullWarp, in_count && w.bytes != 0);
    const std::uint32_t smalls = port::ballot(kFullWarp, small);
    for (std::uint32_t todo = moving; todo != 0; todo &= todo - 1) {
      const std::uint32_t i = port::first_lane(todo);
      if ((smalls >> i & 1u) != 0) {
        if (lane_ == i) {
          release_fence(t.stored);
          execute_small(w, block, move);
        }
      } else {
        const auto to = port::shuffle(kFullWarp, reinterpret_cast<std::uint64_t>(move.to), i);
        const auto from = port::shuffle(kFullWarp, reinterpret_cast<std::uint64_t>(move.from), i);
        const std::uint32_t bytes = port::shuffle(kFullWarp, w.bytes, i);
        release_fence(t.stored);
        copy_bytes(reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(from), bytes,
                   Movers{lane_, kWarpSize});
      }
      t.stored = reach;
      port::sync_warp(kFullWarp);
    }
  }

  // Completing ---------------------------------------------------------------------------------------

  __device__ static Completion completion_of(const GpuQueuePair& q, std::uint64_t index,
                                             wire::WqeOpcode opcode, std::uint32_t bytes) {
    Completion c;
    c.wqe_opcode = static_cast<std::uint8_t>(opcode);
    c.counter = static_cast<std::uint16_t>(index);
    c.qpn = q.number;
    c.user_index = q.user_index;
    c.bytes = needs_response(opcode) ? bytes : 0;
    return c;
  }

  /// Takes `count` entries of the queue's CQ. \return the first one's index
  __device__ std::uint64_t take_entries(const GpuRing& ring, Turn& t, std::uint32_t count) {
    if (!ring.shared) {
      const std::uint64_t first = t.completions;
      t.completions += count;
      return first;
    }
    std::uint64_t first = 0;
    if (lane_ == 0) first = port::fetch_add<Scope::gpu>(&p_.cq_producers[ring.slot], std::uint64_t{count});
    return port::shuffle(kFullWarp, first, 0);
  }

  /// \return whether there is room; without it the queue is lost, and its CQ with it
  __device__ bool has_room(const GpuQueuePair& q, Turn& t, std::uint32_t count) {
    const GpuRing& ring = q.completions;
    if (ring.ignore_overrun || ring.collapsed) return true;
    std::uint32_t full = 0;
    if (lane_ == 0) {
      const std::uint64_t producer =
          ring.shared ? port::load<Scope::gpu>(&p_.cq_producers[ring.slot]) : t.completions;
      full = would_overrun(ring, producer, count) ? 1 : 0;
    }
    if (port::shuffle(kFullWarp, full, 0) == 0) return true;
    t.state = GpuQueueState::flushing;
    if (lane_ == 0) {
      port::store<Scope::system>(&p_.progress[shuffled_slot(t)].overrun, 1u);
      call_host();
    }
    return false;
  }

  /// \pre lane 0 may ask alone: slots are spread in steps of the number of warps
  __device__ std::uint32_t shuffled_slot(const Turn& t) const { return warp_ + t.owner * warps_; }

  __device__ void call_host() {
    port::fence<Scope::system>();
    port::fetch_add<Scope::system>(&p_.status->attention, 1u);
  }

  __device__ void complete(const GpuQueuePair& q, Turn& t, const SingleWqe& w, std::uint32_t count) {
    const bool signalled = lane_ < count && w.signalled;
    const std::uint32_t all = port::ballot(kFullWarp, signalled);
    if (all == 0) return;
    if (q.completions.collapsed) {
      // Only the last one would be left of those that follow at once.
      const std::uint32_t last = port::last_lane(all);
      owe(t, t.next + last,
          static_cast<wire::WqeOpcode>(port::shuffle(kFullWarp, static_cast<std::uint32_t>(w.opcode), last)),
          port::shuffle(kFullWarp, w.bytes, last));
      return;
    }
    const std::uint32_t entries = port::count_lanes(all);
    if (!has_room(q, t, entries)) return;
    const std::uint64_t first = take_entries(q.completions, t, entries);
    if (signalled) {
      const std::uint64_t index = first + port::count_lanes(all & ((1u << lane_) - 1u));
      push(q.completions, index, completion_of(q, t.next + lane_, w.opcode, w.bytes), t.stored);
    }
    t.stored = Reach::none;
    port::sync_warp(kFullWarp);
  }

  __device__ void owe(Turn& t, std::uint64_t index, wire::WqeOpcode opcode, std::uint32_t bytes) {
    t.pending = true;
    t.pending_index = index;
    t.pending_opcode = opcode;
    t.pending_bytes = bytes;
  }

  __device__ void complete_pending(const GpuQueuePair& q, Turn& t) {
    if (!t.pending) return;
    t.pending = false;
    const std::uint64_t entry = take_entries(q.completions, t, 1);
    if (lane_ == 0)
      push(q.completions, entry, completion_of(q, t.pending_index, t.pending_opcode, t.pending_bytes),
           t.stored);
    t.stored = Reach::none;
    port::sync_warp(kFullWarp);
  }

  /// A WQE of one block or more, completed by all lanes together.
  __device__ void complete_one(const GpuQueuePair& q, Turn& t, std::uint32_t blocks, wire::WqeOpcode opcode,
                               bool signalled, std::uint32_t bytes) {
    if (signalled && q.completions.collapsed) {
      owe(t, t.next, opcode, bytes);
    } else if (signalled && has_room(q, t, 1)) {
      const std::uint64_t entry = take_entries(q.completions, t, 1);
      if (lane_ == 0) push(q.completions, entry, completion_of(q, t.next, opcode, bytes), t.stored);
      t.stored = Reach::none;
      port::sync_warp(kFullWarp);
    }
    t.next += blocks;
  }

  // Failing ------------------------------------------------------------------------------------------

  __device__ void push_error(const GpuQueuePair& q, Turn& t, wire::WqeOpcode opcode, FailureWord why) {
    const std::uint64_t entry = take_entries(q.completions, t, 1);
    if (lane_ == 0) {
      Completion c = completion_of(q, t.next, opcode, 0);
      c.opcode = wire::CqeOpcode::requester_error;
      c.syndrome = static_cast<wire::Syndrome>(why & 0xff);
      c.vendor = static_cast<std::uint8_t>(why >> 8);
      push(q.completions, entry, c, t.stored);
    }
    t.stored = Reach::none;
    port::sync_warp(kFullWarp);
  }

  /// The WQE at `next` fails, and the queue with it.
  __device__ void fail(const GpuQueuePair& q, Turn& t, std::uint32_t blocks, wire::WqeOpcode opcode,
                       FailureWord why) {
    complete_pending(q, t);
    t.state = GpuQueueState::flushing;
    if (has_room(q, t, 1)) push_error(q, t, opcode, why);
    t.next += blocks;
    if (t.next > t.producer) t.next = t.producer;
    if (lane_ == 0) {
      port::store<Scope::system>(&p_.progress[shuffled_slot(t)].failed, why);
      call_host();
    }
  }

  /// Everything that is posted completes as flushed, as far as there is room.
  __device__ void flush(const GpuQueuePair& q, Turn& t) {
    complete_pending(q, t);
    while (t.next < t.producer) {
      const auto* at = reinterpret_cast<const std::uint64_t*>(block_at(q, t.next));
      const std::uint64_t head = port::load<Scope::system>(at);
      const std::uint32_t blocks = wire::wqe_blocks(detail::be_high(head) & wire::kMaxSegments);
      if (!has_room(q, t, 1)) {
        t.pause = clock_ns() + 1'000'000;
        return;
      }
      push_error(q, t, static_cast<wire::WqeOpcode>(detail::be_low(head) & 0xff),
                 failure(wire::Syndrome::flushed, kVendorFlushed));
      t.next += blocks == 0 ? 1 : blocks;
      if (t.next > t.producer) t.next = t.producer;
    }
  }

  /// The other end is not there, or not ready: packets are lost, and in the end the queue is.
  __device__ void await_peer(const GpuQueuePair& q, Turn& t, const SingleWqe& w, const BlockWords&) {
    const std::uint64_t now = clock_ns();
    std::uint64_t since = port::shuffle(kFullWarp, mine_.silent_since, t.owner);
    if (since == 0) since = now;
    if (q.retry_ns != ~0ull && now - since >= q.retry_ns) {
      const auto opcode = port::shuffle(kFullWarp, static_cast<std::uint32_t>(w.opcode), 0);
      return fail(q, t, 1, static_cast<wire::WqeOpcode>(opcode),
                  failure(wire::Syndrome::transport_retry_exceeded, kVendorRetryExceeded));
    }
    if (lane_ == t.owner) mine_.silent_since = since;
    t.pause = now + 100'000;
  }

  // General WQEs -------------------------------------------------------------------------------------

  __device__ const DecodedWqe& fetch_general(const GpuQueuePair& q, const Turn& t) {
    Scratch& scratch = p_.scratch[warp_];
    const std::uint64_t head =
        port::load<Scope::system>(reinterpret_cast<const std::uint64_t*>(block_at(q, t.next)));
    const std::uint32_t wanted = (detail::be_high(head) & wire::kMaxSegments) * wire::kSegmentBytes;
    // Blocks that no doorbell has announced are not fetched, whatever the WQE says.
    const std::uint64_t announced = (t.producer - t.next) * wire::kBlockBytes;
    std::uint32_t available = wire::kBlockBytes;
    while (available < wanted && available < announced) available += wire::kBlockBytes;
    for (std::uint32_t at = lane_ * wire::kSegmentBytes; at < available;
         at += kWarpSize * wire::kSegmentBytes) {
      const unsigned char* from = block_at(q, t.next + at / wire::kBlockBytes) + at % wire::kBlockBytes;
      *reinterpret_cast<uint4*>(scratch.image + at) = __ldcv(reinterpret_cast<const uint4*>(from));
    }
    port::sync_warp(kFullWarp);
    if (lane_ == 0) {
      decode_wqe(scratch.image, available, scratch.wqe);
      if (scratch.wqe.error == wire::Syndrome::none && detail::be_high(head) >> 8 != q.number) {
        scratch.wqe.error = wire::Syndrome::local_qp_operation;
        scratch.wqe.vendor_error = kVendorWrongQueue;
      }
    }
    port::sync_warp(kFullWarp);
    return scratch.wqe;
  }

  __device__ void one_general(const GpuQueuePair& q, Turn& t) {
    const DecodedWqe& w = fetch_general(q, t);
    SingleWqe head;
    head.opcode = w.opcode;
    const Move move = check_general(tables_, q, w);
    if (move.failure != 0) return fail(q, t, w.blocks, w.opcode, move.failure);
    if (!q.reachable && w.opcode != wire::WqeOpcode::nop) return await_peer(q, t, head, BlockWords{});
    const bool immediate = w.opcode == wire::WqeOpcode::rdma_write_immediate;
    if (immediate && !receive_posted(q, t, w)) return;
    if (w.total_bytes != 0) {
      release_fence(t.stored);
      execute_general(tables_, q, w, move.to, lane_);
      t.stored = move.reach;
      port::sync_warp(kFullWarp);
    }
    if (immediate) complete_receive(q, t, w);
    complete_one(q, t, w.blocks, w.opcode, w.signalled(), static_cast<std::uint32_t>(w.total_bytes));
  }

  /// \return false where the peer has none: the queue pauses, or has tried often enough and fails
  __device__ bool receive_posted(const GpuQueuePair& q, Turn& t, const DecodedWqe& w) {
    std::uint32_t posted = 0;
    if (lane_ == 0 && q.peer_receives) {
      const std::uint32_t index = swap_bytes(port::load_acquire<Scope::system>(q.peer_receive_record));
      posted = static_cast<std::uint16_t>(index - static_cast<std::uint32_t>(p_.receive_next[q.peer_slot]));
      if (posted > q.peer_receive_entries) posted = 0;
    }
    if (port::shuffle(kFullWarp, posted, 0) != 0) {
      if (lane_ == t.owner) mine_.rnr_tries = 0;
      return true;
    }
    const std::uint32_t tries = port::shuffle(kFullWarp, mine_.rnr_tries, t.owner);
    if (tries >= q.rnr_retries) {
      fail(q, t, w.blocks, w.opcode, failure(wire::Syndrome::rnr_retry_exceeded, kVendorRnrExceeded));
      return false;
    }
    if (lane_ == t.owner && q.rnr_retries != ~0u) mine_.rnr_tries = tries + 1;
    t.pause = clock_ns() + q.rnr_ns;
    return false;
  }

  __device__ void complete_receive(const GpuQueuePair& q, Turn& t, const DecodedWqe& w) {
    if (lane_ == 0) {
      const std::uint64_t receive = p_.receive_next[q.peer_slot]++;
      Completion c;
      c.opcode = wire::CqeOpcode::responder_write_immediate;
      c.counter = static_cast<std::uint16_t>(receive);
      c.qpn = q.peer_number;
      c.user_index = q.peer_user_index;
      c.remote_qpn = q.number;
      c.slid = static_cast<std::uint16_t>(q.slid);
      c.bytes = static_cast<std::uint32_t>(w.total_bytes);
      c.immediate = w.immediate;
      c.solicited = (w.flags & wire::kWqeSolicited) != 0;
      const std::uint64_t entry =
          port::fetch_add<Scope::gpu>(&p_.cq_producers[q.peer_completions.slot], std::uint64_t{1});
      push(q.peer_completions, entry, c, t.stored);
    }
    t.stored = Reach::none;
    port::sync_warp(kFullWarp);
  }

  const EngineParameters& p_;
  Tables<constant> tables_;
  const std::uint32_t lane_;
  const std::uint32_t warp_;
  const std::uint32_t warps_;
  LaneQueue mine_;
  bool full_ = false;             ///< the last lane has a queue of its own
  bool stopping_ = false;         ///< the engine has been asked to end
  bool unfinished_ = false;       ///< there is something to do that no doorbell will announce
  std::uint64_t idle_since_ = 0;  ///< ns; 0: it works
  std::uint32_t works_ = 0;
};

template <bool constant>
__global__ void __launch_bounds__(kMostWarps* kWarpSize, 1)
    engine_kernel(const __grid_constant__ EngineParameters p) {
  EngineWarp<constant>(p).run();
}

}  // namespace

bool upload_constants(const GpuQueuePair* queues, std::size_t queue_count, const MkeyEntry* keys,
                      std::size_t key_count, cudaStream_t stream) {
  const auto kind = cudaMemcpyHostToDevice;
  if (queue_count != 0 && cudaMemcpyToSymbolAsync(constant_queues, queues, queue_count * sizeof *queues, 0,
                                                  kind, stream) != cudaSuccess)
    return false;
  return key_count == 0 || cudaMemcpyToSymbolAsync(constant_keys, keys, key_count * sizeof *keys, 0, kind,
                                                   stream) == cudaSuccess;
}

cudaError_t launch_engine(const EngineParameters& p, unsigned blocks, unsigned warps, cudaStream_t stream) {
  const bool constant = p.slots <= kConstantQueues && p.key_rows <= kConstantKeys;
  if (constant) {
    engine_kernel<true><<<blocks, warps * kWarpSize, 0, stream>>>(p);
  } else {
    engine_kernel<false><<<blocks, warps * kWarpSize, 0, stream>>>(p);
  }
  return cudaGetLastError();
}

}  // namespace belfry::softnic::cuda

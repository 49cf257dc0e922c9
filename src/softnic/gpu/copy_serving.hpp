#pragma once
/// \file
/// The copier's loop, for the threads of one block, on a GPU or on CPU lanes. Its first warp polls the ring
/// and serves what is small; the others wait at a barrier for what is not.

#include <cstdint>
#include <cstring>

#include "belfry/port/lane.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/port/time.hpp"
#include "softnic/gpu/change_word.hpp"
#include "softnic/gpu/copy_ring.hpp"
#if defined(__CUDACC__)
#include "softnic/cuda/fences.cuh"
#endif

namespace belfry::softnic {

/// Up to here one warp copies as fast as a block, which has to meet first.
inline constexpr std::uint32_t kWarpCopyBytes = 2048;

/// What the first warp tells the others. In the GPU's memory.
struct BlockCopy {
  unsigned char* to;
  const unsigned char* from;
  std::uint32_t word;  ///< of the command; 0: the end
};

class CopyServer {
 public:
  BELFRY_FN CopyServer(const CopierLaunch& p, BlockCopy* shared)
      : p_(p), shared_(shared), lane_(port::lane_index()), tag_(p.first) {}

  /// By all threads of the block.
  BELFRY_FN void run() {
    const bool leads = port::thread_index() < port::kWarpSize;
    if (port::thread_index() == 0) port::store_release<port::Scope::system>(&p_.ring->alive, p_.launch);
    begun_ = worked_ = port::now_ns();
    for (;;) {
      if (leads) lead();
      port::sync_block();
      const BlockCopy work{load_unit(&shared_->to), load_unit(&shared_->from), load_unit(&shared_->word)};
      const CopyWord word{work.word};
      if (word.kind() == CopyKind::none) break;
      copy(work.to, work.from, word.bytes(), port::thread_index(), port::threads_a_block());
      port::sync_block();
      if (leads) answer_done(word);
    }
    if (port::thread_index() == 0) port::store_release<port::Scope::system>(&p_.ring->ended, p_.launch);
  }

 private:
  /// Serves commands until one is for the whole block, or it is time to leave.
  BELFRY_FN void lead() {
    for (;;) {
      const port::Vector16 unit = await();
      const CopyWord word{port::shuffle(port::kFullWarp, copy_word(unit).bits, 0)};
      const auto first = reinterpret_cast<unsigned char*>(port::shuffle(port::kFullWarp, unit.low, 0));
      if (word.kind() == CopyKind::none) return tell({nullptr, nullptr, 0});
      if (word.kind() == CopyKind::copy || word.kind() == CopyKind::fetch) {
        const auto from = reinterpret_cast<const unsigned char*>(port::shuffle(port::kFullWarp, unit.low, 1));
        acquire();
        if (word.bytes() > kWarpCopyBytes) return tell({first, from, word.bits});
        copy(first, from, word.bytes(), lane_, port::kWarpSize);
        answer_done(word);
      } else if (word.kind() == CopyKind::put) {
        put(first, unit.low, word.bytes());
        answer_done(word);
      } else if (word.kind() == CopyKind::get) {
        get(first, word.bytes());
      } else {
        update(first, unit.low, word);
      }
    }
  }

  /// One load of the line is under way at a time: of several to one address each waits for those before it,
  /// and a fence for all of them. \return this lane's unit of the next command, of the kind `none` where it
  /// is time to leave
  BELFRY_FN port::Vector16 await() {
    const CopyLine& line = p_.ring->commands[copy_slot(tag_)];
    for (;;) {
      port::Vector16 unit{};
      if (lane_ < kCopyUnits) unit = port::load_16(&line.units[lane_]);
      if (is_complete(unit)) return unit;
      if (is_time_to_leave()) return {};
      give_way();
    }
  }

  BELFRY_FN bool is_complete(port::Vector16 unit) const {
    const std::uint32_t here = port::ballot(port::kFullWarp, copy_tag(unit) == tag_);
    if ((here & 1u) == 0) return false;
    const CopyWord word{port::shuffle(port::kFullWarp, copy_word(unit).bits, 0)};
    const std::uint32_t needed = (1u << word.units()) - 1u;
    return (here & needed) == needed;
  }
  BELFRY_FN bool is_time_to_leave() const {
    std::uint32_t leave = 0;
    if (lane_ == 0) {
      const std::uint64_t now = port::now_ns();
      leave = now - worked_ > p_.idle_ns || now - begun_ > p_.stay_ns ? 1 : 0;
    }
    return port::shuffle(port::kFullWarp, leave, 0) != 0;
  }

  BELFRY_FN void tell(const BlockCopy& work) {
    if (lane_ == 0) *shared_ = work;
  }

  /// Lanes 1 to 7 store 8 B each, or what is left.
  BELFRY_FN void put(unsigned char* to, std::uint64_t content, std::uint32_t bytes) {
    const std::uint32_t at = (lane_ - 1) * 8;
    if (lane_ == 0 || at >= bytes) return;
    store_bytes(to + at, content, bytes - at < 8 ? bytes - at : 8);
  }

  /// The bytes are the answer.
  BELFRY_FN void get(const unsigned char* from, std::uint32_t bytes) {
    const std::uint32_t at = lane_ * 8;
    acquire();
    if (at < bytes) {
      const std::uint64_t content = load_bytes(from + at, bytes - at < 8 ? bytes - at : 8);
      answer(lane_, content);
    }
    go_on();
  }

  BELFRY_FN void update(unsigned char* at, std::uint64_t content, CopyWord word) {
    AtomicOperands o;
    o.swap_or_add = port::shuffle(port::kFullWarp, content, 1);
    o.compare = port::shuffle(port::kFullWarp, content, 2);
    o.swap_mask = port::shuffle(port::kFullWarp, content, 3);
    o.compare_mask = port::shuffle(port::kFullWarp, content, 4);
    const auto opcode = static_cast<wire::WqeOpcode>(word.opcode());
    if (lane_ == 0) {
      answer(0, word.width() == 4 ? exchange(reinterpret_cast<std::uint32_t*>(at), opcode, o)
                                  : exchange(reinterpret_cast<std::uint64_t*>(at), opcode, o));
    }
    go_on();
  }

  /// Relaxed: what came before was answered, and so is there.
  template <class Word>
  BELFRY_FN static std::uint64_t exchange(Word* at, wire::WqeOpcode opcode, const AtomicOperands& o) {
    if (opcode == wire::WqeOpcode::atomic_fetch_add)
      return port::fetch_add<port::Scope::system>(at, static_cast<Word>(o.swap_or_add));
    return change_word(at, opcode, o);
  }

  /// What was copied is seen by whoever sees the answer, and by whoever hears of it.
  BELFRY_FN void answer_done(CopyWord word) {
    port::sync_warp(port::kFullWarp);
    if (lane_ == 0) {
      release(word.kind() == CopyKind::fetch);
      answer(0, 0);
    }
    go_on();
  }
  BELFRY_FN void answer(std::uint32_t unit, std::uint64_t content) {
    port::store_16(&p_.ring->answers[copy_slot(tag_)].units[unit], copy_unit(content, tag_, {}));
  }
  BELFRY_FN void go_on() {
    tag_ = next_copy_tag(tag_);
    if (lane_ == 0) worked_ = port::now_ns();
  }

  // Bytes in the widest pieces that the address allows: an aligned word is one store.

  BELFRY_FN static void store_bytes(unsigned char* to, std::uint64_t content, std::uint32_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    if (bytes == 8 && address % 8 == 0)
      return port::store<port::Scope::system>(reinterpret_cast<std::uint64_t*>(to), content);
    while (bytes != 0) {
      std::uint32_t some = 1;
      if (bytes >= 4 && reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
        port::store<port::Scope::system>(reinterpret_cast<std::uint32_t*>(to),
                                         static_cast<std::uint32_t>(content));
        some = 4;
      } else if (bytes >= 2 && reinterpret_cast<std::uintptr_t>(to) % 2 == 0) {
        port::store<port::Scope::system>(reinterpret_cast<std::uint16_t*>(to),
                                         static_cast<std::uint16_t>(content));
        some = 2;
      } else {
        *static_cast<volatile unsigned char*>(to) = static_cast<unsigned char>(content);
      }
      content >>= 8 * some;
      to += some;
      bytes -= some;
    }
  }

  BELFRY_FN static std::uint64_t load_bytes(const unsigned char* from, std::uint32_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    if (bytes == 8 && address % 8 == 0)
      return port::load<port::Scope::system>(reinterpret_cast<const std::uint64_t*>(from));
    if (bytes == 4 && address % 4 == 0)
      return port::load<port::Scope::system>(reinterpret_cast<const std::uint32_t*>(from));
    std::uint64_t content = 0;
    for (std::uint32_t i = 0; i < bytes; ++i) content |= std::uint64_t{load_unit(from + i)} << (8 * i);
    return content;
  }

  /// By `count` threads, of which this is number `rank`.
  BELFRY_FN static void copy(unsigned char* to, const unsigned char* from, std::uint32_t bytes,
                             std::uint32_t rank, std::uint32_t count) {
    const auto apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
    if ((apart & 15) == 0) return copy_aligned<port::Vector16>(to, from, bytes, rank, count);
    if ((apart & 7) == 0) return copy_aligned<std::uint64_t>(to, from, bytes, rank, count);
    if ((apart & 3) == 0) return copy_aligned<std::uint32_t>(to, from, bytes, rank, count);
    copy_units<unsigned char>(to, from, bytes, rank, count);
  }

  /// Single bytes up to the first unit and after the last.
  template <class Unit>
  BELFRY_FN static void copy_aligned(unsigned char* to, const unsigned char* from, std::uint32_t bytes,
                                     std::uint32_t rank, std::uint32_t count) {
    constexpr std::uint32_t kUnit = sizeof(Unit);
    std::uint32_t head = static_cast<std::uint32_t>(0 - reinterpret_cast<std::uintptr_t>(to)) & (kUnit - 1);
    if (head > bytes) head = bytes;
    const std::uint32_t units = (bytes - head) / kUnit;
    const std::uint32_t end = head + units * kUnit;
    copy_units<unsigned char>(to, from, head, rank, count);
    copy_units<Unit>(to + head, from + head, units, rank, count);
    copy_units<unsigned char>(to + end, from + end, bytes - end, rank, count);
  }

  /// Four loads are under way at a time: one turn over PCIe takes a microsecond.
  template <class Unit>
  BELFRY_FN static void copy_units(unsigned char* to, const unsigned char* from, std::uint32_t units,
                                   std::uint32_t rank, std::uint32_t count) {
    constexpr std::uint32_t kAhead = 4;
    auto* out = reinterpret_cast<Unit*>(to);
    const auto* in = reinterpret_cast<const Unit*>(from);
    std::uint32_t i = rank;
    for (; units > (kAhead - 1) * count && i < units - (kAhead - 1) * count; i += kAhead * count) {
      Unit held[kAhead];
      for (std::uint32_t k = 0; k < kAhead; ++k) held[k] = load_unit(in + i + k * count);
      for (std::uint32_t k = 0; k < kAhead; ++k) out[i + k * count] = held[k];
    }
    for (; i < units; i += count) out[i] = load_unit(in + i);
  }

  /// Past the L1, which nobody keeps coherent.
  template <class Unit>
  BELFRY_FN static Unit load_unit(const Unit* from) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(Unit) == 16) {
      const ulonglong2 value = __ldcv(reinterpret_cast<const ulonglong2*>(from));
      return {value.x, value.y};
    } else {
      return *const_cast<const volatile Unit*>(from);
    }
#else
    return *from;
#endif
  }

  BELFRY_FN static void acquire() {
#if defined(__CUDA_ARCH__)
    cuda::acquire_fence(true);
#else
    port::fence<port::Scope::system>();
#endif
  }
  /// All who look at this GPU's memory do so through its L2.
  BELFRY_FN static void release([[maybe_unused]] bool far) {
#if defined(__CUDA_ARCH__)
    cuda::release_fence(far ? cuda::Reach::system : cuda::Reach::gpu);
#else
    port::fence<port::Scope::system>();
#endif
  }
  BELFRY_FN static void give_way() {
#if !defined(__CUDA_ARCH__)
    port::pause_lane();
#endif
  }

  const CopierLaunch p_;
  BlockCopy* const shared_;
  const std::uint32_t lane_;
  std::uint32_t tag_;
  std::uint64_t begun_ = 0;
  std::uint64_t worked_ = 0;  ///< of lane 0: when it last had a command
};

}  // namespace belfry::softnic

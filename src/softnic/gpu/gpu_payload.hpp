#pragma once
/// \file
/// GPU memory as the CPU's NIC reaches it: by copies, most of them through staging memory. Whatever is
/// touched here may be gone, and is then a memory fault (firmware/memory_fault.hpp) like that of host memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "softnic/fabric/fabric.hpp"
#include "softnic/firmware/keys.hpp"
#include "softnic/firmware/wqe_decode.hpp"

namespace belfry::softnic {

class GpuCopiers;

/// Bytes that stage() and read_ahead() hold at a time.
inline constexpr std::size_t kGpuStagedBytes = 256 << 10;

/// Guarded by the NIC's lock, which is let go of during each copy. Bytes for GPU memory are gathered while
/// they continue each other, for a copy of one packet costs as much as that of many: flush() sends them on.
/// Nothing outlives a poll of the NIC.
class GpuPayload {
 public:
  explicit GpuPayload(GpuCopiers& copiers) : copiers_(copiers) {}

  /// Keys of GPU memory come and go.
  void add(const MkeyEntry& key);
  void remove(const MkeyEntry& key);

  bool empty() const { return reach_ == 0; }
  /// Whether a key names this address as a GPU's.
  bool holds(const void* address) const { return is_gpu(owner_of(address)); }

  // The rest within survive_faults().

  /// Moves payload from and to anywhere: to GPU memory it has come with the next flush().
  void move(unsigned char* to, const unsigned char* from, std::size_t bytes);
  /// On return all that was moved before is in GPU memory, visible to kernels that run.
  void flush();
  bool pending() const { return pending_bytes_ != 0; }
  /// Forgets what was not flushed.
  void drop() { pending_bytes_ = 0; }

  /// Executes an atomic. \return the former value
  std::uint64_t update(unsigned char* at, wire::WqeOpcode opcode, const AtomicOperands& operands);

  /// Faults where what is about to be moved is gone, in whichever memory.
  void vouch(const FramePart& part);
  /// Replaces parts in GPU memory by copies, valid until the next stage(). They are kGpuStagedBytes at most.
  void stage(FramePart* parts, std::uint32_t count);
  /// What stage() is about to be asked for, so that one copy brings it for many packets. Forget it when the
  /// packets are out: the memory may change.
  void read_ahead(const FramePart& part);
  void forget_ahead() { ahead_bytes_ = 0; }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t key;
    MemoryOwner owner;
  };

  MemoryOwner owner_of(const void* address) const {
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(address);
    return at - lowest_ < reach_ ? find_owner(at) : kHostMemory;
  }
  MemoryOwner find_owner(std::uint64_t address) const;
  void find_bounds();
  void move_from_gpu(MemoryOwner source, unsigned char* to, const unsigned char* from, std::size_t bytes);
  void gather(MemoryOwner owner, unsigned char* to, const unsigned char* from, std::size_t bytes);
  void upload(MemoryOwner owner, unsigned char* to, const unsigned char* staged, std::size_t bytes);
  void download(MemoryOwner owner, unsigned char* staged, const unsigned char* from, std::size_t bytes);

  GpuCopiers& copiers_;
  std::vector<Range> ranges_;
  std::uint64_t lowest_ = 0;
  std::uint64_t reach_ = 0;  ///< bytes from the lowest address of all ranges to the highest

  MemoryOwner pending_owner_ = kHostMemory;
  unsigned char* pending_to_ = nullptr;
  std::size_t pending_bytes_ = 0;
  const unsigned char* ahead_from_ = nullptr;
  std::size_t ahead_bytes_ = 0;
};

}  // namespace belfry::softnic

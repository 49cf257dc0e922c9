#pragma once
/// \file
/// Copies one GPU's memory by its copier kernel while that is there, and else, or where it is faster, by
/// calls of CUDA's.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "softnic/firmware/wqe_decode.hpp"
#include "softnic/gpu/gpu_copier.hpp"

namespace belfry::softnic {

/// Of the staging memory, its end: what CUDA copies between two places of the GPU.
inline constexpr std::size_t kBetweenBytes = kGpuStagingBytes / 4;

/// From here on staging memory goes to the GPU sooner by a copy engine than by one block's loads.
inline constexpr std::size_t kKernelUploadBytes = 64 << 10;

struct RingCopierOptions {
  std::chrono::nanoseconds idle = std::chrono::microseconds(200);  ///< the kernel leaves after so long
  std::chrono::nanoseconds stay = std::chrono::milliseconds(100);  ///< and after so long at all
  /// An atomic, which is one only by the kernel, waits for the GPU to have room for it, once a launch.
  std::chrono::nanoseconds admission = std::chrono::milliseconds(20);
  /// A kernel that runs answers in microseconds, unless its process has to share the GPU's time.
  std::chrono::nanoseconds answer = std::chrono::seconds(2);
  /// Who shares it copies by CUDA for a while: at first so long, in the end 64 times as long.
  std::chrono::nanoseconds slow = std::chrono::microseconds(500);
  std::chrono::nanoseconds rest = std::chrono::milliseconds(20);
};

/// Its calls are as GpuCopier's. One call at a time.
class RingCopier {
 public:
  /// \param kernel may be null: CUDA copies everything
  RingCopier(std::unique_ptr<GpuCopier> copies, std::unique_ptr<GpuCopierKernel> kernel,
             const RingCopierOptions& options);

  unsigned char* staging() { return copies_->staging(); }
  bool to_gpu(void* to, const void* staged, std::size_t bytes);
  bool from_gpu(void* staged, const void* from, std::size_t bytes);
  /// Within the GPU's memory. \pre the ranges do not overlap
  bool between(void* to, const void* from, std::size_t bytes);
  /// An atomic on the GPU's memory. By the kernel it is one towards all that run there; by CUDA's copies only
  /// towards other calls of this.
  bool update(void* at, wire::WqeOpcode opcode, const AtomicOperands& operands, std::uint64_t* former);
  bool holds(const void* address, std::size_t bytes) { return copies_->holds(address, bytes); }

  std::string error() const { return error_.empty() ? copies_->error() : error_; }

  /// Commands that the kernel has carried out.
  std::uint64_t served() const { return served_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Command {
    CopyWord word;
    std::uint64_t content[kCopyUnits] = {};
    std::uint32_t answers = 1;  ///< units of its answer
  };
  /// What became of a command: nothing, where CUDA is to do it.
  enum class Outcome : std::uint8_t { done, none, stuck };

  enum class Need : std::uint8_t { kernel_is_faster, kernel_alone };

  bool is_ready(Need need = Need::kernel_is_faster);
  bool await_admission();
  void launch();
  bool has_ended();
  Outcome serve(const Command& command);
  bool update_by_copies(void* at, wire::WqeOpcode opcode, const AtomicOperands& operands,
                        std::uint64_t* former);
  Outcome await(std::uint32_t units);
  void note_time(Clock::duration took);
  Outcome give_up();
  const CopyLine& answer() const { return ring_->answers[copy_slot(tag_)]; }

  std::unique_ptr<GpuCopier> copies_;
  std::unique_ptr<GpuCopierKernel> kernel_;
  const RingCopierOptions options_;
  CopyRing* ring_ = nullptr;
  std::uint32_t tag_ = 0;  ///< of the last command
  std::uint32_t launch_ = 0;
  std::uint32_t awaited_ = 0;  ///< the launch that was waited for, in vain
  bool launched_ = false;      ///< and not known to have ended
  bool alive_ = false;         ///< it serves
  bool stuck_ = false;         ///< it may still touch anything
  Clock::time_point now_{};
  Clock::time_point last_{};  ///< when this was last asked for a copy
  Clock::time_point rests_until_{};
  Clock::duration rest_;
  std::uint32_t in_time_ = 0;  ///< answers since one was slow
  std::uint64_t served_ = 0;
  std::string error_;
};

}  // namespace belfry::softnic

#pragma once
/// \file
/// An engine without a GPU. Its "GPU memory" is a stretch of this process's that faults at every touch but
/// the engine's own, so that whoever reaches it otherwise than by a copy is found out.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "softnic/gpu/gpu_library.hpp"

namespace belfry::softnic::test {

/// Memory that only copies reach.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes)
      : bytes_((bytes + 4095) / 4096 * 4096),
        data_(static_cast<unsigned char*>(
            ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~GuardedMemory() { ::munmap(data_, bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  unsigned char* data() const { return data_; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }
  std::size_t size() const { return bytes_; }
  bool holds(const void* address, std::size_t bytes) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - this->address();
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }

  template <class Access>
  void open(const Access& access) const {
    ::mprotect(data_, bytes_, PROT_READ | PROT_WRITE);
    access();
    ::mprotect(data_, bytes_, PROT_NONE);
  }
  void write(std::size_t offset, const void* from, std::size_t bytes) const {
    open([&] { std::memcpy(data_ + offset, from, bytes); });
  }
  std::vector<unsigned char> read(std::size_t offset, std::size_t bytes) const {
    std::vector<unsigned char> copy(bytes);
    open([&] { std::memcpy(copy.data(), data_ + offset, bytes); });
    return copy;
  }
  std::uint64_t word(std::size_t offset) const {
    std::uint64_t value;
    std::memcpy(&value, read(offset, sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::size_t bytes_;
  unsigned char* data_;
};

/// Says that the memory is GPU 0's, and copies it. Nothing executes queues there.
class GuardedLibrary final : public GpuLibrary {
 public:
  /// What a test looks at and sets.
  struct State {
    unsigned copies = 0;
    bool gone = false;  ///< copies fail as of memory that was freed
  };

  GuardedLibrary(const GuardedMemory& memory, State& state) : memory_(memory), state_(state) {}

  MemoryOwner owner_of(const void* address, std::size_t bytes) override {
    return memory_.holds(address, bytes) ? MemoryOwner{0} : kHostMemory;
  }
  std::unique_ptr<GpuEngine> make_engine(const GpuEngineOptions&, std::string& error) override {
    error = "there is none";
    return nullptr;
  }
  std::unique_ptr<GpuCopier> make_copier(MemoryOwner, std::string&) override {
    return std::make_unique<Copier>(memory_, state_);
  }
  std::unique_ptr<GpuCopierKernel> make_copier_kernel(MemoryOwner, std::string& error) override {
    error = "there is none";
    return nullptr;
  }
  std::unique_ptr<GpuRegisterMemory> make_register_memory(MemoryOwner, std::string& error) override {
    error = "there are none";
    return nullptr;
  }

 private:
  class Copier final : public GpuCopier {
   public:
    Copier(const GuardedMemory& memory, State& state) : memory_(memory), state_(state) {}

    unsigned char* staging() override { return staging_.data(); }
    bool to_gpu(void* to, const void* staged, std::size_t bytes) override {
      return copy(to, bytes, [&] { std::memcpy(to, staged, bytes); });
    }
    bool from_gpu(void* staged, const void* from, std::size_t bytes) override {
      return copy(from, bytes, [&] { std::memcpy(staged, from, bytes); });
    }
    bool holds(const void* address, std::size_t bytes) override {
      return !state_.gone && memory_.holds(address, bytes);
    }
    std::string error() const override { return "the memory is gone"; }

   private:
    template <class Move>
    bool copy(const void* on_gpu, std::size_t bytes, const Move& move) {
      ++state_.copies;
      EXPECT_TRUE(memory_.holds(on_gpu, bytes)) << "a copy of what is no GPU memory";
      if (state_.gone) return false;
      memory_.open(move);
      return true;
    }

    const GuardedMemory& memory_;
    State& state_;
    std::vector<unsigned char> staging_ = std::vector<unsigned char>(kGpuStagingBytes);
  };

  const GuardedMemory& memory_;
  State& state_;
};

}  // namespace belfry::softnic::test

#pragma once
/// \file
/// GPUs that execute nothing: addresses that say whose memory they are, and engines that note what they are
/// told.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "softnic/gpu/gpu_library.hpp"

namespace belfry::softnic::test {

/// What the engines of one process share and a test looks at.
struct FakeGpus {
  /// Memory that is a GPU's: ranges by their first address.
  void give(const void* address, std::size_t bytes, MemoryOwner owner) {
    const std::lock_guard lock(mutex);
    memory[reinterpret_cast<std::uintptr_t>(address)] = {bytes, owner};
  }

  struct Engine {
    std::vector<GpuQueuePair> queues;
    std::vector<MkeyEntry> keys;
    std::set<MemoryOwner> reached;
    unsigned updates = 0;
    unsigned launches = 0;
  };
  Engine engine(MemoryOwner gpu) {
    const std::lock_guard lock(mutex);
    return engines[gpu];
  }
  bool has(MemoryOwner gpu) {
    const std::lock_guard lock(mutex);
    return engines.contains(gpu);
  }

  std::mutex mutex;
  std::map<std::uintptr_t, std::pair<std::size_t, MemoryOwner>> memory;
  std::map<MemoryOwner, Engine> engines;
  std::set<MemoryOwner> absent;        ///< GPUs that are not there
  std::set<MemoryOwner> out_of_reach;  ///< for all others
};

class FakeGpuEngine : public GpuEngine {
 public:
  FakeGpuEngine(std::shared_ptr<FakeGpus> gpus, MemoryOwner gpu) : gpus_(std::move(gpus)), gpu_(gpu) {
    const std::lock_guard lock(gpus_->mutex);
    gpus_->engines[gpu_];
  }

  bool reach(MemoryOwner gpu, std::string& error) override {
    const std::lock_guard lock(gpus_->mutex);
    if (gpus_->out_of_reach.contains(gpu)) {
      error = "no link";
      return false;
    }
    gpus_->engines[gpu_].reached.insert(gpu);
    return true;
  }
  Pinned pin(const HostRange&) override { return Pinned::ours; }
  void unpin(const HostRange&) override {}
  bool update(std::span<const GpuQueuePair> queues, std::span<const MkeyEntry> keys, std::uint32_t) override {
    const std::lock_guard lock(gpus_->mutex);
    FakeGpus::Engine& engine = gpus_->engines[gpu_];
    engine.queues.assign(queues.begin(), queues.end());
    engine.keys.assign(keys.begin(), keys.end());
    ++engine.updates;
    return true;
  }
  bool reset_completions(std::uint32_t) override { return true; }
  bool launch() override {
    const std::lock_guard lock(gpus_->mutex);
    ++gpus_->engines[gpu_].launches;
    return true;
  }
  bool running() override { return false; }
  bool stop() override { return true; }
  std::uint32_t attention() const override { return 0; }
  GpuProgress& progress(std::uint32_t slot) override { return progress_[slot]; }
  std::string error() const override { return "none"; }

 private:
  std::shared_ptr<FakeGpus> gpus_;
  MemoryOwner gpu_;
  std::map<std::uint32_t, GpuProgress> progress_;
};

/// Copies with the CPU.
class FakeGpuCopier : public GpuCopier {
 public:
  unsigned char* staging() override { return staging_.data(); }
  bool to_gpu(void* to, const void* staged, std::size_t bytes) override {
    std::memcpy(to, staged, bytes);
    return true;
  }
  bool from_gpu(void* staged, const void* from, std::size_t bytes) override {
    std::memcpy(staged, from, bytes);
    return true;
  }
  bool holds(const void*, std::size_t) override { return true; }
  std::string error() const override { return "none"; }

 private:
  std::vector<unsigned char> staging_ = std::vector<unsigned char>(kGpuStagingBytes);
};

/// Words of the host's, which tests ring as kernels would.
class FakeGpuRegisters final : public GpuRegisterMemory {
 public:
  FakeGpuRegisters(std::shared_ptr<FakeGpus> gpus, MemoryOwner gpu) : gpus_(std::move(gpus)), gpu_(gpu) {}

  unsigned char* registers() override { return reinterpret_cast<unsigned char*>(words_.data()); }
  bool open_to(MemoryOwner gpu) override {
    const std::lock_guard lock(gpus_->mutex);
    return gpu == gpu_ || !gpus_->out_of_reach.contains(gpu);
  }
  bool read(std::uint64_t* values, std::uint32_t count) override {
    for (std::uint32_t i = 0; i < count; ++i) values[i] = std::atomic_ref(words_[i * kWords]).load();
    return true;
  }
  bool write(std::uint32_t index, std::uint64_t value) override {
    std::atomic_ref(words_[index * kWords]).store(value);
    return true;
  }
  std::string error() const override { return "no link"; }

 private:
  static constexpr std::size_t kWords = kGpuRegisterBytes / sizeof(std::uint64_t);

  std::shared_ptr<FakeGpus> gpus_;
  MemoryOwner gpu_;
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kGpuPageRegisters * kWords);
};

class FakeGpuLibrary final : public GpuLibrary {
 public:
  explicit FakeGpuLibrary(std::shared_ptr<FakeGpus> gpus) : gpus_(std::move(gpus)) {}

  MemoryOwner owner_of(const void* address, std::size_t bytes) override {
    const std::lock_guard lock(gpus_->mutex);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (const auto& [begin, range] : gpus_->memory)
      if (at >= begin && at + bytes <= begin + range.first) return range.second;
    return kHostMemory;
  }
  std::unique_ptr<GpuEngine> make_engine(const GpuEngineOptions& options, std::string& error) override {
    const auto gpu = static_cast<MemoryOwner>(options.gpu);
    if (gpus_->absent.contains(gpu)) {
      error = "no such GPU";
      return nullptr;
    }
    return std::make_unique<FakeGpuEngine>(gpus_, gpu);
  }
  std::unique_ptr<GpuCopier> make_copier(MemoryOwner, std::string&) override {
    return std::make_unique<FakeGpuCopier>();
  }
  std::unique_ptr<GpuCopierKernel> make_copier_kernel(MemoryOwner, std::string& error) override {
    error = "there is none";
    return nullptr;
  }
  std::unique_ptr<GpuRegisterMemory> make_register_memory(MemoryOwner gpu, std::string&) override {
    return std::make_unique<FakeGpuRegisters>(gpus_, gpu);
  }

 private:
  std::shared_ptr<FakeGpus> gpus_;
};

}  // namespace belfry::softnic::test

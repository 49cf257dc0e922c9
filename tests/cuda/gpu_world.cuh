#pragma once
/// \file
/// Two PEs of this process whose queues and windows lie in GPU memory, and kernels launched for them.

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "belfry/host/cuda_memory.hpp"
#include "belfry/host/device_endpoint.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "conformance/kernels/report.hpp"
#include "conformance/kernels/transfers.hpp"

namespace belfry::conformance {

using device::Place;

/// Tests that run at the same time must not share a fabric, and a kernel's first launch must not wait for
/// kernels that wait for it. Runs before main.
inline const bool kOwnFabric = [] {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  const std::string name = "gpu-conformance-" + std::to_string(getpid());
  return setenv("BELFRY_SOFTNIC_FABRIC", name.c_str(), 0) == 0;
}();

inline void check(cudaError_t code) { ASSERT_EQ(code, cudaSuccess) << cudaGetErrorString(code); }

/// GPUs that tests may use: none where BELFRY_SOFTNIC_GPU names one that is not there.
inline int usable_gpus() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) return 0;
  const char* engine = std::getenv("BELFRY_SOFTNIC_GPU");
  return engine != nullptr && std::atoi(engine) >= gpus ? 0 : gpus;
}

/// Memory of reports and parameters that both sides see.
template <class T>
class Shared {
 public:
  explicit Shared(std::size_t count) : count_(count) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocPortable));
    items_.reset(static_cast<T*>(memory));
    for (std::size_t i = 0; i < count; ++i) new (items_.get() + i) T{};
  }
  explicit Shared(const std::vector<T>& items) : Shared(items.size()) {
    std::copy(items.begin(), items.end(), items_.get());
  }
  T* data() const { return items_.get(); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return items_.get()[i]; }

 private:
  struct Free {
    void operator()(T* at) const { cudaFreeHost(at); }
  };
  std::unique_ptr<T, Free> items_;
  std::size_t count_;
};

template <class Kernel>
__global__ void run_kernel(const __grid_constant__ Kernel kernel) {
  kernel();
}

/// A kernel that runs on a GPU until wait().
class Running {
 public:
  template <class Kernel>
  Running(int gpu, std::uint32_t blocks, std::uint32_t threads, const Kernel& kernel) : gpu_(gpu) {
    check(cudaSetDevice(gpu_));
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    run_kernel<<<blocks, threads, 0, stream_>>>(kernel);
    check(cudaGetLastError());
  }
  ~Running() { wait(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void wait() {
    if (stream_ == nullptr) return;
    check(cudaSetDevice(gpu_));
    check(cudaStreamSynchronize(stream_));
    check(cudaStreamDestroy(stream_));
    stream_ = nullptr;
  }

 private:
  int gpu_;
  cudaStream_t stream_ = nullptr;
};

template <class Kernel>
void launch(std::uint32_t blocks, std::uint32_t threads, const Kernel& kernel, int gpu = 0) {
  Running(gpu, blocks, threads, kernel).wait();
}

enum WindowNumber : std::uint32_t { kData, kSignals, kRelaxed };
inline constexpr std::size_t kDataBytes = 1 << 20;
inline constexpr std::uint64_t kMaxMessage = 6000;

/// Where the two PEs' kernels and memory are, by CUDA's numbers.
struct Places {
  int gpu[2] = {0, 0};
  int data[2] = {0, 0};  ///< of window kData
};
inline Places on_gpus(int first, int second) { return {{first, second}, {first, second}}; }

/// Two PEs whose queues and windows lie in GPU memory.
class World {
 public:
  World(const device::Requirements& requirements, const host::DeviceEndpointOptions& asked,
        const Places& places = {}) {
    auto members = host::make_thread_bootstrap(2);
    std::vector<std::thread> makers;
    for (std::size_t pe = 0; pe < 2; ++pe) {
      makers.emplace_back([&, pe] {
        try {
          const host::DeviceEndpointOptions options = placed(requirements, asked, places, pe);
          memories_[pe] = options.placement.tables.memory;
          endpoints_[pe] = std::make_unique<host::DeviceEndpoint>(*members[pe], options);
          endpoints_[pe]->admit(requirements);
          made_[pe] = true;
        } catch (const host::Error& error) {
          ADD_FAILURE() << "PE " << pe << ": " << error.what();
        }
      });
    }
    for (std::thread& maker : makers) maker.join();
  }

  host::DeviceEndpoint& endpoint(std::uint32_t pe) const { return *endpoints_[pe]; }
  const device::EndpointView& view(std::uint32_t pe) const { return endpoints_[pe]->view(); }
  bool ok() const { return made_[0] && made_[1]; }

  std::vector<std::byte> read(std::uint32_t pe, Place place, std::size_t bytes) const {
    std::vector<std::byte> copy(bytes);
    memories_[pe]->read(copy.data(), at(pe, place), bytes);
    return copy;
  }
  void write(std::uint32_t pe, Place place, const std::vector<std::byte>& bytes) const {
    memories_[pe]->write(at(pe, place), bytes.data(), bytes.size());
  }
  std::uint64_t word(std::uint32_t pe, Place place) const { return memories_[pe]->load(at(pe, place)); }

  /// Entries of PE 0's view in GPU memory, changed on the host.
  template <class T>
  void change(const T* entry, const std::function<void(T&)>& edit) const {
    T copy;
    memories_[0]->read(&copy, entry, sizeof copy);
    edit(copy);
    memories_[0]->write(const_cast<T*>(entry), &copy, sizeof copy);
  }

 private:
  static host::DeviceEndpointOptions placed(const device::Requirements& requirements,
                                            host::DeviceEndpointOptions options, const Places& places,
                                            std::size_t pe) {
    options.context.nic = "soft";
    options.doorbell = requirements.doorbell_mode;
    options.completions = requirements.completion_layout;
    options.placement = host::place_for_gpu({}, places.gpu[pe]);
    options.doorbell_path = host::DoorbellPath::gpu_rung;
    for (const std::size_t bytes : {kDataBytes, std::size_t{1} << 16, kDataBytes})
      options.windows.push_back({.bytes = bytes, .memory = options.placement.tables.memory});
    options.windows[kRelaxed].access = host::kAllAccess | host::Access::relaxed_ordering;
    if (places.data[pe] != places.gpu[pe])
      options.windows[kData].memory = host::gpu_queue_memory(places.data[pe]);
    return options;
  }

  std::byte* at(std::uint32_t pe, Place place) const {
    return endpoints_[pe]->windows().memory(place.window).data() + place.offset;
  }

  std::shared_ptr<host::QueueMemory> memories_[2];
  std::unique_ptr<host::DeviceEndpoint> endpoints_[2];
  bool made_[2] = {};
};

inline std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() >> 8);
  return bytes;
}

inline constexpr std::byte kGuard{0xee};

/// Transfers of lengths around everything that changes with one, at odd places, guards between them.
inline std::vector<Transfer> transfers_into(std::uint32_t window, std::uint64_t& end) {
  std::vector<Transfer> transfers;
  std::uint64_t at = 16;
  std::uint64_t shift = 0;
  for (const std::uint64_t bytes :
       {0,   1,   3,   4,    7,    8,    9,    12,   13,   28,   29,   60,   64,   188,   204,
        220, 221, 256, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 5999, 6000, 6001, 12000, 18001}) {
    transfers.push_back(
        {{window, at + shift % 8}, {kData, at + (shift * 3) % 8}, static_cast<std::uint64_t>(bytes)});
    at += static_cast<std::uint64_t>(bytes) + 32;
    ++shift;
  }
  end = at;
  return transfers;
}

inline void expect_good(const Shared<Report>& reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].bad, 0u) << "thread " << i << ", first at step " << reports[i].first_bad << ": "
                                  << device::status_name(reports[i].outcome.status) << ", syndrome "
                                  << static_cast<int>(reports[i].outcome.syndrome) << ", fault "
                                  << static_cast<int>(reports[i].outcome.fault.syndrome) << "/"
                                  << static_cast<int>(reports[i].outcome.fault.vendor);
    EXPECT_NE(reports[i].good, 0u);
  }
}

}  // namespace belfry::conformance

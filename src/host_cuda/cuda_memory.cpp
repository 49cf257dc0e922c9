#include "belfry/host/cuda_memory.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "belfry/host/errors.hpp"
#include "belfry/wire/gpu_register_hook.hpp"
#include "host/host_allocation.hpp"

namespace belfry::host {

namespace {

constexpr std::size_t kPage = 4096;

Error cuda_error(const std::string& what, cudaError_t code, const std::string& remedy) {
  return {
      ErrorKind::unsupported,
      what + ": " + cudaGetErrorString(code) + " (CUDA error " + std::to_string(static_cast<int>(code)) + ")",
      remedy};
}

void check(cudaError_t code, const std::string& what,
           const std::string& remedy = "`nvidia-smi` and `belfry doctor gpu` say more") {
  if (code == cudaSuccess) return;
  cudaGetLastError();
  throw cuda_error(what, code, remedy);
}

/// The calling thread's GPU, and a stream of its own: what others run does not keep copies waiting.
class Device {
 public:
  explicit Device(int gpu) : gpu_(gpu) {
    use();
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a CUDA stream");
  }
  ~Device() { cudaStreamDestroy(stream_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int gpu() const { return gpu_; }
  void use() const { check(cudaSetDevice(gpu_), "GPU " + std::to_string(gpu_)); }
  void copy(void* to, const void* from, std::size_t bytes) const {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "a copy");
    wait();
  }
  void fill(void* to, std::byte value, std::size_t bytes) const {
    use();
    check(cudaMemsetAsync(to, std::to_integer<int>(value), bytes, stream_), "filling GPU memory");
    wait();
  }

 private:
  void wait() const { check(cudaStreamSynchronize(stream_), "a copy's end"); }

  int gpu_;
  cudaStream_t stream_ = nullptr;
};

class GpuMemory final : public QueueMemory {
 public:
  explicit GpuMemory(int gpu) : device_(std::make_shared<Device>(gpu)) {}

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    device_->use();
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), format_bytes(bytes) + " of GPU memory", "Ask for less");
    std::shared_ptr<void> owned(memory, [device = device_](void* at) {
      device->use();
      cudaFree(at);
    });
    device_->fill(memory, std::byte{0}, bytes);
    return owned;
  }
  void fill(void* address, std::byte value, std::size_t bytes) override {
    device_->fill(address, value, bytes);
  }
  void write(void* to, const void* from, std::size_t bytes) override { device_->copy(to, from, bytes); }
  void read(void* to, const void* from, std::size_t bytes) override { device_->copy(to, from, bytes); }
  std::uint64_t load(const void* address) override {
    std::uint64_t word = 0;
    device_->copy(&word, address, sizeof word);
    return word;
  }
  std::optional<int> gpu() const override { return device_->gpu(); }

 private:
  std::shared_ptr<Device> device_;
};

/// Makes [address, address + bytes) reachable for the GPU at the same address.
std::shared_ptr<void> register_host(void* address, std::size_t bytes, unsigned flags, const std::string& what,
                                    const std::string& remedy) {
  const cudaError_t code =
      cudaHostRegister(address, bytes, flags | cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (code == cudaErrorHostMemoryAlreadyRegistered) {
    cudaGetLastError();
    return {address, [](void*) {}};
  }
  check(code, what, remedy);
  void* seen = nullptr;
  if (cudaHostGetDevicePointer(&seen, address, 0) != cudaSuccess || seen != address) {
    cudaHostUnregister(address);
    throw Error(ErrorKind::unsupported, what + ": the GPU reaches it at another address only",
                "This machine's CUDA does not use host pointers; a CPU has to forward doorbells");
  }
  return {address, [](void* at) { cudaHostUnregister(at); }};
}

class PinnedMemory final : public QueueMemory {
 public:
  explicit PinnedMemory(int gpu) : device_(std::make_shared<Device>(gpu)) {}

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    device_->use();
    std::shared_ptr<void> pages = allocate_host(bytes, kPage);
    std::shared_ptr<void> pinned = register_host(pages.get(), bytes, 0, "pinning " + format_bytes(bytes),
                                                 "Raise the limit of locked memory: ulimit -l");
    // Both go with the last copy, the registration first.
    return {pages.get(), [pages, pinned](void*) mutable {
              pinned.reset();
              pages.reset();
            }};
  }
  void fill(void* address, std::byte value, std::size_t bytes) override {
    host_->fill(address, value, bytes);
  }
  void write(void* to, const void* from, std::size_t bytes) override { host_->write(to, from, bytes); }
  std::uint64_t load(const void* address) override { return host_->load(address); }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<QueueMemory> host_ = host_queue_memory();
};

void* page_of(void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~(kPage - 1));
}

/// A NIC's register is I/O memory, which a software NIC's is not, and CUDA refuses the flag for plain memory.
std::shared_ptr<void> map_register_page(void* page) {
  constexpr unsigned kShared = cudaHostRegisterPortable | cudaHostRegisterMapped;
  const cudaError_t io = cudaHostRegister(page, kPage, kShared | cudaHostRegisterIoMemory);
  if (io == cudaSuccess) return {page, [](void* at) { cudaHostUnregister(at); }};
  cudaGetLastError();
  const cudaError_t plain = cudaHostRegister(page, kPage, kShared);
  if (plain != cudaSuccess) {
    cudaGetLastError();
    // What the driver says of the kind of memory that it is: of plain memory "invalid argument" is its answer
    // to the other flag.
    throw register_refused(io == cudaErrorInvalidValue ? plain : io);
  }
  return {page, [](void* at) { cudaHostUnregister(at); }};
}

/// The software NIC's register in GPU memory, where this process runs under it and its test option is set.
/// \return null: the NIC's own register is rung
std::shared_ptr<std::uint64_t> register_in_gpu_memory(std::uint64_t* doorbell, int gpu) {
  const auto find = reinterpret_cast<wire::GpuRegisterOf>(dlsym(RTLD_DEFAULT, wire::kGpuRegisterOf));
  const auto give_back =
      reinterpret_cast<wire::ReturnGpuRegister>(dlsym(RTLD_DEFAULT, wire::kReturnGpuRegister));
  if (find == nullptr || give_back == nullptr) return nullptr;
  std::array<char, 256> why{};
  std::uint64_t* found = find(doorbell, gpu, why.data(), why.size());
  if (found != nullptr) return {found, give_back};
  if (why[0] == '\0') return nullptr;
  throw Error(ErrorKind::unsupported, std::string("a doorbell register in GPU memory: ") + why.data(),
              "Leave BELFRY_SOFTNIC_GPU_DOORBELLS at host");
}

/// Registers share pages: a page is mapped with the first and unmapped with the last.
class GpuRegisters final : public RegisterMapper {
 public:
  explicit GpuRegisters(int gpu) : device_(gpu) {}

  std::shared_ptr<std::uint64_t> map(std::uint64_t* doorbell) override {
    if (std::shared_ptr<std::uint64_t> in_gpu = register_in_gpu_memory(doorbell, device_.gpu()))
      return in_gpu;
    void* page = page_of(doorbell);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void> mapped = pages_[page].lock();
    if (mapped == nullptr) {
      device_.use();
      mapped = map_register_page(page);
      pages_[page] = mapped;
    }
    void* seen = nullptr;
    check(cudaHostGetDevicePointer(&seen, page, 0), "a doorbell register's page");
    const auto offset = reinterpret_cast<std::uintptr_t>(doorbell) & (kPage - 1);
    return {std::move(mapped), reinterpret_cast<std::uint64_t*>(static_cast<char*>(seen) + offset)};
  }

 private:
  Device device_;
  std::mutex mutex_;
  std::map<void*, std::weak_ptr<void>> pages_;
};

}  // namespace

std::shared_ptr<QueueMemory> gpu_queue_memory(int gpu) { return std::make_shared<GpuMemory>(gpu); }
std::shared_ptr<QueueMemory> pinned_queue_memory(int gpu) { return std::make_shared<PinnedMemory>(gpu); }

std::shared_ptr<void> pin_host_memory(void* address, std::size_t bytes, int gpu) {
  const auto device = std::make_shared<Device>(gpu);
  device->use();
  return register_host(address, bytes, 0, "pinning " + format_bytes(bytes),
                       "Raise the limit of locked memory: ulimit -l");
}

Placement place_for_gpu(const GpuPlacement& places, int gpu) {
  const MemoryPlace own{device::MemoryKind::own, gpu_queue_memory(gpu)};
  const MemoryPlace pinned{device::MemoryKind::host, pinned_queue_memory(gpu)};
  Placement placement = Placement::all(own);
  if (!places.send_queue_on_gpu) placement.send_queue = pinned;
  if (!places.completions_on_gpu) placement.completion_queue = pinned;
  if (!places.record_on_gpu) placement.record = pinned;
  placement.doorbells = pinned;
  placement.registers = gpu_register_mapper(gpu);
  return placement;
}

void allow_peer_access(int gpu, int peer) {
  if (gpu == peer) return;
  const std::string what = "peer access from GPU " + std::to_string(gpu) + " to GPU " + std::to_string(peer);
  const std::string remedy = "Choose GPUs that have it: `nvidia-smi topo -p2p rw` lists them";
  check(cudaSetDevice(gpu), what, remedy);
  const cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
  if (code != cudaErrorPeerAccessAlreadyEnabled) check(code, what, remedy);
  cudaGetLastError();
}

std::shared_ptr<RegisterMapper> gpu_register_mapper(int gpu) { return std::make_shared<GpuRegisters>(gpu); }

}  // namespace belfry::host

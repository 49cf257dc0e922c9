#include "doctor/cuda.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace belfry::doctor {
namespace {

constexpr int kNotFound = 500;

// Flags of cuMemHostRegister and cuMemGetHandleForAddressRange.
constexpr unsigned kPortable = 0x1;
constexpr unsigned kDeviceMap = 0x2;
constexpr unsigned kIoMemory = 0x4;
constexpr int kDmaBufFd = 0x1;

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct CudaDriver::Functions {
  using Device = int;
  using Context = void*;
  int (*init)(unsigned flags);
  int (*driver_get_version)(int* version);
  int (*device_get_count)(int* count);
  int (*device_get)(Device* device, int ordinal);
  int (*device_get_pci_bus_id)(char* id, int length, Device device);
  int (*primary_context_retain)(Context* context, Device device);
  int (*primary_context_release)(Device device);
  int (*context_set_current)(Context context);
  int (*host_register)(void* address, std::size_t bytes, unsigned flags);
  int (*host_unregister)(void* address);
  int (*alloc)(std::uint64_t* address, std::size_t bytes);
  int (*free)(std::uint64_t address);
  int (*get_handle)(void* handle, std::uint64_t address, std::size_t bytes, int type,
                    unsigned long long flags);  // since CUDA 11.7: may be null

  /// \return whether all but the last are there
  bool load(void* library) {
    find(library, "cuMemGetHandleForAddressRange", get_handle);
    return find(library, "cuInit", init) && find(library, "cuDriverGetVersion", driver_get_version) &&
           find(library, "cuDeviceGetCount", device_get_count) && find(library, "cuDeviceGet", device_get) &&
           find(library, "cuDeviceGetPCIBusId", device_get_pci_bus_id) &&
           find(library, "cuDevicePrimaryCtxRetain", primary_context_retain) &&
           find(library, "cuDevicePrimaryCtxRelease_v2", primary_context_release) &&
           find(library, "cuCtxSetCurrent", context_set_current) &&
           find(library, "cuMemHostRegister_v2", host_register) &&
           find(library, "cuMemHostUnregister", host_unregister) && find(library, "cuMemAlloc_v2", alloc) &&
           find(library, "cuMemFree_v2", free);
  }
};

std::string describe_cuda(int result) {
  std::string text = std::to_string(result);
  switch (result) {
    case 1:
      return text + " (CUDA_ERROR_INVALID_VALUE)";
    case 2:
      return text + " (CUDA_ERROR_OUT_OF_MEMORY)";
    case 3:
      return text + " (CUDA_ERROR_NOT_INITIALIZED)";
    case 34:
      return text + " (CUDA_ERROR_STUB_LIBRARY)";
    case 100:
      return text + " (CUDA_ERROR_NO_DEVICE)";
    case 500:
      return text + " (CUDA_ERROR_NOT_FOUND)";
    case 800:
      return text + " (CUDA_ERROR_NOT_PERMITTED)";
    case 801:
      return text + " (CUDA_ERROR_NOT_SUPPORTED)";
    case 802:
      return text + " (CUDA_ERROR_SYSTEM_NOT_READY)";
    case 803:
      return text + " (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)";
    case 999:
      return text + " (CUDA_ERROR_UNKNOWN)";
    default:
      return text;
  }
}

CudaDriver::CudaDriver() {
  // Never closed: the driver keeps threads of its own.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return;
  auto functions = std::make_unique<Functions>();
  if (!functions->load(library)) return;
  functions_ = std::move(functions);
  init_ = functions_->init(0);
  if (init_ == 0) functions_->driver_get_version(&version_);
}

CudaDriver::~CudaDriver() { leave(); }

std::vector<std::string> CudaDriver::gpus() const {
  std::vector<std::string> addresses;
  int count = 0;
  if (functions_ == nullptr || init_ != 0 || functions_->device_get_count(&count) != 0) return addresses;
  for (int i = 0; i < count; ++i) {
    Functions::Device device = 0;
    char text[32] = {};
    if (functions_->device_get(&device, i) != 0 ||
        functions_->device_get_pci_bus_id(text, sizeof text, device) != 0) {
      addresses.emplace_back("GPU " + std::to_string(i));
      continue;
    }
    // CUDA prints capitals, and domains of eight digits where four are not enough.
    std::string address(text);
    std::transform(address.begin(), address.end(), address.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (address.size() == 16 && address.starts_with("0000")) address.erase(0, 4);
    addresses.push_back(std::move(address));
  }
  return addresses;
}

int CudaDriver::enter(int index) {
  leave();
  Functions::Device device = 0;
  if (const int result = functions_->device_get(&device, index); result != 0) return result;
  Functions::Context context = nullptr;
  if (const int result = functions_->primary_context_retain(&context, device); result != 0) return result;
  current_ = device;
  return functions_->context_set_current(context);
}

void CudaDriver::leave() {
  if (current_ < 0) return;
  functions_->context_set_current(nullptr);
  functions_->primary_context_release(current_);
  current_ = -1;
}

int CudaDriver::try_map(void* page, std::size_t bytes, bool io) {
  const unsigned flags = kPortable | kDeviceMap | (io ? kIoMemory : 0u);
  const int result = functions_->host_register(page, bytes, flags);
  if (result == 0) functions_->host_unregister(page);
  return result;
}

CudaDriver::Memory::Memory(CudaDriver& driver, std::size_t bytes) : driver_(driver), bytes_(bytes) {
  if (driver_.functions_->alloc(&address_, bytes) != 0) address_ = 0;
}

CudaDriver::Memory::~Memory() {
  if (address_ != 0) driver_.functions_->free(address_);
}

int CudaDriver::Memory::export_dma_buf(int& fd) const {
  fd = -1;
  if (driver_.functions_->get_handle == nullptr) return kNotFound;
  return driver_.functions_->get_handle(&fd, address_, bytes_, kDmaBufFd, 0);
}

}  // namespace belfry::doctor

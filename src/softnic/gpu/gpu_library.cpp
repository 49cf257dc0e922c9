#include "softnic/gpu/gpu_library.hpp"

#include <dlfcn.h>

#include <array>
#include <type_traits>

namespace belfry::softnic {

namespace {

constexpr const char* kLibrary = "libbelfry-softnic-cuda.so";

/// The folder that this code was loaded from, with a slash; "" where it is not known.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&load_gpu_library), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string file = info.dli_fname;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

void* open_library(std::string& error) {
  // Beside the library, or beside the programs that have it linked in.
  for (const char* below : {"", "../lib/"}) {
    const std::string folder = own_folder();
    if (folder.empty()) continue;
    if (void* library = dlopen((folder + below + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) error = dlerror();
  return library;
}

/// What a maker of the library makes, or why not.
template <class Made, class What>
std::unique_ptr<Made> make_with(Made* (*make)(What, char*, std::size_t), std::type_identity_t<What> what,
                                std::string& error) {
  std::array<char, 256> why{};
  std::unique_ptr<Made> made(make(what, why.data(), why.size()));
  if (made == nullptr) error = why.data();
  return made;
}

class LoadedLibrary final : public GpuLibrary {
 public:
  LoadedLibrary(OwnerOfMemory tells_owner, MakeGpuEngine makes, MakeGpuCopier makes_copier,
                MakeGpuCopierKernel makes_copier_kernel, MakeGpuRegisterMemory makes_registers)
      : owner_of_(tells_owner),
        make_(makes),
        make_copier_(makes_copier),
        make_copier_kernel_(makes_copier_kernel),
        make_registers_(makes_registers) {}

  MemoryOwner owner_of(const void* address, std::size_t bytes) override { return owner_of_(address, bytes); }
  std::unique_ptr<GpuEngine> make_engine(const GpuEngineOptions& options, std::string& error) override {
    return make_with<GpuEngine, const GpuEngineOptions&>(make_, options, error);
  }
  std::unique_ptr<GpuCopier> make_copier(MemoryOwner gpu, std::string& error) override {
    return make_with<GpuCopier, int>(make_copier_, gpu, error);
  }
  std::unique_ptr<GpuCopierKernel> make_copier_kernel(MemoryOwner gpu, std::string& error) override {
    return make_with<GpuCopierKernel, int>(make_copier_kernel_, gpu, error);
  }
  std::unique_ptr<GpuRegisterMemory> make_register_memory(MemoryOwner gpu, std::string& error) override {
    return make_with<GpuRegisterMemory, int>(make_registers_, gpu, error);
  }

 private:
  OwnerOfMemory owner_of_;
  MakeGpuEngine make_;
  MakeGpuCopier make_copier_;
  MakeGpuCopierKernel make_copier_kernel_;
  MakeGpuRegisterMemory make_registers_;
};

}  // namespace

bool cuda_is_loaded() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr; }

std::unique_ptr<GpuLibrary> load_gpu_library(std::string& error) {
  // Never closed: CUDA keeps what it registered.
  void* library = open_library(error);
  if (library == nullptr) return nullptr;
  const auto owner_of = reinterpret_cast<OwnerOfMemory>(dlsym(library, kOwnerOfMemory));
  const auto make = reinterpret_cast<MakeGpuEngine>(dlsym(library, kMakeGpuEngine));
  const auto make_copier = reinterpret_cast<MakeGpuCopier>(dlsym(library, kMakeGpuCopier));
  const auto make_copier_kernel = reinterpret_cast<MakeGpuCopierKernel>(dlsym(library, kMakeGpuCopierKernel));
  const auto make_registers = reinterpret_cast<MakeGpuRegisterMemory>(dlsym(library, kMakeGpuRegisterMemory));
  if (owner_of == nullptr || make == nullptr || make_copier == nullptr || make_copier_kernel == nullptr ||
      make_registers == nullptr) {
    error = std::string(kLibrary) + " is of another version";
    return nullptr;
  }
  return std::make_unique<LoadedLibrary>(owner_of, make, make_copier, make_copier_kernel, make_registers);
}

}  // namespace belfry::softnic

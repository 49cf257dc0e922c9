#include "softnic/gpu/gpu_library.hpp"

#include <dlfcn.h>

#include <array>

namespace belfry::softnic {

namespace {

constexpr const char* kLibrary = "libbelfry-softnic-cuda.so";

/// The folder that this code was loaded from, with a slash; "" where it is not known.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&load_gpu_engine), &info) == 0 || info.dli_fname == nullptr)
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

}  // namespace

bool cuda_is_loaded() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr; }

std::unique_ptr<GpuEngine> load_gpu_engine(const GpuEngineOptions& options, std::string& error) {
  // Never closed: CUDA keeps what it registered.
  void* library = open_library(error);
  if (library == nullptr) return nullptr;
  const auto make = reinterpret_cast<MakeGpuEngine>(dlsym(library, kMakeGpuEngine));
  if (make == nullptr) {
    error = std::string(kLibrary) + " is of another version";
    return nullptr;
  }
  std::array<char, 256> why{};
  std::unique_ptr<GpuEngine> engine(make(options, why.data(), why.size()));
  if (engine == nullptr) error = why.data();
  return engine;
}

}  // namespace belfry::softnic

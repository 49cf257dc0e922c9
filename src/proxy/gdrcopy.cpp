// GDRCopy's library, loaded at run time. Names, types and the alignment of 64 KiB are those of its gdrapi.h
// (github.com/NVIDIA/gdrcopy, API 2.x).

#include <dlfcn.h>

#include <cstdint>
#include <mutex>

#include "belfry/host/errors.hpp"
#include "belfry/proxy/counters.hpp"

namespace belfry::proxy {

namespace {

constexpr const char* kLibrary = "libgdrapi.so.2";
constexpr std::uintptr_t kGpuPage = 65536;

struct Handle {
  unsigned long h;
};
struct Info {
  std::uint64_t va;
  std::uint64_t mapped_size;
  std::uint32_t page_size;
  std::uint64_t tm_cycles;
  std::uint32_t cycles_per_ms;
  unsigned mapped : 1;
  unsigned wc_mapping : 1;
  int mapping_type;
};

[[noreturn]] void refuse(const std::string& message, const std::string& remedy) {
  throw host::Error(host::ErrorKind::unsupported, message, remedy);
}

/// The library with a connection to its driver.
class Library {
 public:
  Library() {
    // Never closed: mappings outlive whoever made them.
    void* library = dlopen(kLibrary, RTLD_NOW);
    if (library == nullptr)
      refuse(std::string("GDRCopy cannot be used: ") + kLibrary + " cannot be loaded",
             "Install GDRCopy (library and gdrdrv), or let the NIC write the counters");
    find(library, "gdr_open", open_);
    find(library, "gdr_close", close_);
    find(library, "gdr_pin_buffer", pin_);
    find(library, "gdr_unpin_buffer", unpin_);
    find(library, "gdr_get_info_v2", get_info_);
    find(library, "gdr_map", map_);
    find(library, "gdr_unmap", unmap_);
    driver_ = open_();
    if (driver_ == nullptr)
      refuse(
          "GDRCopy cannot be used: gdr_open fails, so its driver is not loaded or its node is closed to us",
          "`modprobe gdrdrv`, and give this user access to /dev/gdrdrv");
  }
  ~Library() { close_(driver_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// A mapping of whole GPU pages.
  class Mapping {
   public:
    Mapping(std::shared_ptr<Library> library, std::uintptr_t address, std::size_t bytes)
        : library_(std::move(library)) {
      const std::uintptr_t start = address / kGpuPage * kGpuPage;
      bytes_ = (address + bytes - start + kGpuPage - 1) / kGpuPage * kGpuPage;
      Library& l = *library_;
      if (const int code = l.pin_(l.driver_, start, bytes_, 0, 0, &handle_); code != 0)
        refuse("GDRCopy cannot pin the counters: gdr_pin_buffer fails with " + std::to_string(code),
               "Counter memory must be allocated with cudaMalloc or cuMemAlloc, in whole pages of 64 KiB");
      Info info{};
      int code = l.map_(l.driver_, handle_, &mapped_, bytes_);
      if (code == 0 && (code = l.get_info_(l.driver_, handle_, &info)) != 0)
        l.unmap_(l.driver_, handle_, mapped_, bytes_);
      if (code != 0) {
        l.unpin_(l.driver_, handle_);
        refuse("GDRCopy cannot map the counters: it fails with " + std::to_string(code), "See dmesg");
      }
      address_ = static_cast<std::byte*>(mapped_) + (address - info.va);
    }
    ~Mapping() {
      library_->unmap_(library_->driver_, handle_, mapped_, bytes_);
      library_->unpin_(library_->driver_, handle_);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    void* address() const { return address_; }

   private:
    std::shared_ptr<Library> library_;
    Handle handle_{};
    std::size_t bytes_ = 0;
    void* mapped_ = nullptr;
    void* address_ = nullptr;
  };

 private:
  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr)
      refuse(std::string("GDRCopy cannot be used: ") + kLibrary + " has no " + name,
             "Install version 2 of it");
  }

  void* (*open_)() = nullptr;
  int (*close_)(void*) = nullptr;
  int (*pin_)(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, Handle*) = nullptr;
  int (*unpin_)(void*, Handle) = nullptr;
  int (*get_info_)(void*, Handle, Info*) = nullptr;
  int (*map_)(void*, Handle, void**, std::size_t) = nullptr;
  int (*unmap_)(void*, Handle, void*, std::size_t) = nullptr;
  void* driver_ = nullptr;
};

class GdrCopyMapper final : public CpuMapper {
 public:
  std::shared_ptr<void> map(void* address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (library_ == nullptr) library_ = std::make_shared<Library>();
    const auto mapping =
        std::make_shared<Library::Mapping>(library_, reinterpret_cast<std::uintptr_t>(address), bytes);
    return {mapping, mapping->address()};
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Library> library_;
};

}  // namespace

std::shared_ptr<CpuMapper> gdrcopy_mapper() { return std::make_shared<GdrCopyMapper>(); }

}  // namespace belfry::proxy

#pragma once
/// \file
/// The few calls of the CUDA driver that the doctor makes, loaded at run time: belfry needs no CUDA to be
/// built or to run. Names, numbers and flags are those of cuda.h.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace belfry::doctor {

/// "800 (CUDA_ERROR_NOT_PERMITTED)"; the name where it is one that matters here.
std::string describe_cuda(int result);

class CudaDriver {
 public:
  /// Loads libcuda.so.1 and starts it. Never throws.
  CudaDriver();
  ~CudaDriver();
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  bool loaded() const { return functions_ != nullptr; }
  int init() const { return init_; }  ///< CUresult
  int version() const { return version_; }

  /// PCI address of each GPU, as sysfs spells it.
  std::vector<std::string> gpus() const;

  /// Makes GPU `index` current for the calling thread. \return CUresult
  int enter(int index);
  void leave();

  /// Whether the current GPU can map a page: registers and unregisters it. \return CUresult
  /// \param io whether the page is a device's register, not memory
  int try_map(void* page, std::size_t bytes, bool io);

  /// GPU memory on the current GPU, freed with the object.
  class Memory {
   public:
    Memory(CudaDriver& driver, std::size_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::uint64_t address() const { return address_; }  ///< 0: the allocation failed
    /// \param fd receives a descriptor of a dma-buf, for the caller to close. \return CUresult
    int export_dma_buf(int& fd) const;

   private:
    CudaDriver& driver_;
    std::uint64_t address_ = 0;
    std::size_t bytes_;
  };

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
  int init_ = 0;
  int version_ = 0;
  int current_ = -1;
};

}  // namespace belfry::doctor

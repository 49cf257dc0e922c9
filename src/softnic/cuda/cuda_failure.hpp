#pragma once
/// \file
/// CUDA's failures as exceptions, within the library.

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace belfry::softnic::cuda {

class CudaFailure : public std::runtime_error {
 public:
  CudaFailure(const char* what, cudaError_t code)
      : std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code) + " (CUDA error " +
                           std::to_string(static_cast<int>(code)) + ")") {}
};

inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw CudaFailure(what, code);
}

/// The calling thread's GPU, for as long as it lives.
class Current {
 public:
  explicit Current(int gpu) {
    cudaGetDevice(&before_);
    if (before_ != gpu) check(cudaSetDevice(gpu), "choosing the engine's GPU");
    chosen_ = gpu;
  }
  ~Current() {
    if (before_ != chosen_) cudaSetDevice(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
  int chosen_ = 0;
};

}  // namespace belfry::softnic::cuda

#pragma once
/// \file
/// CUDA's failures as exceptions, within the library.

#include <cuda_runtime_api.h>

#include <cstdio>
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

/// Does what may fail. \return false where it has, and why in `error`
template <class Action>
bool succeeds(std::string& error, const Action& action) {
  try {
    action();
    return true;
  } catch (const std::exception& failure) {
    cudaGetLastError();  // else the application would find it
    error = failure.what();
    return false;
  }
}

/// For the NIC, which loads this library and takes no exceptions from it.
/// \return null where making one fails, and why in the `error_bytes` at `error`
template <class Made, class What>
Made* make_or_say(const What& what, char* error, std::size_t error_bytes) {
  Made* made = nullptr;
  std::string why;
  if (!succeeds(why, [&] { made = new Made(what); })) std::snprintf(error, error_bytes, "%s", why.c_str());
  return made;
}

}  // namespace belfry::softnic::cuda

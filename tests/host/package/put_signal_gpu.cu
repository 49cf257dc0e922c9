// The kernel of put_signal.hpp, and its launch.

#include <memory>
#include <new>
#include <stdexcept>

#include "put_signal_gpu.hpp"

namespace consumer {

namespace {

__global__ void put_signal(PutSignal kernel) { kernel(); }

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

}  // namespace

Result launch_on_gpu(const device::EndpointView& view) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, sizeof(Result)));
  const std::unique_ptr<Result, cudaError_t (*)(void*)> result(new (memory) Result, cudaFreeHost);
  // A stream of its own: two PEs whose kernels wait for each other must not stand in one line.
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  put_signal<<<1, 1, 0, stream>>>(PutSignal{view, result.get()});
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t ended = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  check(launched);
  check(ended);
  return *result;
}

}  // namespace consumer

// belfry::host_cuda where there is no GPU: how it says so.

#include <gtest/gtest.h>

#include <string>

#include "belfry/host/cuda_memory.hpp"
#include "belfry/host/errors.hpp"

namespace belfry::host {
namespace {

// Fault: CUDA's error number was taken for an errno, and error 35, a driver that is missing or too old,
// became "Resource deadlock avoided".
TEST(HostCuda, ItsErrorsAreCudasAndNoErrno) {
  // No machine has it.
  constexpr int kNoSuchGpu = 4711;
  try {
    place_for_gpu({}, kNoSuchGpu);
    FAIL() << "GPU " << kNoSuchGpu;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.code(), 0);
    EXPECT_NE(std::string(error.what()).find("CUDA error"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("errno"), std::string::npos) << error.what();
    EXPECT_FALSE(error.remedy().empty());
  }
}

}  // namespace
}  // namespace belfry::host

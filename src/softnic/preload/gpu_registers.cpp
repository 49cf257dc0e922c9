/// \file
/// belfry/wire/gpu_register_hook.hpp, of this process's NIC.

#include <cstdio>
#include <string>

#include "belfry/wire/gpu_register_hook.hpp"
#include "softnic/firmware/nic_core.hpp"
#include "softnic/preload/process.hpp"

extern "C" __attribute__((visibility("default"))) std::uint64_t* belfry_softnic_gpu_register_of(
    const void* doorbell, int gpu, char* error, std::size_t error_bytes) {
  if (error_bytes != 0) error[0] = '\0';
  belfry::softnic::Nic* nic = belfry::softnic::preload::process_nic();
  if (nic == nullptr) return nullptr;
  std::string why;
  std::uint64_t* found =
      nic->impl().gpu.register_of(doorbell, static_cast<belfry::softnic::MemoryOwner>(gpu), why);
  std::snprintf(error, error_bytes, "%s", why.c_str());
  return found;
}

extern "C" __attribute__((visibility("default"))) void belfry_softnic_return_gpu_register(
    std::uint64_t* gpu_register) {
  if (belfry::softnic::Nic* nic = belfry::softnic::preload::process_nic())
    nic->impl().gpu.return_register(gpu_register);
}

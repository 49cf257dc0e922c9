// A library of GDRCopy's name and calls, without its driver: its "GPU memory" is a mapping of its own, and it
// keeps what it was asked for.

#include "proxy/fake_gdrapi.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

FakeGdr state;

}  // namespace

extern "C" {

FakeGdr* fake_gdr() { return &state; }

void* gdr_open() {
  if (std::getenv("FAKE_GDR_REFUSES") != nullptr) return nullptr;
  ++state.open;
  return &state;
}
int gdr_close(void*) {
  --state.open;
  return 0;
}
int gdr_pin_buffer(void*, unsigned long address, std::size_t bytes, std::uint64_t, std::uint32_t,
                   FakeGdrHandle* handle) {
  if (address % 65536 != 0 || bytes % 65536 != 0 || state.refuse_pin != 0) return 22;
  handle->h = 7;
  state.pinned_at = address;
  state.pinned_bytes = bytes;
  ++state.pins;
  return 0;
}
int gdr_unpin_buffer(void*, FakeGdrHandle handle) {
  if (handle.h != 7) return 22;
  --state.pins;
  return 0;
}
int gdr_get_info_v2(void*, FakeGdrHandle, FakeGdrInfo* info) {
  *info = {};
  info->va = state.pinned_at;
  info->mapped_size = state.pinned_bytes;
  info->page_size = 65536;
  return 0;
}
int gdr_map(void*, FakeGdrHandle, void** va, std::size_t bytes) {
  *va = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  state.mapped = static_cast<std::byte*>(*va);
  ++state.maps;
  return 0;
}
int gdr_unmap(void*, FakeGdrHandle, void* va, std::size_t bytes) {
  --state.maps;
  return munmap(va, bytes);
}
}

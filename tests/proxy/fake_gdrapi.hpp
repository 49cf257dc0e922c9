#pragma once
/// \file
/// What the fake GDRCopy tells its test. The structs are laid out as in gdrapi.h.

#include <cstddef>
#include <cstdint>

struct FakeGdrHandle {
  unsigned long h;
};
struct FakeGdrInfo {
  std::uint64_t va;
  std::uint64_t mapped_size;
  std::uint32_t page_size;
  std::uint64_t tm_cycles;
  std::uint32_t cycles_per_ms;
  unsigned mapped : 1;
  unsigned wc_mapping : 1;
  int mapping_type;
};

struct FakeGdr {
  int open = 0;
  int pins = 0;
  int maps = 0;
  int refuse_pin = 0;
  std::uintptr_t pinned_at = 0;
  std::size_t pinned_bytes = 0;
  std::byte* mapped = nullptr;  ///< where a CPU has pinned_at
};

extern "C" FakeGdr* fake_gdr();

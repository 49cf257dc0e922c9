/// \file
/// Mapping a GPU's memory by GDRCopy, over a library of that name which stands in for it.

#include <gtest/gtest.h>

#include <cstdlib>

#include "belfry/host/errors.hpp"
#include "belfry/proxy/counters.hpp"
#include "proxy/fake_gdrapi.hpp"

namespace belfry::proxy {
namespace {

template <class Body>
std::string refusal_of(Body body) {
  try {
    body();
  } catch (const host::Error& error) {
    EXPECT_EQ(error.kind(), host::ErrorKind::unsupported);
    return error.what();
  }
  return "";
}

// Fault: a driver that is not there taken for one that works; a refusal without a remedy.
TEST(GdrCopy, ADriverThatRefusesIsAnError) {
  ASSERT_EQ(setenv("FAKE_GDR_REFUSES", "1", 1), 0);
  const std::string text = refusal_of([] { gdrcopy_mapper()->map(reinterpret_cast<void*>(0x10000), 64); });
  unsetenv("FAKE_GDR_REFUSES");
  EXPECT_NE(text.find("gdr_open"), std::string::npos) << text;
  EXPECT_NE(text.find("modprobe gdrdrv"), std::string::npos) << text;
}

// Fault: pages that are pinned short, or not from their start; a pointer that is off by where the memory lies
// in its page; a mapping or a connection that is never given back.
TEST(GdrCopy, MapsWholePagesAndFindsItsPlaceInThem) {
  FakeGdr& gdr = *fake_gdr();
  {
    const auto mapper = gdrcopy_mapper();
    const auto mapped = mapper->map(reinterpret_cast<void*>(0x7f0000013040), 65536);
    EXPECT_EQ(gdr.open, 1);
    EXPECT_EQ(gdr.pinned_at, 0x7f0000010000u);
    EXPECT_EQ(gdr.pinned_bytes, 2u * 65536);
    ASSERT_EQ(static_cast<std::byte*>(mapped.get()), gdr.mapped + 0x3040);
    static_cast<std::byte*>(mapped.get())[65535] = std::byte{1};
    const auto second = mapper->map(reinterpret_cast<void*>(0x7f0000020000), 64);
    EXPECT_EQ(gdr.pinned_bytes, 65536u);
    EXPECT_EQ(gdr.open, 1);
    EXPECT_EQ(gdr.maps, 2);
  }
  EXPECT_EQ(gdr.maps, 0);
  EXPECT_EQ(gdr.pins, 0);
  EXPECT_EQ(gdr.open, 0);
}

// Fault: memory that is no GPU's, of which the error does not say so.
TEST(GdrCopy, MemoryThatCannotBePinnedIsAnError) {
  fake_gdr()->refuse_pin = 1;
  const std::string text = refusal_of([] { gdrcopy_mapper()->map(reinterpret_cast<void*>(0x10000), 64); });
  fake_gdr()->refuse_pin = 0;
  EXPECT_NE(text.find("gdr_pin_buffer fails with 22"), std::string::npos) << text;
  EXPECT_NE(text.find("cuMemAlloc"), std::string::npos) << text;
}

}  // namespace
}  // namespace belfry::proxy

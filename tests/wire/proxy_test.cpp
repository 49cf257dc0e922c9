#include "belfry/wire/proxy.hpp"

#include <gtest/gtest.h>

#include <random>

namespace belfry::wire {
namespace {

bool operator_equal(const ProxyRequest& a, const ProxyRequest& b) {
  return a.operation == b.operation && a.peer == b.peer && a.remote_window == b.remote_window &&
         a.local_window == b.local_window && a.remote_offset == b.remote_offset &&
         a.local_offset == b.local_offset && a.bytes == b.bytes && a.value == b.value &&
         a.second_value == b.second_value;
}

/// A request of every shape: small and beyond 32 bits, with what its operation uses and nothing else.
ProxyRequest random_request(std::mt19937_64& random) {
  ProxyRequest r;
  r.operation = static_cast<ProxyOperation>(1 + random() % 7);
  r.peer = static_cast<std::uint32_t>(random() % kProxyMostPeers);
  r.remote_window = static_cast<std::uint32_t>(random() % kProxyMostWindows);
  const auto offset = [&] { return random() >> (random() % 2 == 0 ? 32 : random() % 64); };
  r.remote_offset = offset();
  if (proxy_value_form(r.operation)) {
    r.bytes = std::uint64_t{1} << random() % 4;
    r.value = random();
    return r;
  }
  r.local_window = static_cast<std::uint32_t>(random() % kProxyMostWindows);
  r.local_offset = offset();
  r.bytes = proxy_operands(r.operation) != 0 ? 8 : offset();
  if (proxy_operands(r.operation) >= 1) r.value = random();
  if (proxy_operands(r.operation) == 2) r.second_value = random();
  return r;
}

// Fault: a field that is cut, or that another one overlaps.
TEST(ProxyDescriptor, EveryRequestComesBackWhole) {
  std::mt19937_64 random(5);
  std::uint32_t most = 0;
  for (int i = 0; i < 200000; ++i) {
    const ProxyRequest r = random_request(random);
    ProxyDecoder decoder;
    const std::uint32_t count = proxy_descriptors(r);
    most = std::max(most, count);
    for (std::uint32_t n = 0; n < count; ++n) {
      port::Vector16 d = proxy_descriptor(r, n);
      ASSERT_EQ(ProxyParityField::get(d.low), 0u) << "left to whoever stores it";
      d.low |= proxy_parity(n);
      ASSERT_EQ(decoder.take(d), n + 1 < count ? ProxyDecoder::State::more : ProxyDecoder::State::complete);
    }
    ASSERT_TRUE(operator_equal(decoder.request(), r)) << i;
  }
  EXPECT_EQ(most, kProxyMostDescriptors);
}

// Fault: the usual put, or a signal, that takes more than one store.
TEST(ProxyDescriptor, TheUsualRequestTakesOne) {
  ProxyRequest put;
  put.operation = ProxyOperation::put;
  put.peer = kProxyMostPeers - 1;
  put.remote_window = put.local_window = kProxyMostWindows - 1;
  put.remote_offset = put.local_offset = put.bytes = 0xffffffffu;
  EXPECT_EQ(proxy_descriptors(put), 1u);
  put.bytes += 1;
  EXPECT_EQ(proxy_descriptors(put), 2u);
  ProxyRequest signal;
  signal.operation = ProxyOperation::signal_add;
  signal.bytes = 8;
  signal.value = ~std::uint64_t{0};
  EXPECT_EQ(proxy_descriptors(signal), 1u);
}

// Fault: fresh memory, or the last lap's descriptor, that reads as valid.
TEST(ProxyDescriptor, ParityTellsTheLaps) {
  EXPECT_EQ(proxy_parity(0), 1u);
  EXPECT_EQ(proxy_parity(1), 0u);
  EXPECT_EQ(proxy_parity(std::uint64_t{1} << 33), 1u);
}

// Fault: a decoder that believes what no producer writes, or that is lost for what comes after it.
TEST(ProxyDescriptor, MalformedSequencesAreRefusedAndForgotten) {
  const auto first = [](ProxyOperation operation, bool more) {
    return port::Vector16{
        ProxyOperationField::put(static_cast<std::uint64_t>(operation)) | ProxyMoreField::put(more ? 1 : 0),
        0};
  };
  using State = ProxyDecoder::State;
  ProxyDecoder decoder;
  const auto expect_good = [&] {
    EXPECT_EQ(decoder.take(first(ProxyOperation::put, false)), State::complete);
  };
  for (unsigned operation : {0u, 9u, 13u, 14u, 15u}) {
    EXPECT_EQ(decoder.take(first(static_cast<ProxyOperation>(operation), false)), State::malformed)
        << operation;
    expect_good();
  }
  EXPECT_EQ(decoder.take(first(ProxyOperation::fetch_add, false)), State::malformed) << "no operand";
  expect_good();
  EXPECT_EQ(decoder.take(first(ProxyOperation::put, true)), State::more);
  EXPECT_EQ(decoder.take(first(ProxyOperation::put, false)), State::malformed) << "a first one inside";
  expect_good();
  EXPECT_EQ(decoder.take(first(ProxyOperation::put, true)), State::more);
  EXPECT_EQ(decoder.take(first(ProxyOperation::operand, false)), State::malformed) << "an operand too many";
  expect_good();
  EXPECT_EQ(decoder.take(first(ProxyOperation::fetch_add, true)), State::more);
  EXPECT_EQ(decoder.take(first(ProxyOperation::operand, false)), State::complete);
  EXPECT_EQ(decoder.take(first(ProxyOperation::put, true)), State::more);
  EXPECT_EQ(decoder.take(first(ProxyOperation::extension, true)), State::more);
  EXPECT_EQ(decoder.take(first(ProxyOperation::extension, false)), State::malformed) << "two extensions";
  expect_good();
  port::Vector16 value = first(ProxyOperation::put_value, false);
  value.low |= ProxyUnusedField::put(1);
  EXPECT_EQ(decoder.take(value), State::malformed) << "a reserved bit";
}

}  // namespace
}  // namespace belfry::wire

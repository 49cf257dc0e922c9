#pragma once
/// \file
/// What the tests of both bootstraps share.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include "belfry/host/bootstrap.hpp"

namespace belfry::host {

/// Long enough for a loaded machine; a test that meets it has failed.
inline Deadline soon() { return deadline_after(std::chrono::seconds(30)); }
inline Deadline later() { return deadline_after(std::chrono::seconds(60)); }

inline Blob blob_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

/// What rank `rank` brings to round `round`: lengths differ, some are empty.
inline std::string contribution(int rank, int round) {
  return (rank + round) % 5 == 0
             ? ""
             : std::to_string(rank) + std::string(static_cast<std::size_t>(round % 7), '.') +
                   std::to_string(round);
}

inline void expect_rounds(Bootstrap& member, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const auto all = member.all_gather(blob_of(contribution(member.rank(), round)), soon());
    ASSERT_EQ(all.size(), static_cast<std::size_t>(member.size()));
    for (int rank = 0; rank < member.size(); ++rank) {
      ASSERT_EQ(text_of(all[static_cast<std::size_t>(rank)]), contribution(rank, round)) << "round " << round;
    }
  }
}

}  // namespace belfry::host

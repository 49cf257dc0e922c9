#include "bench/inline_math.hpp"

#include <stdexcept>

namespace belfry::bench {

void BreakEven::fill(Record& record) const {
  record.p50 = at;
  record.lower = lower;
  record.upper = upper;
}

BreakEven find_break_even(std::span<const SizeCost> ascending) {
  if (ascending.empty()) throw std::invalid_argument("a break-even of no size");
  // From the largest size down to the last one at which inline wins.
  std::size_t first = ascending.size();
  while (first > 0 && ascending[first - 1].pointer <= ascending[first - 1].inlined) --first;
  BreakEven result;
  if (first == ascending.size()) {
    result.lower = ascending.back().bytes;
  } else if (first == 0) {
    result.upper = ascending.front().bytes;
  } else {
    const SizeCost& before = ascending[first - 1];
    const SizeCost& after = ascending[first];
    const double gain = before.pointer - before.inlined;  // above 0
    const double loss = after.inlined - after.pointer;    // 0 or more
    result.at = before.bytes + (after.bytes - before.bytes) * gain / (gain + loss);
  }
  return result;
}

double added_per_chunk(std::span<const SizeCost> costs) {
  constexpr double kChunkBytes = 16;
  double bytes = 0, cost = 0;
  for (const SizeCost& c : costs) {
    bytes += c.bytes / static_cast<double>(costs.size());
    cost += c.inlined / static_cast<double>(costs.size());
  }
  double covariance = 0, variance = 0;
  for (const SizeCost& c : costs) {
    covariance += (c.bytes - bytes) * (c.inlined - cost);
    variance += (c.bytes - bytes) * (c.bytes - bytes);
  }
  if (!(variance > 0)) throw std::invalid_argument("a slope needs two different sizes");
  return covariance / variance * kChunkBytes;
}

}  // namespace belfry::bench

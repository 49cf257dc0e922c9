#include "bench/goodput_math.hpp"

#include <algorithm>
#include <stdexcept>

namespace belfry::bench {

void fill_first_at(std::span<const SizeGoodput> ascending, double reference, double share, Record& record) {
  if (ascending.empty()) throw std::invalid_argument("no size was measured");
  const auto first = std::find_if(ascending.begin(), ascending.end(), [&](const SizeGoodput& size) {
    return size.gigabytes >= share * reference;
  });
  if (first == ascending.end()) {
    record.lower = ascending.back().bytes;
  } else {
    record.p50 = first->bytes;
  }
}

}  // namespace belfry::bench

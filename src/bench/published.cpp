#include "bench/published.hpp"

#include <sstream>

#include "bench/record_io.hpp"
#include "published_data.hpp"

namespace belfry::bench {

const std::vector<Record>& published_records() {
  static const std::vector<Record> records = [] {
    std::istringstream in{std::string(kPublishedJsonLines)};
    return read_json_lines(in, "data/published.jsonl");
  }();
  return records;
}

const Record* find_published(const std::string& reference, const std::string& metric,
                             const std::string& platform) {
  for (const Record& record : published_records()) {
    if (record.reference == reference && record.metric == metric &&
        text_of(record.platform, "name") == platform) {
      return &record;
    }
  }
  return nullptr;
}

}  // namespace belfry::bench

#include "bench/published.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "bench/record_io.hpp"

namespace belfry::bench {
namespace {

double p50(const std::string& reference, const std::string& metric, const std::string& platform = "P-IB") {
  const Record* record = find_published(reference, metric, platform);
  EXPECT_NE(record, nullptr) << reference << ' ' << metric << ' ' << platform;
  return record == nullptr || !record->p50 ? -1 : *record->p50;
}

// Fault: the compiled-in figures are not those of the file, or a line is broken.
TEST(Published, FileAndLibraryAgree) {
  std::ifstream file(BELFRY_PUBLISHED_FILE);
  ASSERT_TRUE(file.is_open());
  const std::vector<Record> records = read_json_lines(file, BELFRY_PUBLISHED_FILE);
  EXPECT_EQ(records, published_records());
  EXPECT_EQ(records.size(), 204u);
}

// Fault: a figure that passes for measured, or has no source.
TEST(Published, EveryRecordIsMarkedAndCited) {
  const std::set<std::string> platforms = {"P-IB", "P-RoCE", "P-H100", "P-GB200", "unstated"};
  for (const Record& record : published_records()) {
    EXPECT_EQ(record.source, Source::published) << record.reference;
    EXPECT_EQ(text_of(record.versions, "citation"), "arXiv 2610.01380") << record.reference;
    EXPECT_TRUE(platforms.contains(text_of(record.platform, "name"))) << record.reference;
    EXPECT_FALSE(record.verified.has_value()) << record.reference;
    EXPECT_EQ(record.reference.substr(0, record.experiment.size() + 1), record.experiment + "/");
  }
}

// Fault: a join that finds two partners.
TEST(Published, RowsAreUnique) {
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (const Record& record : published_records()) {
    EXPECT_TRUE(seen.emplace(text_of(record.platform, "name"), record.reference, record.metric).second)
        << record.reference << ' ' << record.metric;
  }
}

// Fault: figures in the wrong column or row. Spot values from the tables of the paper.
TEST(Published, SpotValues) {
  EXPECT_EQ(p50("op/mini-gda-inline", "issue"), 0.70);
  EXPECT_EQ(p50("op/mini-gda-inline", "put_completion"), 4.03);
  EXPECT_EQ(p50("op/mini-gda-inline", "round_trip"), 6.85);
  EXPECT_EQ(p50("op/mini-gda-pointer", "put_completion"), 4.64);
  EXPECT_EQ(p50("op/mini-proxy-tuned", "round_trip", "P-GB200"), 7.46);
  EXPECT_EQ(p50("op/nvshmem-public", "put_completion", "P-GB200"), 13.82);
  EXPECT_EQ(p50("op/doorbell-to-cqe", "put_completion"), 3.30);
  EXPECT_EQ(p50("ordering/system_fence", "issue"), 2.62);
  EXPECT_EQ(p50("ordering/gpu_release", "put_completion", "P-GB200"), 5.66);
  EXPECT_EQ(p50("sm-clock/nvshmem-public-issue", "cycles", "P-RoCE"), 10313);
  EXPECT_EQ(p50("proxy/capacity-uccl-ep-t8-warm", "rate"), 60.8);
  EXPECT_EQ(find_published("proxy/tuned-cold", "round_trip", "P-IB")->p99, 8.86);
  EXPECT_EQ(p50("loaded/mini-proxy-shared", "round_trip"), 2190);
  EXPECT_EQ(p50("goodput/mini-gda", "size_at_90_percent"), 512);
  EXPECT_EQ(p50("rate/mini-gda-t64-q64-s64-w16", "rate"), 260);
  EXPECT_EQ(p50("rate/mini-gda-t256-q1-s1-w32-handoff", "rate"), 2.60);
  EXPECT_EQ(p50("kernel/gdaki-dormant", "registers"), 95);
  EXPECT_EQ(p50("connections/send-only-4096", "goodput", "P-H100"), 24.68);
  const Record* band = find_published("connections/send-and-receive-32-writes", "rate", "P-H100");
  ASSERT_NE(band, nullptr);
  EXPECT_EQ(band->lower, 74);
  EXPECT_EQ(band->upper, 152);
}

// Fault: a metric with two units, or a figure outside what its unit can be (a slip of the decimal point).
TEST(Published, UnitsAreSane) {
  const std::map<std::string, double> kMost = {
      {"us", 60000}, {"%", 100}, {"M msg/s", 300}, {"GB/s", 50}, {"registers", 255}};
  std::map<std::string, std::string> unit_of;
  for (const Record& record : published_records()) {
    EXPECT_EQ(unit_of.emplace(record.metric, record.unit).first->second, record.unit) << record.reference;
    const auto most = kMost.find(record.unit);
    for (const auto& value : {record.p50, record.p99, record.lower, record.upper}) {
      if (!value) continue;
      EXPECT_GE(*value, 0) << record.reference;
      if (most != kMost.end()) {
        EXPECT_LE(*value, most->second) << record.reference;
      }
    }
  }
}

// Fault: an operation that completes before it was issued (columns swapped).
TEST(Published, IssueThenCompletionThenRoundTrip) {
  for (const Record& record : published_records()) {
    const std::string platform = text_of(record.platform, "name");
    if (record.metric != "issue" || !record.p50) continue;
    if (const Record* done = find_published(record.reference, "put_completion", platform)) {
      EXPECT_LT(*record.p50, *done->p50) << record.reference;
      if (const Record* trip = find_published(record.reference, "round_trip", platform)) {
        EXPECT_LT(*done->p50, *trip->p50) << record.reference;
      }
    }
  }
}

// Fault: a lookup that ignores one of its three keys.
TEST(Published, LookupNeedsAllKeys) {
  EXPECT_EQ(find_published("op/mini-gda-inline", "issue", "P-H100"), nullptr);
  EXPECT_EQ(find_published("op/mini-gda-inline", "rate", "P-IB"), nullptr);
  EXPECT_EQ(find_published("op/none", "issue", "P-IB"), nullptr);
}

}  // namespace
}  // namespace belfry::bench

#include "bench/record.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "bench/sample_record.hpp"

namespace belfry::bench {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_refused(const Record& record, const std::string& why) {
  EXPECT_THAT([&] { check(record); }, ThrowsMessage<RecordError>(HasSubstr(why)));
}

// Fault: the schema check refuses what it should let through.
TEST(Record, AcceptsASoundRecord) { EXPECT_NO_THROW(check(sample_record())); }

// Fault: a NaN or infinity from a division by zero reaches a file as null or as invalid JSON.
TEST(Record, RefusesNumbersThatAreNotFinite) {
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};
  for (const double value : bad) {
    for (auto member : {&Record::p10, &Record::p50, &Record::p90, &Record::p99, &Record::min, &Record::max,
                        &Record::lower, &Record::upper}) {
      Record record = sample_record();
      record.*member = value;
      expect_refused(record, "not a finite number");
    }
    Record record = sample_record();
    record.passes.push_back(value);
    expect_refused(record, "pass is not a finite number");
    record = sample_record();
    set(record.parameters, "share", value);
    expect_refused(record, "'share'");
  }
}

// Fault: percentiles computed from unsorted samples, or put into the wrong fields.
TEST(Record, RefusesPercentilesOutOfOrder) {
  Record record = sample_record();
  record.p90 = 0.15;
  expect_refused(record, "p90 is below p50");
  record = sample_record();
  record.max = 0.01;
  expect_refused(record, "max is below p99");
  record = sample_record();
  record.upper = 0.5;
  expect_refused(record, "upper is below lower");
}

// Fault: a typing error in a unit ("MiB/S") makes a column that no query finds.
TEST(Record, RefusesAnUnknownUnit) {
  Record record = sample_record();
  record.unit = "MiB/S";
  expect_refused(record, "MiB/S");
}

// Fault: a figure of the software NIC is passed off as one of hardware.
TEST(Record, SoftwareNicMustBeNamedInThePlatform) {
  Record record = sample_record();
  set(record.platform, "name", std::string("Some CPU"));
  expect_refused(record, "software NIC");
  record.nic = NicKind::hardware;
  EXPECT_NO_THROW(check(record));
}

// Fault: a published figure without its source, or said to come from the software NIC.
TEST(Record, PublishedFiguresNeedCitationAndRow) {
  Record record = sample_record();
  record.source = Source::published;
  expect_refused(record, "cannot come from the software NIC");
  record.nic = NicKind::hardware;
  expect_refused(record, "versions.citation");
  record.versions = {{"citation", "arXiv 2610.01380"}};
  EXPECT_NO_THROW(check(record));
  record.reference.clear();
  expect_refused(record, "reference");
}

// Fault: the empty record of an arm that measured nothing is written all the same.
TEST(Record, RefusesARecordThatSaysNothing) {
  Record record = sample_record();
  record.p50 = record.p99 = record.lower = record.upper = std::nullopt;
  expect_refused(record, "says nothing");
  for (auto member : {&Record::run, &Record::experiment, &Record::arm, &Record::metric, &Record::unit}) {
    record = sample_record();
    (record.*member).clear();
    expect_refused(record, "is empty");
  }
}

// Fault: two values under one key, of which a JSON reader keeps either.
TEST(Record, RefusesRepeatedKeys) {
  Record record = sample_record();
  record.parameters.push_back({"bytes", std::int64_t{16}});
  expect_refused(record, "'bytes' twice");
}

// Fault: set() appends where it should replace.
TEST(Record, SetReplacesOrAppends) {
  Fields fields;
  set(fields, "a", std::int64_t{1});
  set(fields, "b", std::string("x"));
  set(fields, "a", std::int64_t{2});
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(*find(fields, "a"), Value(std::int64_t{2}));
  EXPECT_EQ(text_of(fields, "b"), "x");
  EXPECT_EQ(text_of(fields, "a"), "");
  EXPECT_EQ(find(fields, "c"), nullptr);
}

// Fault: a name that is written and cannot be read back.
TEST(Record, NamesOfKindsAndSourcesRoundTrip) {
  for (auto kind : {NicKind::none, NicKind::hardware, NicKind::soft_cpu, NicKind::soft_gpu}) {
    EXPECT_EQ(nic_kind_of(name_of(kind)), kind);
  }
  for (auto source : {Source::measured, Source::model, Source::published}) {
    EXPECT_EQ(source_of(name_of(source)), source);
  }
  EXPECT_THROW((void)nic_kind_of("Hardware"), RecordError);
  EXPECT_THROW((void)source_of(""), RecordError);
}

}  // namespace
}  // namespace belfry::bench

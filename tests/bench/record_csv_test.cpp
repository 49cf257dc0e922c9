#include <gmock/gmock.h>

#include <sstream>

#include "bench/record_io.hpp"
#include "bench/sample_record.hpp"

namespace belfry::bench {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<Record> read(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "x.csv");
}

void expect_refused(const std::string& text, const std::string& why) {
  EXPECT_THAT([&] { (void)read(text); }, ThrowsMessage<RecordError>(HasSubstr(why))) << text;
}

// Fault: commas, quotes and line breaks inside cells shift the columns of a row.
TEST(RecordCsv, QuotesWhatNeedsQuotes) {
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_cell("\r"), "\"\r\"");
}

// Fault: CSV and JSON lines are not the same records.
TEST(RecordCsv, RoundTripsEveryField) {
  Record awkward = sample_record();
  awkward.arm = "a,\"b\"\nc";
  Record sparse = sample_record();
  sparse.p10 = sparse.p90 = sparse.p99 = sparse.min = sparse.max = sparse.lower = sparse.upper = std::nullopt;
  sparse.verified = std::nullopt;
  sparse.reference.clear();
  sparse.passes.clear();
  const std::string text = csv_header() + "\n" + to_csv_row(sample_record()) + "\n" + to_csv_row(awkward) +
                           "\r\n" + to_csv_row(sparse);
  EXPECT_EQ(read(text), (std::vector<Record>{sample_record(), awkward, sparse}));
}

// Fault: files of another schema version, or with columns moved, are half understood.
TEST(RecordCsv, ReaderRefusesOtherHeadersAndVersions) {
  const std::string row = to_csv_row(sample_record());
  expect_refused("", "empty");
  expect_refused(row, "x.csv row 1");
  std::string header = csv_header();
  expect_refused(header.replace(header.find("run"), 3, "Run"), "'Run', not 'run'");
  expect_refused(csv_header() + ",more\n", "24 columns");
  expect_refused(csv_header() + "\n2" + row.substr(1), "schema version '2'");
  expect_refused(csv_header() + "\n" + row + ",\n", "24 cells");
}

// Fault: a broken quote makes the reader run to the end of the file, or join cells.
TEST(RecordCsv, ReaderRefusesBrokenQuotes) {
  expect_refused(csv_header() + "\n1,\"open", "ends inside a quoted cell");
  expect_refused(csv_header() + "\n1,a\"b", "quote in the middle");
  expect_refused(csv_header() + "\n1,\"a\"b", "quote in the middle");
}

// Fault: "1.5 us" or "0x10" in a number's cell is read up to the first odd letter.
TEST(RecordCsv, ReaderRefusesCellsThatAreNoNumbers) {
  const std::string row = to_csv_row(sample_record());
  const std::string number = ",0.2,";
  const std::size_t at = row.find(number);
  ASSERT_NE(at, std::string::npos);
  for (const char* cell : {"0.2us", " 0.2", "nan", "inf", "0x1"}) {
    std::string broken = row;
    broken.replace(at, number.size(), std::string(",") + cell + ",");
    EXPECT_THROW((void)read(csv_header() + "\n" + broken), RecordError) << cell;
  }
}

}  // namespace
}  // namespace belfry::bench

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/record_io.hpp"
#include "bench/sample_record.hpp"

namespace belfry::bench {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_refused(const std::string& line, const std::string& why) {
  EXPECT_THAT([&] { (void)from_json_line(line); }, ThrowsMessage<RecordError>(HasSubstr(why))) << line;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Fault: a field lost, renamed or rounded on its way through a file.
TEST(RecordJson, RoundTripsEveryField) {
  const Record record = sample_record();
  EXPECT_EQ(from_json_line(to_json_line(record)), record);
  Record sparse = record;
  sparse.p10 = sparse.p90 = sparse.p99 = sparse.min = sparse.max = sparse.lower = sparse.upper = std::nullopt;
  sparse.verified = std::nullopt;
  sparse.passes.clear();
  sparse.parameters.clear();
  EXPECT_EQ(from_json_line(to_json_line(sparse)), sparse);
}

// Fault (field case 21): output that another strict parser refuses, or that lacks unit, percentiles or
// platform.
TEST(RecordJson, AnotherStrictParserReadsItAndFindsUnitPercentilesAndPlatform) {
  const std::string line = to_json_line(sample_record());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.at("unit"), "us");
  for (const char* key : {"p10", "p50", "p90", "p99"}) EXPECT_TRUE(json.at(key).is_number()) << key;
  EXPECT_EQ(json.at("platform").at("name"), "Some CPU @ 2.0 GHz, software NIC");
  EXPECT_EQ(json.at("nic"), "soft-cpu");
}

// Fault: NaN and Infinity are no JSON, and a writer that turns them into null hides that nothing was
// measured.
TEST(RecordJson, WriterRefusesNotANumber) {
  Record record = sample_record();
  record.passes[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW((void)to_json_line(record), RecordError);
  for (const char* word : {"NaN", "Infinity", "-Infinity", "1e999", "01", "+1", ".5", "'x'"}) {
    expect_refused(replaced(to_json_line(sample_record()), "\"p50\":0.2", std::string("\"p50\":") + word),
                   "JSON");
  }
}

// Fault: a lenient reader takes what another tool will not.
TEST(RecordJson, ReaderIsStrict) {
  const std::string line = to_json_line(sample_record());
  expect_refused("", "JSON");
  expect_refused("[]", "object");
  expect_refused(line + line, "JSON");
  expect_refused(line + "// note", "JSON");
  expect_refused(line.substr(0, line.size() - 1) + ",}", "JSON");
  expect_refused(replaced(line, "\"run\":", "\"run\":\"x\",\"run\":"), "twice");
  expect_refused(replaced(line, "\"cores\":2", "\"cores\":2,\"cores\":3"), "twice");
  expect_refused(replaced(line, "\"cores\":2", "\"cores\":[2]"), "cores");
  expect_refused(replaced(line, "\"cores\":2", "\"cores\":9223372036854775808"), "2^63");
  expect_refused(replaced(line, "\"p50\":0.2", "\"p50\":\"0.2\""), "p50");
  expect_refused(replaced(line, "\"count\":18446744073709551615", "\"count\":-1"), "count");
  expect_refused(replaced(line, "\"verified\":true", "\"verified\":1"), "verified");
  expect_refused(replaced(line, "\"unit\":\"us\"", "\"unit\":\"\xff\""), "JSON");
}

// Fault: a field renamed in a writer is silently empty in every reader.
TEST(RecordJson, ReaderNamesMissingAndUnknownFields) {
  const std::string line = to_json_line(sample_record());
  expect_refused(replaced(line, "\"metric\":", "\"metrics\":"), "'metric' is missing");
  expect_refused(replaced(line, "\"metric\":", "\"extra\":1,\"metric\":"), "'extra' is not part of schema 1");
}

// Fault: a file of another schema version is half understood.
TEST(RecordJson, ReaderRefusesOtherSchemaVersions) {
  const std::string line = to_json_line(sample_record());
  for (const char* version : {"0", "2", "\"1\"", "1.0", "null", "-1"}) {
    expect_refused(replaced(line, "\"schema\":1", std::string("\"schema\":") + version), "schema version");
  }
  expect_refused(replaced(line, "\"schema\":1,", ""), "'schema' is missing");
}

// Fault: a text that is not UTF-8 (firmware strings have been seen) escapes as an exception of the JSON
// library.
TEST(RecordJson, WriterRefusesTextThatIsNotUtf8) {
  Record record = sample_record();
  set(record.platform, "nic", std::string("mlx5\xff"));
  EXPECT_THAT([&] { (void)to_json_line(record); }, ThrowsMessage<RecordError>(HasSubstr("UTF-8")));
}

// Fault: an error in a file of thousands of lines that does not say where.
TEST(RecordJson, StreamErrorsNameFileAndLine) {
  const std::string line = to_json_line(sample_record());
  std::istringstream good(line + "\n\n" + line + "\r\n");
  EXPECT_EQ(read_json_lines(good, "x.jsonl").size(), 2u);
  std::istringstream bad(line + "\n{}\n");
  EXPECT_THAT([&] { (void)read_json_lines(bad, "x.jsonl"); },
              ThrowsMessage<RecordError>(HasSubstr("x.jsonl line 2")));
}

}  // namespace
}  // namespace belfry::bench

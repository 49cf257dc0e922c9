#include "bench/record_sink.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "bench/record_io.hpp"
#include "bench/sample_record.hpp"

namespace belfry::bench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Sink : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "belfry-sink-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

// Fault: a file that cannot be written is found out after an hour of measuring.
TEST_F(Sink, AnUnwritablePathFailsAtOnce) {
  const std::string path = (folder_ / "missing" / "x.jsonl").string();
  EXPECT_THAT([&] { RecordSink(path, RecordFormat::json_lines); },
              ThrowsMessage<std::system_error>(HasSubstr(path)));
  EXPECT_THROW(RecordSink(folder_.string(), RecordFormat::csv), std::system_error);
}

// Fault: a run that fails has emptied the results of the one before it.
TEST_F(Sink, EarlierContentsStayUntilRecordsAreWritten) {
  const fs::path path = folder_ / "x.jsonl";
  std::ofstream(path) << "earlier, and much longer than nothing\n";
  { RecordSink sink(path.string(), RecordFormat::json_lines); }
  EXPECT_EQ(fs::file_size(path), 38u);
  const std::vector<Record> records = {sample_record()};
  {
    RecordSink sink(path.string(), RecordFormat::json_lines);
    sink.write(records);
  }
  std::ifstream in(path);
  EXPECT_EQ(read_json_lines(in, "x"), records);
}

// Fault: rows without their header.
TEST_F(Sink, CsvHasItsHeader) {
  const fs::path path = folder_ / "x.csv";
  const std::vector<Record> records = {sample_record(), sample_record()};
  RecordSink(path.string(), RecordFormat::csv).write(records);
  std::ifstream in(path);
  EXPECT_EQ(read_csv(in, "x"), records);
}

// Fault: a full disk goes unnoticed.
TEST_F(Sink, AFullDeviceIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const std::vector<Record> records = {sample_record()};
  RecordSink sink("/dev/full", RecordFormat::json_lines);
  EXPECT_THROW(sink.write(records), std::system_error);
}

}  // namespace
}  // namespace belfry::bench

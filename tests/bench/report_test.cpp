#include <gmock/gmock.h>

#include "bench/published.hpp"
#include "bench/sample_record.hpp"
#include "report/run_report.hpp"
#include "report/table.hpp"

namespace belfry::report {
namespace {

using bench::Record;
using testing::HasSubstr;
using testing::Not;

// Fault: columns that do not line up, or lines with blanks at their end.
TEST(Table, Aligns) {
  Table table({{"name"}, {"us", Align::right}, {"note"}});
  table.add({"a", "1.25", ""});
  table.add({"longer", "10", "x"});
  EXPECT_EQ(table.text(),
            "name      us  note\n"
            "------  ----  ----\n"
            "a       1.25\n"
            "longer    10  x\n");
  EXPECT_THROW(table.add({"a"}), std::invalid_argument);
}

// Fault: small figures rounded to zero, large ones with digits that mean nothing.
TEST(Table, Figures) {
  EXPECT_EQ(format_figure(std::nullopt), "-");
  EXPECT_EQ(format_figure(0.0), "0");
  EXPECT_EQ(format_figure(0.0012), "0.0012");
  EXPECT_EQ(format_figure(0.363), "0.363");
  EXPECT_EQ(format_figure(4.03), "4.03");
  EXPECT_EQ(format_figure(250.04), "250.0");
  EXPECT_EQ(format_figure(50800.0), "50800");
}

// Fault: a figure of the software NIC is read as one of hardware.
TEST(Report, TheHeaderNamesTheSoftwareNic) {
  const std::vector<Record> soft = {bench::sample_record()};
  EXPECT_THAT(header_text("t", soft, {"gid 3"}),
              HasSubstr("SOFTWARE NIC: figures say nothing about hardware\n"));
  EXPECT_THAT(header_text("t", soft, {"gid 3"}), HasSubstr("note: gid 3\n"));
  std::vector<Record> hard = soft;
  hard[0].nic = bench::NicKind::hardware;
  EXPECT_THAT(header_text("t", hard, {}), Not(HasSubstr("SOFTWARE")));
}

// Fault: a measured row joined with another arm's, another metric's, or another platform's figure.
TEST(Report, MeasuredRowsStandBesideTheirPublishedOnes) {
  Record record = bench::sample_record();
  std::vector<Record> records = {record};
  std::string text = measured_table(records, bench::published_records());
  EXPECT_THAT(text, HasSubstr("published P-IB"));
  EXPECT_THAT(text, HasSubstr("0.700  op/mini-gda-inline\n"));
  EXPECT_THAT(text, HasSubstr("yes"));
  records[0].metric = "put_completion";
  EXPECT_THAT(measured_table(records, bench::published_records()), HasSubstr("4.03  op/mini-gda-inline\n"));
  records[0].unit = "ns";
  EXPECT_THAT(measured_table(records, bench::published_records()), Not(HasSubstr("published")));
  records[0].reference.clear();
  EXPECT_THAT(measured_table(records, bench::published_records()), Not(HasSubstr("published")));
}

// Fault: a payload that did not verify looks like one that was not checked.
TEST(Report, VerificationHasThreeStates) {
  Record record = bench::sample_record();
  record.verified = false;
  EXPECT_THAT(measured_table(std::vector<Record>{record}, {}), HasSubstr("NO"));
  record.verified = std::nullopt;
  EXPECT_THAT(measured_table(std::vector<Record>{record}, {}), Not(HasSubstr("NO")));
}

// Fault: published figures of another platform or experiment slip into the table.
TEST(Report, PublishedTable) {
  const std::string text = published_table("op", bench::published_records());
  EXPECT_THAT(text, HasSubstr("published, P-IB, real hardware (arXiv 2610.01380)"));
  EXPECT_THAT(text, HasSubstr("op/mini-proxy-tuned"));
  EXPECT_THAT(text, HasSubstr("0.130"));
  EXPECT_THAT(text, Not(HasSubstr("8.64")));
  EXPECT_THAT(text, Not(HasSubstr("ordering/")));
  EXPECT_EQ(published_table("none", bench::published_records()), "");
}

}  // namespace
}  // namespace belfry::report

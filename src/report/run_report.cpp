#include "report/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/table.hpp"

namespace belfry::report {
namespace {

using bench::Record;

bool from_compared_platform(const Record& record) {
  return bench::text_of(record.platform, "name") == kComparedPlatform;
}

const Record* partner(const Record& record, std::span<const Record> published) {
  if (record.reference.empty()) return nullptr;
  for (const Record& candidate : published) {
    if (candidate.reference == record.reference && candidate.metric == record.metric &&
        candidate.unit == record.unit && from_compared_platform(candidate)) {
      return &candidate;
    }
  }
  return nullptr;
}

/// The headline of a record: its p50, or its band.
std::string headline(const Record& record) {
  if (record.p50) return format_figure(record.p50);
  if (record.lower || record.upper) return format_figure(record.lower) + ".." + format_figure(record.upper);
  return format_figure(record.p99);
}

std::string verified_text(const std::optional<bool>& verified) {
  if (!verified) return "-";
  return *verified ? "yes" : "NO";
}

void append_unless_there(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::string nic_line(const Record& record) {
  std::string line = bench::text_of(record.platform, "nic");
  for (const char* key : {"nic_link", "nic_firmware", "nic_board"}) {
    const std::string text = bench::text_of(record.platform, key);
    if (!text.empty()) line += ", " + text;
  }
  return line;
}

}  // namespace

std::string header_text(const std::string& title, std::span<const Record> records,
                        const std::vector<std::string>& notes) {
  std::string text = title + "\n";
  if (!records.empty()) {
    const Record& record = records.front();
    if (record.nic == bench::NicKind::soft_cpu || record.nic == bench::NicKind::soft_gpu) {
      text += "SOFTWARE NIC: figures say nothing about hardware\n";
    }
    text += "platform: " + bench::text_of(record.platform, "name") + "\n";
    if (record.nic != bench::NicKind::none) text += "nic: " + nic_line(record) + "\n";
    const std::string revision = bench::text_of(record.versions, "revision");
    text += fmt::format("belfry {} ({}), rdma-core {}, run {}\n", bench::text_of(record.versions, "belfry"),
                        revision, bench::text_of(record.versions, "rdma_core"), record.run);
  }
  for (const std::string& note : notes) text += "note: " + note + "\n";
  return text;
}

std::string measured_table(std::span<const Record> records, std::span<const Record> published) {
  const auto right = Align::right;
  std::vector<Column> columns = {{"arm"},        {"metric"},     {"unit"},       {"p50", right},
                                 {"p10", right}, {"p90", right}, {"p99", right}, {"min", right},
                                 {"max", right}, {"verified"}};
  const bool any_partner = std::any_of(records.begin(), records.end(), [&](const Record& record) {
    return partner(record, published) != nullptr;
  });
  if (any_partner) {
    columns.push_back({fmt::format("published {}", kComparedPlatform), right});
    columns.push_back({"published row"});
  }
  Table table(std::move(columns));
  for (const Record& record : records) {
    std::vector<std::string> cells = {record.arm,
                                      record.metric,
                                      record.unit,
                                      headline(record),
                                      format_figure(record.p10),
                                      format_figure(record.p90),
                                      format_figure(record.p99),
                                      format_figure(record.min),
                                      format_figure(record.max),
                                      verified_text(record.verified)};
    if (any_partner) {
      const Record* found = partner(record, published);
      cells.push_back(found == nullptr ? "-" : headline(*found));
      cells.push_back(found == nullptr ? "" : found->reference);
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string published_table(const std::string& experiment, std::span<const Record> published) {
  std::vector<std::string> rows;
  std::vector<std::string> metrics;
  std::string citation;
  std::vector<const Record*> chosen;
  for (const Record& record : published) {
    if (record.experiment != experiment || !from_compared_platform(record)) continue;
    append_unless_there(rows, record.reference);
    append_unless_there(metrics, record.metric + " " + record.unit);
    citation = bench::text_of(record.versions, "citation");
    chosen.push_back(&record);
  }
  if (chosen.empty()) return {};
  std::vector<Column> columns = {{"published row"}};
  for (const std::string& metric : metrics) columns.push_back({metric, Align::right});
  Table table(std::move(columns));
  for (const std::string& row : rows) {
    std::vector<std::string> cells = {row};
    for (const std::string& metric : metrics) {
      const auto found = std::find_if(chosen.begin(), chosen.end(), [&](const Record* record) {
        return record->reference == row && record->metric + " " + record->unit == metric;
      });
      cells.push_back(found == chosen.end() ? "-" : headline(**found));
    }
    table.add(std::move(cells));
  }
  return fmt::format("published, {}, real hardware ({}):\n{}", kComparedPlatform, citation, table.text());
}

}  // namespace belfry::report

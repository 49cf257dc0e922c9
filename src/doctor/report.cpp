#include "doctor/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "belfry/version.hpp"

namespace belfry::doctor {
namespace {

using Json = nlohmann::ordered_json;

/// Rules that belong to no check, and get no line of their own.
constexpr std::string_view kGeneralPrefix = "doctor.";
constexpr std::size_t kTextColumns = 110;
constexpr std::size_t kIndent = 11;

/// Breaks at blanks; every line but the first begins with the indent.
std::string wrap(const std::string& text) {
  std::string out;
  std::size_t column = kIndent;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::size_t length = end - at;
    if (column + length > kTextColumns && column > kIndent) {
      if (!out.empty() && out.back() == ' ') out.pop_back();
      out += '\n' + std::string(kIndent, ' ');
      column = kIndent;
    }
    out.append(text, at, length);
    column += length;
    if (end < text.size()) {
      out += ' ';
      ++column;
    }
    at = end + 1;
  }
  return out;
}

bool is_fine(const Finding& finding) {
  return finding.severity == Severity::ok || finding.severity == Severity::skipped;
}

std::string finding_text(const Finding& finding) {
  const std::string subject = finding.subject.empty() ? "" : finding.subject + ": ";
  std::string text = fmt::format("  {:<7}  {}\n", to_string(finding.severity),
                                 wrap(fmt::format("{}{} [{}]", subject, finding.found, finding.id)));
  if (is_fine(finding)) return text;
  const auto line = [&](const char* label, const std::string& what) {
    if (!what.empty()) text += std::string(kIndent, ' ') + wrap(std::string(label) + what) + '\n';
  };
  line("why: ", finding.why);
  line("do: ", finding.remedy);
  return text;
}

std::string verdict(const Diagnosis& diagnosis) {
  const auto counts = diagnosis.counts();
  const auto count = [&](Severity severity) {
    const auto found = counts.find(severity);
    return found == counts.end() ? 0 : found->second;
  };
  std::string text = diagnosis.usable ? "usable" : "NOT USABLE";
  text += fmt::format(": {} errors, {} warnings, {} notes, {} unknown, {} ok", count(Severity::error),
                      count(Severity::warning), count(Severity::note), count(Severity::unknown),
                      count(Severity::ok));
  if (diagnosis.software_nic) text += " (SOFTWARE NIC: this says nothing about hardware)";
  return text + '\n';
}

/// One line for all checks that ended the same way; empty if none did.
std::string checks_with(const Diagnosis& diagnosis, std::string_view id, const char* label) {
  std::string names;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) names += (names.empty() ? "" : ", ") + finding.check;
  }
  return names.empty() ? names : fmt::format("{}: {}\n", label, names);
}

std::string_view meaning_of(std::string_view check) {
  for (const Check& known : checks()) {
    if (known.name == check) return known.what;
  }
  return {};
}

}  // namespace

std::string to_text(const Diagnosis& diagnosis, bool problems_only) {
  std::string text = fmt::format("belfry doctor {}: {} RDMA device(s), {} GPU(s)", kVersion,
                                 diagnosis.devices.size(), diagnosis.gpus);
  if (diagnosis.root != "/") text += ", read below " + diagnosis.root;
  text += '\n';
  std::string check;
  for (const Finding& finding : diagnosis.findings) {
    if (problems_only && is_fine(finding)) continue;
    if (finding.id.starts_with(kGeneralPrefix)) continue;
    if (finding.check != check) {
      check = finding.check;
      text += fmt::format("{}: {}\n", check, meaning_of(check));
    }
    text += finding_text(finding);
  }
  if (!problems_only) {
    text += checks_with(diagnosis, "doctor.nothing", "nothing to look at here");
    text += checks_with(diagnosis, "doctor.left_out", "left out on request");
  }
  return text + verdict(diagnosis);
}

std::string to_json(const Diagnosis& diagnosis) {
  Json document = {
      {"schema", "belfry-doctor"}, {"schema_version", 1}, {"belfry", kVersion}, {"revision", kRevision}};
  document["root"] = diagnosis.root;
  document["devices"] = diagnosis.devices;
  document["gpus"] = diagnosis.gpus;
  document["software_nic"] = diagnosis.software_nic;
  document["usable"] = diagnosis.usable;
  Json counts = Json::object();
  for (const auto& [severity, count] : diagnosis.counts()) counts[std::string(to_string(severity))] = count;
  document["counts"] = std::move(counts);
  document["findings"] = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    Json entry = {
        {"id", finding.id},         {"check", finding.check},     {"severity", to_string(finding.severity)},
        {"device", finding.device}, {"subject", finding.subject}, {"found", finding.found},
        {"why", finding.why},       {"remedy", finding.remedy}};
    if (!finding.figures.empty()) {
      Json figures = Json::object();
      for (const Figure& figure : finding.figures) figures[figure.name] = figure.value;
      entry["figures"] = std::move(figures);
    }
    document["findings"].push_back(std::move(entry));
  }
  // Names of files and devices need not be UTF-8.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace belfry::doctor

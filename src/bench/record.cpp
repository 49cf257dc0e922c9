#include "bench/record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace belfry::bench {
namespace {

constexpr std::array<std::pair<NicKind, std::string_view>, 4> kNicKinds{{
    {NicKind::none, "none"},
    {NicKind::hardware, "hardware"},
    {NicKind::soft_cpu, "soft-cpu"},
    {NicKind::soft_gpu, "soft-gpu"},
}};
constexpr std::array<std::pair<Source, std::string_view>, 3> kSources{{
    {Source::measured, "measured"},
    {Source::model, "model"},
    {Source::published, "published"},
}};

[[noreturn]] void refuse(const Record& record, const std::string& what) {
  throw RecordError("record " + record.experiment + "/" + record.arm + "/" + record.metric + ": " + what);
}

void check_names(const Record& record) {
  const std::pair<const char*, const std::string&> required[] = {
      {"run", record.run},   {"experiment", record.experiment},
      {"arm", record.arm},   {"metric", record.metric},
      {"unit", record.unit},
  };
  for (const auto& [field, value] : required) {
    if (value.empty()) refuse(record, std::string("field '") + field + "' is empty");
  }
  const auto& units = known_units();
  if (std::find(units.begin(), units.end(), record.unit) == units.end()) {
    refuse(record, "unit '" + record.unit + "' is not one that records use");
  }
}

void check_fields(const Record& record, const char* name, const Fields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].key.empty()) refuse(record, std::string("an empty key in '") + name + "'");
    for (std::size_t j = 0; j < i; ++j) {
      if (fields[j].key == fields[i].key) {
        refuse(record, "key '" + fields[i].key + "' twice in '" + name + "'");
      }
    }
    const double* number = std::get_if<double>(&fields[i].value);
    if (number != nullptr && !std::isfinite(*number)) {
      refuse(record, "'" + fields[i].key + "' in '" + name + "' is not a finite number");
    }
  }
}

void check_numbers(const Record& record) {
  const std::pair<const char*, std::optional<double>> ascending[] = {
      {"min", record.min}, {"p10", record.p10}, {"p50", record.p50},
      {"p90", record.p90}, {"p99", record.p99}, {"max", record.max},
  };
  const std::pair<const char*, std::optional<double>>* previous = nullptr;
  for (const auto& entry : ascending) {
    if (!entry.second) continue;
    if (!std::isfinite(*entry.second)) refuse(record, std::string(entry.first) + " is not a finite number");
    if (previous != nullptr && *entry.second < *previous->second) {
      refuse(record, std::string(entry.first) + " is below " + previous->first);
    }
    previous = &entry;
  }
  for (const auto& bound : {record.lower, record.upper}) {
    if (bound && !std::isfinite(*bound)) refuse(record, "a bound is not a finite number");
  }
  if (record.lower && record.upper && *record.upper < *record.lower) refuse(record, "upper is below lower");
  for (const double value : record.passes) {
    if (!std::isfinite(value)) refuse(record, "a pass is not a finite number");
  }
  if (!record.p50 && !record.p99 && !record.lower && !record.upper) {
    refuse(record, "neither a percentile nor a bound: it says nothing");
  }
}

void check_origin(const Record& record) {
  const std::string platform = text_of(record.platform, "name");
  if (platform.empty()) refuse(record, "field 'platform' has no name");
  const bool software = record.nic == NicKind::soft_cpu || record.nic == NicKind::soft_gpu;
  if (software && platform.find(kSoftwareNicMark) == std::string::npos) {
    refuse(record, "it comes from a software NIC, but platform '" + platform + "' does not say so");
  }
  if (record.source != Source::published) return;
  if (software) refuse(record, "a published figure cannot come from the software NIC");
  if (text_of(record.versions, "citation").empty())
    refuse(record, "a published figure needs versions.citation");
  if (record.reference.empty()) refuse(record, "a published figure needs the name of its row in 'reference'");
}

}  // namespace

const Value* find(const Fields& fields, std::string_view key) {
  for (const Field& field : fields) {
    if (field.key == key) return &field.value;
  }
  return nullptr;
}

std::string text_of(const Fields& fields, std::string_view key) {
  const Value* value = find(fields, key);
  const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::string() : *text;
}

void set(Fields& fields, std::string_view key, Value value) {
  for (Field& field : fields) {
    if (field.key == key) {
      field.value = std::move(value);
      return;
    }
  }
  fields.push_back({std::string(key), std::move(value)});
}

std::string_view name_of(NicKind kind) {
  for (const auto& [value, name] : kNicKinds) {
    if (value == kind) return name;
  }
  return "none";
}

std::string_view name_of(Source source) {
  for (const auto& [value, name] : kSources) {
    if (value == source) return name;
  }
  return "measured";
}

NicKind nic_kind_of(std::string_view name) {
  for (const auto& [value, known] : kNicKinds) {
    if (known == name) return value;
  }
  throw RecordError("nic '" + std::string(name) + "' is none of none, hardware, soft-cpu, soft-gpu");
}

Source source_of(std::string_view name) {
  for (const auto& [value, known] : kSources) {
    if (known == name) return value;
  }
  throw RecordError("source '" + std::string(name) + "' is none of measured, model, published");
}

const std::vector<std::string_view>& known_units() {
  static const std::vector<std::string_view> units = {
      "us",   "ns", "s",   "cycles", "MHz", "M msg/s", "MB/s",  "MiB/s",     "GB/s", "GiB/s",
      "Gb/s", "B",  "KiB", "MiB",    "%",   "ratio",   "count", "registers", "QPs",  "GFLOP/s",
  };
  return units;
}

void check(const Record& record) {
  check_names(record);
  check_fields(record, "platform", record.platform);
  check_fields(record, "parameters", record.parameters);
  check_fields(record, "versions", record.versions);
  check_numbers(record);
  check_origin(record);
}

}  // namespace belfry::bench

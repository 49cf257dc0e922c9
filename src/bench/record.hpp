#pragma once
/// \file
/// The record: the only thing an experiment returns. One record is one metric of one arm at one setting
/// of the parameters. docs/records.md states every field.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace belfry::bench {

/// Version of the schema; readers refuse any other.
inline constexpr int kRecordSchema = 1;

/// A record that breaks the schema. The message names field, value and rule.
class RecordError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What executed the work queues.
enum class NicKind : std::uint8_t { none, hardware, soft_cpu, soft_gpu };

/// Where the figure comes from.
enum class Source : std::uint8_t { measured, model, published };

using Value = std::variant<bool, std::int64_t, double, std::string>;
struct Field {
  std::string key;
  Value value;
  bool operator==(const Field&) const = default;
};

/// Ordered key/value pairs; keys are unique within one list.
using Fields = std::vector<Field>;

/// The value of `key`, or nullptr.
const Value* find(const Fields& fields, std::string_view key);

/// The text of `key`, or "" where it is absent or no text.
std::string text_of(const Fields& fields, std::string_view key);

/// Replaces the value of `key`, or appends the pair.
void set(Fields& fields, std::string_view key, Value value);

struct Record {
  std::string run;         ///< same for all records of one run of the program
  std::string experiment;  ///< as `belfry list` names it
  std::string arm;
  Fields platform;  ///< key "name" always; the rest as platform.hpp captures it
  NicKind nic = NicKind::none;
  Source source = Source::measured;
  Fields parameters;
  std::string metric;
  std::string unit;            ///< one of known_units()
  std::vector<double> passes;  ///< one headline value a pass, in the order of the passes
  std::uint64_t count = 0;     ///< samples behind the percentiles, all passes together; 0 where unknown
  /// Percentiles (statistics.hpp has their definition). p50 is the headline: the median over passes.
  std::optional<double> p10, p50, p90, p99, min, max;
  std::optional<double> lower, upper;  ///< a band, where the figure is one
  std::optional<bool> verified;        ///< payload checked and right, or wrong; absent: nothing to check
  std::string reference;               ///< published row that this one is to be read against; may be empty
  Fields versions;                     ///< belfry, rdma-core, ...; key "citation" in a published record

  bool operator==(const Record&) const = default;
};

std::string_view name_of(NicKind kind);
std::string_view name_of(Source source);
/// Throws RecordError for an unknown name.
NicKind nic_kind_of(std::string_view name);
Source source_of(std::string_view name);

/// Every unit a record may carry.
const std::vector<std::string_view>& known_units();

/// Throws RecordError unless the record keeps the schema: names present, unit known, all numbers finite,
/// percentiles ascending, a headline or a band, no duplicate key, and a platform that says so where the
/// NIC is a software one.
void check(const Record& record);

/// What the platform's name of every record from a software NIC contains.
inline constexpr std::string_view kSoftwareNicMark = "software NIC";

}  // namespace belfry::bench

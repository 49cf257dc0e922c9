#include "bench/record_json.hpp"

#include <cmath>
#include <istream>
#include <set>
#include <vector>

#include "bench/record_io.hpp"

namespace belfry::bench {
namespace {

/// Parses strictly: besides what the grammar forbids, a key that stands twice in one object.
Json parse(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const Json::parser_callback_t no_repeats = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw RecordError("key '" + parsed.get<std::string>() + "' stands twice");
    }
    return true;
  };
  try {
    return Json::parse(text, no_repeats);
  } catch (const Json::exception& error) {
    throw RecordError(std::string("not strict JSON: ") + error.what());
  }
}

Json to_json(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Json to_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// Takes the fields out of a record's object one by one; what is left over at the end is unknown.
class Reader {
 public:
  explicit Reader(Json object) : object_(std::move(object)) {
    if (!object_.is_object()) throw RecordError("a record must be a JSON object");
  }

  Json take(const char* key) {
    const auto found = object_.find(key);
    if (found == object_.end()) throw RecordError(std::string("field '") + key + "' is missing");
    Json value = *found;
    object_.erase(key);
    return value;
  }
  std::string text(const char* key) {
    const Json value = take(key);
    if (!value.is_string()) throw RecordError(std::string("field '") + key + "' must be text");
    return value.get<std::string>();
  }
  std::optional<double> number(const char* key) {
    const Json value = take(key);
    if (value.is_null()) return std::nullopt;
    if (!value.is_number()) throw RecordError(std::string("field '") + key + "' must be a number or null");
    return value.get<double>();
  }
  void finish() const {
    if (object_.empty()) return;
    throw RecordError("field '" + object_.begin().key() + "' is not part of schema " +
                      std::to_string(kRecordSchema));
  }

 private:
  Json object_;
};

void check_schema(Reader& reader) {
  const Json schema = reader.take("schema");
  if (schema.is_number_integer() && schema == Json(kRecordSchema)) return;
  throw RecordError("schema version " + schema.dump() + " is unknown; this belfry reads version " +
                    std::to_string(kRecordSchema) + ". Read the file with the belfry that wrote it");
}

std::uint64_t count_of(const Json& value) {
  if (!value.is_number_unsigned()) throw RecordError("field 'count' must be a whole number, 0 or more");
  return value.get<std::uint64_t>();
}

std::optional<bool> verified_of(const Json& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_boolean()) throw RecordError("field 'verified' must be true, false or null");
  return value.get<bool>();
}

}  // namespace

Json fields_to_json(const Fields& fields) {
  Json object = Json::object();
  for (const Field& field : fields) object[field.key] = to_json(field.value);
  return object;
}

std::string dump(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception& error) {
    throw RecordError(std::string("a text is not UTF-8: ") + error.what());
  }
}

Fields fields_of(const Json& object, const char* name) {
  if (!object.is_object()) throw RecordError(std::string("field '") + name + "' must be an object");
  Fields fields;
  for (const auto& [key, value] : object.items()) {
    if (value.is_boolean()) {
      fields.push_back({key, value.get<bool>()});
    } else if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
      throw RecordError("'" + key + "' in '" + name + "' is above 2^63 - 1");
    } else if (value.is_number_integer()) {
      fields.push_back({key, value.get<std::int64_t>()});
    } else if (value.is_number_float()) {
      fields.push_back({key, value.get<double>()});
    } else if (value.is_string()) {
      fields.push_back({key, value.get<std::string>()});
    } else {
      throw RecordError("'" + key + "' in '" + name + "' must be text, a number, true or false");
    }
  }
  return fields;
}

std::vector<double> passes_of(const Json& array) {
  if (!array.is_array()) throw RecordError("field 'passes' must be an array");
  std::vector<double> passes;
  for (const Json& value : array) {
    if (!value.is_number()) throw RecordError("field 'passes' must hold numbers only");
    passes.push_back(value.get<double>());
  }
  return passes;
}

Json parse_strictly(std::string_view text) { return parse(text); }

std::string to_json_line(const Record& record) {
  check(record);
  Json object;
  object["schema"] = kRecordSchema;
  object["run"] = record.run;
  object["experiment"] = record.experiment;
  object["arm"] = record.arm;
  object["platform"] = fields_to_json(record.platform);
  object["nic"] = name_of(record.nic);
  object["source"] = name_of(record.source);
  object["parameters"] = fields_to_json(record.parameters);
  object["metric"] = record.metric;
  object["unit"] = record.unit;
  object["passes"] = record.passes;
  object["count"] = record.count;
  object["p10"] = to_json(record.p10);
  object["p50"] = to_json(record.p50);
  object["p90"] = to_json(record.p90);
  object["p99"] = to_json(record.p99);
  object["min"] = to_json(record.min);
  object["max"] = to_json(record.max);
  object["lower"] = to_json(record.lower);
  object["upper"] = to_json(record.upper);
  object["verified"] = record.verified ? Json(*record.verified) : Json(nullptr);
  object["reference"] = record.reference;
  object["versions"] = fields_to_json(record.versions);
  return dump(object);
}

Record from_json_line(std::string_view line) {
  Reader reader(parse(line));
  check_schema(reader);
  Record record;
  record.run = reader.text("run");
  record.experiment = reader.text("experiment");
  record.arm = reader.text("arm");
  record.platform = fields_of(reader.take("platform"), "platform");
  record.nic = nic_kind_of(reader.text("nic"));
  record.source = source_of(reader.text("source"));
  record.parameters = fields_of(reader.take("parameters"), "parameters");
  record.metric = reader.text("metric");
  record.unit = reader.text("unit");
  record.passes = passes_of(reader.take("passes"));
  record.count = count_of(reader.take("count"));
  record.p10 = reader.number("p10");
  record.p50 = reader.number("p50");
  record.p90 = reader.number("p90");
  record.p99 = reader.number("p99");
  record.min = reader.number("min");
  record.max = reader.number("max");
  record.lower = reader.number("lower");
  record.upper = reader.number("upper");
  record.verified = verified_of(reader.take("verified"));
  record.reference = reader.text("reference");
  record.versions = fields_of(reader.take("versions"), "versions");
  reader.finish();
  check(record);
  return record;
}

std::vector<Record> read_json_lines(std::istream& in, const std::string& name) {
  std::vector<Record> records;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    try {
      records.push_back(from_json_line(line));
    } catch (const RecordError& error) {
      throw RecordError(name + " line " + std::to_string(number) + ": " + error.what());
    }
  }
  return records;
}

}  // namespace belfry::bench

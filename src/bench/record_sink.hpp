#pragma once
/// \file
/// Where a run's records are written: opened before anything is measured, written after.

#include <span>
#include <string>

#include "bench/record.hpp"

namespace belfry::bench {

enum class RecordFormat : std::uint8_t { json_lines, csv };

class RecordSink {
 public:
  /// Opens `path` for writing; "-" is stdout. A file that exists keeps its contents until write().
  /// Throws std::system_error that names the path.
  RecordSink(const std::string& path, RecordFormat format);
  ~RecordSink();
  RecordSink(RecordSink&& other) noexcept;
  RecordSink& operator=(RecordSink&&) = delete;

  /// Replaces the contents. Throws RecordError for a record that breaks the schema, std::system_error if
  /// the system does not take all of it.
  void write(std::span<const Record> records);

 private:
  std::string path_;
  RecordFormat format_;
  int fd_;
  bool owned_;
};

}  // namespace belfry::bench

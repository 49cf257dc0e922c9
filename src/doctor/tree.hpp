#pragma once
/// \file
/// Where the doctor reads: the live /sys, /proc and /dev, or a copy of them below another directory.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belfry::doctor {

/// All paths are absolute, as on the live machine ("/sys/class/net"). Nothing here throws: what cannot be
/// read is absent.
class Tree {
 public:
  explicit Tree(std::filesystem::path root = "/");

  bool live() const { return root_ == "/"; }
  const std::filesystem::path& root() const { return root_; }

  bool exists(std::string_view path) const;
  /// The first line, without blanks at its end; no bytes outside printable ASCII.
  std::optional<std::string> line(std::string_view path) const;
  /// At most 1 MiB, as it is.
  std::optional<std::string> text(std::string_view path) const;
  /// A file that holds one decimal number.
  std::optional<std::int64_t> number(std::string_view path) const;
  /// Names in a directory, sorted so that mlx5_2 comes before mlx5_10.
  std::vector<std::string> list(std::string_view path) const;
  /// The path with its symbolic links followed, seen from this root; empty where there is none.
  std::string resolve(std::string_view path) const;

 private:
  std::filesystem::path at(std::string_view path) const;
  std::filesystem::path root_;
};

/// The value of the line "key<separator>value", blanks trimmed; nothing if there is no such line.
std::optional<std::string> value_of(std::string_view text, std::string_view key, char separator = ':');

/// A whole text as a number; nothing if any of it is none.
std::optional<std::int64_t> to_number(std::string_view text);

/// "0-3,8" as the kernel prints lists of CPUs. What is not understood is left out.
std::vector<unsigned> parse_cpu_list(std::string_view text);

}  // namespace belfry::doctor

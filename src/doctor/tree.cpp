#include "doctor/tree.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

namespace belfry::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0'; };
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  return text;
}

/// mlx5_2 before mlx5_10: digits are compared as numbers.
bool natural_less(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      std::size_t end_a = i;
      std::size_t end_b = j;
      while (end_a < a.size() && digit(a[end_a])) ++end_a;
      while (end_b < b.size() && digit(b[end_b])) ++end_b;
      const auto strip = [](std::string_view s) {
        return s.substr(std::min(s.find_first_not_of('0'), s.size()));
      };
      const std::string_view number_a = strip(std::string_view(a).substr(i, end_a - i));
      const std::string_view number_b = strip(std::string_view(b).substr(j, end_b - j));
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
      i = end_a;
      j = end_b;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

}  // namespace

Tree::Tree(fs::path root) : root_(std::move(root)) {
  std::error_code error;
  const fs::path real = fs::canonical(root_, error);
  if (!error) root_ = real;
}

fs::path Tree::at(std::string_view path) const {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  return root_ / path;
}

bool Tree::exists(std::string_view path) const {
  std::error_code error;
  return fs::exists(at(path), error) && !error;
}

std::optional<std::string> Tree::text(std::string_view path) const {
  std::error_code error;
  const fs::path file = at(path);
  if (fs::is_directory(file, error)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text;
  char block[4096];
  while (text.size() < kMostBytes && (in.read(block, sizeof block), in.gcount() > 0)) {
    text.append(block, static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) return std::nullopt;
  return text;
}

std::optional<std::string> Tree::line(std::string_view path) const {
  const auto all = text(path);
  if (!all || all->empty()) return std::nullopt;
  std::string first(trim(std::string_view(*all).substr(0, all->find('\n'))));
  for (char& c : first) {
    if (c < ' ' || c > '~') c = '?';
  }
  return first;
}

std::optional<std::int64_t> Tree::number(std::string_view path) const {
  const auto first = line(path);
  return first ? to_number(*first) : std::nullopt;
}

std::vector<std::string> Tree::list(std::string_view path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(at(path), error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

std::string Tree::resolve(std::string_view path) const {
  std::error_code error;
  const fs::path real = fs::canonical(at(path), error);
  if (error) return {};
  if (live()) return real.string();
  const fs::path inside = real.lexically_relative(root_);
  if (inside.empty() || *inside.begin() == "..") return {};
  return std::string("/").append(inside.string());
}

std::optional<std::string> value_of(std::string_view text, std::string_view key, char separator) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t at = line.find(separator);
    if (at == std::string_view::npos || trim(line.substr(0, at)) != key) continue;
    return std::string(trim(line.substr(at + 1)));
  }
  return std::nullopt;
}

std::optional<std::int64_t> to_number(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<unsigned> parse_cpu_list(std::string_view text) {
  constexpr std::int64_t kMostCpus = 65536;
  std::vector<unsigned> cpus;
  text = trim(text);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::size_t dash = part.find('-');
    const auto first = to_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_number(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= kMostCpus) continue;
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<unsigned>(cpu));
  }
  return cpus;
}

}  // namespace belfry::doctor

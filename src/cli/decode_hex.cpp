#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "cli/decode_text.hpp"

namespace belfry::cli {
namespace {

constexpr std::string_view kHeadings[] = {"dump error cqe", "got completion with error:"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_hex(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return hex_value(c) >= 0; });
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

/// What is left of a line without what logs and dump tools put before the bytes.
std::string_view payload_of(std::string_view line) {
  line = trim(line);
  for (const std::string_view heading : kHeadings) {
    if (line.ends_with(heading)) return {};
  }
  while (line.starts_with('[')) {  // dmesg's time
    const std::size_t end = line.find(']');
    if (end == std::string_view::npos) break;
    line = trim(line.substr(end + 1));
  }
  return line;
}

/// Whether the first `length` characters are the offset of a dump's row: at least four digits, a
/// colon, and then a space or the end. Bytes that are joined by colons have two digits.
bool is_offset(std::string_view text, std::size_t length) {
  if (length < 4 || length >= text.size() || text[length] != ':' || !is_hex(text.substr(0, length)))
    return false;
  return length + 1 == text.size() || is_space(text[length + 1]);
}

/// Makes text from elsewhere fit for a message: short, and without control characters.
std::string quote(std::string_view s) {
  constexpr std::size_t longest = 40;
  std::string out = "'";
  for (const char c : s.substr(0, longest)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (s.size() > longest ? "...'" : "'");
}

void append_token(std::string_view token, std::size_t line, std::vector<std::uint8_t>& bytes) {
  std::string_view digits = token;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  if (!is_hex(digits)) {
    throw std::invalid_argument(fmt::format("line {}: {} is not hexadecimal", line, quote(token)));
  }
  if (digits.size() % 2 != 0) {
    throw std::invalid_argument(
        fmt::format("line {}: {} has an odd number of digits; a byte takes two", line, quote(token)));
  }
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(hex_value(digits[i]) * 16 + hex_value(digits[i + 1])));
  }
}

}  // namespace

std::vector<std::uint8_t> parse_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view payload = payload_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!payload.empty()) {
      const auto separates = [](char c) { return is_space(c) || c == ',' || c == ':'; };
      const auto* const stop = std::find_if(payload.begin(), payload.end(), separates);
      const auto length = static_cast<std::size_t>(stop - payload.begin());
      const std::string_view token = payload.substr(0, length);
      if (length > 0 && !is_offset(payload, length)) append_token(token, line, bytes);
      payload.remove_prefix(std::min(length + 1, payload.size()));
    }
  }
  if (bytes.empty()) throw std::invalid_argument("no bytes given; pass the dump as hexadecimal digits");
  return bytes;
}

}  // namespace belfry::cli

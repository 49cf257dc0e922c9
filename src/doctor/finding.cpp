#include "doctor/finding.hpp"

namespace belfry::doctor {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
    case Severity::unknown:
      return "unknown";
    case Severity::skipped:
      return "skipped";
  }
  return "unknown";
}

std::string fill(std::string_view remedy, const Fills& fills) {
  std::string text(remedy);
  for (const auto& [name, value] : fills) {
    const std::string placeholder = "<" + name + ">";
    for (std::size_t at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at + value.size())) {
      text.replace(at, placeholder.size(), value);
    }
  }
  return text;
}

}  // namespace belfry::doctor

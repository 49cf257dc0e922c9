#pragma once
/// \file
/// What the doctor says: rules, which are fixed and documented, and findings, which are made from them.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belfry::doctor {

enum class Severity : std::uint8_t {
  ok,       ///< works
  note,     ///< worth knowing; nothing to mend
  warning,  ///< works, but worse than it could, or not where this finding points
  error,    ///< stops GPU-initiated RDMA on its subject
  unknown,  ///< could not be read or tried
  skipped,  ///< left out on request, or because an earlier finding makes it pointless
};

std::string_view to_string(Severity severity);

/// A kind of finding. The id is stable, and its severity never changes with what was found.
/// In `remedy`, a word in angle brackets stands for what a finding fills in: <netdev>.
struct Rule {
  std::string_view id;  ///< CHECK.what, "gid.none"
  Severity severity = Severity::ok;
  std::string_view meaning;  ///< one line, for the documentation
  std::string_view why;      ///< why it matters here; empty where meaning says it
  std::string_view remedy;   ///< the command that mends it; empty where there is nothing to mend
};

/// A figure that belongs to a finding, for those who read JSON: the unit is the name's end (time_ns).
struct Figure {
  std::string name;
  std::int64_t value = 0;
};

struct Finding {
  std::string id;
  std::string check;
  Severity severity = Severity::ok;
  std::string device;   ///< the RDMA device that it is about; empty: the machine
  std::string subject;  ///< "mlx5_0 port 1", "0000:3b:00.0", "this process"
  std::string found;
  std::string why;
  std::string remedy;
  std::vector<Figure> figures;
};

/// What stands for the placeholders of a remedy: {"netdev", "eth0"} for <netdev>.
using Fills = std::vector<std::pair<std::string, std::string>>;

/// The remedy with its placeholders filled in; those without a fill stay as they are.
std::string fill(std::string_view remedy, const Fills& fills);

}  // namespace belfry::doctor

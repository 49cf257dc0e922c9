/// \file
/// How much memory this process may lock, which is how much it may register.

#include <array>

#include "belfry/host/errors.hpp"
#include "doctor/check.hpp"

namespace belfry::doctor {
namespace {

/// A default endpoint: a window of 1 MiB, its rings and doorbell records.
constexpr std::uint64_t kLeast = std::uint64_t{2} << 20;
/// What symmetric heaps of libraries of this field start at (NVSHMEM: 1 GiB a PE).
constexpr std::uint64_t kUsual = std::uint64_t{1} << 30;

constexpr std::array<Rule, 5> kRules = {{
    {"memlock.unlimited", Severity::ok, "locked memory has no limit, or a large one", "", ""},
    {"memlock.bypassed", Severity::note, "a limit is set, and this process may exceed it (CAP_IPC_LOCK)",
     "the same program fails once it runs without that right", "`ulimit -l unlimited` all the same"},
    {"memlock.low", Severity::warning, "the limit is below 1 GiB",
     "registered host memory is locked; a heap of the usual size does not fit",
     "`ulimit -l unlimited` before the program; for good, `* - memlock unlimited` in "
     "/etc/security/limits.conf and a new login (systemd: LimitMEMLOCK=infinity); `docker run --ulimit "
     "memlock=-1`"},
    {"memlock.too_low", Severity::error, "the limit is below what one default endpoint registers (2 MiB)",
     "ibv_reg_mr fails with ENOMEM although there is memory",
     "`ulimit -l unlimited` before the program; for good, `* - memlock unlimited` in "
     "/etc/security/limits.conf and a new login (systemd: LimitMEMLOCK=infinity); `docker run --ulimit "
     "memlock=-1`"},
    {"memlock.unreadable", Severity::unknown, "/proc/self/limits cannot be read", "", ""},
}};

void check_memlock(Visit& visit) {
  const ProcessRights& process = visit.machine.process;
  if (!process.locked_memory) {
    visit.report(kRules[4], "this process", "/proc/self/limits has no line of locked memory");
    return;
  }
  const host::LockedMemoryLimit limit = *process.locked_memory;
  const std::string found = "RLIMIT_MEMLOCK is " + host::format_bytes(limit.soft) + " (hard limit " +
                            host::format_bytes(limit.hard) + ")";
  const Rule* rule = &kRules[0];
  if (limit.soft < kUsual) {
    rule = process.may_exceed_locked_memory ? &kRules[1] : limit.soft < kLeast ? &kRules[3] : &kRules[2];
  }
  Finding& finding = visit.report(*rule, "this process", found);
  if (limit.soft != host::LockedMemoryLimit::kUnlimited) {
    finding.figures.push_back({"limit_bytes", static_cast<std::int64_t>(limit.soft)});
  }
}

}  // namespace

extern const Check kMemlockCheck{"memlock", "the limit of locked memory, against what is registered", kRules,
                                 check_memlock};

}  // namespace belfry::doctor

#include "doctor/check.hpp"

#include <array>

namespace belfry::doctor {
namespace {

Finding make(const Rule& rule, const Fills& fills) {
  Finding finding;
  finding.id = rule.id;
  finding.check = rule.id.substr(0, rule.id.find('.'));
  finding.severity = rule.severity;
  finding.why = rule.why;
  finding.remedy = fill(rule.remedy, fills);
  return finding;
}

}  // namespace

Finding& Visit::report(const Rule& rule, std::string subject, std::string found, const Fills& fills) {
  Finding finding = make(rule, fills);
  finding.subject = std::move(subject);
  finding.found = std::move(found);
  return findings_.emplace_back(std::move(finding));
}

Finding& Visit::report(const Rule& rule, const RdmaDevice& device, std::string found, const Fills& fills) {
  Fills all = fills;
  all.emplace_back("device", device.name);
  Finding& finding = report(rule, device.name, std::move(found), all);
  finding.device = device.name;
  return finding;
}

Finding& Visit::report(const Rule& rule, const RdmaDevice& device, const RdmaPort& port, std::string found,
                       const Fills& fills) {
  Fills all = fills;
  all.emplace_back("port", std::to_string(port.number));
  Finding& finding = report(rule, device, std::move(found), all);
  finding.subject = device.name + " port " + std::to_string(port.number);
  return finding;
}

std::span<const Check> checks() {
  static const std::array<Check, 21> all = {
      kDevicesCheck,      kNodesCheck,    kFirmwareCheck, kPortsCheck, kMtuCheck,      kGidCheck,
      kTrafficClassCheck, kMemlockCheck,  kDevxCheck,     kGpuCheck,   kDoorbellCheck, kGpuMemoryCheck,
      kGdrcopyCheck,      kPcieCheck,     kAffinityCheck, kAcsCheck,   kIommuCheck,    kAtomicsCheck,
      kPowerCheck,        kVersionsCheck, kProofCheck};
  return all;
}

}  // namespace belfry::doctor

#pragma once
#include "bench/record.hpp"

namespace belfry::bench {

/// A valid record with every field in use, awkward texts included.
inline Record sample_record() {
  Record record;
  record.run = "20260101T000000Z-00000001";
  record.experiment = "op";
  record.arm = "verbs-inline";
  record.platform = {
      {"name", "Some CPU @ 2.0 GHz, software NIC"}, {"cores", std::int64_t{2}}, {"nic_software", true}};
  record.nic = NicKind::soft_cpu;
  record.source = Source::measured;
  record.parameters = {{"note", "comma, \"quote\", back\\slash"}, {"bytes", std::int64_t{8}}, {"share", 0.1}};
  record.metric = "issue";
  record.unit = "us";
  record.passes = {0.1, 0.30000000000000004, 1e-9};
  record.count = 18446744073709551615ull;
  record.min = 0.05;
  record.p10 = 0.1;
  record.p50 = 0.2;
  record.p90 = 0.25;
  record.p99 = 0.3;
  record.max = 100;
  record.lower = 1;
  record.upper = 2;
  record.verified = true;
  record.reference = "op/mini-gda-inline";
  record.versions = {{"belfry", "0.1.0"}};
  return record;
}

}  // namespace belfry::bench

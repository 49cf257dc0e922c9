#include "bench/experiments.hpp"

#include "bench/experiment.hpp"

namespace belfry::bench {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      op_experiment(),      inline_experiment(),     scope_experiment(),       rate_experiment(),
      handoff_experiment(), proxy_rate_experiment(), loaded_experiment(),      proxy_state_experiment(),
      goodput_experiment(), payload_experiment(),    publication_experiment(), residency_experiment(),
      litmus_experiment(),  softnic_experiment(),
  };
  return all;
}

}  // namespace belfry::bench

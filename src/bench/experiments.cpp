#include "bench/experiments.hpp"

#include "bench/experiment.hpp"

namespace belfry::bench {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
#ifdef BELFRY_BENCH_ON_HOST
      op_experiment(),
      softnic_experiment(),
#endif
  };
  return all;
}

}  // namespace belfry::bench

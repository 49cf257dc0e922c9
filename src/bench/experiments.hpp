#pragma once
/// \file
/// One function an experiment, each in the file of its name.

#include "bench/experiment.hpp"

namespace belfry::bench {

Experiment op_experiment();
Experiment goodput_experiment();
Experiment handoff_experiment();
Experiment inline_experiment();
Experiment litmus_experiment();
Experiment loaded_experiment();
Experiment payload_experiment();
Experiment proxy_rate_experiment();
Experiment proxy_state_experiment();
Experiment publication_experiment();
Experiment rate_experiment();
Experiment residency_experiment();
Experiment scope_experiment();
Experiment softnic_experiment();

}  // namespace belfry::bench

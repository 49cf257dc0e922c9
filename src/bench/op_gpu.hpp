#pragma once
/// \file
/// Experiment `op` with its kernels on a GPU: two PEs of this process whose queues and windows lie in GPU
/// memory.

#include <vector>

#include "bench/experiment.hpp"

namespace belfry::bench {

/// mini-gda's arms among those chosen, and `clock`.
std::vector<Record> run_op_on_gpu(RunContext& run);

}  // namespace belfry::bench

#pragma once
/// \file
/// Which NIC a benchmark runs on: a device of this machine, or the software NIC.

#include <string>

#include "bench/experiment.hpp"

namespace belfry::cli {

/// Settles `options.nic`. With `soft`, and with `auto` on a machine without RDMA devices, this executes
/// the program anew under the software NIC, and does not return the first time. Call it before anything
/// is measured or any thread is started.
/// Throws CLI::ValidationError for a request that the experiment cannot run on, host::Error for one that
/// is no device name, std::runtime_error where the software NIC cannot be had.
/// \param group of processes that use one software NIC's fabric; empty: this process has one of its own
void choose_nic(const bench::Experiment& experiment, bench::Options& options, const std::string& group);

}  // namespace belfry::cli

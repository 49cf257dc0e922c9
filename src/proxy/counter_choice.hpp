#pragma once
/// \file
/// Which way completion counts take to device code, and the memory for it.

#include <memory>
#include <optional>
#include <string>

#include "belfry/host/memory.hpp"
#include "belfry/proxy/endpoint.hpp"
#include "proxy/counter.hpp"
#include "proxy/nic_writer.hpp"

namespace belfry::proxy {

struct CounterChoice {
  CounterPath path = CounterPath::host;
  std::string decision;  ///< one line, with the reason
  /// A ring's each, as device code has them; null where the path is host.
  device::proxy::WorkerWords* words = nullptr;
  std::shared_ptr<host::QueueMemory> provider;  ///< of the words
  std::shared_ptr<void> memory;
  std::shared_ptr<void> mapping;       ///< gdrcopy: the words, as this CPU has them
  std::optional<host::Memory> region;  ///< nic: the words, as the NIC has them

  /// \param writer of the worker that will use it, where the path is nic
  std::unique_ptr<Counter> make_counter(std::uint32_t ring, std::shared_ptr<NicWriter> writer,
                                        const EndpointOptions& options) const;
};

/// Throws host::Error (unsupported, or what registering memory throws) where a certain path was asked for and
/// cannot be had.
CounterChoice choose_counters(const host::ProtectionDomain& domain, const EndpointOptions& options);

}  // namespace belfry::proxy

#pragma once
/// \file
/// Who looks at the checked memory, and where the memory lies.

#include <string>

#include "belfry/port/scope.hpp"

namespace belfry::check {

using port::Order;
using port::Scope;

enum class AgentKind { gpu, cpu, nic };

/// Where an agent runs. A block belongs to a GPU.
struct Place {
  AgentKind kind = AgentKind::cpu;
  int gpu = -1;
  int block = -1;
};
constexpr Place gpu_thread(int gpu, int block) { return {AgentKind::gpu, gpu, block}; }
constexpr Place cpu_thread() { return {AgentKind::cpu, -1, -1}; }
constexpr Place nic_port() { return {AgentKind::nic, -1, -1}; }

/// The narrowest scope that holds both of two different agents.
constexpr Scope common_scope(const Place& a, const Place& b) {
  if (a.kind != AgentKind::gpu || b.kind != AgentKind::gpu || a.gpu != b.gpu) return Scope::system;
  return a.block == b.block ? Scope::block : Scope::gpu;
}

/// Scopes mean something on a GPU only; elsewhere each is the system's.
constexpr Scope effective_scope(const Place& who, Scope asked) {
  return who.kind == AgentKind::gpu ? asked : Scope::system;
}

enum class MemoryKind {
  gpu,        ///< a GPU's memory, behind its L2
  host,       ///< the host's memory
  registers,  ///< a device's registers: a doorbell
};

/// The assumptions under which the cheap orderings are right. Each can be switched off.
struct Assumptions {
  /// A1: a NIC reads the memory of a GPU through that GPU's L2, so that a release of GPU scope reaches the
  /// NIC as far as this memory goes.
  bool own_memory = true;
  /// A2: a NIC acts on doorbells only, and on a record no further than the doorbell that made it look.
  bool doorbell_only = true;
  /// A1 where a CPU stands between the two: what has left a GPU's L2 after such a release (a doorbell in host
  /// memory, a descriptor) finds the GPU's memory as released, whoever looks at it from outside then.
  bool past_cpu = false;
  /// A3: a NIC's writes become visible in the order in which it posts them, whichever memory each goes to. By
  /// PCIe they do within one memory only.
  bool ordered_writes = true;
};

}  // namespace belfry::check

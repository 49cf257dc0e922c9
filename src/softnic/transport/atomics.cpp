#include <atomic>

#include "softnic/firmware/atomic_result.hpp"
#include "softnic/transport/responder.hpp"

namespace belfry::softnic {

namespace {

template <class Word>
Word execute(wire::WqeOpcode opcode, const AtomicOperands& operands, unsigned char* memory) {
  // Atomic towards the host's CPUs and the NICs of other processes as well: the memory may be shared.
  std::atomic_ref<Word> cell(*reinterpret_cast<Word*>(memory));
  Word old = cell.load(std::memory_order_relaxed);
  while (
      !cell.compare_exchange_weak(old, result_of_atomic(opcode, operands, old), std::memory_order_acq_rel)) {
  }
  return old;
}

}  // namespace

std::uint64_t execute_atomic(NicCore& core, wire::WqeOpcode opcode, const AtomicOperands& operands,
                             unsigned char* memory) {
  if (core.gpu_payload.holds(memory)) return core.gpu_payload.update(memory, opcode, operands);
  return operands.bytes == 4 ? execute<std::uint32_t>(opcode, operands, memory)
                             : execute<std::uint64_t>(opcode, operands, memory);
}

}  // namespace belfry::softnic

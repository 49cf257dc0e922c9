#include <atomic>

#include "softnic/transport/responder.hpp"

namespace belfry::softnic {

namespace {

/// Adds field by field: a set bit of `boundary` ends a field, and no carry passes it.
template <class Word>
Word masked_add(Word value, Word add, Word boundary) {
  Word sum = 0;
  Word carry = 0;
  for (unsigned bit = 0; bit < sizeof(Word) * 8; ++bit) {
    const Word a = (value >> bit) & 1;
    const Word b = (add >> bit) & 1;
    sum |= static_cast<Word>((a ^ b ^ carry) << bit);
    carry = ((a & b) | (carry & (a ^ b))) & ~((boundary >> bit) & 1);
  }
  return sum;
}

template <class Word>
Word apply(wire::WqeOpcode opcode, const AtomicOperands& o, Word old) {
  switch (opcode) {
    case wire::WqeOpcode::atomic_fetch_add:
      return old + static_cast<Word>(o.swap_or_add);
    case wire::WqeOpcode::atomic_masked_fetch_add:
      return masked_add(old, static_cast<Word>(o.swap_or_add), static_cast<Word>(o.swap_mask));
    default: {
      const Word difference = (old ^ static_cast<Word>(o.compare)) & static_cast<Word>(o.compare_mask);
      if (difference != 0) return old;
      const Word mask = static_cast<Word>(o.swap_mask);
      return (old & ~mask) | (static_cast<Word>(o.swap_or_add) & mask);
    }
  }
}

template <class Word>
Word execute(wire::WqeOpcode opcode, const AtomicOperands& operands, unsigned char* memory) {
  // Atomic towards the host's CPUs and the NICs of other processes as well: the memory may be shared.
  std::atomic_ref<Word> cell(*reinterpret_cast<Word*>(memory));
  Word old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(old, apply(opcode, operands, old), std::memory_order_acq_rel)) {
  }
  return old;
}

}  // namespace

std::uint64_t execute_atomic(wire::WqeOpcode opcode, const AtomicOperands& operands, unsigned char* memory) {
  return operands.bytes == 4 ? execute<std::uint32_t>(opcode, operands, memory)
                             : execute<std::uint64_t>(opcode, operands, memory);
}

}  // namespace belfry::softnic

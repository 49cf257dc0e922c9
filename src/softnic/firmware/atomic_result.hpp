#pragma once
/// \file
/// What atomic operations make of a word. One source for the CPU and the GPU engine; that nothing happens in
/// between is the mover's business.

#include "softnic/firmware/wqe_decode.hpp"

namespace belfry::softnic {

/// Adds field by field: a set bit of `boundary` ends a field, and no carry passes it.
template <class Word>
BELFRY_FN Word masked_add(Word value, Word add, Word boundary) {
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

/// \return what the word becomes
template <class Word>
BELFRY_FN Word result_of_atomic(wire::WqeOpcode opcode, const AtomicOperands& o, Word old) {
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

}  // namespace belfry::softnic

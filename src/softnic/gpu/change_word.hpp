#pragma once
/// \file
/// An atomic operation on a word that kernels reach too.

#include "belfry/port/memory.hpp"
#include "softnic/firmware/atomic_result.hpp"

namespace belfry::softnic {

/// Atomic towards all who reach the word. Relaxed: whoever calls orders it. \return what the word was
template <class Word>
BELFRY_FN Word change_word(Word* at, wire::WqeOpcode opcode, const AtomicOperands& operands) {
  Word old = port::load<port::Scope::system>(at);
  for (;;) {
    const Word before =
        port::compare_exchange<port::Scope::system>(at, old, result_of_atomic(opcode, operands, old));
    if (before == old) return old;
    old = before;
  }
}

}  // namespace belfry::softnic

#pragma once
/// \file
/// port/step.hpp under the checker: every step is kept but the one that the current mutant leaves out.

#include <cstdint>

namespace belfry::port {

enum class Step : std::uint8_t;

/// \return false for the step that check::Mutant has taken out
bool step_is_kept(Step step);

}  // namespace belfry::port

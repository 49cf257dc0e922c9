#pragma once
/// \file
/// Leaves one named step of the checked protocols out for as long as it lives.

#include "belfry/port/step.hpp"

namespace belfry::check {

const char* step_name(port::Step step);

class Mutant {
 public:
  explicit Mutant(port::Step without);
  ~Mutant();
  Mutant(const Mutant&) = delete;
  Mutant& operator=(const Mutant&) = delete;
};

}  // namespace belfry::check

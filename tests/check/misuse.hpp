#pragma once
/// \file
/// The checker was asked for something it cannot do: a fault of the test, not of what is tested.

#include <stdexcept>

namespace belfry::check {

struct Misuse : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace belfry::check

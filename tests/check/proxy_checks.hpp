#pragma once
/// \file
/// mini-proxy under the checker: its three protocols, and each of their steps left out.

#include <vector>

#include "check/checks.hpp"

namespace belfry::check {

std::vector<Check> proxy_checks();
std::vector<Check> proxy_mutants();

}  // namespace belfry::check

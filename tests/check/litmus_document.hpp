#pragma once
/// \file
/// docs/litmus.md, written by the tests.

#include <string>

namespace belfry::check {

/// Runs every litmus test both ways and writes what came out.
std::string litmus_document();

}  // namespace belfry::check

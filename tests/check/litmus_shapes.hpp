#pragma once
/// \file
/// The litmus tests of docs/litmus.md: shapes, how they are ordered, and where their threads run.

#include <functional>
#include <string>
#include <vector>

#include "check/litmus.hpp"

namespace belfry::check {

/// One way to order two accesses of a thread, or none.
struct Edge {
  std::string name;
  enum class Kind { none, access, fence, fence_sequential } kind = Kind::none;
  Scope scope = Scope::system;
};

struct Placement {
  std::string name;
  std::vector<Place> places;
};

struct LitmusRow {
  std::string name;  ///< how the first side is ordered
  std::vector<Program> programs;
};

/// A table: the same shape with each pair of edges.
struct LitmusTable {
  std::string shape;
  std::string program;  ///< in words
  std::string outcome;  ///< the weak one that the table is about
  std::string placement;
  std::string rows_title;
  std::vector<std::string> columns;
  std::vector<LitmusRow> rows;
  std::function<bool(const Results&)> weak;
};

std::vector<LitmusTable> litmus_tables();

}  // namespace belfry::check

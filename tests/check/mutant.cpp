#include "check/mutant.hpp"

#include "check/misuse.hpp"

namespace belfry::check {
namespace {
port::Step left_out = port::Step::count_;
}  // namespace

Mutant::Mutant(port::Step without) {
  if (left_out != port::Step::count_) throw Misuse("one mutant at a time");
  left_out = without;
}
Mutant::~Mutant() { left_out = port::Step::count_; }

}  // namespace belfry::check

bool belfry::port::step_is_kept(Step step) { return step != belfry::check::left_out; }

#include "check/litmus.hpp"

#include "check/explore.hpp"
#include "check/misuse.hpp"

namespace belfry::check {
namespace {

constexpr std::size_t kWordsApart = 2;  // a line each

struct Run {
  std::uint64_t* variables = nullptr;
  std::vector<Results> results;
};

void execute(World& world, const Instruction& i, std::uint64_t* variables, Results& results) {
  std::uint64_t* const at = variables + i.variable * kWordsApart;
  const Manner how{i.scope, !i.weak, i.acquire, i.release};
  switch (i.kind) {
    case Instruction::Kind::load:
      results.push_back(world.load(at, 8, how, false, {}, nullptr));
      break;
    case Instruction::Kind::store:
      world.store(at, 8, i.value, how, {}, nullptr);
      break;
    case Instruction::Kind::add:
      results.push_back(world.modify(at, 8, Modify::add, how, i.value, 0, {}, nullptr));
      break;
    case Instruction::Kind::fence:
      world.fence(i.scope, false, nullptr);
      break;
    case Instruction::Kind::fence_sequential:
      world.fence(i.scope, true, nullptr);
      break;
  }
}

}  // namespace

Outcomes checker_outcomes(const Program& program) {
  Outcomes outcomes;
  Scenario scenario;
  scenario.name = "litmus";
  scenario.settings.load_delay = true;
  scenario.build = [&](World& world) {
    Run& run = world.keep<Run>();
    run.variables = world.make<std::uint64_t>("variables", program.variables * kWordsApart, MemoryKind::gpu);
    run.results.resize(program.threads.size());
    for (std::size_t t = 0; t < program.threads.size(); ++t) {
      world.add_agent("T" + std::to_string(t), program.threads[t].place, [&world, &run, &program, t] {
        for (const Instruction& i : program.threads[t].instructions)
          execute(world, i, run.variables, run.results[t]);
      });
    }
    world.at_end([&run, &outcomes] {
      Results all;
      for (const Results& r : run.results) all.insert(all.end(), r.begin(), r.end());
      outcomes.insert(all);
    });
  };
  const Report report = explore(scenario);
  if (!report.complete) throw Misuse("a litmus test that could not be explored");
  return outcomes;
}

}  // namespace belfry::check

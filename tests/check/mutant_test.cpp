// The steps of the protocols (port/step.hpp): each is needed, named where it stands, and listed in
// docs/ordering.md.

#include "check/mutant.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>

#include "check/checks.hpp"
#include "check/documents.hpp"

namespace belfry::check {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr int kSteps = static_cast<int>(port::Step::count_);

/// The sources that the checker runs.
std::vector<fs::path> checked_sources() {
  const fs::path root = BELFRY_SOURCE_DIR;
  std::vector<fs::path> sources;
  for (const auto& entry : fs::recursive_directory_iterator(root / "include/belfry/device"))
    if (entry.path().extension() == ".hpp") sources.push_back(entry.path());
  for (const char* name : {"ring_reader.hpp", "ring_service.cpp", "completion_order.hpp", "counter.hpp"})
    sources.push_back(root / "src/proxy" / name);
  sources.push_back(root / "src/host/doorbell_relay.hpp");
  return sources;
}

// Fault: a fence or a check that nothing would miss, or a checker that does not see what it is for.
TEST(Mutants, NoneSurvives) {
  std::set<port::Step> killed;
  for (const Check& check : all_mutants()) {
    const Judgement j = judge(check, {});
    EXPECT_TRUE(j.report.violated) << check.scenario.name << " survives";
    if (j.report.violated) killed.insert(*check.without);
  }
  for (int step = 0; step < kSteps; ++step)
    EXPECT_EQ(killed.count(static_cast<port::Step>(step)), 1u)
        << step_name(static_cast<port::Step>(step)) << " is left out of no scenario that finds it";
}

// Fault: a fence, a release, an acquire or a barrier that no mutant leaves out, so that nobody knows whether
// it is needed.
TEST(Mutants, EachFenceIsAStep) {
  const std::regex orders(
      R"(port::(fence<|thread_fence|store_release<|store_doorbell_release<|load_acquire<|sync_warp|sync_block\()|Order::(acquire|release))");
  for (const fs::path& path : checked_sources()) {
    std::istringstream text(text_of(path));
    std::string before, line;
    for (int number = 1; std::getline(text, line); ++number) {
      const std::string code = line.substr(0, line.find("//"));
      if (std::regex_search(code, orders)) {
        EXPECT_NE((before + code).find("kept("), std::string::npos) << path << ":" << number << ": " << line;
      }
      // A step is at most eight lines above what it keeps: the fence of a scope, the release or the plain
      // store.
      before += code + '\n';
      if (std::count(before.begin(), before.end(), '\n') > 8) before.erase(0, before.find('\n') + 1);
    }
  }
}

// Fault: a fence in the sources whose reader is not told what goes wrong without it.
TEST(Mutants, EachIsCitedWhereItsStepStands) {
  std::string cited;
  const std::regex citation(R"(mutants?:((?:[\s/]*\w+[,;]?)+))");
  for (const fs::path& path : checked_sources()) {
    const std::string text = text_of(path);
    for (std::sregex_iterator i(text.begin(), text.end(), citation), end; i != end; ++i)
      cited += i->str(1) + " ";
  }
  for (int step = 0; step < kSteps; ++step) {
    const char* name = step_name(static_cast<port::Step>(step));
    EXPECT_TRUE(std::regex_search(cited, std::regex(std::string("\\b") + name + "\\b"))) << name;
  }
}

// Fault: a trace whose reader has to find out which field lies at an offset, who called a helper, and why a
// store that came later is not what is read.
TEST(Traces, NameFieldsCallersAndWhatIsOvertaken) {
  const std::string name = "mutant.proxy_acquire_taken.proxy.shared_tuned.wrap";
  std::string trace;
  for (const Check& check : all_mutants()) {
    if (check.scenario.name != name) continue;
    const Mutant mutant(*check.without);
    trace = replay(check.scenario, explore_shortest(check.scenario).finding.schedule);
  }
  EXPECT_TRUE(
      std::regex_search(trace, std::regex(R"( src/proxy/ring_reader\.hpp:\d+ < ring_service\.cpp:\d+ )")));
  EXPECT_TRUE(
      std::regex_search(trace, std::regex(R"( src/proxy/counter\.hpp:\d+ < ring_service\.cpp:\d+ )")));
  EXPECT_TRUE(std::regex_search(trace, std::regex(R"( atomic\.gpu ring state\.taken: )")));
  EXPECT_TRUE(
      std::regex_search(trace, std::regex(R"( store\.system slots .*OVERTAKEN: .* the store of step \d+)")));
  EXPECT_EQ(trace.find(".."), std::string::npos);
  if (HasFailure()) std::cerr << trace;
}

// Fault: the table in the documents says something else than the checker finds.
TEST(Mutants, TheTableIsCurrent) {
  const fs::path path = fs::path(BELFRY_SOURCE_DIR) / "docs/ordering.md";
  const std::string begin = "<!-- mutants: written by test_check -->\n\n", end = "<!-- end of mutants -->";
  const std::string found = text_of(path);
  const auto first = found.find(begin), last = found.find(end, first);
  ASSERT_TRUE(first != std::string::npos && last != std::string::npos && last >= first + begin.size());
  std::string expected = found;
  const std::string table = mutant_table();
  EXPECT_EQ(table.find("SURVIVES"), std::string::npos) << table;
  expected.replace(first + begin.size(), last - first - begin.size(), table + "\n");
  if (std::getenv("BELFRY_UPDATE_DOCS") != nullptr && expected != found) {
    std::ofstream(path) << expected;
    return;
  }
  EXPECT_EQ(found, expected) << path << ": run this test with BELFRY_UPDATE_DOCS=1 to update it";
}

}  // namespace
}  // namespace belfry::check

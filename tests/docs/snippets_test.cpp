/// \file
/// Every C++ block in docs/ stands in a source that is compiled. In front of a block a comment names it:
/// `<!-- examples/01_put_and_wait/kernel.hpp#put-and-wait -->`; in that file the text lies between two lines
/// `// [put-and-wait]`. With BELFRY_UPDATE_DOCS=1 the test writes what it expects into the documents.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace belfry::docs {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

const fs::path kRoot = BELFRY_SOURCE_DIR;

Lines read_lines(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << "cannot read " << path;
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

/// The marked lines of a source, moved to the left. Empty where there are none, or the end is missing.
Lines snippet(const fs::path& path, const std::string& tag) {
  Lines lines;
  int marks = 0;
  for (const std::string& line : read_lines(path)) {
    if (line.substr(indent_of(line)) == "// [" + tag + "]") {
      ++marks;
    } else if (marks == 1) {
      lines.push_back(line);
    }
  }
  if (marks != 2) return {};
  std::size_t indent = 1000;
  for (const std::string& line : lines)
    if (!line.empty()) indent = std::min(indent, indent_of(line));
  for (std::string& line : lines) line.erase(0, std::min(indent, line.size()));
  return lines;
}

struct Source {
  std::string file, tag;
};

/// What a line `<!-- FILE#NAME -->` names. Both empty for any other line.
Source source_in(const std::string& line) {
  const std::string begin = "<!-- ", end = " -->";
  const std::size_t hash = line.find('#');
  if (!line.starts_with(begin) || !line.ends_with(end) || hash == std::string::npos) return {};
  const std::size_t tag_end = line.size() - end.size();
  if (hash <= begin.size() || hash + 1 >= tag_end) return {};
  return {line.substr(begin.size(), hash - begin.size()), line.substr(hash + 1, tag_end - hash - 1)};
}

/// The document as it should be. \param blocks is raised by the number of C++ blocks
Lines with_snippets(const fs::path& document, int& blocks) {
  Lines result;
  bool in_block = false;
  for (const std::string& line : read_lines(document)) {
    if (in_block && line != "```") continue;
    in_block = false;
    if (line.rfind("```cpp", 0) != 0) {
      result.push_back(line);
      continue;
    }
    ++blocks;
    in_block = true;
    const Source source = result.empty() ? Source{} : source_in(result.back());
    result.push_back(line);
    if (source.file.empty()) {
      ADD_FAILURE() << document << ": a C++ block without a line <!-- FILE#NAME --> above it";
      continue;
    }
    const Lines text = snippet(kRoot / source.file, source.tag);
    EXPECT_FALSE(text.empty()) << document << ": no snippet " << source.file << "#" << source.tag;
    result.insert(result.end(), text.begin(), text.end());
  }
  return result;
}

std::string join(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Fault: a document whose code does not compile any more.
TEST(Docs, CodeIsThatOfCompiledSources) {
  int blocks = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const std::string expected = join(with_snippets(entry.path(), blocks));
    const std::string found = join(read_lines(entry.path()));
    if (std::getenv("BELFRY_UPDATE_DOCS") != nullptr && expected != found) {
      std::ofstream(entry.path()) << expected;
      continue;
    }
    EXPECT_EQ(found, expected) << entry.path() << ": run this test with BELFRY_UPDATE_DOCS=1 to update it";
  }
  EXPECT_GE(blocks, 10) << "docs/device-api.md alone has more";
}

}  // namespace
}  // namespace belfry::docs

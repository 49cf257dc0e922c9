// Drives a harness without libFuzzer, with any compiler:
//   (no arguments)   every seed and some mutations of each; deterministic. CTest runs this.
//   --seeds FOLDER   writes the seeds as files, a corpus for libFuzzer to start from.
//   FILE...          each file as one input: what reproduces a crash that libFuzzer has found.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/harness.hpp"

namespace {

using belfry::fuzz::Bytes;
using Random = std::mt19937_64;

constexpr int kMutationsOfEachSeed = 300;

void run(const Bytes& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

std::size_t below(Random& random, std::size_t limit) { return static_cast<std::size_t>(random() % limit); }

// One change of the kinds that find things: a bit, a byte, a piece that is gone, doubled or replaced.
void mutate(Bytes& input, Random& random) {
  if (input.empty()) {
    input.push_back(static_cast<std::uint8_t>(random()));
    return;
  }
  const std::size_t at = below(random, input.size());
  const std::size_t length = 1 + below(random, std::min<std::size_t>(16, input.size() - at));
  const auto from = input.begin() + static_cast<std::ptrdiff_t>(at);
  const auto to = from + static_cast<std::ptrdiff_t>(length);
  switch (below(random, 5)) {
    case 0:
      *from = static_cast<std::uint8_t>(*from ^ (1u << below(random, 8)));
      break;
    case 1:
      *from = static_cast<std::uint8_t>(random());
      break;
    case 2:
      input.erase(from, to);
      break;
    case 3: {
      const Bytes piece(from, to);
      input.insert(from, piece.begin(), piece.end());
      break;
    }
    default:
      for (auto byte = from; byte != to; ++byte) *byte = (random() & 1) != 0 ? 0xff : 0;
  }
}

void run_mutations() {
  belfry::fuzz::check_reach();
  Random random(1);
  std::size_t runs = 0;
  for (const Bytes& seed : belfry::fuzz::seeds()) {
    run(seed);
    ++runs;
    for (int i = 0; i < kMutationsOfEachSeed; ++i, ++runs) {
      Bytes input = seed;
      for (std::size_t changes = 1 + below(random, 4); changes != 0; --changes) mutate(input, random);
      run(input);
    }
  }
  std::printf("%zu inputs\n", runs);
}

int write_seeds(const std::string& folder) {
  int number = 0;
  for (const Bytes& seed : belfry::fuzz::seeds()) {
    const std::string path = folder + "/seed-" + std::to_string(number++);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
  }
  return 0;
}

int run_files(char** first, char** last) {
  for (; first != last; ++first) {
    std::ifstream file(*first, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", *first);
      return 1;
    }
    run(Bytes(std::istreambuf_iterator<char>(file), {}));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--seeds") return write_seeds(argv[2]);
  if (argc > 1) return run_files(argv + 1, argv + argc);
  run_mutations();
  return 0;
}

// Fuzzes the decoder of dumps: text that people paste, and the bytes of WQEs and CQEs.
// Guards against: reads past a truncated entry, lengths in a WQE that are believed, text or JSON that
// cannot be made. The only way out besides an answer is std::invalid_argument.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "belfry/wire/wqe.hpp"
#include "cli/decode_text.hpp"
#include "fuzz/harness.hpp"

namespace belfry::fuzz {
namespace {

void decode(std::span<const std::uint8_t> bytes, unsigned what) {
  try {
    const cli::Listing listing =
        what == 0 ? cli::decode_cqe(bytes) : cli::decode_wqe(bytes, static_cast<cli::WqeKind>(what - 1));
    const std::string text = cli::to_text(listing);
    if (text.empty() || text.back() != '\n') std::abort();
    // What programs read must parse again, whatever was in the dump.
    if (nlohmann::json::parse(cli::to_json(listing).dump()).empty()) std::abort();
  } catch (const std::invalid_argument& refused) {
    if (std::string(refused.what()).empty()) std::abort();
  }
}

void decode_text(const std::string& text) {
  try {
    const Bytes bytes = cli::parse_hex(text);
    for (unsigned what = 0; what < 4; ++what) decode(bytes, what);
  } catch (const std::invalid_argument& refused) {
    if (std::string(refused.what()).empty()) std::abort();
  }
}

Bytes text_seed(const std::string& text) {
  Bytes input = {4};
  input.insert(input.end(), text.begin(), text.end());
  return input;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (unsigned opcode = 0; opcode < 0x30; ++opcode) {
    for (std::uint8_t what = 1; what < 4; ++what) {
      // A control segment that promises four blocks, and small numbers behind it.
      const auto control = wire::make_control(static_cast<wire::WqeOpcode>(opcode), 0x0102, 0xabcdef,
                                              4 + opcode % 12, wire::kWqeCompletionAlways);
      Writer writer;
      writer.put(what).put(control);
      for (std::uint8_t i = 0; i < 15; ++i) writer.put(wire::DataSegment{Be32(i), Be32(0x100u + i), Be64(i)});
      all.push_back(writer.done());
    }
  }
  for (unsigned code = 0; code < 16; ++code) {
    Bytes cqe(65);
    cqe[64] = static_cast<std::uint8_t>(code << 4);
    cqe[56] = static_cast<std::uint8_t>(0x11 + code);
    all.push_back(cqe);
  }
  all.push_back(text_seed("93005204 0a0019a1 c0921cd2"));
  all.push_back(text_seed("0x93, 0x00:52:04\n00000030: 0a0019a1 c0921cd2\n"));
  all.push_back(text_seed("[  12.5] mlx5_0:dump_cqe:1: dump error cqe\n[ 12.6] 00000000: 00 00 00 00"));
  all.push_back(text_seed("mlx5: host: got completion with error:\n00000000 00000000 00000000 00000000"));
  return all;
}

void check_reach() {
  const Bytes cqe = cli::parse_hex("93005204 0a0019a1 c0921cd2");
  expect_reached(!cli::decode_cqe(cqe).sections.empty(), "a CQE");
  const Bytes wqe(64);
  expect_reached(!cli::decode_wqe(wqe).sections.empty(), "a WQE");
}

}  // namespace belfry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry::fuzz;
  if (size == 0) return 0;
  // The first byte says which decoder; a copy of the rest has its end where ASan sees it.
  const Bytes rest(data + 1, data + size);
  if (data[0] % 5 == 4) {
    decode_text(std::string(rest.begin(), rest.end()));
  } else {
    decode(rest, data[0] % 5);
  }
  return 0;
}

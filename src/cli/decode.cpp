/// \file
/// `belfry decode wqe|cqe HEX`: a raw dump in words.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/decode_text.hpp"

namespace belfry::cli {
namespace {

constexpr const char* kHexHelp =
    "The dump: hexadecimal digits in memory order, as the kernel and libmlx5 print them (a debugger's "
    "32-bit words are swapped). Spaces, newlines, 0x, colons, offsets and dmesg times are skipped. "
    "Without it, or with -, the dump is read from standard input";

struct Options {
  std::vector<std::string> hex;
  bool json = false;
  std::string queue = "rc";
};

WqeKind kind_of(const std::string& queue) {
  if (queue == "datagram") return WqeKind::datagram;
  return queue == "receive" ? WqeKind::receive : WqeKind::rc;
}

std::vector<std::uint8_t> read_bytes(const std::vector<std::string>& arguments) {
  if (arguments.empty() || (arguments.size() == 1 && arguments.front() == "-")) {
    return parse_hex(std::string(std::istreambuf_iterator<char>(std::cin), {}));
  }
  return parse_hex(fmt::format("{}", fmt::join(arguments, " ")));
}

void print(const Listing& listing, bool json) {
  if (json) {
    fmt::print("{}\n", to_json(listing).dump(2));
  } else {
    fmt::print("{}", to_text(listing));
  }
}

/// A dump that cannot be understood is an error of the command line.
template <class Decode>
void run(const Options& options, Decode decode) {
  try {
    print(decode(read_bytes(options.hex)), options.json);
  } catch (const std::invalid_argument& error) {
    throw CLI::ValidationError("decode", error.what());
  }
}

void add_common(CLI::App& command, Options& options) {
  command.add_option("hex", options.hex, kHexHelp)->type_name("HEX")->expected(0, -1);
  command.add_flag("--json", options.json, "Print JSON instead of text");
}

}  // namespace

void add_decode(CLI::App& app) {
  CLI::App* const decode = app.add_subcommand("decode", "Print a raw WQE or CQE in words");
  decode->require_subcommand(1);
  const auto options = std::make_shared<Options>();

  CLI::App* const cqe = decode->add_subcommand("cqe", "A completion: 64 or 128 bytes, or the last 12 or 16");
  add_common(*cqe, *options);
  cqe->callback([options] { run(*options, [](const auto& bytes) { return decode_cqe(bytes); }); });

  CLI::App* const wqe = decode->add_subcommand("wqe", "Work requests: any multiple of 16 bytes");
  add_common(*wqe, *options);
  wqe->add_option("--queue", options->queue,
                  "Which queue they come from; datagram is UD or DC, where an address vector follows the "
                  "control segment")
      ->check(CLI::IsMember({"rc", "datagram", "receive"}))
      ->capture_default_str();
  wqe->callback([options] {
    run(*options, [&](const auto& bytes) { return decode_wqe(bytes, kind_of(options->queue)); });
  });
}

}  // namespace belfry::cli

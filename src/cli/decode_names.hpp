#pragma once
/// \file
/// Names of opcodes, and fields of a listing built from numbers.

#include <cstdint>
#include <string>

#include "belfry/wire/cqe.hpp"
#include "cli/decode_text.hpp"

namespace belfry::cli {

/// "RDMA WRITE"; "unknown" for a number that mlx5dv.h does not name.
std::string wqe_opcode_name(std::uint8_t opcode);
/// "requester error"; "unknown" for a reserved number.
std::string cqe_opcode_name(std::uint8_t opcode);

/// "0x0102", `digits` wide.
std::string hex_text(std::uint64_t value, int digits);
/// "de ad be ef".
std::string bytes_text(std::span<const std::uint8_t> bytes);

ListingField hex_field(std::string key, std::string label, std::uint64_t value, int digits);
ListingField number_field(std::string key, std::string label, std::uint64_t value);
/// A number with its name: two JSON values would not fit one field, so the name has its own.
void add_named(ListingSection& section, const std::string& key, const std::string& label, std::uint64_t value,
               int digits, const std::string& name);
ListingField text_field(std::string key, std::string label, const std::string& text);

}  // namespace belfry::cli

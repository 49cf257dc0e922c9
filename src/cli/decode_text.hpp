#pragma once
/// \file
/// Raw WQEs and CQEs in words: bytes in, a listing out, which becomes text or JSON. Nothing here
/// prints or reads; `belfry decode` does.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belfry::cli {

/// One field of a listing.
struct ListingField {
  std::string key;       ///< JSON name
  std::string label;     ///< text name; empty: for JSON only
  std::string text;      ///< value for people
  nlohmann::json value;  ///< value for programs
};

/// A group of fields: the CQE, or one segment of a WQE.
struct ListingSection {
  std::string title;  ///< empty where there is one section only
  std::vector<ListingField> fields;
};

struct Listing {
  std::string kind;  ///< "cqe" or "wqe"
  std::string title;
  std::vector<ListingSection> sections;
  std::vector<std::string> notes;  ///< what the reader should know: truncation, unknown opcodes
};

/// Bytes of a hex dump. Understood: spaces, newlines, commas and colons between bytes; words of
/// several bytes, in memory order, as libmlx5 and the kernel print them; 0x; offsets such as
/// `00000030:` and log prefixes in square brackets at the start of a line; the headings "dump error
/// cqe" and "got completion with error:".
/// Throws std::invalid_argument that quotes what cannot be read.
std::vector<std::uint8_t> parse_hex(std::string_view text);

/// A CQE: 64 B, 128 B (the second half is the entry), or the last 12 or 16 B, which logs show.
/// Throws std::invalid_argument for any other size.
Listing decode_cqe(std::span<const std::uint8_t> bytes);

/// What the bytes of a WQE do not say themselves.
enum class WqeKind {
  rc,        ///< send queue of an RC QP
  datagram,  ///< send queue of a UD QP or a DC initiator: an address vector follows the control segment
  receive,   ///< receive queue: a list of data segments
};

/// One or several WQEs in a row, each starting on a 64 B block. Any multiple of 16 B.
/// Throws std::invalid_argument for any other size.
Listing decode_wqe(std::span<const std::uint8_t> bytes, WqeKind kind = WqeKind::rc);

/// Sections with aligned labels, then the notes; ends with a newline.
std::string to_text(const Listing& listing);
/// {"kind", "title", "sections": [{"title", KEY: VALUE ...}], "notes": [...]}.
nlohmann::json to_json(const Listing& listing);

}  // namespace belfry::cli

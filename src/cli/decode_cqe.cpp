#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "belfry/wire/cqe.hpp"
#include "belfry/wire/infiniband.hpp"
#include "belfry/wire/syndrome.hpp"
#include "belfry/wire/wqe.hpp"
#include "cli/decode_names.hpp"
#include "cli/decode_text.hpp"

namespace belfry::cli {
namespace {

/// A CQE of which the first `missing` bytes are not known.
struct PartialCqe {
  std::uint8_t bytes[wire::kCqeBytes] = {};
  std::size_t missing = 0;

  bool knows(std::size_t offset) const { return offset >= missing; }
  template <class Layout>
  Layout as() const {
    static_assert(sizeof(Layout) == wire::kCqeBytes);
    Layout layout;
    std::memcpy(&layout, bytes, sizeof layout);
    return layout;
  }
};

const char* format_name(wire::CqeFormat format) {
  switch (format) {
    case wire::CqeFormat::plain:
      return "plain";
    case wire::CqeFormat::inline_32:
      return "payload of up to 32 B inside this entry";
    case wire::CqeFormat::inline_64:
      return "payload of up to 64 B in the half before this one";
    case wire::CqeFormat::compressed:
      return "compressed: an array of mini CQEs";
  }
  return "unknown";
}

void add_state(ListingSection& section, std::uint8_t op_own) {
  const auto opcode = static_cast<std::uint8_t>(op_own >> 4);
  add_named(section, "opcode", "opcode", opcode, 1, cqe_opcode_name(opcode));
  section.fields.push_back(number_field("owner", "owner bit", op_own & wire::kCqeOwnerMask));
  section.fields.push_back(number_field("solicited", "solicited bit", (op_own & wire::kCqeSolicited) != 0));
  const wire::CqeFormat format = wire::cqe_format(op_own);
  add_named(section, "format", "format", static_cast<std::uint8_t>(format), 1, format_name(format));
}

/// What the last word says about the queue: which QP, which WQE.
void add_origin(ListingSection& section, std::uint32_t opcode_qpn, std::uint16_t counter, bool requester) {
  if (requester) {
    const auto opcode = static_cast<std::uint8_t>(opcode_qpn >> 24);
    add_named(section, "wqe_opcode", "WQE opcode", opcode, 2, wqe_opcode_name(opcode));
  }
  const std::uint32_t qpn = opcode_qpn & wire::kQpnMask;
  section.fields.push_back({"qpn", "QPN", fmt::format("{}  {}", hex_text(qpn, 6), qpn), qpn});
  section.fields.push_back({"wqe_counter", requester ? "WQE counter" : "receive counter",
                            fmt::format("{}  {}", counter, hex_text(counter, 4)), counter});
}

void add_user_index(ListingSection& section, std::uint32_t value) {
  section.fields.push_back(hex_field("user_index", "user index or SRQN", value & wire::kQpnMask, 6));
}

void add_syndrome(ListingSection& section, std::uint8_t syndrome) {
  const auto typed = static_cast<wire::Syndrome>(syndrome);
  const wire::SyndromeInfo* info = wire::find_syndrome(syndrome);
  add_named(section, "syndrome", "syndrome", syndrome, 2, wire::syndrome_name(typed));
  const std::uint8_t status = wire::ibverbs_status(typed);
  const std::string name = info != nullptr ? info->ibverbs_name
                           : status == 0   ? "IBV_WC_SUCCESS"
                                           : "IBV_WC_GENERAL_ERR";
  section.fields.push_back({"ibverbs_status", "ibverbs status", fmt::format("{}  {}", status, name), status});
  section.fields.push_back({"ibverbs_status_name", "", "", name});
  if (info == nullptr) return;
  section.fields.push_back(text_field("meaning", "meaning", info->meaning));
  section.fields.push_back(text_field("remedy", "remedy", info->remedy));
}

void add_vendor_syndrome(ListingSection& section, std::uint8_t vendor) {
  const wire::VendorSyndromeInfo* info = wire::find_vendor_syndrome(vendor);
  std::string text = "not documented publicly";
  if (vendor == 0) text = "none";
  if (info != nullptr)
    text = fmt::format("seen with {}: {}", wire::syndrome_name(info->seen_with), info->source);
  add_named(section, "vendor_syndrome", "vendor syndrome", vendor, 2, text);
}

ListingSection describe_error(const PartialCqe& cqe, bool requester) {
  const auto error = cqe.as<wire::ErrorCqe>();
  ListingSection section;
  add_state(section, error.op_own);
  add_origin(section, error.opcode_qpn.get(), error.wqe_counter.get(), requester);
  add_syndrome(section, error.syndrome);
  add_vendor_syndrome(section, error.vendor_syndrome);
  section.fields.push_back(hex_field("hardware_syndrome", "hardware syndrome", error.hardware_syndrome, 2));
  section.fields.push_back(
      hex_field("hardware_syndrome_type", "hardware syndrome type", error.hardware_syndrome_type, 2));
  if (cqe.knows(offsetof(wire::ErrorCqe, srqn_user_index)))
    add_user_index(section, error.srqn_user_index.get());
  section.fields.push_back(hex_field("signature", "signature", error.signature, 2));
  return section;
}

/// Fields that only some completions carry, in the first half of the entry.
void add_first_half(ListingSection& section, const wire::Cqe& cqe) {
  const std::uint32_t flags = cqe.flags_remote_qpn.get();
  section.fields.push_back(hex_field("wqe_id", "WQE id", cqe.wqe_id.get(), 4));
  section.fields.push_back(hex_field("path_bits", "path bits", cqe.ml_path & 0x7f, 2));
  section.fields.push_back(hex_field("slid", "source LID", cqe.slid.get(), 4));
  section.fields.push_back(hex_field("remote_qpn", "remote QPN", flags & wire::kQpnMask, 6));
  section.fields.push_back(number_field("service_level", "service level", (flags >> 24) & 0xf));
  section.fields.push_back(number_field("grh", "GRH", (flags >> 28) & 0x3));
}

ListingSection describe_completion(const PartialCqe& partial) {
  const auto cqe = partial.as<wire::Cqe>();
  const bool requester = cqe.opcode() == wire::CqeOpcode::requester;
  ListingSection section;
  add_state(section, cqe.op_own);
  add_origin(section, cqe.opcode_qpn.get(), cqe.wqe_counter.get(), requester);
  if (partial.knows(offsetof(wire::Cqe, byte_count))) {
    section.fields.push_back(number_field("byte_count", "byte count", cqe.byte_count.get()));
    section.fields.push_back(
        hex_field("immediate_or_key", "immediate, key or pkey index", cqe.immediate_or_key.get(), 8));
    add_user_index(section, cqe.srqn_user_index.get());
  }
  if (partial.knows(offsetof(wire::Cqe, timestamp))) {
    section.fields.push_back(hex_field("timestamp", "timestamp", cqe.timestamp.get(), 16));
  }
  if (partial.knows(0) && wire::cqe_format(cqe.op_own) == wire::CqeFormat::plain)
    add_first_half(section, cqe);
  section.fields.push_back(hex_field("signature", "signature", cqe.signature, 2));
  return section;
}

void add_notes(Listing& listing, std::uint8_t op_own) {
  const auto opcode = static_cast<wire::CqeOpcode>(op_own >> 4);
  if (opcode == wire::CqeOpcode::invalid) {
    listing.notes.emplace_back("a fresh ring is filled with this opcode; the other fields mean nothing");
  } else if (cqe_opcode_name(static_cast<std::uint8_t>(opcode)) == "unknown") {
    listing.notes.emplace_back("a reserved opcode: check that the bytes end with the end of the entry");
  } else if (opcode == wire::CqeOpcode::signature_error) {
    listing.notes.emplace_back("signature errors have a layout of their own; only the last word is decoded");
  }
  if (wire::cqe_format(op_own) == wire::CqeFormat::compressed && opcode != wire::CqeOpcode::invalid) {
    listing.notes.emplace_back("a compressed entry; belfry's queues are created without compression");
  }
}

}  // namespace

Listing decode_cqe(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t whole = wire::kCqeBytes;
  if (bytes.size() != 12 && bytes.size() != 16 && bytes.size() != whole && bytes.size() != 2 * whole) {
    throw std::invalid_argument(fmt::format(
        "a CQE has 64 or 128 bytes, and logs show its last 12 or 16; these are {} bytes", bytes.size()));
  }
  const std::size_t known = std::min(bytes.size(), whole);
  PartialCqe cqe;
  cqe.missing = whole - known;
  std::copy_n(bytes.end() - static_cast<std::ptrdiff_t>(known), known, cqe.bytes + cqe.missing);

  Listing listing;
  listing.kind = "cqe";
  listing.title = bytes.size() < whole    ? fmt::format("CQE, last {} of 64 bytes", bytes.size())
                  : bytes.size() == whole ? "CQE, 64 bytes"
                                          : "CQE, 128 bytes: the second half is the entry";
  const std::uint8_t op_own = cqe.bytes[whole - 1];
  const auto opcode = static_cast<wire::CqeOpcode>(op_own >> 4);
  const bool requester_error = opcode == wire::CqeOpcode::requester_error;
  listing.sections.push_back(requester_error || opcode == wire::CqeOpcode::responder_error
                                 ? describe_error(cqe, requester_error)
                                 : describe_completion(cqe));
  if (bytes.size() == 2 * whole) {
    const std::span<const std::uint8_t> first = bytes.first(whole);
    if (std::any_of(first.begin(), first.end(), [](std::uint8_t b) { return b != 0; })) {
      listing.sections.back().fields.push_back(text_field("first_half", "first half", bytes_text(first)));
    }
  }
  add_notes(listing, op_own);
  return listing;
}

}  // namespace belfry::cli

#include "cli/decode_names.hpp"

#include <fmt/format.h>

namespace belfry::cli {

std::string wqe_opcode_name(std::uint8_t opcode) {
  struct Name {
    std::uint8_t opcode;
    const char* name;
  };
  static constexpr Name kNames[] = {
      {0x00, "NOP"},
      {0x01, "SEND with invalidate"},
      {0x08, "RDMA WRITE"},
      {0x09, "RDMA WRITE with immediate"},
      {0x0a, "SEND"},
      {0x0b, "SEND with immediate"},
      {0x0e, "TSO"},
      {0x10, "RDMA READ"},
      {0x11, "compare and swap"},
      {0x12, "fetch and add"},
      {0x14, "masked compare and swap"},
      {0x15, "masked fetch and add"},
      {0x19, "fast memory registration"},
      {0x1b, "local invalidate"},
      {0x1f, "configuration command"},
      {0x20, "SET PSV"},
      {0x25, "UMR"},
      {0x28, "tag matching"},
      {0x2c, "flow table access"},
      {0x2f, "MMO"},
  };
  for (const Name& name : kNames) {
    if (name.opcode == opcode) return name.name;
  }
  return "unknown";
}

std::string cqe_opcode_name(std::uint8_t opcode) {
  switch (static_cast<wire::CqeOpcode>(opcode)) {
    case wire::CqeOpcode::requester:
      return "requester";
    case wire::CqeOpcode::responder_write_immediate:
      return "responder, RDMA WRITE with immediate";
    case wire::CqeOpcode::responder_send:
      return "responder, SEND";
    case wire::CqeOpcode::responder_send_immediate:
      return "responder, SEND with immediate";
    case wire::CqeOpcode::responder_send_invalidate:
      return "responder, SEND with invalidate";
    case wire::CqeOpcode::resize_cq:
      return "CQ resized";
    case wire::CqeOpcode::no_packet:
      return "no packet";
    case wire::CqeOpcode::signature_error:
      return "signature error";
    case wire::CqeOpcode::requester_error:
      return "requester error";
    case wire::CqeOpcode::responder_error:
      return "responder error";
    case wire::CqeOpcode::invalid:
      return "invalid: never written by the device";
  }
  return "unknown";
}

std::string hex_text(std::uint64_t value, int digits) { return fmt::format("0x{:0{}x}", value, digits); }

std::string bytes_text(std::span<const std::uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, " "));
}

ListingField hex_field(std::string key, std::string label, std::uint64_t value, int digits) {
  return {std::move(key), std::move(label), hex_text(value, digits), value};
}

ListingField number_field(std::string key, std::string label, std::uint64_t value) {
  return {std::move(key), std::move(label), fmt::format("{}", value), value};
}

void add_named(ListingSection& section, const std::string& key, const std::string& label, std::uint64_t value,
               int digits, const std::string& name) {
  section.fields.push_back({key, label, fmt::format("{}  {}", hex_text(value, digits), name), value});
  section.fields.push_back({key + "_name", "", "", name});
}

ListingField text_field(std::string key, std::string label, const std::string& text) {
  return {std::move(key), std::move(label), text, text};
}

}  // namespace belfry::cli

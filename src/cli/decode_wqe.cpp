#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "belfry/wire/infiniband.hpp"
#include "belfry/wire/wqe.hpp"
#include "cli/decode_names.hpp"
#include "cli/decode_text.hpp"

namespace belfry::cli {
namespace {

/// Walks the bytes of one WQE. Every take() is checked: a dump may end anywhere.
class Cursor {
 public:
  explicit Cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::size_t left() const { return bytes_.size() - position_; }
  std::size_t segment() const { return position_ / wire::kSegmentBytes; }

  template <class Layout>
  bool peek(Layout& layout) const {
    if (left() < sizeof(Layout)) return false;
    std::memcpy(&layout, bytes_.data() + position_, sizeof layout);
    return true;
  }
  std::span<const std::uint8_t> take(std::size_t count) {
    const auto taken = bytes_.subspan(position_, std::min(count, left()));
    position_ += taken.size();
    return taken;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
};

ListingSection begin_section(const Cursor& cursor, const std::string& name) {
  return {fmt::format("segment {}: {}", cursor.segment(), name), {}};
}

const char* completion_name(std::uint8_t flags) {
  switch (flags & wire::kWqeCompletionMask) {
    case wire::kWqeCompletionAlways:
      return "always (signalled)";
    case wire::kWqeCompletionAlwaysAndEvent:
      return "always, with an event (signalled)";
    case 0:
      return "only in error (unsignalled)";
    default:
      return "only the first error (unsignalled)";
  }
}

const char* fence_name(std::uint8_t flags) {
  switch (flags & wire::kWqeFenceMask) {
    case 0:
      return "none";
    case wire::kWqeFenceInitiatorSmall:
      return "initiator small";
    case wire::kWqeFenceReads:
      return "fence";
    case wire::kWqeStrongOrdering:
      return "strong ordering";
    case wire::kWqeFence:
      return "fence and small fence: waits for earlier READs and atomics";
    default:
      return "reserved";
  }
}

const char* immediate_label(wire::WqeOpcode opcode) {
  switch (opcode) {
    case wire::WqeOpcode::send_immediate:
    case wire::WqeOpcode::rdma_write_immediate:
      return "immediate";
    case wire::WqeOpcode::send_invalidate:
    case wire::WqeOpcode::local_invalidate:
      return "invalidated key";
    case wire::WqeOpcode::umr:
      return "memory key";
    default:
      return "immediate or key";
  }
}

ListingSection describe_control(const wire::ControlSegment& control, const Cursor& cursor) {
  ListingSection section = begin_section(cursor, "control");
  const auto opcode = static_cast<std::uint8_t>(control.opcode());
  const std::uint32_t blocks = wire::wqe_blocks(control.segments());
  add_named(section, "opcode", "opcode", opcode, 2, wqe_opcode_name(opcode));
  section.fields.push_back(hex_field("opmod", "opcode modifier", control.opmod(), 2));
  section.fields.push_back({"index", "WQE index",
                            fmt::format("{}  {}", hex_text(control.index(), 4), control.index()),
                            control.index()});
  section.fields.push_back(
      {"qpn", "QPN", fmt::format("{}  {}", hex_text(control.qpn(), 6), control.qpn()), control.qpn()});
  section.fields.push_back(
      {"segments", "segments",
       fmt::format("{}  {} bytes in {} {}", control.segments(), control.segments() * wire::kSegmentBytes,
                   blocks, blocks == 1 ? "block" : "blocks"),
       control.segments()});
  section.fields.push_back(hex_field("signature", "signature", control.signature, 2));
  section.fields.push_back(
      hex_field("dci_stream", "DCI stream",
                static_cast<unsigned>(control.dci_stream[0] << 8 | control.dci_stream[1]), 4));
  section.fields.push_back(hex_field("flags", "flags", control.flags, 2));
  section.fields.push_back(text_field("completion", "completion", completion_name(control.flags)));
  section.fields.push_back({"signalled", "", "", control.signalled()});
  section.fields.push_back(text_field("fence", "fence", fence_name(control.flags)));
  section.fields.push_back(
      number_field("solicited", "solicited bit", (control.flags & wire::kWqeSolicited) != 0));
  section.fields.push_back(
      hex_field("immediate_or_key", immediate_label(control.opcode()), control.immediate.get(), 8));
  return section;
}

void describe_remote(Cursor& cursor, Listing& listing) {
  wire::RemoteAddressSegment remote;
  if (!cursor.peek(remote)) return;
  ListingSection section = begin_section(cursor, "remote address");
  section.fields.push_back(hex_field("address", "address", remote.address.get(), 16));
  section.fields.push_back(hex_field("rkey", "rkey", remote.rkey.get(), 8));
  cursor.take(sizeof remote);
  listing.sections.push_back(std::move(section));
}

void add_full_address(Cursor& cursor, ListingSection& section, Listing& listing) {
  wire::AddressVector full;
  if (!cursor.peek(full)) {
    cursor.take(sizeof full.base);
    listing.notes.emplace_back("the address vector says that its full 48 B form follows, but the bytes end");
    return;
  }
  const std::uint32_t grh = full.grh_gid_flow.get();
  section.fields.push_back(
      text_field("destination_mac", "destination MAC", bytes_text(full.destination_mac)));
  section.fields.push_back(hex_field("traffic_class", "traffic class", full.traffic_class, 2));
  section.fields.push_back(number_field("hop_limit", "hop limit", full.hop_limit));
  section.fields.push_back(number_field("grh", "GRH", (grh >> 30) & 1));
  section.fields.push_back(number_field("source_gid_index", "source GID index", (grh >> 20) & 0xff));
  section.fields.push_back(hex_field("flow_label", "flow label", grh & 0xfffff, 5));
  section.fields.push_back(
      text_field("destination_gid", "destination GID", bytes_text(full.destination_gid)));
  cursor.take(sizeof full);
}

void describe_address_vector(Cursor& cursor, Listing& listing) {
  wire::AddressVectorCompact base;
  if (!cursor.peek(base)) return;
  const std::uint32_t destination = base.destination_qp.get();
  const bool extended = (destination & wire::kAddressVectorExtended) != 0;
  ListingSection section =
      begin_section(cursor, extended ? "address vector, full" : "address vector, compact");
  section.fields.push_back(
      hex_field("dc_key_or_qkey", "DC key, or Q_Key << 32", base.dc_key_or_qkey.get(), 16));
  section.fields.push_back(
      hex_field("destination_qp", "destination QP or DCT", destination & wire::kQpnMask, 6));
  section.fields.push_back(number_field("static_rate", "static rate", base.stat_rate_sl >> 4));
  section.fields.push_back(number_field("service_level", "service level", base.stat_rate_sl & 0xf));
  section.fields.push_back(number_field("force_loopback", "force loopback", base.fl_mlid >> 7));
  section.fields.push_back(hex_field("path_bits", "path bits", base.fl_mlid & 0x7f, 2));
  section.fields.push_back(
      hex_field("rlid_or_udp_port", "remote LID or UDP port", base.rlid_or_udp_port.get(), 4));
  if (extended) {
    add_full_address(cursor, section, listing);
  } else {
    cursor.take(sizeof base);
  }
  listing.sections.push_back(std::move(section));
}

void describe_atomic(Cursor& cursor, Listing& listing) {
  wire::AtomicSegment atomic;
  if (!cursor.peek(atomic)) return;
  ListingSection section = begin_section(cursor, "atomic, 8 B operands");
  section.fields.push_back(hex_field("swap_or_add", "swap or add", atomic.swap_or_add.get(), 16));
  section.fields.push_back(hex_field("compare", "compare", atomic.compare.get(), 16));
  cursor.take(sizeof atomic);
  listing.sections.push_back(std::move(section));
}

void describe_masked_swap(Cursor& cursor, bool four_bytes, Listing& listing) {
  ListingSection section =
      begin_section(cursor, four_bytes ? "masked compare and swap, 4 B" : "masked compare and swap, 8 B");
  const auto add = [&section](std::uint64_t swap, std::uint64_t compare, std::uint64_t swap_mask,
                              std::uint64_t compare_mask, int digits) {
    section.fields.push_back(hex_field("swap", "swap", swap, digits));
    section.fields.push_back(hex_field("compare", "compare", compare, digits));
    section.fields.push_back(hex_field("swap_mask", "swap mask", swap_mask, digits));
    section.fields.push_back(hex_field("compare_mask", "compare mask", compare_mask, digits));
  };
  wire::MaskedCompareSwapSegment4 small;
  wire::MaskedCompareSwapSegment large;
  if (four_bytes && cursor.peek(small)) {
    add(small.swap.get(), small.compare.get(), small.swap_mask.get(), small.compare_mask.get(), 8);
    cursor.take(sizeof small);
  } else if (!four_bytes && cursor.peek(large)) {
    add(large.swap.get(), large.compare.get(), large.swap_mask.get(), large.compare_mask.get(), 16);
    cursor.take(sizeof large);
  } else {
    return;  // the bytes end inside the operands; the caller shows them raw
  }
  listing.sections.push_back(std::move(section));
}

void describe_masked_add(Cursor& cursor, bool four_bytes, Listing& listing) {
  ListingSection section =
      begin_section(cursor, four_bytes ? "masked fetch and add, 4 B" : "masked fetch and add, 8 B");
  wire::MaskedFetchAddSegment4 small;
  wire::MaskedFetchAddSegment large;
  if (four_bytes && cursor.peek(small)) {
    section.fields.push_back(hex_field("add", "add", small.add.get(), 8));
    section.fields.push_back(hex_field("field_boundary", "field boundary", small.field_boundary.get(), 8));
  } else if (!four_bytes && cursor.peek(large)) {
    section.fields.push_back(hex_field("add", "add", large.add.get(), 16));
    section.fields.push_back(hex_field("field_boundary", "field boundary", large.field_boundary.get(), 16));
  } else {
    return;
  }
  cursor.take(sizeof large);
  listing.sections.push_back(std::move(section));
}

void describe_inline(Cursor& cursor, std::uint32_t length, Listing& listing) {
  ListingSection section = begin_section(cursor, "inline data");
  const std::size_t wanted = std::size_t{wire::inline_segments(length)} * wire::kSegmentBytes;
  const bool truncated = wanted > cursor.left();
  const auto stored = cursor.take(wanted).subspan(sizeof(wire::InlineHeader));
  const auto data = stored.first(std::min<std::size_t>(length, stored.size()));
  section.fields.push_back(number_field("byte_count", "byte count", length));
  section.fields.push_back(text_field("data", "data", bytes_text(data)));
  listing.sections.push_back(std::move(section));
  if (truncated) {
    listing.notes.push_back(
        fmt::format("inline data of {} bytes does not end inside the WQE; {} are here", length, data.size()));
  }
}

/// The scatter/gather list: pointers and inline data, to the end of the WQE.
void describe_data(Cursor& cursor, bool receive, Listing& listing) {
  wire::DataSegment data;
  while (cursor.peek(data)) {
    const std::uint32_t count = data.byte_count.get();
    if (!receive && (count & wire::kInlineFlag) != 0) {
      describe_inline(cursor, count & ~wire::kInlineFlag, listing);
      continue;
    }
    ListingSection section = begin_section(cursor, "data pointer");
    const std::uint64_t length = count == 0 && !receive ? std::uint64_t{1} << 31 : count;
    section.fields.push_back(number_field("byte_count", "byte count", length));
    section.fields.push_back(hex_field("lkey", "lkey", data.lkey.get(), 8));
    section.fields.push_back(hex_field("address", "address", data.address.get(), 16));
    cursor.take(sizeof data);
    const bool last = receive && data.lkey.get() == wire::kInvalidLkey;
    if (last)
      section.fields.push_back(text_field("end", "end of list", "lkey 0x100 ends a receive list early"));
    listing.sections.push_back(std::move(section));
    if (last) break;
  }
}

void describe_raw(Cursor& cursor, const std::string& name, Listing& listing) {
  while (cursor.left() > 0) {
    ListingSection section = begin_section(cursor, name);
    section.fields.push_back(text_field("raw", "bytes", bytes_text(cursor.take(wire::kSegmentBytes))));
    listing.sections.push_back(std::move(section));
  }
}

void describe_operands(const wire::ControlSegment& control, Cursor& cursor, Listing& listing) {
  const bool four_bytes = control.opmod() == wire::kOpmodMaskedAtomic4;
  switch (control.opcode()) {
    case wire::WqeOpcode::rdma_write:
    case wire::WqeOpcode::rdma_write_immediate:
    case wire::WqeOpcode::rdma_read:
      describe_remote(cursor, listing);
      break;
    case wire::WqeOpcode::atomic_compare_swap:
    case wire::WqeOpcode::atomic_fetch_add:
      describe_remote(cursor, listing);
      describe_atomic(cursor, listing);
      break;
    case wire::WqeOpcode::atomic_masked_compare_swap:
      describe_remote(cursor, listing);
      describe_masked_swap(cursor, four_bytes, listing);
      break;
    case wire::WqeOpcode::atomic_masked_fetch_add:
      describe_remote(cursor, listing);
      describe_masked_add(cursor, four_bytes, listing);
      break;
    case wire::WqeOpcode::send:
    case wire::WqeOpcode::send_immediate:
    case wire::WqeOpcode::send_invalidate:
      break;
    default:  // nothing is known of these segments
      describe_raw(cursor, "not decoded", listing);
      return;
  }
  describe_data(cursor, false, listing);
}

/// \return bytes that the WQE takes in the dump, its padding to a whole block included
std::size_t describe_one(std::span<const std::uint8_t> bytes, WqeKind kind, Listing& listing) {
  wire::ControlSegment control;
  std::memcpy(&control, bytes.data(), sizeof control);
  const std::size_t length = std::size_t{control.segments()} * wire::kSegmentBytes;
  Cursor cursor(bytes.first(std::min(std::max(length, sizeof control), bytes.size())));
  listing.sections.push_back(describe_control(control, cursor));
  cursor.take(sizeof control);
  if (length == 0) {
    listing.notes.emplace_back("the segment count is 0, which no WQE has: is this the start of one?");
    return bytes.size();
  }
  if (length > bytes.size()) {
    listing.notes.push_back(fmt::format("the WQE has {} bytes, of which {} are here", length, bytes.size()));
  }
  if (wqe_opcode_name(static_cast<std::uint8_t>(control.opcode())) == "unknown") {
    listing.notes.push_back(fmt::format("opcode {} is not one of mlx5's",
                                        hex_text(static_cast<std::uint8_t>(control.opcode()), 2)));
  }
  if (kind == WqeKind::datagram && control.opcode() != wire::WqeOpcode::nop) {
    describe_address_vector(cursor, listing);
  }
  describe_operands(control, cursor, listing);
  describe_raw(cursor, "cut short", listing);
  return std::size_t{wire::wqe_blocks(control.segments())} * wire::kBlockBytes;
}

}  // namespace

Listing decode_wqe(std::span<const std::uint8_t> bytes, WqeKind kind) {
  if (bytes.empty() || bytes.size() % wire::kSegmentBytes != 0) {
    throw std::invalid_argument(
        fmt::format("a WQE is a whole number of 16 B segments; these are {} bytes", bytes.size()));
  }
  Listing listing;
  listing.kind = "wqe";
  if (kind == WqeKind::receive) {
    listing.title = fmt::format("receive WQE, {} bytes", bytes.size());
    Cursor cursor(bytes);
    describe_data(cursor, true, listing);
    return listing;
  }
  std::size_t count = 0;
  for (std::size_t done = 0; done < bytes.size(); ++count) {
    done += describe_one(bytes.subspan(done), kind, listing);
  }
  listing.title = count == 1 ? fmt::format("WQE, {} bytes", bytes.size())
                             : fmt::format("{} WQEs, {} bytes", count, bytes.size());
  return listing;
}

}  // namespace belfry::cli

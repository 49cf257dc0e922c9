#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "belfry/wire/cqe.hpp"
#include "belfry/wire/wqe.hpp"
#include "cli/decode_text.hpp"

namespace belfry::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

json cqe_json(const std::string& hex) { return to_json(decode_cqe(parse_hex(hex))); }
json wqe_json(const std::string& hex, WqeKind kind = WqeKind::rc) {
  return to_json(decode_wqe(parse_hex(hex), kind));
}

// Guards: the last 12 bytes of an error entry, as a public report shows them, read from the front.
TEST(DecodeCqe, LastTwelveBytesOfAReport) {
  const Listing listing = decode_cqe(parse_hex("93005204 0a0019a1 c0921cd2"));
  const json fields = to_json(listing)["sections"][0];
  EXPECT_EQ(fields["opcode"], 13);
  EXPECT_EQ(fields["opcode_name"], "requester error");
  EXPECT_EQ(fields["owner"], 0);
  EXPECT_EQ(fields["wqe_opcode"], 0x0a);
  EXPECT_EQ(fields["wqe_opcode_name"], "SEND");
  EXPECT_EQ(fields["qpn"], 0x19a1);
  EXPECT_EQ(fields["wqe_counter"], 49298);
  EXPECT_EQ(fields["syndrome"], 0x04);
  EXPECT_EQ(fields["syndrome_name"], "local protection");
  EXPECT_EQ(fields["ibverbs_status"], 4);
  EXPECT_EQ(fields["ibverbs_status_name"], "IBV_WC_LOC_PROT_ERR");
  EXPECT_EQ(fields["vendor_syndrome"], 0x52);
  EXPECT_FALSE(fields.contains("user_index")) << "these bytes do not hold it";
  const std::string text = to_text(listing);
  for (const char* words : {"requester error", "SEND", "0x0019a1", "49298", "local protection",
                            "4  IBV_WC_LOC_PROT_ERR", "0x52", "owner bit"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
}

// Guards: the whole entry of the same report, where the user index is known too.
TEST(DecodeCqe, WholeEntryOfAReport) {
  const json fields = cqe_json(
      "00000000 00000000 00000000 00000000\n00000000 00000000 00000000 00000000\n"
      "000000b3 00000000 00000000 00000000\n00000000 93005204 0a0019a1 c0921cd2")["sections"][0];
  EXPECT_EQ(fields["user_index"], 0xb3);
  EXPECT_EQ(fields["syndrome"], 4);
  EXPECT_EQ(fields["qpn"], 0x19a1);
}

// Guards: mlx5's 0x12 and ibverbs' 12 mixed up.
TEST(DecodeCqe, SyndromeNameSpaces) {
  const json retry = cqe_json("00008315 08000042 000100d3")["sections"][0];
  EXPECT_EQ(retry["syndrome_name"], "transport retry exceeded");
  EXPECT_EQ(retry["ibverbs_status"], 12);
  EXPECT_EQ(retry["vendor_syndrome_name"], "not documented publicly");
  EXPECT_EQ(retry["owner"], 1);
  const json invalid = cqe_json("00008a12 08000042 000100d2")["sections"][0];
  EXPECT_EQ(invalid["syndrome_name"], "remote invalid request");
  EXPECT_EQ(invalid["ibverbs_status"], 9);
  const json unknown = cqe_json("00000077 08000042 000100d2")["sections"][0];
  EXPECT_EQ(unknown["ibverbs_status_name"], "IBV_WC_GENERAL_ERR");
}

// Guards: fields of a good completion exchanged.
TEST(DecodeCqe, ResponderCompletion) {
  Bytes bytes(64, 0);
  wire::Cqe cqe{};
  cqe.srqn_user_index.set(0x21);
  cqe.immediate_or_key.set(0xcafef00d);
  cqe.byte_count.set(4096);
  cqe.flags_remote_qpn.set(0x13000077);
  cqe.slid.set(0x102);
  cqe.opcode_qpn.set(0x55);
  cqe.wqe_counter.set(9);
  cqe.op_own = wire::make_op_own(wire::CqeOpcode::responder_send_immediate, true, true);
  std::memcpy(bytes.data(), &cqe, sizeof cqe);
  const json fields = to_json(decode_cqe(bytes))["sections"][0];
  EXPECT_EQ(fields["opcode_name"], "responder, SEND with immediate");
  EXPECT_EQ(fields["byte_count"], 4096);
  EXPECT_EQ(fields["immediate_or_key"], 0xcafef00d);
  EXPECT_EQ(fields["remote_qpn"], 0x77);
  EXPECT_EQ(fields["service_level"], 3);
  EXPECT_EQ(fields["grh"], 1);
  EXPECT_EQ(fields["slid"], 0x102);
  EXPECT_EQ(fields["solicited"], 1);
  EXPECT_FALSE(fields.contains("wqe_opcode")) << "a responder's entry has none";

  Bytes wide(64, 0x5a);
  wide.insert(wide.end(), bytes.begin(), bytes.end());
  const json second = to_json(decode_cqe(wide))["sections"][0];
  EXPECT_EQ(second["byte_count"], 4096) << "of 128 bytes the second half is the entry";
}

// Guards: an unwritten entry reported as if it were a completion.
TEST(DecodeCqe, NeverWrittenEntry) {
  Bytes bytes(64, 0);
  bytes[63] = wire::kCqeNeverWritten;
  const Listing listing = decode_cqe(bytes);
  EXPECT_EQ(to_json(listing)["sections"][0]["opcode"], 15);
  EXPECT_FALSE(listing.notes.empty());
}

// Guards: a size that is guessed at.
TEST(DecodeCqe, OtherSizesAreRefused) {
  for (std::size_t size = 1; size <= 130; ++size) {
    if (size == 12 || size == 16 || size == 64 || size == 128) continue;
    EXPECT_THROW(decode_cqe(Bytes(size, 0)), std::invalid_argument) << size;
  }
}

// Guards: the control segment and both pointers of the commonest WQE.
TEST(DecodeWqe, SignalledWrite) {
  const json listing = wqe_json(
      "00010208 abcdef03 00000008 00000000\n 11223344 55667788 a1a2a3a4 00000000\n"
      "00001000 b1b2b3b4 99aabbcc ddeeff00");
  ASSERT_EQ(listing["sections"].size(), 3u);
  const json& control = listing["sections"][0];
  EXPECT_EQ(control["opcode_name"], "RDMA WRITE");
  EXPECT_EQ(control["index"], 0x0102);
  EXPECT_EQ(control["qpn"], 0xabcdef);
  EXPECT_EQ(control["segments"], 3);
  EXPECT_EQ(control["signalled"], true);
  EXPECT_EQ(listing["sections"][1]["address"], 0x1122334455667788u);
  EXPECT_EQ(listing["sections"][1]["rkey"], 0xa1a2a3a4u);
  EXPECT_EQ(listing["sections"][2]["byte_count"], 4096);
  EXPECT_EQ(listing["sections"][2]["lkey"], 0xb1b2b3b4u);
  EXPECT_EQ(listing["sections"][2]["address"], 0x99aabbccddeeff00u);
  EXPECT_TRUE(listing["notes"].empty());
}

// Guards: inline data read as a pointer, its length without the flag, its padding shown as data.
TEST(DecodeWqe, InlineWrite) {
  const json listing = wqe_json(
      "00000008 00000103 00000000 00000000 11223344 55667788 00000001 00000000"
      "80000005 68656c6c 6f000000 00000000");
  EXPECT_EQ(listing["sections"][2]["byte_count"], 5);
  EXPECT_EQ(listing["sections"][2]["data"], "68 65 6c 6c 6f");
  EXPECT_TRUE(listing["notes"].empty());
}

// Guards: a byte count of 0 shown as nothing, where the device sends 2 GiB.
TEST(DecodeWqe, ByteCountZeroIsTwoGigabytes) {
  const json listing = wqe_json("0000000a 00000102 00000000 00000000 00000000 00000001 00000000 00000000");
  EXPECT_EQ(listing["sections"][1]["byte_count"], 1u << 31);
}

// Guards: operands of atomics exchanged, and the sizes that the opcode modifier selects.
TEST(DecodeWqe, Atomics) {
  const std::string remote = "11223344 55667788 00000001 00000000";
  const std::string data = "00000008 00000002 00000000 00001000";
  const json swap =
      wqe_json("00000011 00000104 00000008 00000000" + remote + "00000000 000000aa 00000000 000000bb" + data);
  EXPECT_EQ(swap["sections"][2]["swap_or_add"], 0xaa);
  EXPECT_EQ(swap["sections"][2]["compare"], 0xbb);
  EXPECT_EQ(swap["sections"][3]["lkey"], 2);
  const json masked8 =
      wqe_json("09000014 00000105 00000008 00000000" + remote +
               "00000000 00000001 00000000 00000002 00000000 00000003 00000000 00000004" + data);
  EXPECT_EQ(masked8["sections"][2]["compare"], 2);
  EXPECT_EQ(masked8["sections"][2]["compare_mask"], 4);
  EXPECT_EQ(masked8["sections"][3]["byte_count"], 8);
  const json masked4 =
      wqe_json("08000015 00000104 00000008 00000000" + remote + "00000007 80000000 00000000 00000000" + data);
  EXPECT_EQ(masked4["sections"][2]["add"], 7);
  EXPECT_EQ(masked4["sections"][2]["field_boundary"], 0x80000000u);
}

// Guards: the two lengths of an address vector, told apart by one bit.
TEST(DecodeWqe, AddressVectors) {
  const std::string compact = "00000000 0000abcd 00123456 000100c0";
  const json dc = wqe_json("0000000a 00000102 00000000 00000000" + compact, WqeKind::datagram);
  EXPECT_EQ(dc["sections"][1]["destination_qp"], 0x123456);
  EXPECT_EQ(dc["sections"][1]["rlid_or_udp_port"], 0xc0);
  const json full =
      wqe_json("0000000a 00000104 00000000 00000000" + std::string("00000000 0000abcd 80123456 000100c0") +
                   "00000000 01020304 05066840 40312345 fe800000 00000000 00000000 00000001",
               WqeKind::datagram);
  ASSERT_EQ(full["sections"].size(), 2u);
  EXPECT_EQ(full["sections"][1]["traffic_class"], 0x68);
  EXPECT_EQ(full["sections"][1]["hop_limit"], 0x40);
  EXPECT_EQ(full["sections"][1]["source_gid_index"], 3);
  EXPECT_EQ(full["sections"][1]["flow_label"], 0x12345);
  EXPECT_EQ(full["sections"][1]["destination_mac"], "01 02 03 04 05 06");
}

// Guards: the second WQE of a dump searched for at the end of the first instead of the next block.
TEST(DecodeWqe, SeveralWqesStartOnBlocks) {
  const std::string nop = "00000000 00000101 00000008 00000000";
  const std::string padding(96, '0');
  const json listing = wqe_json(nop + padding + "00000100 00000101 00000008 00000000");
  ASSERT_EQ(listing["sections"].size(), 2u);
  EXPECT_EQ(listing["sections"][1]["index"], 1);
}

// Guards: a receive list read on behind its end.
TEST(DecodeWqe, ReceiveListEndsAtTheInvalidKey) {
  const json listing = wqe_json(
      "00000040 00000007 00000000 00001000 00000000 00000100 00000000 00000000 ffffffff ffffffff ffffffff "
      "ffffffff",
      WqeKind::receive);
  ASSERT_EQ(listing["sections"].size(), 2u);
  EXPECT_EQ(listing["sections"][0]["byte_count"], 64);
}

// Guards: a dump that ends early, or that is no WQE, passed off as complete.
TEST(DecodeWqe, SaysWhatIsMissing) {
  EXPECT_THROW(decode_wqe(Bytes(24, 0)), std::invalid_argument);
  EXPECT_THROW(decode_wqe(Bytes{}), std::invalid_argument);
  EXPECT_FALSE(decode_wqe(parse_hex("00010208 abcdef03 00000008 00000000")).notes.empty());
  EXPECT_FALSE(decode_wqe(Bytes(16, 0)).notes.empty()) << "a segment count of 0";
  EXPECT_FALSE(decode_wqe(parse_hex("00000077 00000101 00000000 00000000")).notes.empty())
      << "unknown opcode";
  const Listing cut =
      decode_wqe(parse_hex("00000008 00000103 00000000 00000000 00000000 00000000 00000000 00000000"
                           "80000020 00000000 00000000 00000000"));
  ASSERT_EQ(cut.notes.size(), 1u) << "inline data of 32 bytes in one segment";
  EXPECT_THAT(cut.notes[0], HasSubstr("32"));
}

// Guards: any bytes at all that read outside their buffer, throw something else or never end.
TEST(Decode, ArbitraryBytesAreSafe) {
  std::mt19937 random(20261129);
  for (int round = 0; round < 500; ++round) {
    Bytes bytes((1 + random() % 24) * 16);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    if (round % 2 == 0) bytes[3] = static_cast<std::uint8_t>(random() % 0x30);  // more often a known opcode
    for (const WqeKind kind : {WqeKind::rc, WqeKind::datagram, WqeKind::receive}) {
      const Listing listing = decode_wqe(bytes, kind);
      ASSERT_FALSE(to_text(listing).empty());
      ASSERT_FALSE(to_json(listing).dump().empty());
    }
    bytes.resize(64);
    ASSERT_FALSE(to_text(decode_cqe(bytes)).empty());
    ASSERT_FALSE(to_json(decode_cqe(bytes)).dump().empty());
  }
}

}  // namespace
}  // namespace belfry::cli

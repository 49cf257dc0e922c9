#include "belfry/wire/syndrome.hpp"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <map>
#include <set>
#include <string>

namespace belfry::wire {
namespace {

// Guards: the two name spaces taken for one. 0x12 read as ibverbs' 12 would say "retry exceeded".
TEST(Syndrome, NameSpacesAreNotMixed) {
  static_assert(ibverbs_status(Syndrome::transport_retry_exceeded) == 12);
  static_assert(ibverbs_status(Syndrome::remote_invalid_request) == 9);
  EXPECT_STREQ(syndrome_name(static_cast<Syndrome>(0x15)), "transport retry exceeded");
  EXPECT_STREQ(syndrome_name(static_cast<Syndrome>(0x12)), "remote invalid request");
  ASSERT_NE(find_syndrome(0x15), nullptr);
  EXPECT_STREQ(find_syndrome(0x15)->ibverbs_name, "IBV_WC_RETRY_EXC_ERR");
}

// Guards: a status number that differs from verbs.h, which our header does not include.
TEST(Syndrome, StatusesAreThoseOfVerbs) {
  const std::map<Syndrome, ibv_wc_status> expected = {
      {Syndrome::none, IBV_WC_SUCCESS},
      {Syndrome::local_length, IBV_WC_LOC_LEN_ERR},
      {Syndrome::local_qp_operation, IBV_WC_LOC_QP_OP_ERR},
      {Syndrome::local_protection, IBV_WC_LOC_PROT_ERR},
      {Syndrome::flushed, IBV_WC_WR_FLUSH_ERR},
      {Syndrome::memory_window_bind, IBV_WC_MW_BIND_ERR},
      {Syndrome::bad_response, IBV_WC_BAD_RESP_ERR},
      {Syndrome::local_access, IBV_WC_LOC_ACCESS_ERR},
      {Syndrome::remote_invalid_request, IBV_WC_REM_INV_REQ_ERR},
      {Syndrome::remote_access, IBV_WC_REM_ACCESS_ERR},
      {Syndrome::remote_operation, IBV_WC_REM_OP_ERR},
      {Syndrome::transport_retry_exceeded, IBV_WC_RETRY_EXC_ERR},
      {Syndrome::rnr_retry_exceeded, IBV_WC_RNR_RETRY_EXC_ERR},
      {Syndrome::remote_aborted, IBV_WC_REM_ABORT_ERR},
  };
  for (const auto& [syndrome, status] : expected) EXPECT_EQ(ibverbs_status(syndrome), status);
  for (unsigned number = 0; number < 256; ++number) {
    const auto syndrome = static_cast<Syndrome>(number);
    if (expected.count(syndrome) > 0) continue;
    EXPECT_EQ(ibverbs_status(syndrome), IBV_WC_GENERAL_ERR) << number;
  }
}

// Guards: a syndrome without words, or the words of another one.
TEST(Syndrome, EachHasItsOwnWords) {
  std::set<std::string> names;
  std::set<std::string> remedies;
  for (const SyndromeInfo& info : kSyndromes) {
    names.insert(info.ibverbs_name);
    remedies.insert(std::string(info.meaning) + info.remedy);
    EXPECT_EQ(find_syndrome(static_cast<std::uint8_t>(info.syndrome)), &info);
    EXPECT_STRNE(syndrome_name(info.syndrome), "unknown syndrome");
  }
  EXPECT_EQ(names.size(), std::size(kSyndromes));
  EXPECT_EQ(remedies.size(), std::size(kSyndromes));
  EXPECT_EQ(find_syndrome(0x03), nullptr);
  EXPECT_STREQ(syndrome_name(static_cast<Syndrome>(0x03)), "unknown syndrome");
}

// Guards: a vendor syndrome listed twice, or without the report that it came from.
TEST(VendorSyndrome, EachNamesItsSource) {
  std::set<unsigned> seen;
  for (const VendorSyndromeInfo& info : kVendorSyndromes) {
    EXPECT_TRUE(seen.insert(info.vendor_syndrome).second) << unsigned{info.vendor_syndrome};
    EXPECT_NE(std::string(info.source).find('/'), std::string::npos);
    EXPECT_NE(find_syndrome(static_cast<std::uint8_t>(info.seen_with)), nullptr);
  }
  EXPECT_EQ(find_vendor_syndrome(0x00), nullptr);
  EXPECT_EQ(find_vendor_syndrome(0x52)->seen_with, Syndrome::local_protection);
}

}  // namespace
}  // namespace belfry::wire

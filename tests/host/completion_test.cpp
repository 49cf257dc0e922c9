#include "belfry/host/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ibv_wc failed(ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = 7;
  wc.status = status;
  wc.vendor_err = 0x88;
  wc.qp_num = 0x123;
  wc.byte_len = 99;  // verbs leave these undefined in an error
  wc.wc_flags = IBV_WC_WITH_IMM;
  return wc;
}

// Guards against a completion error that does not say which QP and which request.
TEST(Completion, ErrorNamesQueueRequestAndSyndrome) {
  const Completion c = to_completion(failed(IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(c.status, CompletionStatus::remote_access);
  const Error error = completion_error(c);
  EXPECT_EQ(error.kind(), ErrorKind::completion);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("remote access error"), HasSubstr("0x88"), HasSubstr("0x000123"),
                                  HasSubstr("request 7"), HasSubstr("rkey")));
}

// Guards against fields that verbs leave undefined in an error being shown as facts.
TEST(Completion, UndefinedFieldsAreNotRead) {
  const Completion c = to_completion(failed(IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(c.byte_count, 0u);
  EXPECT_FALSE(c.has_immediate);
}

// Guards against mlx5's syndrome 0x15 and verbs' status 12, one thing in two name spaces, being mixed up.
TEST(Completion, StatusesAreThoseOfVerbs) {
  EXPECT_EQ(static_cast<int>(CompletionStatus::retry_exceeded), 12);
  EXPECT_THAT(describe(to_completion(failed(IBV_WC_RETRY_EXC_ERR))),
              AllOf(HasSubstr("transport retry exceeded"), HasSubstr("status 12")));
}

// Guards against an immediate in network order.
TEST(Completion, ImmediateIsInHostOrder) {
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_WITH_IMM;
  wc.imm_data = 0x78563412;  // 0x12345678 big-endian
  const Completion c = to_completion(wc);
  EXPECT_TRUE(c.has_immediate);
  EXPECT_EQ(c.immediate, 0x12345678u);
}

}  // namespace
}  // namespace belfry::host

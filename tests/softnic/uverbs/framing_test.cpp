// Framing of write commands: what is refused before a handler sees it, and with which errno.

#include "client.hpp"

namespace belfry::softnic::test {
namespace {

std::vector<std::byte> header_only(std::uint32_t command, std::uint16_t in_words, std::uint16_t out_words) {
  ib_uverbs_cmd_hdr header{};
  header.command = command;
  header.in_words = in_words;
  header.out_words = out_words;
  return bytes_of(header);
}

// Guards against a read of a header that is not there.
TEST(UverbsFraming, ShorterThanAHeaderIsInvalid) {
  Opened client;
  for (std::size_t bytes = 0; bytes < sizeof(ib_uverbs_cmd_hdr); ++bytes) {
    EXPECT_EQ(client.write(std::vector<std::byte>(bytes)), EINVAL) << bytes;
  }
}

// Guards against a fault in our process where the kernel would answer EFAULT.
TEST(UverbsFraming, CommandsAtBadAddressesFault) {
  Opened client;
  const Pages pages(1);
  EXPECT_EQ(client.file->write(nullptr, 64), -EFAULT);
  EXPECT_EQ(client.file->write(reinterpret_cast<void*>(kNowhere), 64), -EFAULT);
  EXPECT_EQ(client.file->write(reinterpret_cast<void*>(UINT64_MAX - 8), 64), -EFAULT);
  // A header that lies in memory and a request that runs over its end.
  const auto header = header_only(IB_USER_VERBS_CMD_QUERY_PORT, 6, 10);
  std::byte* at = pages.data() + pages.size() - header.size();
  std::memcpy(at, header.data(), header.size());
  EXPECT_EQ(client.file->write(at, 24), -EFAULT);
}

// Guards against a command table that is read behind its end, and against the wrong refusal:
// libraries try another way on EOPNOTSUPP and give up on EINVAL.
TEST(UverbsFraming, UnknownCommandsAreInvalidAndUnsupportedOnesSaySo) {
  Opened client;
  for (const std::uint32_t number : {41u, 49u, 200u, 255u}) {
    EXPECT_EQ(client.write(header_only(number, 2, 0)), EINVAL) << number;
  }
  for (const std::uint32_t number :
       {IB_USER_VERBS_CMD_CREATE_SRQ, IB_USER_VERBS_CMD_ALLOC_MW, IB_USER_VERBS_CMD_OPEN_XRCD,
        IB_USER_VERBS_CMD_OPEN_QP, IB_USER_VERBS_CMD_POLL_CQ, IB_USER_VERBS_CMD_POST_SEND,
        IB_USER_VERBS_CMD_ATTACH_MCAST, IB_USER_VERBS_CMD_MODIFY_AH}) {
    EXPECT_EQ(client.write(header_only(number, 2, 0)), EOPNOTSUPP) << number;
    EXPECT_EQ(client.write(header_only(number, 3, 0)), EINVAL) << number;
  }
  for (const std::uint32_t number : {0u, 3u, 50u, 52u, 57u, 58u, 255u}) {
    EXPECT_EQ(client.extended(number, Nothing{}).error, EOPNOTSUPP) << number;
  }
}

// Guards against stray bits in the command word being taken for a command.
TEST(UverbsFraming, UnknownFlagsAreInvalid) {
  Opened client;
  for (const std::uint32_t bit : {8u, 16u, 24u, 30u}) {
    EXPECT_EQ(client.write(header_only(IB_USER_VERBS_CMD_DEALLOC_PD | 1u << bit, 2, 0)), EINVAL) << bit;
    EXPECT_EQ(client.write(header_only(IB_USER_VERBS_CMD_FLAG_EXTENDED | 1u << bit, 2, 0)), EINVAL) << bit;
  }
}

// Guards against a length in the header that does not match what was written.
TEST(UverbsFraming, WordsMustMatchTheWrite) {
  Opened client;
  auto command = header_only(IB_USER_VERBS_CMD_DEALLOC_PD, 3, 0);
  command.resize(16);
  EXPECT_EQ(client.write(command), EINVAL);
  command.resize(8);
  EXPECT_EQ(client.write(command), EINVAL);
  command.resize(9);
  EXPECT_EQ(client.write(command), EINVAL);
}

// Guards against a request or a response cut short being used as if it were whole.
TEST(UverbsFraming, ShortRequestsAndResponsesHaveNoSpace) {
  Opened client;
  EXPECT_EQ(client.write(header_only(IB_USER_VERBS_CMD_QUERY_PORT, 2, 10)), ENOSPC);
  EXPECT_EQ(client.write(header_only(IB_USER_VERBS_CMD_DEALLOC_PD, 2, 0)), ENOSPC);
  ib_uverbs_query_port request{};
  request.port_num = 1;
  EXPECT_EQ(
      client.plain(IB_USER_VERBS_CMD_QUERY_PORT, request, {sizeof(ib_uverbs_query_port_resp) - 4, 0}).error,
      ENOSPC);
  const ib_uverbs_ex_query_device extended{};
  EXPECT_EQ(client.extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, extended, {128, 0}).error, ENOSPC);
  EXPECT_EQ(client.extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, Nothing{}, {304, 0}).error, ENOSPC);
}

// Guards against writes of an old library (rdma-core 18) being refused.
TEST(UverbsFraming, DestroyCqMayLackItsTail) {
  Opened client;
  auto command = header_only(IB_USER_VERBS_CMD_DESTROY_CQ, 4, 2);
  command.resize(16);
  command.reserve(32);
  EXPECT_EQ(client.write(command), ENOENT);  // it is read on, to the handle: there is no such CQ
}

// Guards against a response address that is not there being written to.
TEST(UverbsFraming, ResponsesAtBadAddressesFault) {
  Opened client;
  const Pages read_only(1, PROT_READ);
  for (const std::uint64_t address : {kNowhere, read_only.address(), std::uint64_t{UINT64_MAX}}) {
    ib_uverbs_query_device request{};
    request.response = address;
    EXPECT_EQ(
        client.plain(IB_USER_VERBS_CMD_QUERY_DEVICE, request, {sizeof(ib_uverbs_query_device_resp), 0}).error,
        EFAULT);
  }
}

// Guards against an object that stays behind when its response could not be delivered.
TEST(UverbsFraming, FailedResponseTakesTheObjectBack) {
  Opened client;
  ib_uverbs_alloc_pd request{};
  request.response = kNowhere;
  const Room room{sizeof(ib_uverbs_alloc_pd_resp), sizeof(mlx5_ib_alloc_pd_resp)};
  EXPECT_EQ(client.plain(IB_USER_VERBS_CMD_ALLOC_PD, request, room).error, EFAULT);
  EXPECT_EQ(client.alloc_pd(), 0u);  // the lowest handle is free
}

// Guards against unchecked extended headers.
TEST(UverbsFraming, ExtendedHeadersAreChecked) {
  Opened client;
  struct {
    ib_uverbs_cmd_hdr plain;
    ib_uverbs_ex_cmd_hdr extension;
    ib_uverbs_ex_query_device request;
  } command{};
  std::vector<std::byte> response(304);
  command.plain.command = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE;
  command.plain.in_words = 1;
  command.plain.out_words = 38;
  command.extension.response = reinterpret_cast<std::uintptr_t>(response.data());
  const auto run = [&](const auto& c) { return client.write(bytes_of(c)); };
  EXPECT_EQ(run(command), 0);

  auto changed = command;
  changed.plain.in_words = 2;  // more than was written
  EXPECT_EQ(run(changed), EINVAL);
  changed = command;
  changed.extension.cmd_hdr_reserved = 1;
  EXPECT_EQ(run(changed), EINVAL);
  changed = command;
  changed.extension.response = 0;  // room, and nowhere
  EXPECT_EQ(run(changed), EINVAL);
  changed = command;
  changed.plain.out_words = 0;  // somewhere, and no room
  EXPECT_EQ(run(changed), EINVAL);
  changed = command;
  changed.extension.response = kNowhere;
  EXPECT_EQ(run(changed), EFAULT);
  changed = command;
  changed.request.comp_mask = 1;
  EXPECT_EQ(run(changed), EINVAL);
  EXPECT_EQ(client.write(header_only(command.plain.command, 0, 0)), EINVAL);  // no extended header
}

// Guards against a newer library's request being half understood: its unknown tail must be zero.
TEST(UverbsFraming, UnknownTailMustBeZero) {
  Opened client;
  struct {
    ib_uverbs_ex_query_device known;
    std::uint64_t unknown;
  } request{};
  EXPECT_EQ(client.extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, request, {304, 0}).error, 0);
  request.unknown = 1;
  EXPECT_EQ(client.extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, request, {304, 0}).error, EOPNOTSUPP);
}

// Guards against stale bytes behind a response that is shorter than its room.
TEST(UverbsFraming, RoomBehindAResponseIsCleared) {
  Opened client;
  const Reply reply =
      client.extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, ib_uverbs_ex_query_device{}, {512, 0});
  ASSERT_EQ(reply.error, 0);
  for (std::size_t i = sizeof(ib_uverbs_ex_query_device_resp); i < 512; ++i)
    EXPECT_EQ(reply.core[i], std::byte{0}) << i;
}

}  // namespace
}  // namespace belfry::softnic::test

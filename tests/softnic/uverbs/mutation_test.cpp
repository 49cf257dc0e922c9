// Commands with bytes changed at random, always the same way: none may crash, and the file must be as
// usable afterwards as before.

#include <random>

#include "devx_client.hpp"

namespace belfry::softnic::test {
namespace {

constexpr int kRounds = 4000;

/// Well-formed write commands of every kind, to be spoilt.
std::vector<std::vector<std::byte>> seed_commands(std::uint64_t response) {
  std::vector<std::vector<std::byte>> seeds;
  const auto plain = [&](std::uint32_t number, std::size_t request_bytes, std::size_t response_bytes) {
    std::vector<std::byte> command(sizeof(ib_uverbs_cmd_hdr) + (request_bytes + 3) / 4 * 4);
    ib_uverbs_cmd_hdr header{};
    header.command = number;
    header.in_words = static_cast<std::uint16_t>(command.size() / 4);
    header.out_words = static_cast<std::uint16_t>(response_bytes / 4);
    std::memcpy(command.data(), &header, sizeof header);
    if (request_bytes >= 8) std::memcpy(command.data() + sizeof header, &response, sizeof response);
    seeds.push_back(command);
  };
  for (std::uint32_t number = 0; number <= IB_USER_VERBS_CMD_OPEN_QP; ++number) plain(number, 160, 200);
  plain(IB_USER_VERBS_CMD_DEALLOC_PD, 4, 0);
  plain(IB_USER_VERBS_CMD_DEREG_MR, 4, 0);
  plain(IB_USER_VERBS_CMD_DESTROY_CQ, 16, 8);
  plain(IB_USER_VERBS_CMD_DESTROY_QP, 16, 4);
  for (const std::uint32_t number : {1u, 18u, 24u, 26u, 50u}) {
    std::vector<std::byte> command(24 + 232);
    struct {
      ib_uverbs_cmd_hdr plain;
      ib_uverbs_ex_cmd_hdr extension;
    } header{};
    header.plain.command = IB_USER_VERBS_CMD_FLAG_EXTENDED | number;
    header.plain.in_words = 15;
    header.plain.out_words = 40;
    header.extension.provider_in_words = 14;
    header.extension.provider_out_words = 16;
    header.extension.response = response;
    std::memcpy(command.data(), &header, sizeof header);
    seeds.push_back(command);
  }
  return seeds;
}

/// Changes one to eight bytes, often to values that mean something: zero, ones, small numbers.
void spoil(std::byte* at, std::size_t bytes, std::mt19937& random) {
  const unsigned changes = 1 + random() % 8;
  for (unsigned i = 0; i < changes; ++i) {
    const unsigned kind = random() % 4;
    const unsigned value = kind == 0 ? 0 : kind == 1 ? 0xff : kind == 2 ? random() % 8 : random() % 256;
    at[random() % bytes] = static_cast<std::byte>(value);
  }
}

void expect_usable(DevxClient& client) {
  EXPECT_EQ(client
                .plain(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{},
                       {sizeof(ib_uverbs_query_device_resp), 0})
                .error,
            0);
  const Pages pages(1);
  const std::uint32_t pd = client.alloc_pd();
  EXPECT_EQ(client.reg_mr(pd, pages.address(), 64, 1).error, 0);
}

// Guards against any unchecked length, handle, pointer or enum value in the write commands.
TEST(UverbsMutation, WriteCommands) {
  DevxClient client;
  Pages scratch(4);
  std::mt19937 random(20240229);
  const auto seeds = seed_commands(scratch.address());
  for (const auto& seed : seeds) client.write(seed);
  for (int round = 0; round < kRounds; ++round) {
    auto command = seeds[random() % seeds.size()];
    spoil(command.data(), command.size(), random);
    // Keep most of them well framed, so that handlers see them.
    if (random() % 8 != 0) {
      const auto words = static_cast<std::uint16_t>(command.size() / 4);
      std::uint32_t number = 0;
      std::memcpy(&number, command.data(), sizeof number);
      if ((number & IB_USER_VERBS_CMD_FLAG_EXTENDED) == 0)
        std::memcpy(command.data() + 4, &words, sizeof words);
    }
    client.write(command);
  }
  expect_usable(client);
}

// Guards against the same in ioctls and in DEVX mailboxes.
TEST(UverbsMutation, IoctlsAndMailboxes) {
  DevxClient client;
  DevxQueues queues(client);
  const DevxReply cq = client.create(queues.cq_mailbox());
  const DevxReply qp = client.create(queues.qp_mailbox(cq.object_id()));
  std::mt19937 random(42);
  std::vector<Bytes> creates{queues.cq_mailbox(), queues.qp_mailbox(cq.object_id()),
                             mailbox_of<prm::CreateMkeyIn>(prm::Opcode::create_mkey),
                             mailbox_of<prm::AllocPdIn>(prm::Opcode::alloc_pd)};
  std::vector<Bytes> modifies;
  for (const auto opcode : {prm::Opcode::rst2init_qp, prm::Opcode::init2rtr_qp, prm::Opcode::rtr2rts_qp,
                            prm::Opcode::to_reset_qp, prm::Opcode::rts2rts_qp}) {
    modifies.push_back(queues.transition(opcode, qp.object_id()));
  }
  const auto spoilt = [&](const std::vector<Bytes>& from) {
    Bytes bytes = from[random() % from.size()];
    spoil(reinterpret_cast<std::byte*>(bytes.data()), bytes.size(), random);
    if (random() % 16 == 0) bytes.resize(16 + random() % bytes.size());
    return bytes;
  };
  for (int round = 0; round < kRounds; ++round) {
    switch (random() % 4) {
      case 0:
        client.general(spoilt(creates), 16 + random() % 300);
        break;
      case 1: {
        const DevxReply made = client.create(spoilt(creates));
        if (made.error == 0 && random() % 8 != 0) client.destroy_object(made.handle);
        break;
      }
      case 2:
        client.modify(qp.handle, spoilt(modifies));
        break;
      default: {
        Bytes out(64);
        Client::Attributes a;
        for (int i = 0; i < 5; ++i) {
          a.add(static_cast<std::uint16_t>((random() % 2) << 12 | random() % 8),
                random() % 3 == 0 ? random() % 16 : reinterpret_cast<std::uintptr_t>(out.data()),
                static_cast<std::uint16_t>(random() % 3 == 0 ? 0 : random() % 65),
                static_cast<std::uint16_t>(random() % 2));
        }
        client.ioctl(static_cast<std::uint16_t>((random() % 2) << 12 | random() % 17),
                     static_cast<std::uint16_t>((random() % 2) << 12 | random() % 7), a);
      }
    }
  }
  expect_usable(client);
}

}  // namespace
}  // namespace belfry::softnic::test

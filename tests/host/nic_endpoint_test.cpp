#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "belfry/host/tcp_bootstrap.hpp"
#include "host/nic_support.hpp"

namespace belfry::host {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// Every rank writes its number into a slot of every rank, itself included, through each of its queues.
void expect_all_to_all(Bootstrap& bootstrap, const EndpointOptions& options) {
  const Endpoint endpoint(bootstrap, options);
  const int size = endpoint.size();
  const int queues = options.queues_per_peer;
  for (int peer = 0; peer < size; ++peer) {
    for (int q = 0; q < queues; ++q) {
      const std::uint64_t value = 1000u + static_cast<std::uint64_t>(endpoint.rank() * queues + q);
      const auto slot = static_cast<std::uint64_t>(endpoint.rank() * queues + q);
      VerbsQueue& queue = endpoint.verbs_queue(peer, q);
      ASSERT_EQ(post_write_inline(queue, {&value, 8, 0}, at(endpoint.window(peer), slot * 8), slot), 0);
      ASSERT_EQ(poll_one(queue.send_cq(), soon()).status, PollStatus::done);
    }
  }
  bootstrap.barrier(soon());
  for (int slot = 0; slot < size * queues; ++slot) {
    EXPECT_EQ(load_u64(endpoint.memory().data() + slot * 8), 1000u + static_cast<std::uint64_t>(slot));
  }
  bootstrap.barrier(soon());
}

// Guards against queues that are connected crosswise, to the wrong peer or index.
TEST(NicEndpoint, AllToAllOverThreads) {
  EndpointOptions options = endpoint_options(QueueKind::verbs);
  options.queues_per_peer = 2;
  options.connect_self = true;
  auto members = make_thread_bootstrap(3);
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&] { expect_all_to_all(*member, options); });
  }
  for (auto& thread : threads) thread.join();
}

// Guards against anything that only works within one process: addresses, keys, the fabric.
TEST(NicEndpoint, AllToAllOverProcesses) {
  EndpointOptions options = endpoint_options(QueueKind::verbs);
  options.connect_self = true;
  options.connection = ConnectionParameters{};
  TcpListener listener(TcpAddress{"127.0.0.1", "0"});
  const TcpAddress address = listener.address();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      const auto bootstrap = make_tcp_leaf(address, 1, 2, soon());
      expect_all_to_all(*bootstrap, options);
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
      _exit(2);
    }
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  const auto bootstrap = make_tcp_root(std::move(listener), 2, soon());
  expect_all_to_all(*bootstrap, options);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Guards against choices that nobody can look at afterwards.
TEST(NicEndpoint, TellsItsDecisions) {
  EndpointOptions options = endpoint_options(QueueKind::verbs);
  options.context.path_mtu = 512;
  const Pair pair(options);
  ASSERT_TRUE(pair.ok());
  EXPECT_THAT(pair.a().decisions(), Contains(HasSubstr("GID index")));
  EXPECT_THAT(pair.a().decisions(), Contains(HasSubstr("path MTU 512: requested")));
  EXPECT_THAT(pair.a().decisions(), Contains(HasSubstr("path MTU 512: both ends")));
  EXPECT_THAT(pair.a().decisions(), Contains(HasSubstr("outstanding reads and atomics: 16")));
}

// Guards against each end keeping its own MTU: the smaller one must rule on both.
TEST(NicEndpoint, EndsAgreeOnTheSmallerMtu) {
  auto members = make_thread_bootstrap(2);
  EndpointOptions small = endpoint_options(QueueKind::verbs);
  small.context.path_mtu = 256;
  std::thread other([&] {
    const Endpoint endpoint(*members[1], small);
    EXPECT_THAT(endpoint.decisions(), Contains(HasSubstr("path MTU 256: this end can do no more")));
    members[1]->barrier(soon());
  });
  const Endpoint endpoint(*members[0], endpoint_options(QueueKind::verbs));
  EXPECT_THAT(endpoint.decisions(), Contains(HasSubstr("path MTU 256: the peer can do no more")));
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(endpoint.verbs_queue(1).qp(), &attributes, IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC,
                         &initial),
            0);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_256);
  EXPECT_EQ(attributes.max_rd_atomic, 16);
  members[0]->barrier(soon());
  other.join();
}

// Guards against ranks with different options being half connected, or waiting for ever.
TEST(NicEndpoint, MismatchedOptionsAreRefusedOnBothSides) {
  auto members = make_thread_bootstrap(2);
  EndpointOptions more = endpoint_options(QueueKind::verbs);
  more.queues_per_peer = 2;
  std::thread other([member = std::move(members[1]), more]() mutable {
    const Error error =
        expect_error(ErrorKind::bad_argument, [&] { const Endpoint endpoint(*member, more); });
    EXPECT_THAT(error.what(), HasSubstr("queues per peer"));
    member.reset();
  });
  expect_error(ErrorKind::bad_argument,
               [&] { const Endpoint endpoint(*members[0], endpoint_options(QueueKind::verbs)); });
  other.join();
}

// Guards against the wrong queue being handed out for an index that does not exist.
TEST(NicEndpoint, QueuesThatDoNotExist) {
  const Pair pair(endpoint_options(QueueKind::verbs));
  ASSERT_TRUE(pair.ok());
  expect_error(ErrorKind::bad_argument, [&] { pair.a().queue(0); });
  expect_error(ErrorKind::bad_argument, [&] { pair.a().queue(2); });
  expect_error(ErrorKind::bad_argument, [&] { pair.a().queue(-1); });
  expect_error(ErrorKind::bad_argument, [&] { pair.a().queue(1, 1); });
  expect_error(ErrorKind::bad_argument, [&] { pair.a().devx_queue(1); });
  expect_error(ErrorKind::bad_argument, [&] { pair.a().window(2); });
}

}  // namespace
}  // namespace belfry::host

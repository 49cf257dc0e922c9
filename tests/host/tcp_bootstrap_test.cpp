#include "belfry/host/tcp_bootstrap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>

#include "host/bootstrap_support.hpp"
#include "host/tcp_frame.hpp"
#include "host/test_support.hpp"

namespace belfry::host {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TcpListener local_listener(const char* host = "127.0.0.1") { return TcpListener(TcpAddress{host, "0"}); }

/// A child process that runs `body` and exits with its result; killed and reaped at the end in any case.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    int code = 99;
    try {
      code = body();
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(code);
  }
  ~Child() {
    if (pid_ <= 0) return;
    kill_now();
    wait();
  }
  void kill_now() const { kill(pid_, SIGKILL); }
  /// \return the exit status, or minus the signal
  int wait() {
    int status = 0;
    const pid_t pid = std::exchange(pid_, -1);
    if (pid <= 0 || waitpid(pid, &status, 0) != pid) return -1000;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

/// Talks to a listener without being a belfry.
Channel raw_connection(const TcpAddress& address) {
  ConnectAttempt attempt = connect_once(address, soon());
  EXPECT_TRUE(attempt.socket) << attempt.problem;
  return Channel(std::move(attempt.socket));
}

void send_raw(const Channel& channel, std::string_view text) {
  EXPECT_EQ(send(channel.descriptor(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Guards against blobs mixed up between processes, over both families.
TEST(TcpBootstrap, ProcessesExchange) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    std::optional<TcpListener> listener;
    try {
      listener.emplace(local_listener(host));
    } catch (const Error& error) {
      // A container without IPv6 has no ::1; IPv4 must be there.
      ASSERT_STREQ(host, "::1") << error.what();
      continue;
    }
    const TcpAddress address = listener->address();
    std::vector<std::unique_ptr<Child>> children;
    for (int rank = 1; rank < 4; ++rank) {
      children.push_back(std::make_unique<Child>([&, rank] {
        auto member = make_tcp_leaf(address, rank, 4, soon());
        expect_rounds(*member, 50);
        const Blob big(1 << 20, std::byte(rank));
        const auto all = member->all_gather(big, soon());
        const bool right = all[3].size() == big.size() && all[3][12345] == std::byte{3};
        return ::testing::Test::HasFailure() || !right ? 1 : 0;
      }));
    }
    auto root = make_tcp_root(std::move(*listener), 4, soon());
    expect_rounds(*root, 50);
    const auto all = root->all_gather(Blob(3, std::byte{9}), soon());
    EXPECT_EQ(all[0].size(), 3u);
    EXPECT_EQ(all[1].size(), 1u << 20);
    for (auto& child : children) EXPECT_EQ(child->wait(), 0);
  }
}

// Guards against survivors that wait for ever, or are told nothing, when a process is killed.
TEST(TcpBootstrap, KilledRankIsAnErrorForAll) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  Child victim([&] {
    auto member = make_tcp_leaf(address, 1, 3, soon());
    member->barrier(soon());
    pause();
    return 0;
  });
  Child survivor([&] {
    auto member = make_tcp_leaf(address, 2, 3, soon());
    member->barrier(soon());
    try {
      member->barrier(later());
    } catch (const Error& error) {
      const bool named = std::string_view(error.what()).find("rank 1") != std::string_view::npos;
      return error.kind() == ErrorKind::not_reachable && named ? 0 : 2;
    }
    return 3;
  });
  auto root = make_tcp_root(std::move(listener), 3, soon());
  root->barrier(soon());
  victim.kill_now();
  const Error error = expect_error(ErrorKind::not_reachable, [&] { root->barrier(later()); });
  EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  EXPECT_EQ(survivor.wait(), 0);
  expect_error(ErrorKind::not_reachable, [&] { root->barrier(later()); });
}

// Guards against leaves that hang when rank 0 is the one that dies.
TEST(TcpBootstrap, KilledRootIsAnErrorForLeaves) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  Child root([&] {
    auto member = make_tcp_root(std::move(listener), 2, soon());
    member->barrier(soon());
    pause();
    return 0;
  });
  auto leaf = make_tcp_leaf(address, 1, 2, soon());
  leaf->barrier(soon());
  root.kill_now();
  EXPECT_THAT(expect_error(ErrorKind::not_reachable, [&] { leaf->barrier(later()); }).what(),
              HasSubstr("rank 0"));
}

// Guards against a stranger on the port (scanner, HTTP client, silent connection, random bytes) that
// stops, joins or crashes the group.
TEST(TcpBootstrap, StrangersAreRefused) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  Channel http = raw_connection(address);
  send_raw(http, "GET / HTTP/1.0\r\n\r\n");
  Channel silent = raw_connection(address);
  Channel half = raw_connection(address);
  send_raw(half, "BFBY");
  Channel wrong_kind = raw_connection(address);
  EXPECT_EQ(wrong_kind.write(FrameKind::contribution, 1, as_payload("not a greeting"), soon()), 0);

  auto root = std::async(std::launch::async, [&] { return make_tcp_root(std::move(listener), 2, soon()); });
  auto leaf = make_tcp_leaf(address, 1, 2, soon());
  auto member = root.get();
  std::thread other([&] { leaf->barrier(soon()); });
  member->barrier(soon());
  other.join();
  Frame frame;
  EXPECT_NE(http.read(frame, soon()), ChannelState::frame);
  EXPECT_EQ(wrong_kind.read(frame, soon()), ChannelState::frame);
  EXPECT_EQ(frame.kind, FrameKind::refusal);
}

// Guards against a rank started with another -n waiting for its own idea of the group.
TEST(TcpBootstrap, WrongSizeAndDuplicatesAreRefusedWithTheReason) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  auto root = std::async(std::launch::async, [&] { return make_tcp_root(std::move(listener), 3, soon()); });
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { make_tcp_leaf(address, 1, 5, soon()); }).what(),
              AllOf(HasSubstr("group of 5"), HasSubstr("BELFRY_BOOTSTRAP_SIZE")));
  auto first = std::async(std::launch::async, [&] { return make_tcp_leaf(address, 1, 3, soon()); });
  // One of the two that claim rank 1 is refused; the other joins when rank 2 has come.
  auto twin = std::async(std::launch::async, [&]() -> std::unique_ptr<Bootstrap> {
    return make_tcp_leaf(address, 1, 3, soon());
  });
  while (first.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready &&
         twin.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
  }
  auto last = make_tcp_leaf(address, 2, 3, soon());
  const auto member = root.get();
  int refused = 0;
  for (auto* future : {&first, &twin}) {
    try {
      future->get();
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
      EXPECT_THAT(error.what(), HasSubstr("already"));
    }
  }
  EXPECT_EQ(refused, 1);
}

// Guards against ranks that must be started in a certain order.
TEST(TcpBootstrap, RootMayComeLast) {
  TcpAddress address;
  {
    const TcpListener reserved = local_listener();
    address = reserved.address();
  }
  auto leaf = std::async(std::launch::async, [&] { return make_tcp_leaf(address, 1, 2, soon()); });
  // Let it fail at least once: it cannot connect while nobody listens.
  EXPECT_EQ(leaf.wait_for(std::chrono::milliseconds(60)), std::future_status::timeout);
  auto root = make_tcp_root(TcpListener(address), 2, soon());
  EXPECT_EQ(leaf.get()->size(), 2);
}

// Guards against a rank that comes when the group is complete being let in, or waiting for ever.
TEST(TcpBootstrap, LateRankTimesOut) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  auto leaf = std::async(std::launch::async, [&] { return make_tcp_leaf(address, 1, 2, soon()); });
  auto root = make_tcp_root(std::move(listener), 2, soon());
  leaf.wait();
  const Error error = expect_error(ErrorKind::timed_out, [&] {
    make_tcp_leaf(address, 1, 2, deadline_after(std::chrono::milliseconds(100)));
  });
  EXPECT_THAT(error.what(), AllOf(HasSubstr(address.to_string()), HasSubstr("late rank")));
}

// Guards against a root that waits for ever, and an error that does not say who is missing and why.
TEST(TcpBootstrap, IncompleteGroupTimesOutOnAllSides) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  auto root = std::async(std::launch::async, [&] {
    return make_tcp_root(std::move(listener), 4, deadline_after(std::chrono::seconds(2)));
  });
  expect_error(ErrorKind::bad_argument, [&] { make_tcp_leaf(address, 1, 9, soon()); });
  const Error at_leaf = expect_error(ErrorKind::timed_out, [&] { make_tcp_leaf(address, 2, 4, soon()); });
  const Error at_root = expect_error(ErrorKind::timed_out, [&] { root.get(); });
  EXPECT_THAT(at_root.what(), AllOf(HasSubstr("ranks 1, 3"), HasSubstr("group of 9")));
  EXPECT_THAT(at_leaf.what(), HasSubstr("ranks 1, 3"));
}

// Guards against an exchange without a deadline: a live rank that does not come.
TEST(TcpBootstrap, ExchangeTimesOutAndBreaksTheGroup) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  auto joining = std::async(std::launch::async, [&] { return make_tcp_leaf(address, 1, 2, soon()); });
  auto root = make_tcp_root(std::move(listener), 2, soon());
  auto leaf = joining.get();
  const Error error = expect_error(ErrorKind::timed_out,
                                   [&] { root->barrier(deadline_after(std::chrono::milliseconds(30))); });
  EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  expect_error(ErrorKind::timed_out, [&] { leaf->barrier(soon()); });
  expect_error(ErrorKind::timed_out, [&] { leaf->barrier(soon()); });
}

// Guards against a leaf that takes any server for rank 0.
TEST(TcpBootstrap, ForeignServerIsNotReachable) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  std::thread server([&] {
    ASSERT_TRUE(wait_ready(listener.descriptor(), POLLIN, soon()));
    const Channel channel(accept_connection(listener.descriptor()));
    send_raw(channel, "220 mail.example.com ESMTP\r\n");
    Frame frame;
    Channel(Descriptor(dup(channel.descriptor()))).read(frame, soon());
  });
  EXPECT_THAT(expect_error(ErrorKind::not_reachable, [&] { make_tcp_leaf(address, 1, 2, soon()); }).what(),
              HasSubstr("BELFRY_BOOTSTRAP_ADDRESS"));
  server.join();
}

// Guards against ranks that are in different calls exchanging each other's bytes.
TEST(TcpBootstrap, ForeignFrameDuringAnExchangeBreaksTheGroup) {
  TcpListener listener = local_listener();
  const TcpAddress address = listener.address();
  Channel impostor = raw_connection(address);
  const Hello hello{Be32(1), Be32(2)};
  ASSERT_EQ(impostor.write(FrameKind::hello, 0, std::as_bytes(std::span(&hello, 1)), soon()), 0);
  auto root = make_tcp_root(std::move(listener), 2, soon());
  ASSERT_EQ(impostor.write(FrameKind::contribution, 7, as_payload("round 7"), soon()), 0);
  expect_error(ErrorKind::bad_argument, [&] { root->barrier(soon()); });
  Frame frame;
  EXPECT_EQ(impostor.read(frame, soon()), ChannelState::frame);  // the welcome
  EXPECT_EQ(impostor.read(frame, soon()), ChannelState::frame);
  EXPECT_EQ(frame.kind, FrameKind::abort);
}

// Guards against addresses that are half understood, IPv6 ones above all.
TEST(TcpBootstrap, Addresses) {
  EXPECT_EQ(TcpAddress::parse("node1:5000").host, "node1");
  EXPECT_EQ(TcpAddress::parse("[fe80::1]:5000").host, "fe80::1");
  EXPECT_EQ(TcpAddress::parse("[::1]:07").to_string(), "[::1]:7");
  EXPECT_EQ(TcpAddress::parse(":5000").host, "");
  for (const char* bad : {"", "node1", "node1:", "::1:5000", "node1:65536", "node1:5x", "node1:-1"}) {
    expect_error(ErrorKind::bad_argument, [&] { TcpAddress::parse(bad); });
  }
  expect_error(ErrorKind::bad_argument, [] {
    make_tcp_leaf(TcpAddress{"no-such-host.invalid", "1"}, 1, 2, deadline_after(std::chrono::seconds(1)));
  });
}

// Guards against a variable that is not set ending in a default address.
TEST(TcpBootstrap, EnvironmentMustBeComplete) {
  Environment environment;
  environment.bootstrap_rank = 0;
  EXPECT_THAT(expect_error(ErrorKind::bad_argument, [&] { make_tcp_bootstrap(environment); }).what(),
              AllOf(HasSubstr("BELFRY_BOOTSTRAP_ADDRESS"), HasSubstr("BELFRY_BOOTSTRAP_SIZE")));
  environment.bootstrap_address = "127.0.0.1:0";
  environment.bootstrap_size = 1;
  EXPECT_EQ(make_tcp_bootstrap(environment)->size(), 1);
}

}  // namespace
}  // namespace belfry::host

#include "bench/two_ranks.hpp"

#include <poll.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>

#include "belfry/host/errors.hpp"
#include "belfry/host/tcp_bootstrap.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "bench/peer_process.hpp"

namespace belfry::bench {
namespace {

constexpr std::chrono::seconds kStartLimit{30};
constexpr std::chrono::seconds kEndLimit{10};

/// "The other rank left": the consequence of what that rank threw.
bool is_consequence(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const host::Error& error) {
    return error.kind() == host::ErrorKind::not_reachable;
  } catch (...) {
    return false;
  }
}

/// Both ranks as threads. If one fails, its membership ends, so that the other fails too; the cause is
/// what is thrown.
std::vector<Record> run_in_one_process(RunContext& run, const TwoRanks& ranks) {
  auto members = host::make_thread_bootstrap(2);
  std::exception_ptr served;
  std::thread server([&, group = std::move(members[1])]() mutable {
    try {
      RunContext own(run.experiment(), run.options(), Progress(false));
      ranks.serve(own, *group);
    } catch (...) {
      served = std::current_exception();
    }
    group.reset();
  });
  std::vector<Record> records;
  std::exception_ptr measured;
  try {
    records = ranks.measure(run, *members[0]);
  } catch (...) {
    measured = std::current_exception();
  }
  members[0].reset();
  server.join();
  if (measured && !(served && is_consequence(measured))) std::rethrow_exception(measured);
  if (served) std::rethrow_exception(served);
  return records;
}

/// Returns when the peer knocks. Throws if it ends before that, or the limit passes.
void await_peer(const host::TcpListener& listener, PeerProcess& peer) {
  const auto end = std::chrono::steady_clock::now() + kStartLimit;
  pollfd knock{listener.descriptor(), POLLIN, 0};
  while (poll(&knock, 1, 20) <= 0) {
    const std::string ending = peer.ending();
    if (!ending.empty()) throw std::runtime_error(ending + " before it could connect");
    if (std::chrono::steady_clock::now() >= end) throw std::runtime_error("the peer process did not connect");
  }
}

/// Adds what became of the peer, if it ended: that it left is all that the connection knows.
[[noreturn]] void rethrow_with_ending(const host::Error& error, PeerProcess& peer) {
  std::string ending;
  for (int i = 0; i < 50 && ending.empty(); ++i) {
    ending = peer.ending();
    if (ending.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (ending.empty()) throw error;
  throw host::Error(error.kind(), error.message() + "; " + ending, error.remedy(), error.code());
}

std::vector<Record> run_in_two_processes(RunContext& run, const TwoRanks& ranks) {
  host::TcpListener listener(host::TcpAddress{"127.0.0.1", "0"});
  PeerProcess peer(peer_arguments(run, listener.address().to_string()));
  try {
    await_peer(listener, peer);
    const auto group = host::make_tcp_root(std::move(listener), 2, host::deadline_after(kStartLimit));
    std::vector<Record> records = ranks.measure(run, *group);
    peer.wait(kEndLimit);
    return records;
  } catch (const host::Error& error) {
    rethrow_with_ending(error, peer);
  }
}

/// The launcher watches over the other one.
std::vector<Record> run_launched(RunContext& run, const TwoRanks& ranks) {
  host::TcpListener listener(host::TcpAddress::parse(run.options().listen_at));
  const auto group = host::make_tcp_root(std::move(listener), 2, host::deadline_after(kStartLimit));
  return ranks.measure(run, *group);
}

}  // namespace

std::vector<Record> run_two_ranks(RunContext& run, const TwoRanks& ranks) {
  if (!run.options().listen_at.empty()) return run_launched(run, ranks);
  return run.options().processes == 2 ? run_in_two_processes(run, ranks) : run_in_one_process(run, ranks);
}

void serve_peer(RunContext& run, const std::string& address, const TwoRanks& ranks) {
  const auto group =
      host::make_tcp_leaf(host::TcpAddress::parse(address), 1, 2, host::deadline_after(kStartLimit));
  ranks.serve(run, *group);
}

}  // namespace belfry::bench

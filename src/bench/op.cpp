/// \file
/// Experiment `op`: what one operation costs. Its first arms are libmlx5's own ibv_post_send.

#include <poll.h>

#include <exception>
#include <map>
#include <stdexcept>
#include <thread>

#include "belfry/host/errors.hpp"
#include "belfry/host/tcp_bootstrap.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "bench/clock.hpp"
#include "bench/cores.hpp"
#include "bench/describe_nic.hpp"
#include "bench/experiments.hpp"
#include "bench/op_end.hpp"
#include "bench/peer_process.hpp"

namespace belfry::bench {
namespace {

constexpr const char* kClockArm = "clock";
constexpr std::chrono::seconds kStartLimit{30};
constexpr std::chrono::seconds kEndLimit{10};

Payload payload_of(const std::string& arm) {
  return arm == "verbs-pointer" ? Payload::pointer : Payload::inlined;
}

/// \param pollers threads of ours that poll at the same time
PollPolicy policy_of(const RunContext& run, const OpEnd& end, unsigned pollers) {
  PollPolicy policy;
  // A software NIC has a thread in each process; a hardware NIC needs no core.
  const unsigned threads =
      pollers + (end.endpoint().context().is_software_nic() ? run.options().processes : 0);
  policy.yields = threads > usable_cores();
  return policy;
}

/// One metric of one arm over all passes.
struct Metric {
  PassSeries series;
  bool verified = true;
};
using Metrics = std::map<std::pair<std::string, std::string>, Metric>;

void add(Metrics& metrics, const std::string& arm, const std::string& name, std::vector<double> samples,
         bool verified) {
  Metric& metric = metrics[{arm, name}];
  metric.series.add_samples(std::move(samples));
  metric.verified = metric.verified && verified;
}

/// Rank 0.
Metrics measure_all(RunContext& run, OpEnd& end) {
  const Clock clock;
  const PollPolicy puts = policy_of(run, end, 1);
  const PollPolicy round_trips = policy_of(run, end, 2);
  Metrics metrics;
  run.interleave([&](const std::string& arm, unsigned) {
    if (arm == kClockArm) {
      add(metrics, arm, "clock_overhead", clock.overhead_ns(static_cast<unsigned>(run.iterations())), true);
      return;
    }
    const Payload payload = payload_of(arm);
    PutSamples put = end.measure_puts(payload, run.iterations(), puts, clock);
    add(metrics, arm, "issue", std::move(put.issue), put.verified);
    add(metrics, arm, "put_completion", std::move(put.put_completion), put.verified);
    RoundTripSamples trip = end.measure_round_trips(payload, run.iterations(), round_trips, clock);
    add(metrics, arm, "round_trip", std::move(trip.round_trip), trip.verified);
  });
  run.note(std::string("clock: ") + clock.name() +
           "; every figure contains one clock reading (arm clock); polling " +
           (round_trips.yields ? "gives its core away, for want of cores" : "spins"));
  return metrics;
}

std::vector<Record> records_of(const RunContext& run, const Metrics& metrics) {
  std::vector<Record> records;
  for (const std::string& arm : run.arms()) {
    for (const MetricInfo& info : run.experiment().metrics) {
      const auto found = metrics.find({arm, info.name});
      if (found == metrics.end()) continue;
      Record record = run.record(arm, info.name, found->second.series);
      if (arm != kClockArm) {
        record.verified = found->second.verified;
        set(record.parameters, "bytes", std::int64_t{kSlotBytes});
        set(record.parameters, "outstanding", std::int64_t{1});
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

/// Rank 0 of a group of two, whichever way the group came about.
std::vector<Record> measure(RunContext& run, host::Bootstrap& group) {
  OpEnd end(run.options().nic, group, run.options().seed);
  run.use_nic(describe_nic(end.endpoint().context()));
  for (const std::string& decision : end.endpoint().decisions()) run.note(decision);
  return records_of(run, measure_all(run, end));
}

/// Rank 1.
void serve(RunContext& run, host::Bootstrap& group) {
  OpEnd end(run.options().nic, group, run.options().seed);
  const PollPolicy policy = policy_of(run, end, 2);
  run.interleave([&](const std::string& arm, unsigned) {
    if (arm == kClockArm) return;
    end.serve_puts(run.iterations());
    end.serve_round_trips(payload_of(arm), run.iterations(), policy);
  });
}

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
std::vector<Record> run_in_one_process(RunContext& run) {
  auto ranks = host::make_thread_bootstrap(2);
  std::exception_ptr served;
  std::thread server([&, group = std::move(ranks[1])]() mutable {
    try {
      RunContext own(run.experiment(), run.options(), Progress(false));
      serve(own, *group);
    } catch (...) {
      served = std::current_exception();
    }
    group.reset();
  });
  std::vector<Record> records;
  std::exception_ptr measured;
  try {
    records = measure(run, *ranks[0]);
  } catch (...) {
    measured = std::current_exception();
  }
  ranks[0].reset();
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

std::vector<Record> run_in_two_processes(RunContext& run) {
  host::TcpListener listener(host::TcpAddress{"127.0.0.1", "0"});
  PeerProcess peer(peer_arguments(run, listener.address().to_string()));
  try {
    await_peer(listener, peer);
    const auto group = host::make_tcp_root(std::move(listener), 2, host::deadline_after(kStartLimit));
    std::vector<Record> records = measure(run, *group);
    peer.wait(kEndLimit);
    return records;
  } catch (const host::Error& error) {
    rethrow_with_ending(error, peer);
  }
}

std::vector<Record> run_op(RunContext& run) {
  return run.options().processes == 2 ? run_in_two_processes(run) : run_in_one_process(run);
}

void serve_op(RunContext& run, const std::string& address) {
  const auto group =
      host::make_tcp_leaf(host::TcpAddress::parse(address), 1, 2, host::deadline_after(kStartLimit));
  serve(run, *group);
}

}  // namespace

Experiment op_experiment() {
  Experiment experiment;
  experiment.name = "op";
  experiment.description = "what one operation costs: 8 B RDMA WRITE, one outstanding";
  experiment.arms = {
      {"verbs-inline", "ibv_post_send, payload copied into the WQE", "op/mini-gda-inline"},
      {"verbs-pointer", "ibv_post_send, payload fetched by the NIC", "op/mini-gda-pointer"},
      {kClockArm, "the clock itself: what reading it twice measures", ""},
  };
  experiment.metrics = {
      {"issue", "us", "time in ibv_post_send"},
      {"put_completion", "us", "from before ibv_post_send to having polled the CQE"},
      {"round_trip", "us", "write to the peer's memory until its answer is seen in ours"},
      {"clock_overhead", "ns", "two clock readings in a row"},
  };
  experiment.most_processes = 2;
  experiment.run = run_op;
  experiment.peer = serve_op;
  return experiment;
}

}  // namespace belfry::bench

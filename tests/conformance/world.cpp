#include "conformance/world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "belfry/device/signal.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "belfry/wire/syndrome.hpp"

namespace belfry::conformance {

namespace {

/// Tests that run at the same time must not share a fabric. Runs before main.
const bool kOwnFabric = [] {
  const std::string name = "conformance-" + std::to_string(getpid());
  return setenv("BELFRY_SOFTNIC_FABRIC", name.c_str(), 0) == 0;
}();

}  // namespace

WorldOptions::WorldOptions() {
  endpoint.context.nic = "soft";
  endpoint.blocks = 64;
  // 4.096 us << 14 and some retries: long enough for a loaded machine, short enough for a dead peer's cases.
  endpoint.connection.ack_timeout = 14;
  endpoint.connection.retry_count = 7;
  endpoint.timeout = std::chrono::seconds(30);
}

std::vector<host::WindowOptions> WorldBase::windows_of(const WorldOptions& options) {
  return {{.bytes = options.data_bytes},
          {.bytes = kSignalBytes},
          {.bytes = options.data_bytes, .access = host::kAllAccess | host::Access::relaxed_ordering},
          {.bytes = 4096, .access = host::Access::local_write | host::Access::remote_read}};
}

void WorldBase::make(int pes, const std::function<host::Windows(std::size_t pe, host::Bootstrap&)>& make_pe) {
  windows_.resize(static_cast<std::size_t>(pes));
  std::vector<std::function<void()>> makers;
  auto members = host::make_thread_bootstrap(pes);
  for (std::size_t pe = 0; pe < members.size(); ++pe) {
    makers.emplace_back([&, pe] {
      try {
        windows_[pe] = make_pe(pe, *members[pe]);
      } catch (const host::Error& error) {
        ADD_FAILURE() << "PE " << pe << ": " << error.what();
      }
    });
  }
  run_together(std::move(makers));
  ok_ = std::all_of(windows_.begin(), windows_.end(), [](const auto& made) { return made.has_value(); });
}

World::World(const WorldOptions& options, const device::Requirements& requirements) {
  host::DeviceEndpointOptions endpoint = options.endpoint;
  endpoint.meet(requirements);
  endpoint.windows = windows_of(options);
  endpoints_.resize(static_cast<std::size_t>(options.pes));
  make(options.pes, [&](std::size_t pe, host::Bootstrap& bootstrap) {
    endpoints_[pe] = std::make_unique<host::DeviceEndpoint>(bootstrap, endpoint);
    endpoints_[pe]->admit(requirements);
    return endpoints_[pe]->windows();
  });
}

Posted World::posted(std::uint32_t pe, std::uint32_t peer, std::uint32_t index) const {
  const device::EndpointView& v = view(pe);
  const device::QueueState& state = *v.queues[peer * v.queues_a_peer + index].state;
  return {state.reserved, state.published, state.consumer, state.fault};
}

namespace {

WorldOptions assisted(WorldOptions options) {
  options.endpoint.doorbell_path = host::DoorbellPath::cpu_assisted;
  // The tests' machine has few cores, and NICs, lanes and this thread all want one.
  options.endpoint.forwarder.pin = false;
  options.endpoint.forwarder.idle.spins = 100;
  return options;
}

}  // namespace

AssistedWorld::AssistedWorld(const WorldOptions& options, const device::Requirements& requirements)
    : World(assisted(options), requirements) {}

std::byte* WorldBase::bytes(std::uint32_t pe, Place place) const {
  return windows_[pe]->memory(place.window).data() + place.offset;
}

std::uint64_t WorldBase::word(std::uint32_t pe, Place place) const {
  return port::load_acquire<port::Scope::system>(reinterpret_cast<const std::uint64_t*>(bytes(pe, place)));
}

void WorldBase::set_word(std::uint32_t pe, Place place, std::uint64_t value) const {
  port::store_release<port::Scope::system>(reinterpret_cast<std::uint64_t*>(bytes(pe, place)), value);
}

namespace {

/// One thread waits for a word.
struct Await {
  const std::uint64_t* word;
  std::uint64_t value;
  Report* report;

  BELFRY_FN void operator()() const {
    report->note(0, device::wait_signal(word, device::Compare::greater_equal, value, kPatient));
  }
};

}  // namespace

void WorldBase::await(std::uint32_t pe, Place word, std::uint64_t value) const {
  Array<Report> reports(1);
  const auto* address = reinterpret_cast<const std::uint64_t*>(bytes(pe, word));
  Runner::launch({1, 1}, Await{address, value, reports.data()});
  EXPECT_TRUE(all_good(reports)) << "PE " << pe << " waits for " << value << ", has " << this->word(pe, word);
}

void run_together(std::vector<std::function<void()>> launches) {
  std::vector<std::thread> threads;
  for (const auto& launch : launches) {
    threads.emplace_back([&launch] {
      try {
        launch();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

ChangedView::ChangedView(const device::EndpointView& view)
    : view_(view),
      queues_(std::vector(view.queues, view.queues + view.pe_count * view.queues_a_peer)),
      windows_(std::vector(view.windows, view.windows + entries(view))),
      remotes_(std::vector(view.remotes, view.remotes + entries(view) * view.pe_count)) {
  view_.queues = queues_.data();
  view_.windows = windows_.data();
  view_.remotes = remotes_.data();
}

std::uint32_t ChangedView::entries(const device::EndpointView& view) {
  return std::max(view.window_count, view.sink.window + 1);
}

std::uint32_t ChangedView::add_window(std::uint32_t like) {
  std::vector<device::LocalWindow> windows(windows_.begin(), windows_.end());
  std::vector<device::RemoteWindow> remotes(remotes_.begin(), remotes_.end());
  const auto number = static_cast<std::uint32_t>(windows.size());
  windows.push_back(windows_[like]);
  for (std::uint32_t pe = 0; pe < view_.pe_count; ++pe) remotes.push_back(remote(like, pe));
  windows_ = Array<device::LocalWindow>(std::move(windows));
  remotes_ = Array<device::RemoteWindow>(std::move(remotes));
  view_.windows = windows_.data();
  view_.remotes = remotes_.data();
  view_.window_count = number + 1;
  return number;
}

MutedQueue::MutedQueue(ChangedView& view, std::uint32_t pe, std::uint32_t index)
    : real_(view.queue(pe, index)), words_(std::make_unique<Array<std::uint64_t>>(2)) {
  view.queue(pe, index).doorbell = &(*words_)[0];
  view.queue(pe, index).record = reinterpret_cast<Be32*>(&(*words_)[1]);
}

void MutedQueue::ring() const {
  constexpr auto kScope = port::Scope::system;
  const auto* record = reinterpret_cast<const std::uint32_t*>(&(*words_)[1]);
  if (real_.doorbell_mode == device::DoorbellMode::record)
    port::store_release<kScope>(reinterpret_cast<std::uint32_t*>(real_.record),
                                port::load_acquire<kScope>(record));
  port::store_doorbell_release<kScope>(real_.doorbell, port::load_acquire<kScope>(&(*words_)[0]));
}

std::string describe(const device::Outcome& o) {
  std::ostringstream text;
  text << device::status_name(o.status);
  if (o.status != device::Status::completion_error) return text.str();
  text << ", " << wire::syndrome_name(o.syndrome) << "; the queue's fault: kind "
       << static_cast<unsigned>(o.fault.kind) << ", QP " << o.fault.qpn << ", index " << o.fault.index << ", "
       << wire::syndrome_name(o.fault.syndrome) << ", vendor " << static_cast<unsigned>(o.fault.vendor);
  return text.str();
}

::testing::AssertionResult all_good(Array<Report>& reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Report& r = reports[i];
    if (r.bad != 0)
      return ::testing::AssertionFailure()
             << "thread " << i << ": " << r.bad << " of " << r.good + r.bad << " wrong, the first at step "
             << r.first_bad << " (" << describe(r.outcome) << ")";
    if (r.good == 0) return ::testing::AssertionFailure() << "thread " << i << " checked nothing";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace belfry::conformance

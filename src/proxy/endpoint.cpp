#include "belfry/proxy/endpoint.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "belfry/host/errors.hpp"
#include "belfry/host/verbs_queue.hpp"
#include "belfry/wire/proxy.hpp"
#include "host/collective.hpp"
#include "host/cpu_choice.hpp"
#include "proxy/counter_choice.hpp"
#include "proxy/ring_memory.hpp"
#include "proxy/verbs_submitter.hpp"
#include "proxy/worker.hpp"

namespace belfry::proxy {

using host::Blob;
using host::ErrorKind;
using host::VerbsQueue;

namespace {

constexpr std::uint32_t kMagic = 0x62667078;  // "bfpx"

/// What precedes the queues' addresses in a rank's blob.
struct Head {
  Be32 magic;
  Be32 rings;
  Be32 self_queues;
  Be32 windows;
};
static_assert(sizeof(Head) == 16);

[[noreturn]] void refuse(const std::string& message, const std::string& remedy) {
  throw host::Error(ErrorKind::bad_argument, message, remedy);
}

void require(bool good, const char* what, std::uint64_t value, const char* remedy) {
  if (!good) refuse(std::string(what) + " of " + std::to_string(value), remedy);
}

void check_options(const EndpointOptions& o, const host::Windows& windows) {
  require(o.rings >= 1 && o.rings <= 1024, "rings", o.rings, "1 to 1024");
  require(o.workers >= 1 && o.workers <= o.rings, "workers", o.workers, "1 to the number of rings");
  require(o.chain >= 1 && o.chain <= 64, "a chain", o.chain, "1 to 64 work requests");
  require(std::has_single_bit(o.slots) && o.slots >= wire::kProxyMostDescriptors && o.slots <= 32768,
          "ring slots", o.slots, "A power of two from 4 to 32768");
  require(o.first_index % o.slots == 0, "a first index", o.first_index, "A multiple of the slots of a ring");
  require(o.send_depth >= o.chain, "a send depth", o.send_depth, "At least as deep as a chain is long");
  host::check_rest(o.idle, o.stall, "worker");
  require(windows.pe_count() <= wire::kProxyMostPeers, "PEs", windows.pe_count(), "At most 16384");
  require(windows.count() <= wire::kProxyMostWindows, "windows", windows.count(), "At most 64");
}

}  // namespace

struct Endpoint::Impl {
  Impl(const host::Windows& w, const EndpointOptions& o)
      : windows(w), options(o), pes(w.pe_count()), queues(std::size_t{o.rings} * w.pe_count()) {}

  void make_queues();
  Blob describe() const;
  void check_peers(const std::vector<Blob>& blobs) const;
  void connect(const std::vector<Blob>& blobs);
  void make_rings();
  void start_workers();
  std::unique_ptr<RingService> make_service(std::uint32_t ring, std::vector<VerbsQueue*>& all,
                                            const std::shared_ptr<NicWriter>& writer);
  const Worker& worker_of(std::uint32_t ring) const;
  bool has_queue(std::uint32_t pe) const { return pe != windows.pe() || options.self_queues; }
  void decide(std::string line) {
    if (std::find(decisions.begin(), decisions.end(), line) == decisions.end())
      decisions.push_back(std::move(line));
  }

  host::Windows windows;
  EndpointOptions options;
  std::uint32_t pes;
  std::vector<std::shared_ptr<ibv_cq>> cqs;         ///< [worker]
  std::vector<std::unique_ptr<VerbsQueue>> queues;  ///< [ring * pes + pe]
  std::unique_ptr<host::Memory> sink;               ///< 8 B a ring
  std::unique_ptr<RingMemory> ring_memory;          ///< slots, progress and words of every ring
  std::shared_ptr<void> device_memory;              ///< states and tables
  std::vector<device::proxy::Ring> rings;
  CounterChoice counters;  ///< where it is not host, the words in `ring_memory` are unused
  device::proxy::ProxyView view;
  host::CpuChoice cpus;  ///< [worker]
  std::vector<std::string> decisions;
  std::vector<std::unique_ptr<Worker>> workers;  ///< the last to be made, the first to go
};

void Endpoint::Impl::make_queues() {
  const host::ProtectionDomain& domain = windows.domain();
  const std::uint32_t peers = pes - (options.self_queues ? 0 : 1);
  for (std::uint32_t worker = 0; worker < options.workers; ++worker) {
    const std::uint32_t rings_here = (options.rings - worker - 1) / options.workers + 1;
    const std::uint64_t entries = std::uint64_t{rings_here} * peers * options.send_depth;
    cqs.push_back(host::make_completion_queue(
        domain, static_cast<std::uint32_t>(std::clamp<std::uint64_t>(entries, 1, 1u << 22))));
  }
  host::VerbsQueueOptions o;
  o.send_depth = options.send_depth;
  o.receive_depth = 1;
  o.max_inline = 8;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (!has_queue(static_cast<std::uint32_t>(i % pes))) continue;
    o.send_cq = cqs[i / pes % options.workers];
    queues[i] = std::make_unique<VerbsQueue>(domain, o);
  }
  sink = std::make_unique<host::Memory>(
      host::Memory::allocate(domain, std::size_t{8} * options.rings, host::Access::local_write));
}

Blob Endpoint::Impl::describe() const {
  const Head head{Be32(kMagic), Be32(options.rings), Be32(options.self_queues ? 1 : 0),
                  Be32(windows.count())};
  Blob blob(sizeof head + queues.size() * host::QueueAddress::kEncodedBytes);
  std::memcpy(blob.data(), &head, sizeof head);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (!queues[i]) continue;
    const auto address = queues[i]->local_address().encode();
    std::memcpy(blob.data() + sizeof head + i * address.size(), address.data(), address.size());
  }
  return blob;
}

void Endpoint::Impl::check_peers(const std::vector<Blob>& blobs) const {
  const Blob mine = describe();
  for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
    const bool alike =
        blobs[rank].size() == mine.size() && std::memcmp(blobs[rank].data(), mine.data(), sizeof(Head)) == 0;
    if (!alike)
      refuse("rank " + std::to_string(rank) + "'s proxy endpoint differs from rank " +
                 std::to_string(windows.pe()) + "'s in rings, windows or self queues",
             "Every rank must make it with the same options, with the same version of belfry");
  }
}

void Endpoint::Impl::connect(const std::vector<Blob>& blobs) {
  constexpr std::size_t kBytes = host::QueueAddress::kEncodedBytes;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (!queues[i]) continue;
    const std::size_t far = i / pes * pes + windows.pe();
    const auto raw = std::span(blobs[i % pes]).subspan(sizeof(Head) + far * kBytes, kBytes);
    for (const std::string& line :
         queues[i]->connect(host::QueueAddress::decode(raw), options.connection).decisions)
      decide(line);
  }
}

void Endpoint::Impl::make_rings() {
  using device::proxy::RingState;
  ring_memory =
      std::make_unique<RingMemory>(options.rings, options.slots, options.first_index, options.ring_memory);
  rings = ring_memory->rings();
  counters = choose_counters(windows.domain(), options);
  decide(counters.decision);
  if (counters.path != CounterPath::host)
    for (std::uint32_t r = 0; r < options.rings; ++r) rings[r].words = counters.words + r;
  const std::vector<RingState> states(options.rings, ring_memory->first_state());
  std::vector<device::LocalWindow> local;
  for (std::uint32_t w = 0; w < windows.count(); ++w) local.push_back(windows.local_entry(w));

  const std::size_t states_bytes = sizeof(RingState) * options.rings;
  const std::size_t rings_bytes = (sizeof(device::proxy::Ring) * options.rings + 63) / 64 * 64;
  const std::size_t local_bytes = sizeof(device::LocalWindow) * local.size();
  const auto memory = options.state.memory ? options.state.memory : host::host_queue_memory();
  device_memory = memory->allocate((states_bytes + rings_bytes + local_bytes + 4095) / 4096 * 4096);
  auto* base = static_cast<std::byte*>(device_memory.get());
  for (std::uint32_t r = 0; r < options.rings; ++r) rings[r].state = reinterpret_cast<RingState*>(base) + r;
  memory->write(base, states.data(), states_bytes);
  memory->write(base + states_bytes, rings.data(), sizeof(device::proxy::Ring) * options.rings);
  memory->write(base + states_bytes + rings_bytes, local.data(), local_bytes);

  view.pe = windows.pe();
  view.pe_count = pes;
  view.ring_count = options.rings;
  view.window_count = windows.count();
  view.self_queues = options.self_queues ? 1 : 0;
  view.rings = reinterpret_cast<const device::proxy::Ring*>(base + states_bytes);
  view.windows = reinterpret_cast<const device::LocalWindow*>(base + states_bytes + rings_bytes);
  view.stall_ns = static_cast<std::uint64_t>(options.stall.count());
}

std::unique_ptr<RingService> Endpoint::Impl::make_service(std::uint32_t ring, std::vector<VerbsQueue*>& all,
                                                          const std::shared_ptr<NicWriter>& writer) {
  Routes routes;
  for (std::uint32_t w = 0; w < windows.count(); ++w) {
    routes.windows.push_back(windows.local_entry(w));
    for (std::uint32_t pe = 0; pe < pes; ++pe) routes.remotes.push_back(windows.remote_entry(w, pe));
  }
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    VerbsQueue* queue = queues[std::size_t{ring} * pes + pe].get();
    routes.queues.push_back(queue != nullptr ? static_cast<std::uint32_t>(all.size()) : Routes::kNoQueue);
    if (queue != nullptr) all.push_back(queue);
  }
  routes.sink = reinterpret_cast<std::uint64_t>(sink->data() + std::size_t{8} * ring);
  routes.sink_lkey = sink->lkey();
  const std::uint64_t most = windows.domain().context().port_attributes().max_msg_sz;
  routes.max_message = options.max_message == 0 ? most : std::min(most, options.max_message);
  std::unique_ptr<Counter> counter = counters.path == CounterPath::host
                                         ? std::make_unique<MappedCounter>(ring_memory->words(ring))
                                         : counters.make_counter(ring, writer, options);
  const ServiceOptions o = ServiceOptions::of(options.chain, options.rings > options.workers);
  return std::make_unique<RingService>(ring_memory->reader(ring), std::move(routes), std::move(counter), o);
}

void Endpoint::Impl::start_workers() {
  cpus = host::choose_cpus(windows.domain().context(), "worker", options.workers, options.pin);
  decide(cpus.decision);
  for (std::uint32_t w = 0; w < options.workers; ++w) {
    std::vector<VerbsQueue*> all;
    std::vector<std::unique_ptr<RingService>> services;
    // One for a worker's rings: a thread uses it.
    std::shared_ptr<NicWriter> writer;
    if (counters.path == CounterPath::nic)
      writer = std::make_shared<NicWriter>(windows.domain(), options.connection);
    for (std::uint32_t ring = w; ring < options.rings; ring += options.workers)
      services.push_back(make_service(ring, all, writer));
    host::PollingOptions o;
    o.idle = options.idle;
    o.cpu = cpus.of(w);
    o.name = "belfry-proxy-" + std::to_string(w);
    workers.push_back(std::make_unique<Worker>(std::move(services),
                                               std::make_unique<VerbsSubmitter>(cqs[w], std::move(all)), o));
  }
}

const Worker& Endpoint::Impl::worker_of(std::uint32_t ring) const {
  if (ring >= options.rings) refuse("there is no ring " + std::to_string(ring), "See the option `rings`");
  return *workers[ring % options.workers];
}

Endpoint::Endpoint(host::Bootstrap& bootstrap, const host::Windows& windows, const EndpointOptions& options) {
  std::unique_ptr<Impl>& impl = impl_;
  const auto make = [&] {
    check_options(options, windows);
    impl = std::make_unique<Impl>(windows, options);
    impl->make_queues();
    return impl->describe();
  };
  const std::vector<Blob> blobs =
      host::exchange(bootstrap, "make its proxy queues", make, host::deadline_after(options.timeout));
  impl->check_peers(blobs);
  const auto connect = [&] {
    impl->connect(blobs);
    impl->make_rings();
    return Blob{};
  };
  // Nobody sends before every receiver is ready.
  host::exchange(bootstrap, "connect its proxy queues", connect, host::deadline_after(options.timeout));
  impl->start_workers();
}

Endpoint::~Endpoint() = default;
Endpoint::Endpoint(Endpoint&&) noexcept = default;
Endpoint& Endpoint::operator=(Endpoint&&) noexcept = default;

const device::proxy::ProxyView& Endpoint::view() const { return impl_->view; }
bool Endpoint::worker_alive(std::uint32_t ring) const { return impl_->worker_of(ring).alive(); }
std::exception_ptr Endpoint::worker_failure(std::uint32_t ring) const {
  return impl_->worker_of(ring).failure();
}
int Endpoint::worker_cpu(std::uint32_t ring) const {
  impl_->worker_of(ring);
  return impl_->cpus.of(ring % impl_->options.workers);
}
std::uint64_t Endpoint::fault_word(std::uint32_t ring) const {
  impl_->worker_of(ring);
  if (impl_->counters.path != CounterPath::host)
    return impl_->counters.provider->load(&impl_->counters.words[ring].fault);
  return port::load_acquire<port::Scope::system>(&impl_->ring_memory->words(ring)->fault);
}
CounterPath Endpoint::counter_path() const { return impl_->counters.path; }
const std::vector<std::string>& Endpoint::decisions() const { return impl_->decisions; }

}  // namespace belfry::proxy

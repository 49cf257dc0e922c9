#include "belfry/host/endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "belfry/host/errors.hpp"
#include "belfry/port/byte_order.hpp"

namespace belfry::host {

namespace {

/// Each rank's blob: this, its window, and for each rank and index the address of the queue to it (all
/// zero where there is none).
struct EndpointHeader {
  Be32 magic;
  Be32 queues_per_peer;
  Be32 connect_self;
};
static_assert(sizeof(EndpointHeader) == 12);

constexpr std::uint32_t kMagic = 0x62666570;  // "bfep"
constexpr int kMostQueues = 4096;

}  // namespace

struct Endpoint::Impl {
  Impl(Bootstrap& bootstrap, const Context& c, const EndpointOptions& o)
      : rank(bootstrap.rank()),
        size(bootstrap.size()),
        options(o),
        context(c),
        domain(c),
        memory(Memory::allocate(domain, o.window_bytes, o.window_access, o.allocation)) {}

  bool has_queues_to(int peer) const { return peer != rank || options.connect_self; }
  std::size_t slot(int peer, int index) const {
    return static_cast<std::size_t>(peer) * static_cast<std::size_t>(options.queues_per_peer) +
           static_cast<std::size_t>(index);
  }

  void make_queues();
  Blob describe() const;
  void take(int peer, const Blob& blob);
  void connect(int peer, std::span<const std::byte> addresses);
  void decide(const std::string& line);

  int rank;
  int size;
  EndpointOptions options;
  Context context;
  ProtectionDomain domain;
  Memory memory;
  std::vector<std::unique_ptr<Queue>> queues;  ///< by slot; null where there is none
  std::vector<WindowDescription> windows;      ///< by rank
  std::vector<std::string> decisions;
};

void Endpoint::Impl::decide(const std::string& line) {
  if (std::find(decisions.begin(), decisions.end(), line) == decisions.end()) decisions.push_back(line);
}

void Endpoint::Impl::make_queues() {
  if (options.queues_per_peer < 1 || options.queues_per_peer > kMostQueues) {
    throw Error(ErrorKind::bad_argument, std::to_string(options.queues_per_peer) + " queues per peer",
                "It takes 1.." + std::to_string(kMostQueues));
  }
  queues.resize(slot(size, 0));
  bool shared_register = false;
  for (int peer = 0; peer < size; ++peer) {
    if (!has_queues_to(peer)) continue;
    for (int index = 0; index < options.queues_per_peer; ++index) {
      std::unique_ptr<Queue>& queue = queues[slot(peer, index)];
      if (options.kind == QueueKind::verbs) {
        queue = std::make_unique<VerbsQueue>(domain, options.verbs);
      } else {
        auto devx = std::make_unique<DevxQueue>(domain, options.devx);
        shared_register = shared_register || !devx->view().owns_register;
        queue = std::move(devx);
      }
    }
  }
  if (shared_register) {
    decide("doorbell register: shared by queues of this process, since the driver gave no more of their own");
  }
}

Blob Endpoint::Impl::describe() const {
  const EndpointHeader header{Be32(kMagic), Be32(static_cast<std::uint32_t>(options.queues_per_peer)),
                              Be32(options.connect_self ? 1 : 0)};
  Blob blob(sizeof header + WindowDescription::kEncodedBytes + queues.size() * QueueAddress::kEncodedBytes);
  std::byte* out = blob.data();
  std::memcpy(out, &header, sizeof header);
  out += sizeof header;
  const auto window = memory.window().encode();
  std::memcpy(out, window.data(), window.size());
  out += window.size();
  for (const auto& queue : queues) {
    if (queue != nullptr) {
      const auto address = queue->local_address().encode();
      std::memcpy(out, address.data(), address.size());
    }
    out += QueueAddress::kEncodedBytes;
  }
  return blob;
}

void Endpoint::Impl::take(int peer, const Blob& blob) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorKind::bad_argument,
                "rank " + std::to_string(peer) + "'s endpoint does not match: " + why,
                "Every rank must use the same version and options");
  };
  EndpointHeader header;
  constexpr std::size_t kHead = sizeof header + WindowDescription::kEncodedBytes;
  if (blob.size() < kHead) refuse("its description is too short");
  std::memcpy(&header, blob.data(), sizeof header);
  if (header.magic.get() != kMagic) refuse("its description has another format");
  if (header.queues_per_peer.get() != static_cast<std::uint32_t>(options.queues_per_peer)) {
    refuse("it has another number of queues per peer");
  }
  if ((header.connect_self.get() != 0) != options.connect_self) refuse("its connect_self differs");
  if (blob.size() != kHead + queues.size() * QueueAddress::kEncodedBytes)
    refuse("its description has another length");
  const std::span<const std::byte> rest = std::span(blob).subspan(sizeof header);
  windows.push_back(WindowDescription::decode(rest.first(WindowDescription::kEncodedBytes)));
  if (has_queues_to(peer)) connect(peer, rest.subspan(WindowDescription::kEncodedBytes));
}

void Endpoint::Impl::connect(int peer, std::span<const std::byte> addresses) {
  for (int index = 0; index < options.queues_per_peer; ++index) {
    // The peer's queue `index` to this rank is the other end of this rank's queue `index` to the peer.
    const auto raw =
        addresses.subspan(slot(rank, index) * QueueAddress::kEncodedBytes, QueueAddress::kEncodedBytes);
    const ConnectionPlan plan =
        queues[slot(peer, index)]->connect(QueueAddress::decode(raw), options.connection);
    for (const std::string& line : plan.decisions) decide(line);
  }
}

EndpointOptions EndpointOptions::from(const Environment& environment) {
  EndpointOptions options;
  options.context = ContextOptions::from(environment);
  ConnectionParameters& c = options.connection;
  c.service_level = environment.service_level.value_or(c.service_level);
  c.traffic_class = environment.traffic_class.value_or(c.traffic_class);
  c.ack_timeout = environment.ack_timeout.value_or(c.ack_timeout);
  c.retry_count = environment.retry_count.value_or(c.retry_count);
  c.rnr_retry = environment.rnr_retry.value_or(c.rnr_retry);
  options.timeout = environment.bootstrap_timeout;
  return options;
}

Endpoint::Endpoint(Bootstrap& bootstrap, const EndpointOptions& options)
    : Endpoint(bootstrap, Context::open(options.context), options) {}

Endpoint::Endpoint(Bootstrap& bootstrap, const Context& context, const EndpointOptions& options)
    : impl_(std::make_unique<Impl>(bootstrap, context, options)) {
  const auto made = context.decisions();
  impl_->decisions.assign(made.begin(), made.end());
  impl_->make_queues();
  const std::vector<Blob> blobs = bootstrap.all_gather(impl_->describe(), deadline_after(options.timeout));
  for (int peer = 0; peer < impl_->size; ++peer) impl_->take(peer, blobs[static_cast<std::size_t>(peer)]);
  // Nobody sends before every receiver is ready.
  bootstrap.barrier(deadline_after(options.timeout));
}

Endpoint::~Endpoint() = default;
Endpoint::Endpoint(Endpoint&&) noexcept = default;
Endpoint& Endpoint::operator=(Endpoint&&) noexcept = default;

int Endpoint::rank() const { return impl_->rank; }
int Endpoint::size() const { return impl_->size; }
const Context& Endpoint::context() const { return impl_->context; }
const ProtectionDomain& Endpoint::domain() const { return impl_->domain; }
const Memory& Endpoint::memory() const { return impl_->memory; }
const std::vector<std::string>& Endpoint::decisions() const { return impl_->decisions; }

const WindowDescription& Endpoint::window(int rank) const {
  if (rank < 0 || rank >= impl_->size) {
    throw Error(ErrorKind::bad_argument, "there is no rank " + std::to_string(rank),
                "Ranks are 0.." + std::to_string(impl_->size - 1));
  }
  return impl_->windows[static_cast<std::size_t>(rank)];
}

Queue& Endpoint::queue(int peer, int index) const {
  const bool exists = peer >= 0 && peer < impl_->size && index >= 0 &&
                      index < impl_->options.queues_per_peer && impl_->has_queues_to(peer);
  if (!exists) {
    throw Error(ErrorKind::bad_argument,
                "there is no queue " + std::to_string(index) + " to rank " + std::to_string(peer),
                "See queues_per_peer and connect_self");
  }
  return *impl_->queues[impl_->slot(peer, index)];
}

VerbsQueue& Endpoint::verbs_queue(int peer, int index) const {
  auto* verbs = dynamic_cast<VerbsQueue*>(&queue(peer, index));
  if (verbs == nullptr) {
    throw Error(ErrorKind::bad_argument, "the endpoint's queues are DEVX objects", "Use devx_queue()");
  }
  return *verbs;
}

DevxQueue& Endpoint::devx_queue(int peer, int index) const {
  auto* devx = dynamic_cast<DevxQueue*>(&queue(peer, index));
  if (devx == nullptr) {
    throw Error(ErrorKind::bad_argument, "the endpoint's queues are verbs queues", "Use verbs_queue()");
  }
  return *devx;
}

}  // namespace belfry::host

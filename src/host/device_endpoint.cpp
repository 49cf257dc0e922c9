#include "belfry/host/device_endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "belfry/host/endpoint.hpp"
#include "belfry/host/errors.hpp"
#include "belfry/port/byte_order.hpp"
#include "host/collective.hpp"
#include "host/device_admission.hpp"
#include "host/device_tables.hpp"
#include "host/doorbell_routing.hpp"

namespace belfry::host {

namespace {

/// Each rank's blob: this, then for each rank and index the address of the queue to it (all zero where there
/// is none).
struct Head {
  Be32 magic;
  Be32 queues_a_peer;
  Be32 self_queues;
  Be32 window_count;
};
static_assert(sizeof(Head) == 16);

constexpr std::uint32_t kMagic = 0x62666465;  // "bfde"
constexpr std::uint64_t kMostQueues = 65536;
constexpr std::uint64_t kIndexStep = 65536;
constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 30;  // what INIT2RTR sets (log_msg_max)

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::bad_argument, what, remedy);
}

void check_options(const DeviceEndpointOptions& o) {
  if (o.queues_a_peer < 1 || o.queues_a_peer > kMostQueues) {
    refuse(std::to_string(o.queues_a_peer) + " queues to each peer",
           "It takes 1.." + std::to_string(kMostQueues) + "; share queues between threads or blocks");
  }
  if (o.queues_a_register < 1) refuse("0 queues a register", "It takes 1 (each its own) or more");
  if (o.queues_a_register > 1 && o.doorbell == DoorbellMode::no_record) {
    refuse(
        "queues without a doorbell record on shared registers",
        "Queues that share one overwrite each other's doorbells, and without a record the device has nothing "
        "else to go by: set queues_a_register to 1, or doorbell to DoorbellMode::record");
  }
  if (o.first_index % kIndexStep != 0) {
    refuse(
        "a first index of " + std::to_string(o.first_index),
        "The device's 16-bit index starts at 0, so it must be a multiple of " + std::to_string(kIndexStep));
  }
}

/// The device's own limit. \return bytes
std::uint64_t message_limit(const Context& context) {
  return std::min<std::uint64_t>(context.port_attributes().max_msg_sz, kLargestMessage);
}

std::uint64_t choose_max_message(const Context& context, const DeviceEndpointOptions& o) {
  const std::uint64_t limit = message_limit(context);
  if (!o.max_message) return limit;
  if (*o.max_message < 1 || *o.max_message > limit) {
    refuse("a message limit of " + std::to_string(*o.max_message) + " B",
           "The device's is " + std::to_string(limit) + " B; it can only be lowered, to 1 B at least");
  }
  return *o.max_message;
}

Context open_together(Bootstrap& bootstrap, const DeviceEndpointOptions& o) {
  std::optional<Context> context;
  const auto open = [&] {
    context = Context::open(o.context);
    return Blob{};
  };
  exchange(bootstrap, "open its device", open, deadline_after(o.timeout));
  return *context;
}

template <class T>
void check_agree(const char* what, const std::vector<T>& values) {
  if (const auto rank = find_odd_rank(values)) {
    refuse(std::string(what) + ": " +
               describe_difference(*rank, std::to_string(values[rank->odd]),
                                   std::to_string(values[rank->usual])),
           "Every rank must use the same windows and number of queues");
  }
}

}  // namespace

struct DeviceEndpoint::Impl {
  Impl(const Windows& w, const DeviceEndpointOptions& o) : windows(w), options(o) {}

  const Context& context() const { return windows.domain().context(); }
  std::uint32_t queues_a_peer() const { return static_cast<std::uint32_t>(options.queues_a_peer); }
  std::size_t slots() const { return std::size_t{windows.pe_count()} * queues_a_peer(); }
  bool has_queues_to(std::uint32_t pe) const { return pe != windows.pe() || options.self_queues; }

  void make_queues();
  Blob describe() const;
  void check_peers(const std::vector<Blob>& blobs) const;
  void connect(const std::vector<Blob>& blobs);
  void decide(const std::string& line);
  void decide_queues();
  std::size_t slot_of(std::uint32_t peer, std::uint32_t index) const;

  Windows windows;
  DeviceEndpointOptions options;
  std::vector<std::unique_ptr<DevxQueue>> queues;  ///< by slot; null where there is none
  DeviceTables tables;
  device::EndpointView view;
  std::vector<std::string> decisions;
  std::unique_ptr<DoorbellRouting> doorbells;  ///< its thread rings the queues, so it goes before them
};

void DeviceEndpoint::Impl::decide(const std::string& line) {
  if (std::find(decisions.begin(), decisions.end(), line) == decisions.end()) decisions.push_back(line);
}

void DeviceEndpoint::Impl::make_queues() {
  check_options(options);
  const std::uint64_t max_message = choose_max_message(context(), options);
  const Placement placement = resolve(options.placement);
  DevxQueueOptions o;
  o.send_blocks = options.blocks;
  o.doorbell = options.doorbell;
  o.completions = options.completions;
  o.depth = options.depth;
  o.memory = placement.send_queue.memory;
  o.completion_memory = placement.completion_queue.memory;
  o.record_memory = placement.record.memory;

  queues.resize(slots());
  std::size_t made = 0;
  for (std::size_t slot = 0; slot < queues.size(); ++slot) {
    if (!has_queues_to(static_cast<std::uint32_t>(slot / queues_a_peer()))) continue;
    if (options.queues_a_register > 1 && made % options.queues_a_register == 0) {
      o.doorbell_register = DoorbellRegister(context());
    }
    queues[slot] = std::make_unique<DevxQueue>(windows.domain(), o);
    ++made;
  }
  doorbells = std::make_unique<DoorbellRouting>(context(), options.doorbell_path, placement,
                                                options.forwarder, queues);
  for (const std::string& line : doorbells->decisions()) decide(line);
  tables = DeviceTables(placement, windows, queues, queues_a_peer(), options.first_index, *doorbells);
  view = tables.view();
  view.max_message = max_message;
  decide_queues();
}

void DeviceEndpoint::Impl::decide_queues() {
  if (options.max_message) {
    decide("message limit " + format_bytes(*options.max_message) + ": requested (the device's is " +
           format_bytes(message_limit(context())) + ")");
  }
  if (options.queues_a_register > 1) {
    decide("doorbell registers: shared by up to " + std::to_string(options.queues_a_register) +
           " queues, as requested");
  } else if (std::any_of(queues.begin(), queues.end(),
                         [](const auto& q) { return q != nullptr && !q->view().owns_register; })) {
    decide(
        "doorbell registers: shared by queues of this process, since the driver gave no more of their own");
  }
}

Blob DeviceEndpoint::Impl::describe() const {
  const Head head{Be32(kMagic), Be32(queues_a_peer()), Be32(options.self_queues ? 1 : 0),
                  Be32(windows.count())};
  Blob blob(sizeof head + queues.size() * QueueAddress::kEncodedBytes);
  std::memcpy(blob.data(), &head, sizeof head);
  std::byte* out = blob.data() + sizeof head;
  for (const auto& queue : queues) {
    if (queue != nullptr) {
      const auto address = queue->local_address().encode();
      std::memcpy(out, address.data(), address.size());
    }
    out += QueueAddress::kEncodedBytes;
  }
  return blob;
}

void DeviceEndpoint::Impl::check_peers(const std::vector<Blob>& blobs) const {
  std::vector<std::uint32_t> numbers;
  std::vector<std::uint32_t> selves;
  std::vector<std::uint32_t> window_counts;
  for (std::size_t peer = 0; peer < blobs.size(); ++peer) {
    Head head{};
    if (blobs[peer].size() >= sizeof head) std::memcpy(&head, blobs[peer].data(), sizeof head);
    if (head.magic.get() != kMagic) {
      refuse("rank " + std::to_string(peer) + "'s endpoint is described in another format",
             "Every rank must run the same version of belfry and take the same steps");
    }
    numbers.push_back(head.queues_a_peer.get());
    selves.push_back(head.self_queues.get());
    window_counts.push_back(head.window_count.get());
  }
  check_agree("queues to each peer", numbers);
  check_agree("self queues", selves);
  check_agree("windows", window_counts);
  for (std::size_t peer = 0; peer < blobs.size(); ++peer) {
    if (blobs[peer].size() == sizeof(Head) + slots() * QueueAddress::kEncodedBytes) continue;
    refuse("rank " + std::to_string(peer) + "'s endpoint is described in another length",
           "Every rank must run the same version of belfry");
  }
}

void DeviceEndpoint::Impl::connect(const std::vector<Blob>& blobs) {
  for (std::size_t slot = 0; slot < queues.size(); ++slot) {
    if (queues[slot] == nullptr) continue;
    const std::size_t peer = slot / queues_a_peer();
    // The peer's queue of the same index to this PE is the other end.
    const std::size_t far = windows.pe() * std::size_t{queues_a_peer()} + slot % queues_a_peer();
    const auto raw =
        std::span(blobs[peer])
            .subspan(sizeof(Head) + far * QueueAddress::kEncodedBytes, QueueAddress::kEncodedBytes);
    const ConnectionPlan plan = queues[slot]->connect(QueueAddress::decode(raw), options.connection);
    for (const std::string& line : plan.decisions) decide(line);
  }
}

std::size_t DeviceEndpoint::Impl::slot_of(std::uint32_t peer, std::uint32_t index) const {
  if (peer >= windows.pe_count() || index >= queues_a_peer() || !has_queues_to(peer)) {
    refuse("there is no queue " + std::to_string(index) + " to PE " + std::to_string(peer),
           "See queues_a_peer and self_queues");
  }
  return std::size_t{peer} * queues_a_peer() + index;
}

DeviceEndpointOptions& DeviceEndpointOptions::meet(const device::Requirements& requirements) {
  doorbell = requirements.doorbell_mode;
  completions = requirements.completion_layout;
  return *this;
}

DeviceEndpointOptions DeviceEndpointOptions::from(const Environment& environment) {
  const EndpointOptions common = EndpointOptions::from(environment);
  DeviceEndpointOptions options;
  options.context = common.context;
  options.connection = common.connection;
  options.timeout = common.timeout;
  return options;
}

DeviceEndpoint::DeviceEndpoint(Bootstrap& bootstrap, const DeviceEndpointOptions& options)
    : DeviceEndpoint(bootstrap,
                     Windows(bootstrap, ProtectionDomain(open_together(bootstrap, options)), options.windows,
                             options.timeout),
                     options) {}

DeviceEndpoint::DeviceEndpoint(Bootstrap& bootstrap, const Windows& windows,
                               const DeviceEndpointOptions& options)
    : impl_(std::make_unique<Impl>(windows, options)) {
  Impl& impl = *impl_;
  for (const std::string& line : impl.context().decisions()) impl.decide(line);
  for (const std::string& line : windows.decisions()) impl.decide(line);
  const auto make = [&] {
    impl.make_queues();
    return impl.describe();
  };
  const std::vector<Blob> blobs =
      exchange(bootstrap, "make its queues", make, deadline_after(options.timeout));
  // All ranks find the same here.
  impl.check_peers(blobs);
  const auto connect = [&] {
    impl.connect(blobs);
    return Blob{};
  };
  // Nobody sends before every receiver is ready.
  exchange(bootstrap, "connect its queues", connect, deadline_after(options.timeout));
}

DeviceEndpoint::~DeviceEndpoint() = default;
DeviceEndpoint::DeviceEndpoint(DeviceEndpoint&&) noexcept = default;
DeviceEndpoint& DeviceEndpoint::operator=(DeviceEndpoint&&) noexcept = default;

const device::EndpointView& DeviceEndpoint::view() const { return impl_->view; }
const Windows& DeviceEndpoint::windows() const { return impl_->windows; }
const Context& DeviceEndpoint::context() const { return impl_->context(); }
const std::vector<std::string>& DeviceEndpoint::decisions() const { return impl_->decisions; }
DoorbellPath DeviceEndpoint::doorbell_path() const { return impl_->doorbells->path(); }
bool DeviceEndpoint::forwarder_alive() const {
  const DoorbellForwarder* forwarder = impl_->doorbells->forwarder();
  return forwarder != nullptr && forwarder->alive();
}
std::exception_ptr DeviceEndpoint::forwarder_failure() const {
  const DoorbellForwarder* forwarder = impl_->doorbells->forwarder();
  return forwarder != nullptr ? forwarder->failure() : nullptr;
}

void DeviceEndpoint::admit(const device::Requirements& requirements) const {
  const Placement placement = resolve(impl_->options.placement);
  AdmissionFacts facts{impl_->tables.queues(), impl_->queues_a_peer(), {}, impl_->view.max_inline, {}};
  for (const auto& queue : impl_->queues)
    facts.uar_pages.push_back(queue != nullptr ? queue->view().uar_page : 0);
  for (std::uint32_t w = 0; w < impl_->windows.count(); ++w)
    facts.windows.push_back(kind_for(placement.tables, impl_->windows.kind(w), impl_->windows.gpu(w)));
  const std::vector<Refusal> refusals = find_refusals(requirements, facts);
  if (refusals.empty()) return;
  std::string what = "the endpoint does not meet the policy: ";
  std::string remedy;
  for (const Refusal& refusal : refusals) {
    what += (&refusal == &refusals.front() ? "" : "; ") + refusal.what;
    remedy += (remedy.empty() ? "" : ". ") + refusal.remedy;
  }
  throw Error(ErrorKind::unsupported, what, remedy);
}

const device::SendQueue& DeviceEndpoint::send_queue(std::uint32_t peer, std::uint32_t index) const {
  return impl_->tables.queues()[impl_->slot_of(peer, index)];
}
DevxQueue& DeviceEndpoint::queue(std::uint32_t peer, std::uint32_t index) const {
  return *impl_->queues[impl_->slot_of(peer, index)];
}
device::Fault DeviceEndpoint::fault(std::uint32_t peer, std::uint32_t index) const {
  return impl_->tables.fault(impl_->slot_of(peer, index));
}

}  // namespace belfry::host

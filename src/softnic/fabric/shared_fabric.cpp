#include "softnic/fabric/shared_fabric.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "softnic/fabric/random.hpp"

namespace belfry::softnic {
namespace {

/// How often a port that polls looks at its sockets: for new peers, and for peers that are gone. Long
/// against the look's one system call, short against any transport timer.
constexpr std::chrono::microseconds kServiceInterval{20};

/// A port looks at the clock once in so many polls, when busy and when idle.
constexpr unsigned kBusyPollsPerLook = 32;
constexpr unsigned kIdlePollsPerLook = 8;

const SharedFabricOptions& checked(const SharedFabricOptions& options) {
  if (!valid_ring_bytes(options.ring_bytes)) {
    throw std::system_error(EINVAL, std::system_category(),
                            "softnic fabric: a ring cannot have " + std::to_string(options.ring_bytes) +
                                " bytes; choose a power of two from " + std::to_string(kRingBytesLeast) +
                                " to " + std::to_string(kRingBytesMost));
  }
  return options;
}

int make_wake_descriptor() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    throw std::system_error(
        errno, std::system_category(),
        "softnic fabric: cannot create an event descriptor (if there are too many open files, "
        "raise 'ulimit -n')");
  }
  return fd;
}

std::string because(const char* what, int error, const char* remedy) {
  return std::string(what) + " (" + std::system_category().message(error) + "); " + remedy;
}

}  // namespace

SharedFabric::SharedFabric(const SharedFabricOptions& options)
    : options_(checked(options)),
      names_(options.fabric),
      wake_(make_wake_descriptor()),
      random_(mix(seed_or_system(options.seed))),
      incoming_(watch_, counters_),
      outgoing_(watch_, names_, counters_, system_seed(), options.ring_bytes, options.retry) {
  if (const int error = watch_.add(wake_.get(), EPOLLIN, {WatchKind::wake, 0})) {
    throw std::system_error(
        error, std::system_category(),
        "softnic fabric: cannot watch an event descriptor (see fs.epoll.max_user_watches)");
  }
}

SharedFabric::~SharedFabric() = default;

std::string SharedFabric::obstacle() {
  try {
    const BlockNames names("probe." + std::to_string(getpid()) + "." + std::to_string(system_seed()));
    const auto listener = names.claim(1);
    if (!listener) {
      return because("abstract AF_UNIX sockets cannot be created", listener.error(),
                     "allow AF_UNIX SOCK_SEQPACKET sockets in the sandbox, or raise 'ulimit -n'");
    }
    const auto connection = names.connect(1);
    if (!connection) {
      return because("a socket of this process's own cannot be reached", connection.error(),
                     "allow connect() and SO_PEERCRED on AF_UNIX sockets in the sandbox");
    }
    const auto ring = create_ring(kRingBytesLeast);
    if (!ring) {
      return because("sealed memory cannot be created", ring.error(),
                     "allow memfd_create() and its seals in the sandbox");
    }
    const SharedFabric port{SharedFabricOptions{}};
  } catch (const std::system_error& error) {
    return error.what();
  }
  return {};
}

Result<std::uint32_t> SharedFabric::claim_block() {
  random_ = mix(random_);
  // Block 0 holds the QPNs 0 and 1 that InfiniBand reserves; it is never handed out.
  const auto first = static_cast<std::uint32_t>(random_ % (kQpnBlocks - 1));
  for (std::uint32_t i = 0; i < kQpnBlocks - 1; ++i) {
    const std::uint32_t block = 1 + (first + i) % (kQpnBlocks - 1);
    if (own_.test(block)) continue;
    auto listener = names_.claim(block);
    if (!listener && listener.error() == EADDRINUSE) continue;
    if (!listener) return Errno{listener.error()};
    if (const int error = incoming_.add_listener(std::move(*listener))) return Errno{error};
    own_.set(block);
    return block;
  }
  return Errno{ENOSPC};
}

SendOutcome SharedFabric::send(std::uint32_t destination_qpn, const FrameHeader& header,
                               std::span<const FramePart> parts) {
  const std::uint32_t block = destination_qpn >> kQpnBlockBits;
  if (block >= kQpnBlocks || !well_formed(header, parts, kMaxFrameBytes)) return SendOutcome::unreachable;
  if (own_.test(block)) return send_to_self(header, parts);
  if (block == 0) return SendOutcome::unreachable;
  return outgoing_.send(block, header, parts);
}

SendOutcome SharedFabric::send_to_self(const FrameHeader& header, std::span<const FramePart> parts) {
  if (!loop_) {
    const auto memory = create_ring(options_.ring_bytes);
    if (!memory) return SendOutcome::full;
    auto in = RingMapping::map((*memory).get(), options_.ring_bytes, RingMapping::Side::producer);
    auto out = RingMapping::map((*memory).get(), options_.ring_bytes, RingMapping::Side::consumer);
    if (!in || !out) return SendOutcome::full;
    loop_.reset(new Loop{RingProducer(std::move(*in)), RingConsumer(std::move(*out))});
  }
  return loop_->producer.put(header, parts) == PutOutcome::done ? SendOutcome::sent : SendOutcome::full;
}

std::size_t SharedFabric::poll(FrameReceiver& receiver, std::size_t budget) {
  std::size_t done = loop_ ? loop_->consumer.deliver(receiver, budget) : 0;
  done += incoming_.deliver(receiver, budget - done);
  if (service_due(done)) [[unlikely]]
    service();
  return done;
}

bool SharedFabric::service_due(std::size_t delivered) {
  if (++polls_ % (delivered != 0 ? kBusyPollsPerLook : kIdlePollsPerLook) != 0) return false;
  return Clock::now() - serviced_ >= kServiceInterval;
}

/// Looks at every socket that has something to say. \return whether wake() has been called since
/// wait() last took that up
bool SharedFabric::service() {
  bool woken = false;
  for (const WatchEvent& event : watch_.ready()) {
    switch (event.tag.kind) {
      case WatchKind::wake:
        woken = true;
        break;
      case WatchKind::listener:
        incoming_.accept_peers(static_cast<int>(event.tag.value));
        break;
      case WatchKind::incoming:
        incoming_.socket_ready(static_cast<int>(event.tag.value));
        break;
      case WatchKind::outgoing:
        outgoing_.hung_up(event.tag.value);
        break;
    }
  }
  incoming_.reap();
  serviced_ = Clock::now();
  return woken;
}

void SharedFabric::wait(std::chrono::nanoseconds timeout) {
  const bool quiet = incoming_.announce_sleep() && (!loop_ || loop_->consumer.empty());
  if (quiet) {
    ++counters_.sleeps;
    // Most sleeps of an idle port end with their time: no second system call then.
    if (!watch_.wait(timeout)) {
      incoming_.announce_awake();
      return;
    }
  }
  incoming_.announce_awake();
  // Only wait() takes a wake() up: poll() would take one that is meant for the wait() behind it.
  if (service()) {
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
  }
}

void SharedFabric::wake() { eventfd_write(wake_.get(), 1); }

}  // namespace belfry::softnic

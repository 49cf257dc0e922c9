#pragma once
/// \file
/// One or two NICs driven by hand, with queues and keyed memory, for the harnesses of the engine. All
/// memory is allocated to the byte, so that ASan sees the first byte beyond it; memory that no key
/// grants for writing is watched. The clock is ours, so that timers run out when the input says so.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/wqe.hpp"
#include "fuzz/harness.hpp"
#include "softnic/fabric/memory_fabric.hpp"
#include "softnic/firmware/nic.hpp"

namespace belfry::fuzz {

struct FreeMemory {
  void operator()(std::uint8_t* p) const { std::free(p); }
};
using Memory = std::unique_ptr<std::uint8_t, FreeMemory>;

/// Zeroed memory of exactly `bytes`. \param alignment a power of two
Memory allocate(std::size_t bytes, std::size_t alignment = 64);

struct Setup {
  bool two_nics = false;  ///< the QPs' ends are on different NICs
  bool direct = true;
  softnic::LinkLayer link = softnic::LinkLayer::infiniband;
  softnic::FaultPlan faults;
  unsigned log_send = 4;     ///< blocks
  unsigned log_receive = 3;  ///< entries of 64 B
  unsigned log_cq = 5;
  unsigned cqe_bytes = 64;
  bool collapsed = false;
  bool ignore_overrun = false;
  bool no_record = false;
  unsigned mtu = 256;

  /// A choice of 0 is the default each time.
  static Setup read(Reader& r);
};

/// What a key of the world grants.
enum class Region : unsigned { everything, shifted, nothing, remote_read, other_pd, destroyed, count };

/// Takes frames and forgets them.
struct DroppingReceiver final : softnic::FrameReceiver {
  void receive(const softnic::FrameHeader&, const std::byte*) override {}
};

/// The events a NIC reports, counted.
struct CountingSink final : softnic::EventSink {
  void completion(std::uint32_t) override { ++completions; }
  void async(softnic::AsyncEvent, std::uint32_t) override { ++events; }
  unsigned completions = 0;
  unsigned events = 0;
};

struct Queue {
  std::uint32_t number = 0;
  std::uint32_t cq = 0;
  unsigned side = 0;
  Memory send;
  Memory receive;
  Memory record;
  Memory cq_ring;
  Memory cq_record;
  unsigned log_cq = 0;
  std::uint64_t producer = 0;
  std::uint32_t receive_producer = 0;
  std::uint64_t consumed = 0;
};

class EngineWorld {
 public:
  static constexpr std::size_t kRegionBytes = 5001;  ///< odd on purpose
  static constexpr std::size_t kMargin = 80;         ///< unkeyed bytes at both ends of a region
  static constexpr unsigned kQueues = 3;             ///< 0 and 1 face each other, 2 faces itself

  explicit EngineWorld(const Setup& setup);

  // One step each, with its choices; zeros are a correct use.
  void post(Reader& r);
  void post_raw(Reader& r);
  void ring(Reader& r);
  void post_receive(Reader& r);
  void consume(Reader& r);
  void modify(Reader& r);
  void change_keys(Reader& r);
  void advance(Reader& r);
  void corrupt(Reader& r);
  void recreate(Reader& r);
  void resize(Reader& r);
  void poll(Reader& r);

  /// Puts a port of ours into the fabric and connects queue 0 to it. What arrives there is dropped.
  void add_outsider();
  /// Sends queue 0, or whichever `qpn` says, a frame from the outsider.
  void send_as_outsider(std::uint32_t qpn, softnic::FrameHeader header, const Bytes& frame);
  std::uint32_t outsider_qpn() const { return outsider_qpn_; }

  void poll_times(unsigned times);
  /// Polls, and lets timers run out, until nothing happens; aborts where that never comes.
  void settle();
  /// Aborts where memory changed that no key opens for writing.
  void check() const;

  /// Connects a queue to a QPN, through every state to RTS.
  void connect(unsigned queue, std::uint32_t destination_qpn);
  Queue& queue(unsigned index) { return queues_[index]; }
  const softnic::DeviceIdentity& device(unsigned side) const { return sides_[side].nic->device(0); }
  softnic::Nic& nic(unsigned side) { return *sides_[side].nic; }
  std::uint32_t key(unsigned side, Region region) const {
    return sides_[side].keys[static_cast<std::size_t>(region)];
  }
  /// The address that work requests use for the first keyed byte of a region.
  std::uint64_t address(Region region) const;
  std::uint32_t any_key(Reader& r, unsigned side) const;
  std::uint64_t any_address(Reader& r) const;

 private:
  struct Side {
    std::unique_ptr<softnic::Nic> nic;
    Memory page;
    std::uint32_t uar = 0;
    std::uint32_t pd = 0;
    std::uint32_t other_pd = 0;
    std::uint32_t keys[static_cast<std::size_t>(Region::count)] = {};
  };

  void make_side(unsigned side);
  void make_key(unsigned side, Region region);
  void make_queue(unsigned index);
  void make_cq(Queue& q);
  void doorbell(Queue& q, std::uint16_t index, std::uint32_t qpn, unsigned half, unsigned what);
  std::size_t poll_all();
  Queue& any_queue(Reader& r) { return queues_[r.pick(kQueues)]; }
  void step_to(Queue& q, softnic::QpState state, std::uint32_t destination_qpn);

  Setup setup_;
  std::shared_ptr<softnic::MemoryHub> hub_;
  Memory regions_[static_cast<std::size_t>(Region::count)];
  CountingSink sink_;
  std::unique_ptr<softnic::Fabric> outsider_;
  std::uint32_t outsider_qpn_ = 0;
  Side sides_[2];
  Queue queues_[kQueues];
};

}  // namespace belfry::fuzz

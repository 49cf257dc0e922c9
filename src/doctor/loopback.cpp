#include "doctor/loopback.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <functional>
#include <string>

#include "belfry/host/completion.hpp"
#include "belfry/host/devx_queue.hpp"
#include "belfry/host/post.hpp"
#include "belfry/host/verbs_queue.hpp"
#include "belfry/port/memory.hpp"
#include "belfry/wire/cqe.hpp"
#include "belfry/wire/doorbell.hpp"
#include "belfry/wire/syndrome.hpp"
#include "belfry/wire/wqe.hpp"

namespace belfry::doctor {
namespace {

constexpr unsigned kRepeats = 32;
constexpr std::size_t kPage = 4096;
constexpr auto kPatience = std::chrono::seconds(5);

/// Source in the first page, target in the second.
struct Payload {
  explicit Payload(const host::ProtectionDomain& domain)
      : memory(host::Memory::allocate(domain, 2 * kPage)),
        source(memory.data()),
        target(memory.data() + kPage) {}

  void fill(unsigned round) {
    for (unsigned i = 0; i < kProofBytes; ++i) source[i] = static_cast<std::byte>(i * 7 + round * 31 + 1);
    std::memset(target, 0, kPage);
  }
  /// Also what lies behind the payload has to be as it was.
  bool arrived() const {
    return std::memcmp(source, target, kProofBytes) == 0 &&
           std::all_of(target + kProofBytes, target + kPage, [](std::byte b) { return b == std::byte{0}; });
  }

  host::Memory memory;
  std::byte* source;
  std::byte* target;
};

/// Writes WQEs of one DEVX queue by hand.
class DevxWriter {
 public:
  DevxWriter(const host::DevxQueue& queue, const Payload& payload) : view_(queue.view()), payload_(payload) {}

  /// Posts one WRITE, rings and waits. Throws host::Error.
  void write() {
    post();
    ring();
    wait();
  }

 private:
  struct Wqe {
    wire::ControlSegment control;
    wire::RemoteAddressSegment remote;
    wire::DataSegment data;
  };
  static_assert(sizeof(Wqe) == 48);

  void post() {
    constexpr auto kSegments = static_cast<std::uint32_t>(sizeof(Wqe) / wire::kSegmentBytes);
    Wqe wqe{};
    wqe.control = wire::make_control(wire::WqeOpcode::rdma_write, producer_, view_.qpn, kSegments,
                                     wire::kWqeCompletionAlways);
    wqe.remote.address.set(reinterpret_cast<std::uint64_t>(payload_.target));
    wqe.remote.rkey.set(payload_.memory.rkey());
    wqe.data = {Be32(kProofBytes), Be32(payload_.memory.lkey()),
                Be64(reinterpret_cast<std::uint64_t>(payload_.source))};
    std::memcpy(view_.send_queue + (producer_ & (view_.send_blocks - 1)) * wire::kBlockBytes, &wqe,
                sizeof wqe);
    control_ = wqe.control;
    ++producer_;
  }

  void ring() const {
    // The NIC reads the block count with DMA: release orders the WQE before it, the doorbell store both.
    port::store_release<port::Scope::system>(reinterpret_cast<std::uint32_t*>(&view_.record->send),
                                             wire::record_word(producer_).raw());
    port::store_doorbell(static_cast<std::uint64_t*>(view_.uar_register),
                         wire::send_doorbell(control_.opmod_index_opcode, control_.qpn_ds));
  }

  void wait() {
    const host::CompletionRing& ring = view_.send_completions;
    wire::Cqe& entry = ring.entries[consumer_ & (ring.count - 1)];
    const auto log_entries = static_cast<std::uint32_t>(std::countr_zero(ring.count));
    std::atomic_ref<std::uint8_t> op_own(entry.op_own);
    const host::Deadline deadline = host::deadline_after(kPatience);
    while (!wire::cqe_ready(op_own.load(std::memory_order_acquire), consumer_, log_entries)) {
      if (host::Clock::now() < deadline) continue;
      throw host::Error(
          host::ErrorKind::timed_out, "no completion within 5 s of the doorbell",
          "the doorbell did not reach the NIC, or its memory accesses fault: `dmesg | grep -i -e mlx5 "
          "-e iommu -e DMAR`");
    }
    ++consumer_;
    if (entry.opcode() == wire::CqeOpcode::requester) return;
    wire::ErrorCqe error;
    std::memcpy(&error, &entry, sizeof error);
    throw host::Error(host::ErrorKind::completion,
                      std::string("the WQE completed in error: ") +
                          wire::syndrome_name(static_cast<wire::Syndrome>(error.syndrome)) + " (syndrome " +
                          std::to_string(error.syndrome) + ", vendor syndrome " +
                          std::to_string(error.vendor_syndrome) + ")",
                      "`dmesg | grep -i mlx5`");
  }

  host::DevxQueueView view_;
  const Payload& payload_;
  wire::ControlSegment control_{};
  std::uint64_t producer_ = 0;
  std::uint64_t consumer_ = 0;
};

/// Throws host::Error.
void write_by_verbs(const host::VerbsQueue& queue, const Payload& payload) {
  const host::WindowDescription window = payload.memory.window();
  if (const int code =
          host::post_write(queue, host::slice(payload.memory, 0, kProofBytes), host::at(window, kPage), 1);
      code != 0) {
    throw host::Error(host::ErrorKind::system, "ibv_post_send failed", "`dmesg | grep -i mlx5`", code);
  }
  const host::OnePoll one = host::poll_one(queue.send_cq(), host::deadline_after(kPatience));
  if (one.status == host::PollStatus::failed) throw host::completion_error(one.completion);
  if (one.status == host::PollStatus::done) return;
  throw host::Error(
      host::ErrorKind::timed_out, "no completion within 5 s of posting",
      "the doorbell did not reach the NIC, or its memory accesses fault: `dmesg | grep -i -e mlx5 -e "
      "iommu -e DMAR`");
}

std::int64_t time_of(const std::function<void()>& write) {
  const auto begin = host::Clock::now();
  write();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(host::Clock::now() - begin).count();
}

/// Writes and checks kRepeats + 1 times.
void repeat(Proof& proof, Payload& payload, const std::function<void()>& write) {
  std::vector<std::int64_t> times;
  for (unsigned round = 0; round <= kRepeats; ++round) {
    payload.fill(round);
    times.push_back(time_of(write));
    if (payload.arrived()) continue;
    proof.wrong_payload = true;
    proof.problem = "round " + std::to_string(round) + " completed, and the target is not what was sent";
    return;
  }
  proof.first_ns = times.front();
  std::sort(times.begin() + 1, times.end());
  proof.median_ns = times[1 + kRepeats / 2];
  proof.repeats = kRepeats;
}

/// Makes two queues and connects them. `prove` gets the first.
template <class Queue, class Options>
Proof prove_queue(const host::Context& context, const char* name, const Options& options,
                  const std::function<void(Proof&, Queue&, Payload&)>& prove) {
  Proof proof;
  proof.queue = name;
  try {
    const host::ProtectionDomain domain(context);
    Payload payload(domain);
    Queue here(domain, options);
    Queue there(domain, options);
    const host::ConnectionParameters parameters;
    here.connect(there.local_address(), parameters);
    there.connect(here.local_address(), parameters);
    prove(proof, here, payload);
  } catch (const host::Error& error) {
    proof.problem = error.message();
    proof.remedy = error.remedy();
  } catch (const std::exception& error) {
    proof.problem = error.what();
  }
  return proof;
}

}  // namespace

std::vector<Proof> prove_loopback(const host::Context& context) {
  std::vector<Proof> proofs;
  host::VerbsQueueOptions verbs;
  verbs.send_depth = 16;
  verbs.receive_depth = 1;
  proofs.push_back(prove_queue<host::VerbsQueue>(
      context, "verbs", verbs, [](Proof& proof, host::VerbsQueue& queue, Payload& payload) {
        repeat(proof, payload, [&] { write_by_verbs(queue, payload); });
      }));
  if (!context.devx().available) return proofs;
  host::DevxQueueOptions devx;
  devx.send_blocks = 16;
  proofs.push_back(prove_queue<host::DevxQueue>(context, "DEVX", devx,
                                                [](Proof& proof, host::DevxQueue& queue, Payload& payload) {
                                                  DevxWriter writer(queue, payload);
                                                  repeat(proof, payload, [&] { writer.write(); });
                                                }));
  return proofs;
}

}  // namespace belfry::doctor

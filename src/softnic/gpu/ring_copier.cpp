#include "softnic/gpu/ring_copier.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "belfry/port/memory.hpp"
#include "softnic/firmware/atomic_result.hpp"

namespace belfry::softnic {

namespace {

constexpr std::size_t kBetweenAt = kGpuStagingBytes - kBetweenBytes;

constexpr std::uint32_t kMostRests = 64;
constexpr std::uint32_t kTrustedAgain = 1000;
/// The kernel can leave as the command comes.
constexpr std::uint32_t kAtomicTries = 4;

std::uint64_t bits_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

RingCopier::RingCopier(std::unique_ptr<GpuCopier> copies, std::unique_ptr<GpuCopierKernel> kernel,
                       const RingCopierOptions& options)
    : copies_(std::move(copies)), kernel_(std::move(kernel)), options_(options), rest_(options.rest) {
  if (kernel_ != nullptr) ring_ = &kernel_->ring();
}

bool RingCopier::to_gpu(void* to, const void* staged, std::size_t bytes) {
  if (bytes <= kKernelUploadBytes && is_ready() && copies_->holds(to, bytes)) {
    Command c;
    c.content[0] = bits_of(to);
    if (bytes <= kInlinePutBytes) {
      c.word = CopyWord::make(CopyKind::put, static_cast<std::uint32_t>(bytes));
      std::memcpy(&c.content[1], staged, bytes);
    } else {
      c.word = CopyWord::make(CopyKind::copy, static_cast<std::uint32_t>(bytes));
      c.content[1] = bits_of(staged);
    }
    const Outcome outcome = serve(c);
    if (outcome != Outcome::none) return outcome == Outcome::done;
  }
  return !stuck_ && copies_->to_gpu(to, staged, bytes);
}

bool RingCopier::from_gpu(void* staged, const void* from, std::size_t bytes) {
  if (bytes <= kBetweenBytes && is_ready() && copies_->holds(from, bytes)) {
    Command c;
    if (bytes <= kInlineGetBytes) {
      c.word = CopyWord::make(CopyKind::get, static_cast<std::uint32_t>(bytes));
      c.content[0] = bits_of(from);
      c.answers = static_cast<std::uint32_t>((bytes + 7) / 8);
    } else {
      c.word = CopyWord::make(CopyKind::fetch, static_cast<std::uint32_t>(bytes));
      c.content[0] = bits_of(staged);
      c.content[1] = bits_of(from);
    }
    const Outcome outcome = serve(c);
    if (outcome == Outcome::stuck) return false;
    if (outcome == Outcome::done) {
      if (c.word.kind() == CopyKind::get) {
        std::uint64_t content[kCopyUnits];
        for (std::uint32_t i = 0; i < c.answers; ++i) content[i] = port::load_16(&answer().units[i]).low;
        std::memcpy(staged, content, bytes);
      }
      return true;
    }
  }
  return !stuck_ && copies_->from_gpu(staged, from, bytes);
}

bool RingCopier::between(void* to, const void* from, std::size_t bytes) {
  if (bytes <= kBetweenBytes && is_ready() && copies_->holds(to, bytes) && copies_->holds(from, bytes)) {
    Command c;
    c.word = CopyWord::make(CopyKind::copy, static_cast<std::uint32_t>(bytes));
    c.content[0] = bits_of(to);
    c.content[1] = bits_of(from);
    const Outcome outcome = serve(c);
    if (outcome != Outcome::none) return outcome == Outcome::done;
  }
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  while (bytes != 0 && !stuck_) {
    const std::size_t some = std::min(bytes, kBetweenBytes);
    unsigned char* const staged = staging() + kBetweenAt;
    if (!copies_->from_gpu(staged, in, some) || !copies_->to_gpu(out, staged, some)) return false;
    in += some;
    out += some;
    bytes -= some;
  }
  return bytes == 0;
}

bool RingCopier::update(void* at, wire::WqeOpcode opcode, const AtomicOperands& o, std::uint64_t* former) {
  for (std::uint32_t i = 0; i < kAtomicTries && copies_->holds(at, o.bytes); ++i) {
    if (!is_ready(Need::kernel_alone) && !await_admission()) break;
    Command c;
    c.word = CopyWord::make_atomic(static_cast<std::uint32_t>(opcode), o.bytes);
    c.content[0] = bits_of(at);
    c.content[1] = o.swap_or_add;
    c.content[2] = o.compare;
    c.content[3] = o.swap_mask;
    c.content[4] = o.compare_mask;
    const Outcome outcome = serve(c);
    if (outcome == Outcome::stuck) return false;
    if (outcome == Outcome::done) {
      *former = port::load_16(&answer().units[0]).low;
      return true;
    }
  }
  return update_by_copies(at, opcode, o, former);
}

bool RingCopier::update_by_copies(void* at, wire::WqeOpcode opcode, const AtomicOperands& o,
                                  std::uint64_t* former) {
  unsigned char* const staged = staging() + kBetweenAt;
  if (stuck_ || !copies_->from_gpu(staged, at, o.bytes)) return false;
  std::uint64_t old = 0;  // the lower half of 8 B is the first 4
  std::memcpy(&old, staged, o.bytes);
  const std::uint64_t result = o.bytes == 4 ? result_of_atomic(opcode, o, static_cast<std::uint32_t>(old))
                                            : result_of_atomic(opcode, o, old);
  *former = old;
  if (result == old) return true;
  std::memcpy(staged, &result, o.bytes);
  return copies_->to_gpu(at, staged, o.bytes);
}

/// Whether the kernel serves. Where copies come often enough for it to stay it is started for those that
/// follow; CUDA's copy of what is in hand takes less than its start.
bool RingCopier::is_ready(Need need) {
  if (kernel_ == nullptr || stuck_) return false;
  now_ = Clock::now();
  const Clock::duration since = now_ - last_;
  last_ = now_;
  if (now_ < rests_until_ && need != Need::kernel_alone) return false;
  if (launched_ && has_ended()) launched_ = alive_ = false;
  if (!launched_ && (since < options_.idle || need == Need::kernel_alone)) launch();
  if (launched_ && !alive_) alive_ = std::atomic_ref(ring_->alive).load(std::memory_order_acquire) == launch_;
  return alive_;
}

bool RingCopier::has_ended() {
  return std::atomic_ref(ring_->ended).load(std::memory_order_acquire) == launch_;
}

void RingCopier::launch() {
  if (!kernel_->is_over()) return;  // it has said that it ends, and is about to
  CopierLaunch launch;
  launch.idle_ns = static_cast<std::uint64_t>(options_.idle.count());
  launch.stay_ns = static_cast<std::uint64_t>(options_.stay.count());
  launch.first = next_copy_tag(tag_);
  launch_ = launch_ == ~0u ? 1 : launch_ + 1;
  launch.launch = launch_;
  if (kernel_->launch(launch)) {
    launched_ = true;
  } else {
    kernel_ = nullptr;  // CUDA seldom recovers, and its own copies will say why
  }
}

bool RingCopier::await_admission() {
  const Clock::time_point begin = now_;
  while (kernel_ != nullptr && !stuck_ && awaited_ != launch_ && now_ - begin < options_.admission) {
    if (is_ready(Need::kernel_alone)) return true;
  }
  awaited_ = launch_;
  return false;
}

/// \pre the kernel serves
RingCopier::Outcome RingCopier::serve(const Command& command) {
  tag_ = next_copy_tag(tag_);
  CopyLine& line = ring_->commands[copy_slot(tag_)];
  // What the command names is stored before it.
  port::fence<port::Scope::system>();
  for (std::uint32_t i = command.word.units(); i-- != 0;)
    port::store_16(&line.units[i], copy_unit(command.content[i], tag_, command.word));
  const Outcome outcome = await(command.answers);
  port::fence<port::Scope::system>();
  if (outcome == Outcome::done) ++served_;
  return outcome;
}

RingCopier::Outcome RingCopier::await(std::uint32_t units) {
  const CopyLine& line = answer();
  std::uint32_t seen = 0;
  const auto look = [&] {
    while (seen < units && copy_tag(port::load_16(&line.units[seen])) == tag_) ++seen;
    return seen == units;
  };
  for (std::uint32_t turns = 1;; ++turns) {
    if (look()) {
      note_time(Clock::now() - now_);
      return Outcome::done;
    }
    if (turns % 64 != 0) continue;
    if (has_ended()) {
      // It answers before it says so. What it has not seen nobody will: the next launch begins behind it.
      launched_ = alive_ = false;
      return look() ? Outcome::done : Outcome::none;
    }
    const Clock::duration took = Clock::now() - now_;
    if (took > options_.answer) return look() ? Outcome::done : give_up();
    if (took > options_.slow / 4) sched_yield();
  }
}

/// A kernel that waits for its turns on the GPU is slower than CUDA's copies, which do not.
void RingCopier::note_time(Clock::duration took) {
  if (took < options_.slow) {
    if (++in_time_ == kTrustedAgain) rest_ = options_.rest;
    return;
  }
  in_time_ = 0;
  rests_until_ = now_ + took + rest_;
  rest_ = std::min<Clock::duration>(2 * rest_, kMostRests * options_.rest);
}

/// The command is on its way to a kernel that does not answer. Where that is gone CUDA may do it instead;
/// else nothing may: the kernel could still do it, later than what follows.
RingCopier::Outcome RingCopier::give_up() {
  launched_ = alive_ = false;
  if (kernel_->is_over()) return Outcome::none;
  stuck_ = true;
  error_ = "the copier's kernel did not answer in time";
  return Outcome::stuck;
}

}  // namespace belfry::softnic

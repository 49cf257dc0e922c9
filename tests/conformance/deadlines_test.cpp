// A NIC that says nothing: queues that are full, calls that must end all the same, and what happens when it
// speaks again. And arguments that are refused before anything is posted.

#include "conformance/configurations.hpp"
#include "conformance/kernels/calls.hpp"

namespace belfry::conformance {
namespace {

using device::Announce;
using device::Status;

constexpr std::uint32_t kBlocks = 32;

template <class Configuration>
class Silence : public Case<Configuration> {
 protected:
  using Endpoint = typename Configuration::Endpoint;
  using View = typename Endpoint::View;

  static WorldOptions options() {
    WorldOptions o;
    o.endpoint.blocks = kBlocks;
    return o;
  }
  static Report fill(const View& view, std::uint64_t first, std::uint32_t most, port::Timeout timeout,
                     Announce announce = Announce::now) {
    Array<Report> reports(1);
    Fill<Endpoint> kernel;
    kernel.view = view;
    kernel.words = {kData, 0};
    kernel.first = first;
    kernel.most = most;
    kernel.announce = announce;
    kernel.timeout = timeout;
    kernel.reports = reports.data();
    Runner::launch({1, 1}, kernel);
    return reports[0];
  }
  static Report call_once(const View& view, Call which, const CallArguments& arguments,
                          port::Timeout timeout) {
    Array<Report> reports(1);
    OneCall<Endpoint> kernel;
    kernel.view = view;
    kernel.which = which;
    kernel.arguments = arguments;
    kernel.timeout = timeout;
    kernel.reports = reports.data();
    Runner::launch({1, 1}, kernel);
    return reports[0];
  }
  static CallArguments arguments() {
    CallArguments a;
    a.remote = {kData, 64 << 10};
    a.local = {kData, 128 << 10};
    a.signal = {kSignals, 1024};
    return a;
  }
  static Status status_of(const Report& r, int value = 0) { return static_cast<Status>(r.values[value]); }
};
TYPED_TEST_SUITE(Silence, SharingConfigurations, ConfigurationNames);

// Fault (field case 10): a slot that is written over before the NIC has read it; one more WQE outstanding
// than the queue holds; a queue that stays full when completions come.
TYPED_TEST(Silence, FieldCase10AFullQueueWaitsAndResumes) {
  for (const Announce announce : {Announce::now, Announce::later}) {
    auto world = this->make_world(this->options());
    ASSERT_TRUE(world.ok());
    const auto muted = world.mute(0, 1);
    const auto timeout = port::Timeout::milliseconds(20);

    const Report full = this->fill(muted.view(), 0, kBlocks + 5, timeout, announce);
    EXPECT_EQ(full.values[0], kBlocks);
    EXPECT_EQ(this->status_of(full, 1), Status::queue_full);
    EXPECT_GE(full.elapsed_ns, timeout.ns);
    EXPECT_EQ(world.word(1, {kData, 0}), 0u) << "the NIC has heard of it";

    muted.ring();
    // The rest of the lap, and three more.
    const Report more = this->fill(world.view(0), kBlocks, 3 * kBlocks, kPatient);
    EXPECT_EQ(more.values[0], 3 * kBlocks);
    EXPECT_EQ(this->status_of(this->call_once(world.view(0), Call::flush, {}, kPatient)), Status::done);
    CallArguments done = this->arguments();
    EXPECT_EQ(this->status_of(this->call_once(world.view(0), Call::signal_add, done, kPatient)),
              Status::done);
    world.await(1, done.signal, 1);
    for (std::uint64_t i = 0; i < 4 * kBlocks; ++i)
      ASSERT_EQ(world.word(1, {kData, i * 8}), mixed(i)) << "put " << i;
  }
}

// Fault: a wait that spins while the NIC is silent; a call that says done, or that leaves slots reserved
// which nobody fills, when there was no room.
TYPED_TEST(Silence, EveryCallEndsInTime) {
  auto world = this->make_world(this->options());
  ASSERT_TRUE(world.ok());
  const auto muted = world.mute(0, 1);
  ASSERT_EQ(this->fill(muted.view(), 0, kBlocks, kPatient).values[0], kBlocks);
  const auto timeout = port::Timeout::milliseconds(10);
  for (std::uint32_t c = 0; c < static_cast<std::uint32_t>(Call::count_); ++c) {
    const auto which = static_cast<Call>(c);
    const std::uint64_t reserved = world.posted(0, 1).reserved;
    const Report r = this->call_once(muted.view(), which, this->arguments(), timeout);
    const bool posts = which < kFirstWait;
    EXPECT_EQ(this->status_of(r), posts ? Status::queue_full : Status::timed_out) << "call " << c;
    EXPECT_GE(r.elapsed_ns, timeout.ns) << "call " << c;
    EXPECT_LT(r.elapsed_ns, timeout.ns + 5'000'000'000u) << "call " << c;
    EXPECT_EQ(world.posted(0, 1).reserved, reserved) << "call " << c;
    EXPECT_EQ(world.posted(0, 1).published, reserved) << "call " << c;
  }
  // Nothing of all that was posted or broken.
  muted.ring();
  EXPECT_EQ(this->status_of(this->call_once(world.view(0), Call::flush, {}, kPatient)), Status::done);
  EXPECT_EQ(world.word(1, this->arguments().signal), 0u);
  EXPECT_EQ(world.word(1, this->arguments().remote), 0u);
}

// Fault: a flush that waits for what nobody announced; one that needs a slot and never says that there is
// none.
TYPED_TEST(Silence, FlushOfAnUnannouncedFullQueueEndsInTime) {
  auto world = this->make_world(this->options());
  ASSERT_TRUE(world.ok());
  const auto muted = world.mute(0, 1);
  // All but one slot, and the last WQEs unannounced: the flush needs the last slot for its NOP.
  const auto later = Announce::later;
  ASSERT_EQ(this->fill(muted.view(), 0, kBlocks - 1, kPatient, later).values[0], kBlocks - 1);
  const auto timeout = port::Timeout::milliseconds(10);
  EXPECT_EQ(this->status_of(this->call_once(muted.view(), Call::flush, {}, timeout)), Status::timed_out);
  EXPECT_EQ(this->status_of(this->call_once(muted.view(), Call::flush, {}, timeout)), Status::timed_out);
  muted.ring();
  EXPECT_EQ(this->status_of(this->call_once(world.view(0), Call::flush, {}, kPatient)), Status::done);
}

/// One wrong argument.
struct Wrong {
  const char* what;
  void (*spoil)(CallArguments& a);
  std::vector<Call> calls;
  bool checked = true;  ///< false: refused even where a policy leaves out the checks
};

const std::vector<Call> kMoves = {Call::put, Call::put_each, Call::put_signal_add, Call::put_signal_set,
                                  Call::get};
const std::vector<Call> kValues = {Call::put_value, Call::put_value_each};
const std::vector<Call> kAtomics = {Call::fetch_add, Call::compare_swap};
const std::vector<Call> kSignalled = {Call::put_signal_add, Call::put_signal_set, Call::signal_add,
                                      Call::signal_set};

std::vector<Call> all_of(std::initializer_list<std::vector<Call>> lists) {
  std::vector<Call> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

const std::vector<Wrong> kWrongs = {
    {"no such PE", [](CallArguments& a) { a.peer = 2; },
     all_of(
         {kMoves, kValues, kAtomics, {Call::signal_add, Call::signal_set, Call::flush, Call::flush_peer}})},
    {"a PE far away", [](CallArguments& a) { a.peer = 0xffffffff; },
     all_of({kMoves, kValues, kAtomics, {Call::signal_add, Call::flush, Call::flush_peer}})},
    {"itself, without queues", [](CallArguments& a) { a.peer = 0; },
     all_of({kMoves, kValues, kAtomics, {Call::signal_add, Call::flush, Call::flush_peer}})},
    {"no such queue", [](CallArguments& a) { a.index = 1; },
     all_of({kMoves, kValues, kAtomics, {Call::signal_add, Call::flush}})},
    {"no such queue by far", [](CallArguments& a) { a.index = 0xffffffff; },
     all_of({kMoves, kValues, kAtomics, {Call::signal_add, Call::flush}})},
    {"no such remote window", [](CallArguments& a) { a.remote.window = 99; },
     all_of({kMoves, kValues, kAtomics})},
    {"the sink as a remote window",
     [](CallArguments& a) {
       a.remote.window = kWindows;
       a.remote.offset = 0;
     },
     all_of({kMoves, kValues, kAtomics})},
    {"no such local window", [](CallArguments& a) { a.local.window = 99; }, all_of({kMoves, kAtomics})},
    {"beyond the remote window", [](CallArguments& a) { a.remote.offset = kDataBytes; },
     all_of({kMoves, kValues, kAtomics})},
    {"an end beyond the remote window",
     [](CallArguments& a) {
       a.remote.offset = kDataBytes - 8;
       a.bytes = 9;
     },
     kMoves},
    {"an end beyond the local window",
     [](CallArguments& a) {
       a.local.offset = kDataBytes - 8;
       a.bytes = 9;
     },
     kMoves},
    {"an end beyond 2^64",
     [](CallArguments& a) {
       a.remote.offset = ~std::uint64_t{7};
       a.bytes = 16;
     },
     all_of({kMoves, kValues, kAtomics})},
    {"a length near 2^64",
     [](CallArguments& a) { a.bytes = ~std::uint64_t{0} - 64; },
     {Call::put, Call::put_signal_add, Call::put_signal_set, Call::get}},
    {"an atomic that is not aligned", [](CallArguments& a) { a.remote.offset += 4; }, kAtomics},
    {"a signal that is not aligned", [](CallArguments& a) { a.signal.offset += 1; },
     all_of({kSignalled, {Call::wait_signal}})},
    {"a signal in no window", [](CallArguments& a) { a.signal.window = 99; },
     all_of({kSignalled, {Call::wait_signal}})},
    {"a signal beyond its window", [](CallArguments& a) { a.signal.offset = kSignalBytes; },
     all_of({kSignalled, {Call::wait_signal}})},
    {"a signal in a window whose writes may be reordered",
     [](CallArguments& a) { a.signal.window = kRelaxed; }, kSignalled},
};

// Fault: a WQE with an address that no check has seen; slots or doorbells spent on a call that was refused; a
// refusal that costs the caller its deadline.
TYPED_TEST(Silence, BadArgumentsPostNothing) {
  auto world = this->make_world(this->options());
  ASSERT_TRUE(world.ok());
  for (const Wrong& wrong : kWrongs) {
    CallArguments a = this->arguments();
    wrong.spoil(a);
    for (const Call which : wrong.calls) {
      const Report r = this->call_once(world.view(0), which, a, kPatient);
      EXPECT_EQ(this->status_of(r), Status::bad_argument)
          << wrong.what << ", call " << static_cast<int>(which);
      EXPECT_LT(r.elapsed_ns, kPatient.ns / 2) << wrong.what;
    }
    ASSERT_EQ(world.posted(0, 1).reserved, 0u) << wrong.what;
    ASSERT_EQ(world.posted(0, 1).published, 0u) << wrong.what;
  }
  // And the queue works.
  EXPECT_EQ(this->status_of(this->call_once(world.view(0), Call::put, this->arguments(), kPatient)),
            Status::done);
  EXPECT_EQ(this->status_of(this->call_once(world.view(0), Call::flush, {}, kPatient)), Status::done);
}

}  // namespace
}  // namespace belfry::conformance

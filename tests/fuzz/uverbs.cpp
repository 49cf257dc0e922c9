// Fuzzes the kernel's side of verbs: streams of write() commands and ioctl methods, correct ones with
// single faults and raw ones. An input is a list of 24 B records: an operation and its choices.
// Guards against: a length, count, handle or address of the application that is believed; objects
// destroyed while others need them; objects that outlive their file.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "fuzz/harness.hpp"
#include "fuzz/nic_world.hpp"
#include "fuzz/verbs_client.hpp"

namespace belfry::fuzz {
namespace {

constexpr std::size_t kRecordBytes = 24;
constexpr std::size_t kMaxRecords = 64;

using Operation = void (VerbsClient::*)(Reader&);
constexpr Operation kOperations[] = {
    &VerbsClient::get_context,    &VerbsClient::alloc_pd,      &VerbsClient::alloc_uar,
    &VerbsClient::create_channel, &VerbsClient::create_cq,     &VerbsClient::reg_mr,
    &VerbsClient::create_qp,      &VerbsClient::modify_qp,     &VerbsClient::query_qp,
    &VerbsClient::query_device,   &VerbsClient::query_port,    &VerbsClient::query_gid,
    &VerbsClient::rereg_mr,       &VerbsClient::resize_cq,     &VerbsClient::create_ah,
    &VerbsClient::reg_umem,       &VerbsClient::dereg_umem,    &VerbsClient::dereg_mr,
    &VerbsClient::destroy_qp,     &VerbsClient::destroy_cq,    &VerbsClient::destroy_uar,
    &VerbsClient::dealloc_pd,     &VerbsClient::raw_write,     &VerbsClient::raw_ioctl,
    &VerbsClient::invoke_write,   &VerbsClient::query_numbers, &VerbsClient::alloc_events,
};
constexpr unsigned kPoll = std::size(kOperations);

unsigned index_of(Operation operation) {
  for (unsigned i = 0; i < std::size(kOperations); ++i)
    if (kOperations[i] == operation) return i;
  std::abort();
}

void record(Bytes& input, Operation operation, std::initializer_list<int> choices = {}) {
  const std::size_t at = input.size();
  input.resize(at + kRecordBytes);
  input[at] = static_cast<std::uint8_t>(index_of(operation));
  std::size_t i = at + 1;
  for (const int choice : choices) input[i++] = static_cast<std::uint8_t>(choice);
}

}  // namespace

std::vector<Bytes> seeds() {
  using C = VerbsClient;
  Bytes setup;
  for (const Operation o : {&C::get_context, &C::query_device, &C::query_port, &C::alloc_pd, &C::alloc_uar,
                            &C::create_channel, &C::create_cq, &C::reg_mr, &C::create_qp})
    record(setup, o);
  Bytes connected = setup;
  for (const int state : {0, 1, 2}) record(connected, &C::modify_qp, {0, state});
  record(connected, &C::query_qp);
  record(connected, &C::query_numbers, {3});
  Bytes full = connected;
  for (const Operation o : {&C::destroy_qp, &C::resize_cq, &C::destroy_cq, &C::rereg_mr, &C::dereg_mr,
                            &C::destroy_uar, &C::dealloc_pd})
    record(full, o);
  Bytes extended;
  for (const Operation o : {&C::get_context, &C::alloc_pd, &C::alloc_uar}) record(extended, o);
  record(extended, &C::query_device, {1});
  record(extended, &C::create_cq, {1});
  record(extended, &C::create_qp, {1});
  record(extended, &C::create_ah);
  record(extended, &C::query_gid);
  record(extended, &C::query_gid, {1});
  for (const int which : {0, 1, 2, 4}) record(extended, &C::query_numbers, {which});
  record(extended, &C::alloc_events, {1});
  record(extended, &C::reg_umem);
  record(extended, &C::dereg_umem);
  Bytes raw;
  for (int command = 0; command < 41; ++command) record(raw, &C::raw_write, {command, 0, 12, 12});
  return {setup, connected, full, extended, raw};
}

namespace {

void run_records(VerbsClient& client, NicWorld& world, const std::uint8_t* data, std::size_t size) {
  for (std::size_t at = 0, n = 0; at < size && n < kMaxRecords; at += kRecordBytes, ++n) {
    Reader r(data + at, std::min(kRecordBytes, size - at));
    const unsigned operation = r.byte() % (kPoll + 1);
    if (operation == kPoll) {
      world.poll(r.byte());
    } else {
      (client.*kOperations[operation])(r);
    }
  }
}

}  // namespace

void check_reach() {
  const std::vector<Bytes> programs = seeds();
  NicWorld world;
  VerbsClient client(world.nic, world.memory, 0);
  run_records(client, world, programs[1].data(), programs[1].size());
  for (const Kind kind : {Kind::pd, Kind::uar, Kind::channel, Kind::cq, Kind::mr, Kind::qp})
    expect_reached(client.count(kind) == 1, "an object of each kind");
  Reader right(nullptr, 0);
  const auto qp = world.nic.query_qp(client.number(right, Kind::qp));
  expect_reached(qp && qp->state == softnic::QpState::rts, "a QP that can send");
  VerbsClient other(world.nic, world.memory, 0);
  run_records(other, world, programs[3].data(), programs[3].size());
  expect_reached(other.count(Kind::cq) == 1 && other.count(Kind::qp) == 1, "extended commands");
}

}  // namespace belfry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry::fuzz;
  // A NIC of its own for each input, so that an input behaves the same alone and among others.
  NicWorld world;
  {
    VerbsClient client(world.nic, world.memory, 0);
    if (!client.is_open()) std::abort();
    run_records(client, world, data, size);
  }
  world.end_of_input();
  return 0;
}

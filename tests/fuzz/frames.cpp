// Fuzzes the transport with frames from a peer that does as it likes: requests, responses, ACKs and
// NAKs with sequence numbers at and around the expected ones, while the queue has work of its own.
// An input is a setup of 4 bytes and a list of 24 B records: a step and its choices.
// Guards against: payload written beyond what was asked for or granted, whatever lengths a peer
// states; responses believed that nobody asked for; a queue that never comes to rest.
#include <algorithm>
#include <iterator>

#include "belfry/wire/infiniband.hpp"
#include "fuzz/engine_world.hpp"
#include "fuzz/harness.hpp"
#include "softnic/firmware/nic_core.hpp"

namespace belfry::fuzz {
namespace {

constexpr std::size_t kSetupBytes = 4;
constexpr std::size_t kRecordBytes = 24;
constexpr std::size_t kMaxRecords = 96;

using wire::BthOpcode;

// Positions in this list are what seeds name.
constexpr BthOpcode kOpcodes[] = {
    BthOpcode::acknowledge,         BthOpcode::read_response_only,   BthOpcode::atomic_acknowledge,
    BthOpcode::read_response_first, BthOpcode::read_response_middle, BthOpcode::read_response_last,
    BthOpcode::write_only,          BthOpcode::write_first,          BthOpcode::write_middle,
    BthOpcode::write_last,          BthOpcode::write_last_immediate, BthOpcode::write_only_immediate,
    BthOpcode::send_only,           BthOpcode::send_first,           BthOpcode::send_middle,
    BthOpcode::send_last,           BthOpcode::send_last_immediate,  BthOpcode::send_only_immediate,
    BthOpcode::read_request,        BthOpcode::compare_swap,         BthOpcode::fetch_add,
    BthOpcode::masked_compare_swap, BthOpcode::masked_fetch_add,     static_cast<BthOpcode>(0x12),
};

bool response(BthOpcode o) {
  return o >= BthOpcode::read_response_first && o <= BthOpcode::atomic_acknowledge;
}

bool has_reth(BthOpcode o) {
  return o == BthOpcode::write_first || o == BthOpcode::write_only || o == BthOpcode::write_only_immediate ||
         o == BthOpcode::read_request;
}

bool is_atomic(BthOpcode o) { return o >= BthOpcode::compare_swap; }

bool has_immediate(BthOpcode o) {
  return o == BthOpcode::write_last_immediate || o == BthOpcode::write_only_immediate ||
         o == BthOpcode::send_last_immediate || o == BthOpcode::send_only_immediate;
}

template <class T>
void append(Bytes& frame, const T& header) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(&header);
  frame.insert(frame.end(), from, from + sizeof header);
}

void add_request_headers(EngineWorld& world, Reader& r, BthOpcode opcode, Bytes& frame) {
  if (has_reth(opcode)) {
    wire::Reth reth{};
    reth.address.set(world.any_address(r));
    reth.rkey.set(world.any_key(r, 0));
    const std::uint8_t length = r.byte();
    reth.length.set(length < 0xf0 ? length * 16u : 0x80000000u >> (length & 0xf) * 2);
    append(frame, reth);
  }
  if (is_atomic(opcode)) {
    wire::MaskedAtomicEth eth{};
    eth.base.address.set(world.any_address(r) & ~(r.byte() == 0 ? 7ull : 0ull));
    eth.base.rkey.set(world.any_key(r, 0));
    eth.base.swap_or_add.set(r.byte());
    eth.swap_mask.set(~0ull);
    eth.operand_bytes.set(8u ^ r.byte());
    append(frame, eth);
    if (opcode < BthOpcode::masked_compare_swap) frame.resize(frame.size() - sizeof eth + sizeof eth.base);
  }
  if (has_immediate(opcode)) append(frame, wire::ImmediateHeader{Be32(r.byte())});
}

void add_response_headers(Reader& r, BthOpcode opcode, Bytes& frame) {
  if (opcode != BthOpcode::read_response_middle) {
    const std::uint8_t syndrome = r.byte();
    append(frame,
           wire::Aeth{Be32(static_cast<std::uint32_t>(syndrome == 0 ? wire::kAethAck : syndrome) << 24)});
  }
  if (opcode == BthOpcode::atomic_acknowledge) append(frame, wire::AtomicAckEth{PackedBe64(r.byte())});
}

void frame(EngineWorld& world, Reader& r) {
  const BthOpcode opcode = kOpcodes[r.pick(std::size(kOpcodes))];
  const auto snapshot = world.nic(0).query_qp(world.queue(0).number);
  require(snapshot, "a QP that exists can be queried");
  // Responses answer what is out, requests continue what came in.
  const std::uint32_t base = response(opcode) ? snapshot->send_psn - 1 : snapshot->receive_psn;
  const auto off = static_cast<std::int8_t>(r.byte());
  const std::uint8_t flags = r.byte();

  wire::Bth bth{};
  bth.opcode = opcode;
  bth.flags = static_cast<std::uint8_t>(flags & 0xb0);
  bth.pkey.set(0xffff);
  bth.destination_qp.set(world.queue(0).number);
  bth.ack_psn.set(((base + static_cast<std::uint32_t>(off)) & wire::kPsnMask) |
                  ((flags & 1) == 0 ? wire::kBthAckRequest : 0));
  Bytes bytes;
  append(bytes, bth);
  const std::uint8_t size = r.byte();
  const std::uint8_t identity = r.byte();
  if (response(opcode)) {
    add_response_headers(r, opcode, bytes);
  } else {
    add_request_headers(world, r, opcode, bytes);
  }
  const bool payload = opcode != BthOpcode::acknowledge && opcode != BthOpcode::atomic_acknowledge &&
                       opcode != BthOpcode::read_request && !is_atomic(opcode);
  // The path MTU, something small, or more than may ever come.
  if (payload) bytes.resize(bytes.size() + (size == 0 ? 256u : size < 0xf0 ? size : 4096u), 0xee);
  if ((flags & 2) != 0) bytes.resize(bytes.size() - std::min<std::size_t>(bytes.size(), size));

  softnic::FrameHeader header{};
  header.source_qpn = world.outsider_qpn() ^ (identity & 1u);
  header.slid = world.device(0).lid;
  header.dlid = static_cast<std::uint16_t>(world.device(0).lid ^ (identity >> 1 & 1u));
  header.global = world.device(0).link == softnic::LinkLayer::ethernet || (identity & 4) != 0;
  header.dgid = world.device(0).gids.back().gid;
  world.send_as_outsider(world.queue(0).number, header, bytes);
  if ((flags & 4) == 0) world.poll_times(1);
}

void reconnect(EngineWorld& world, Reader&) {
  Queue& q = world.queue(0);
  q.producer = q.receive_producer = 0;
  std::fill_n(q.record.get(), sizeof(wire::QpDoorbellRecord), std::uint8_t{0});
  world.connect(0, world.outsider_qpn());
}

template <void (EngineWorld::*step)(Reader&)>
void call(EngineWorld& world, Reader& r) {
  (world.*step)(r);
}

using Step = void (*)(EngineWorld&, Reader&);
constexpr Step kSteps[] = {
    frame,
    call<&EngineWorld::post>,
    call<&EngineWorld::post_receive>,
    call<&EngineWorld::advance>,
    call<&EngineWorld::change_keys>,
    call<&EngineWorld::consume>,
    reconnect,
};

void record(Bytes& input, int step, std::initializer_list<int> choices = {}) {
  const std::size_t at = input.size();
  input.resize(at + kRecordBytes);
  input[at] = static_cast<std::uint8_t>(step);
  std::size_t i = at + 1;
  for (const int choice : choices) input[i++] = static_cast<std::uint8_t>(choice);
}

}  // namespace

std::vector<Bytes> seeds() {
  Bytes responder = {0, 0, 0, 0};
  for (int opcode = 6; opcode < 23; ++opcode) {
    record(responder, 2, {0});
    record(responder, 0, {7, 0, 0, 0, 0, 0, 0, 0, 48});  // a WRITE of three packets begins ...
    record(responder, 0, {8});
    record(responder, 0, {9});  // ... and ends
    record(responder, 0, {opcode, 0, 0, 0, 0, 0, 0, 0, 16});
    record(responder, 0, {opcode, 255, 0, 0, 0, 0, 0, 0, 16});  // once more
    record(responder, 6);
  }
  Bytes requester = {0, 0, 0, 0};
  for (const int syndrome : {0, 0x21, 0x60, 0x61, 0x62, 0x63}) {
    for (const int opcode : {0, 4, 5, 7}) {  // WRITE, READ, fetch-add, masked fetch-add
      record(requester, 1, {0, opcode, 0, 0, 0, 0, 200});
      record(requester, 0, {0, 0, 0, 0, 0, syndrome});
      record(requester, 0, {3, 0});
      record(requester, 0, {1, 0});
      record(requester, 0, {2, 0});
      record(requester, 3, {255});
      record(requester, 5, {0, 8, 0, 1});
      record(requester, 6);
    }
  }
  Bytes ethernet = responder;
  ethernet[0] = 1;
  Bytes keys = {0, 0, 0, 0};
  record(keys, 0, {18, 0, 4, 0, 0, 0, 0, 0, 200});  // a READ is being answered when its key goes
  record(keys, 4, {0, 0, 1});
  record(keys, 0, {18});
  return {responder, requester, ethernet, keys};
}

namespace {

Setup setup_of(const std::uint8_t* data, std::size_t size) {
  Bytes choices(data, data + std::min(size, kSetupBytes));
  choices.resize(kSetupBytes);
  const bool ethernet = (choices[0] & 1) != 0;
  choices[0] = 0;  // one NIC: its peer is ours
  Reader shape(choices.data(), choices.size());
  Setup setup = Setup::read(shape);
  setup.direct = false;
  if (ethernet) setup.link = softnic::LinkLayer::ethernet;
  return setup;
}

void run_records(EngineWorld& world, const std::uint8_t* data, std::size_t size) {
  world.add_outsider();
  for (std::size_t at = kSetupBytes, n = 0; at < size && n < kMaxRecords; at += kRecordBytes, ++n) {
    Reader r(data + at, std::min(kRecordBytes, size - at));
    kSteps[r.byte() % std::size(kSteps)](world, r);
  }
  world.settle();
  world.check();
}

}  // namespace

void check_reach() {
  const std::vector<Bytes> programs = seeds();
  for (const std::size_t program : {0u, 2u}) {
    EngineWorld world(setup_of(programs[program].data(), programs[program].size()));
    run_records(world, programs[program].data(), programs[program].size());
    const softnic::NicCounters& counters = world.nic(0).impl().counters;
    expect_reached(counters.frames_received > 60 && counters.duplicates > 3, "requests that are taken");
  }
  EngineWorld world(setup_of(programs[1].data(), programs[1].size()));
  run_records(world, programs[1].data(), programs[1].size());
  expect_reached(world.nic(0).impl().counters.wqes > 3, "responses that complete a WQE");
}

}  // namespace belfry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry::fuzz;
  EngineWorld world(setup_of(data, size));
  run_records(world, data, size);
  return 0;
}

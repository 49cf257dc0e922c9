// Fuzzes DEVX: PRM mailboxes as libmlx5 and NVSHMEM write them, with wrong fields, bytes and lengths.
// An input is a list of 32 B records: a command and its choices.
// Guards against: offsets, sizes and lengths in a mailbox that are believed; umems that go while queues
// lie in them; objects of one kind taken for another.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "belfry/wire/prm.hpp"
#include "fuzz/harness.hpp"
#include "fuzz/nic_world.hpp"
#include "fuzz/verbs_client.hpp"

namespace belfry::fuzz {
namespace {

namespace prm = wire::prm;

constexpr std::size_t kRecordBytes = 32;
constexpr std::size_t kMaxRecords = 64;

// A mailbox whose fields are set by name, and then spoiled where the input says so.
template <class In>
class MailboxIn {
 public:
  explicit MailboxIn(prm::Opcode opcode) : bytes_(In::kBytes) { set<typename In::opcode>(opcode); }

  template <class Field, class Value>
  MailboxIn& set(Value value) {
    Field::set(bytes_.data(), static_cast<std::uint64_t>(value));
    return *this;
  }
  /// A field of a context that lies in the mailbox.
  template <class Part, class Field, class Value>
  MailboxIn& set_in(Value value) {
    Field::set(Part::at(bytes_.data()), static_cast<std::uint64_t>(value));
    return *this;
  }

  /// A field of the primary path of a QP context.
  template <class Part, class Field, class Value>
  MailboxIn& set_in_path(Value value) {
    Field::set(prm::QpContext::primary_address_path::at(Part::at(bytes_.data())),
               static_cast<std::uint64_t>(value));
    return *this;
  }

  const Bytes& spoiled(Reader& r) {
    for (int i = 0; i < 2; ++i) {
      const auto at = r.get<std::uint16_t>();
      const std::uint8_t change = r.byte();
      if (change != 0) bytes_[at % bytes_.size()] ^= change;
    }
    const std::uint8_t length = r.byte();
    if (length != 0)
      bytes_.resize(length < 0x80 ? bytes_.size() - std::min<std::size_t>(length * 4u, bytes_.size())
                                  : bytes_.size() + (length & 0x7fu) * 8u);
    return bytes_;
  }

 private:
  Bytes bytes_;
};

std::size_t out_bytes(Reader& r, std::size_t right) {
  const std::uint8_t choice = r.byte();
  return choice == 0 ? right : choice * 4u;
}

void alloc_pd(VerbsClient& c, Reader& r) {
  MailboxIn<prm::AllocPdIn> in(prm::Opcode::alloc_pd);
  c.devx_create(r, Kind::devx_pd, in.spoiled(r), out_bytes(r, prm::AllocPdOut::kBytes));
}

void create_mkey(VerbsClient& c, Reader& r) {
  using In = prm::CreateMkeyIn;
  using Context = prm::MkeyContext;
  using Part = In::memory_key_mkey_entry;
  MailboxIn<In> in(prm::Opcode::create_mkey);
  in.set<In::mkey_umem_valid>(1 - r.pick(2)).set<In::mkey_umem_id>(c.number(r, Kind::umem));
  in.set<In::mkey_umem_offset>(r.byte() * 64u).set<In::translations_octword_actual_size>(r.byte());
  in.set_in<Part, Context::pd>(c.number(r, Kind::devx_pd))
      .set_in<Part, Context::access_mode_1_0>(1 ^ r.pick(4));
  in.set_in<Part, Context::lw>(1).set_in<Part, Context::lr>(1).set_in<Part, Context::rw>(1);
  in.set_in<Part, Context::rr>(1).set_in<Part, Context::a>(1).set_in<Part, Context::qpn>(0xffffff);
  in.set_in<Part, Context::start_addr>(0x10000u).set_in<Part, Context::mkey_7_0>(r.byte());
  const std::uint8_t length = r.byte();
  in.set_in<Part, Context::len>(length == 0 ? 4096u : std::uint64_t{length} << (length & 63));
  in.set_in<Part, Context::length64>(r.byte() == 1).set_in<Part, Context::log_page_size>(12);
  c.devx_create(r, Kind::devx_mkey, in.spoiled(r), out_bytes(r, prm::CreateMkeyOut::kBytes));
}

void create_cq(VerbsClient& c, Reader& r) {
  using In = prm::CreateCqIn;
  using Context = prm::CqContext;
  using Part = In::cq_context;
  MailboxIn<In> in(prm::Opcode::create_cq);
  const std::uint32_t umem = c.number(r, Kind::umem);
  in.set<In::cq_umem_valid>(1).set<In::cq_umem_id>(umem).set<In::cq_umem_offset>(r.byte() * 64u);
  in.set_in<Part, Context::dbr_umem_valid>(1).set_in<Part, Context::dbr_umem_id>(umem);
  in.set_in<Part, Context::dbr_addr>(0xc000u + r.byte() * 8u)
      .set_in<Part, Context::log_cq_size>(6u ^ r.byte());
  in.set_in<Part, Context::cqe_sz>(r.byte()).set_in<Part, Context::cc>(r.byte()).set_in<Part, Context::oi>(
      r.byte());
  in.set_in<Part, Context::uar_page>(c.number(r, Kind::uar)).set_in<Part, Context::c_eqn>(r.byte());
  c.devx_create(r, Kind::devx_cq, in.spoiled(r), out_bytes(r, prm::CreateCqOut::kBytes));
}

void create_qp(VerbsClient& c, Reader& r) {
  using In = prm::CreateQpIn;
  using Context = prm::QpContext;
  using Part = In::qpc;
  MailboxIn<In> in(prm::Opcode::create_qp);
  const std::uint32_t umem = c.number(r, Kind::umem);
  in.set<In::wq_umem_valid>(1).set<In::wq_umem_id>(umem).set<In::wq_umem_offset>(0x4000u + r.byte() * 64u);
  in.set_in<Part, Context::st>(prm::ServiceType::rc)
      .set_in<Part, Context::pm_state>(prm::PathMigration::migrated);
  in.set_in<Part, Context::pd>(c.number(r, Kind::devx_pd))
      .set_in<Part, Context::uar_page>(c.number(r, Kind::uar));
  const std::uint32_t cqn = c.number(r, Kind::devx_cq);
  in.set_in<Part, Context::cqn_snd>(cqn).set_in<Part, Context::cqn_rcv>(cqn);
  in.set_in<Part, Context::log_sq_size>(6u ^ r.byte()).set_in<Part, Context::log_rq_size>(4u ^ r.byte());
  in.set_in<Part, Context::log_rq_stride>(2u ^ r.byte()).set_in<Part, Context::rq_type>(r.byte());
  in.set_in<Part, Context::no_sq>(r.byte()).set_in<Part, Context::send_dbr_mode>(r.byte());
  in.set_in<Part, Context::dbr_umem_valid>(1).set_in<Part, Context::dbr_umem_id>(umem);
  in.set_in<Part, Context::dbr_addr>(0xe000u + r.byte() * 8u).set_in<Part, Context::user_index>(r.byte());
  c.devx_create(r, Kind::devx_qp, in.spoiled(r), out_bytes(r, prm::CreateQpOut::kBytes));
}

// Steps 0 to 2 lead from reset to "ready to send".
void modify_qp(VerbsClient& c, Reader& r) {
  using In = prm::ModifyQpIn;
  using Context = prm::QpContext;
  using Part = In::qpc;
  constexpr prm::Opcode kOpcodes[] = {
      prm::Opcode::rst2init_qp,  prm::Opcode::init2rtr_qp,  prm::Opcode::rtr2rts_qp,
      prm::Opcode::to_error_qp,  prm::Opcode::to_reset_qp,  prm::Opcode::rts2rts_qp,
      prm::Opcode::init2init_qp, prm::Opcode::sqerr2rts_qp, prm::Opcode::sqd_rts_qp};
  MailboxIn<In> in(kOpcodes[r.pick(std::size(kOpcodes))]);
  in.set<In::qpn>(c.number(r, Kind::devx_qp)).set<In::opt_param_mask>(r.get<std::uint16_t>());
  in.set_in<Part, Context::mtu>(3u ^ r.byte()).set_in<Part, Context::log_msg_max>(30);
  in.set_in<Part, Context::remote_qpn>(c.number(r, Kind::devx_qp)).set_in<Part, Context::rre>(1);
  in.set_in<Part, Context::rwe>(1).set_in<Part, Context::rae>(1).set_in<Part, Context::atomic_mode>(1u ^
                                                                                                    r.byte());
  in.set_in<Part, Context::log_rra_max>(2).set_in<Part, Context::log_sra_max>(2u ^ r.byte());
  in.set_in<Part, Context::retry_count>(7)
      .set_in<Part, Context::rnr_retry>(7)
      .set_in<Part, Context::min_rnr_nak>(12);
  using Path = prm::AddressPath;
  in.set_in_path<Part, Path::rlid>(1u ^ r.byte()).set_in_path<Part, Path::vhca_port_num>(1u ^ r.byte());
  in.set_in_path<Part, Path::ack_timeout>(14).set_in_path<Part, Path::grh>(r.byte());
  in.set_in_path<Part, Path::src_addr_index>(r.byte());
  c.devx_modify(r, Kind::devx_qp, in.spoiled(r), out_bytes(r, prm::ModifyQpOut::kBytes));
}

void query_object(VerbsClient& c, Reader& r) {
  const unsigned which = r.pick(3);
  constexpr prm::Opcode kOpcodes[] = {prm::Opcode::query_qp, prm::Opcode::query_cq, prm::Opcode::query_mkey};
  constexpr Kind kKinds[] = {Kind::devx_qp, Kind::devx_cq, Kind::devx_mkey};
  MailboxIn<prm::QueryQpIn> in(kOpcodes[which]);
  in.set<prm::QueryQpIn::qpn>(c.number(r, kKinds[which]));
  c.devx_query(r, kKinds[which], in.spoiled(r), out_bytes(r, 304));
}

void query_device(VerbsClient& c, Reader& r) {
  constexpr prm::Opcode kOpcodes[] = {prm::Opcode::query_hca_cap,
                                      prm::Opcode::query_adapter,
                                      prm::Opcode::query_issi,
                                      prm::Opcode::query_nic_vport_context,
                                      prm::Opcode::query_roce_address,
                                      prm::Opcode::query_hca_vport_context,
                                      prm::Opcode::query_hca_vport_gid,
                                      prm::Opcode::query_hca_vport_pkey,
                                      prm::Opcode::query_special_contexts,
                                      prm::Opcode::query_lag};
  MailboxIn<prm::CommandIn> in(kOpcodes[r.pick(std::size(kOpcodes))]);
  in.set<prm::CommandIn::op_mod>(r.byte());
  c.devx_other(r, in.spoiled(r), out_bytes(r, prm::QueryHcaCapOut::kBytes));
}

// Any opcode through any method.
void any_command(VerbsClient& c, Reader& r) {
  MailboxIn<prm::ModifyQpIn> in(static_cast<prm::Opcode>(r.byte() * 0x10u % 0xc00u + r.byte() % 16));
  const unsigned method = r.pick(4);
  const auto kind = static_cast<Kind>(static_cast<unsigned>(Kind::devx_pd) + r.pick(4));
  in.set<prm::ModifyQpIn::qpn>(c.number(r, kind));
  const Bytes& bytes = in.spoiled(r);
  const std::size_t out = out_bytes(r, 272);
  if (method == 0) c.devx_other(r, bytes, out);
  if (method == 1) c.devx_create(r, kind, bytes, out);
  if (method == 2) c.devx_modify(r, kind, bytes, out);
  if (method == 3) c.devx_query(r, kind, bytes, out);
}

void destroy(VerbsClient& c, Reader& r) {
  c.devx_destroy(r, static_cast<Kind>(static_cast<unsigned>(Kind::devx_qp) - r.pick(4)));
}

template <void (VerbsClient::*call)(Reader&)>
void plain(VerbsClient& c, Reader& r) {
  (c.*call)(r);
}

using Operation = void (*)(VerbsClient&, Reader&);
constexpr Operation kOperations[] = {
    alloc_pd,
    create_mkey,
    create_cq,
    create_qp,
    modify_qp,
    query_object,
    query_device,
    any_command,
    destroy,
    plain<&VerbsClient::reg_umem>,
    plain<&VerbsClient::dereg_umem>,
    plain<&VerbsClient::alloc_uar>,
    plain<&VerbsClient::destroy_uar>,
    plain<&VerbsClient::alloc_pd>,
    plain<&VerbsClient::query_numbers>,
    plain<&VerbsClient::alloc_events>,
    plain<&VerbsClient::subscribe>,
};
constexpr unsigned kPoll = std::size(kOperations);

void record(Bytes& input, Operation operation, std::initializer_list<int> choices = {}) {
  const auto* found = std::find(std::begin(kOperations), std::end(kOperations), operation);
  const std::size_t at = input.size();
  input.resize(at + kRecordBytes);
  input[at] = static_cast<std::uint8_t>(found - std::begin(kOperations));
  std::size_t i = at + 1;
  for (const int choice : choices) input[i++] = static_cast<std::uint8_t>(choice);
}

}  // namespace

std::vector<Bytes> seeds() {
  Bytes queues;
  for (const Operation o : {alloc_pd, create_mkey, create_cq, create_qp}) record(queues, o);
  for (const int step : {0, 1, 2}) record(queues, modify_qp, {step});
  for (const int which : {0, 1, 2}) record(queues, query_object, {which});
  record(queues, plain<&VerbsClient::alloc_events>);
  record(queues, plain<&VerbsClient::subscribe>, {0, 0x13});
  record(queues, plain<&VerbsClient::subscribe>, {1, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  Bytes whole = queues;
  for (const int step : {3, 4, 0}) record(whole, modify_qp, {step});
  for (const int kind : {0, 1, 2, 3}) record(whole, destroy, {kind});
  record(whole, plain<&VerbsClient::dereg_umem>);
  record(whole, plain<&VerbsClient::destroy_uar>);
  Bytes busy = queues;  // in the wrong order: everything is still in use
  record(busy, plain<&VerbsClient::dereg_umem>);
  record(busy, plain<&VerbsClient::destroy_uar>);
  for (const int kind : {3, 2, 1, 0}) record(busy, destroy, {kind});
  Bytes device;
  for (int query = 0; query < 10; ++query)
    for (const int op_mod : {0, 1, 0x40, 0x41, 6, 8}) record(device, query_device, {query, op_mod});
  Bytes any;
  for (int opcode = 0; opcode < 64; ++opcode) record(any, any_command, {opcode * 3, opcode, opcode % 4});
  return {queues, whole, busy, device, any};
}

namespace {

void run_records(VerbsClient& client, NicWorld& world, const std::uint8_t* data, std::size_t size) {
  Reader right(nullptr, 0);
  client.get_context(right);
  client.alloc_uar(right);
  client.reg_umem(right);
  for (std::size_t at = 0, n = 0; at < size && n < kMaxRecords; at += kRecordBytes, ++n) {
    Reader r(data + at, std::min(kRecordBytes, size - at));
    const unsigned operation = r.byte() % (kPoll + 1);
    if (operation == kPoll) {
      world.poll(r.byte());
    } else {
      kOperations[operation](client, r);
    }
  }
}

}  // namespace

void check_reach() {
  const std::vector<Bytes> programs = seeds();
  NicWorld world;
  VerbsClient client(world.nic, world.memory, 0);
  run_records(client, world, programs[0].data(), programs[0].size());
  for (const Kind kind : {Kind::uar, Kind::umem, Kind::devx_pd, Kind::devx_mkey, Kind::devx_cq, Kind::devx_qp,
                          Kind::devx_events})
    expect_reached(client.count(kind) == 1, "an object of each kind");
  Reader right(nullptr, 0);
  const auto qp = world.nic.query_qp(client.number(right, Kind::devx_qp));
  expect_reached(qp && qp->state == softnic::QpState::rts, "a QP that can send");
}

}  // namespace belfry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry::fuzz;
  NicWorld world;
  {
    VerbsClient client(world.nic, world.memory, 0);
    if (!client.is_open()) std::abort();
    run_records(client, world, data, size);
  }
  world.end_of_input();
  return 0;
}

// DEVX: umems, mailboxes, objects.

#include "devx_client.hpp"

namespace belfry::softnic::test {
namespace {

Bytes capability_query(prm::CapabilityGroup group, bool current = true) {
  Bytes in = mailbox_of<prm::QueryHcaCapIn>(prm::Opcode::query_hca_cap);
  prm::CommandIn::op_mod::set(in.data(), prm::capability_op_mod(group, current));
  return in;
}

// Guards against libmlx5 seeing a device that can do what the NIC cannot, or not what it can.
TEST(UverbsDevx, GeneralCapabilities) {
  DevxClient client;
  const DevxReply reply =
      client.general(capability_query(prm::CapabilityGroup::general), prm::QueryHcaCapOut::kBytes);
  ASSERT_EQ(reply.error, 0);
  const std::uint8_t* c = prm::QueryHcaCapOut::capability::at(reply.out.data());
  using G = prm::GeneralCapability;
  EXPECT_EQ(G::cqe_version::get(c), 1u);
  EXPECT_EQ(G::log_bf_reg_size::get(c), 9u);
  EXPECT_EQ(G::log_max_qp_sz::get(c), 15u);
  EXPECT_EQ(G::num_ports::get(c), 1u);
  EXPECT_EQ(G::hca_cap_2::get(c), 1u);
  EXPECT_EQ(G::rc::get(c), 1u);
  EXPECT_EQ(G::log_max_ra_req_qp::get(c), 4u);
  for (const std::uint32_t absent :
       {G::qos::get(c), G::dct::get(c), G::xrc::get(c), G::ud::get(c), G::end_pad::get(c),
        G::cqe_compression::get(c), G::cqe_compression_128::get(c), G::wq_signature::get(c)}) {
    EXPECT_EQ(absent, 0u);
  }
}

// Guards against programs that ring doorbells without a record (GPUs) finding no such mode, and
// against atomics that are offered in sizes that do not exist.
TEST(UverbsDevx, FurtherCapabilities) {
  DevxClient client;
  const DevxReply second =
      client.general(capability_query(prm::CapabilityGroup::general_2), prm::QueryHcaCapOut::kBytes);
  ASSERT_EQ(second.error, 0);
  const std::uint8_t* two = prm::QueryHcaCapOut::capability::at(second.out.data());
  EXPECT_EQ(prm::GeneralCapability2::send_dbr_mode_no_dbr_ext::get(two), 1u);
  EXPECT_EQ(prm::GeneralCapability2::send_dbr_mode_no_dbr_int::get(two), 0u);
  const DevxReply atomic =
      client.general(capability_query(prm::CapabilityGroup::atomic), prm::QueryHcaCapOut::kBytes);
  const std::uint8_t* a = prm::QueryHcaCapOut::capability::at(atomic.out.data());
  EXPECT_EQ(prm::AtomicCapability::atomic_operations::get(a), prm::kAtomicCompareSwap | prm::kAtomicFetchAdd |
                                                                  prm::kAtomicMaskedCompareSwap |
                                                                  prm::kAtomicMaskedFetchAdd);
  EXPECT_EQ(prm::AtomicCapability::atomic_size_qp::get(a), 0xcu);
  EXPECT_EQ(client.general(capability_query(prm::CapabilityGroup::crypto), prm::QueryHcaCapOut::kBytes).error,
            0);
  const DevxReply unknown =
      client.general(capability_query(static_cast<prm::CapabilityGroup>(0x70)), prm::QueryHcaCapOut::kBytes);
  EXPECT_EQ(unknown.error, EREMOTEIO);
  EXPECT_EQ(unknown.status(), prm::Status::bad_parameter);
  EXPECT_NE(prm::CommandOut::syndrome::get(unknown.out.data()), 0u);
}

// Guards against a mailbox that is shorter than the command being read behind its end, and an output
// shorter than the answer being written behind its end.
TEST(UverbsDevx, ShortMailboxes) {
  DevxClient client;
  DevxQueues queues(client);
  for (std::size_t bytes = 0; bytes < 16; ++bytes) {
    EXPECT_EQ(client.general(Bytes(bytes, 1)).error, EINVAL) << bytes;
    EXPECT_EQ(client.create(Bytes(bytes, 1)).error, EINVAL) << bytes;
  }
  EXPECT_EQ(client.general(capability_query(prm::CapabilityGroup::general), 15).error, EINVAL);
  const DevxReply part = client.general(capability_query(prm::CapabilityGroup::general), 80);
  EXPECT_EQ(part.error, 0);
  EXPECT_EQ(part.out.size(), 80u);
  Bytes cq = queues.cq_mailbox();
  cq.resize(prm::CreateCqIn::cq_umem_id::kEnd / 8 - 1);
  EXPECT_EQ(client.create(cq).error, EINVAL);
  Bytes qp = queues.qp_mailbox(1);
  qp.resize(prm::CreateQpIn::wq_umem_id::kEnd / 8 - 1);
  EXPECT_EQ(client.create(qp).error, EINVAL);
}

// Guards against commands that the kernel would not pass on reaching the device, and the other way
// round: the one is EINVAL, the other a status in the mailbox.
TEST(UverbsDevx, UnknownCommands) {
  DevxClient client;
  const auto general = [&](std::uint16_t opcode) {
    return client.general(mailbox_of<prm::CommandIn>(static_cast<prm::Opcode>(opcode)));
  };
  for (const std::uint16_t opcode :
       std::initializer_list<std::uint16_t>{0x000, 0x102, 0x200, 0x500, 0x802, 0xa00, 0xd00, 0xffff}) {
    EXPECT_EQ(general(opcode).error, EINVAL) << std::hex << opcode;
  }
  for (const std::uint16_t opcode : std::initializer_list<std::uint16_t>{0x842, 0x80d, 0xb00}) {
    const DevxReply reply = general(opcode);
    EXPECT_EQ(reply.error, EREMOTEIO) << std::hex << opcode;
    EXPECT_EQ(reply.status(), prm::Status::bad_opcode);
  }
  EXPECT_EQ(client.create(mailbox_of<prm::CommandIn>(prm::Opcode::query_adapter)).error, EINVAL);
  const DevxReply srq = client.create(mailbox_of<prm::CreateQpIn>(prm::Opcode::create_srq));
  EXPECT_EQ(srq.error, EREMOTEIO);
  EXPECT_EQ(srq.status(), prm::Status::bad_opcode);
}

// Guards against a context without DEVX making objects.
TEST(UverbsDevx, NeedsAContextForIt) {
  Client client;
  ASSERT_EQ(client.open_context(MLX5_LIB_CAP_DYN_UAR, 0).error, 0);
  const Bytes adapter = mailbox_of<prm::CommandIn>(prm::Opcode::query_adapter);
  const Bytes capability = capability_query(prm::CapabilityGroup::general);
  Bytes out(prm::QueryHcaCapOut::kBytes);
  const auto other = [&](const Bytes& in) {
    Client::Attributes a;
    a.bytes(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in).bytes(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out);
    return client.ioctl(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, a);
  };
  EXPECT_EQ(other(adapter), EINVAL);
  EXPECT_EQ(other(capability), 0);
  Client::Attributes a;
  a.add(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, 0)
      .bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, mailbox_of<prm::CommandIn>(prm::Opcode::alloc_pd))
      .bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out);
  EXPECT_EQ(client.ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, a), EINVAL);
}

// Guards against numbers of vectors and ports that are not there.
TEST(UverbsDevx, QueriesOfTheDevice) {
  DevxClient client;
  std::uint32_t eqn = 0;
  const auto query_eqn = [&](std::uint32_t vector) {
    Client::Attributes a;
    a.add(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, vector, 4).out(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, eqn);
    return client.ioctl(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, a);
  };
  EXPECT_EQ(query_eqn(0), 0);
  EXPECT_EQ(query_eqn(8), ENOENT);
  const DevxReply adapter =
      client.general(mailbox_of<prm::CommandIn>(prm::Opcode::query_adapter), prm::QueryAdapterOut::kBytes);
  ASSERT_EQ(adapter.error, 0);
  const std::uint8_t* block = prm::QueryAdapterOut::query_adapter_struct::at(adapter.out.data());
  EXPECT_EQ(prm::AdapterBlock::ieee_vendor_id::get(block), 0x2c9u);
  const DevxReply issi =
      client.general(mailbox_of<prm::CommandIn>(prm::Opcode::query_issi), prm::QueryIssiOut::kBytes);
  EXPECT_EQ(prm::QueryIssiOut::current_issi::get(issi.out.data()), 1u);
  Bytes port = mailbox_of<prm::QueryHcaVportContextIn>(prm::Opcode::query_hca_vport_context);
  prm::QueryHcaVportContextIn::port_num::set(port.data(), 1);
  const DevxReply vport = client.general(port, prm::QueryHcaVportContextOut::kBytes);
  ASSERT_EQ(vport.error, 0);
  const std::uint8_t* v = prm::QueryHcaVportContextOut::hca_vport_context::at(vport.out.data());
  EXPECT_EQ(prm::HcaVportContext::lid::get(v), client.nic->device(0).lid);
  EXPECT_EQ(prm::HcaVportContext::node_guid::get(v), client.nic->device(0).guid);
  prm::QueryHcaVportContextIn::port_num::set(port.data(), 2);
  EXPECT_EQ(client.general(port, prm::QueryHcaVportContextOut::kBytes).error, EREMOTEIO);
}

// Guards against GIDs that DEVX programs see otherwise than verbs programs do.
TEST(UverbsDevx, RoceAddresses) {
  DevxClient client(quiet_config(LinkLayer::ethernet));
  const auto& gids = client.nic->device(0).gids;
  Bytes in = mailbox_of<prm::QueryRoceAddressIn>(prm::Opcode::query_roce_address);
  for (std::size_t i = 0; i < gids.size(); ++i) {
    prm::QueryRoceAddressIn::roce_address_index::set(in.data(), i);
    const DevxReply reply = client.general(in, prm::QueryRoceAddressOut::kBytes);
    ASSERT_EQ(reply.error, 0);
    const std::uint8_t* a = prm::QueryRoceAddressOut::roce_address::at(reply.out.data());
    EXPECT_EQ(std::memcmp(prm::RoceAddress::source_l3_address::at(a), gids[i].gid.data(), 16), 0);
    EXPECT_EQ(prm::RoceAddress::roce_version::get(a), gids[i].type == GidType::roce_v2 ? 2u : 0u);
    EXPECT_EQ(prm::RoceAddress::roce_l3_type::get(a), i < 2 ? 1u : 0u);
  }
  prm::QueryRoceAddressIn::roce_address_index::set(in.data(), gids.size());
  EXPECT_EQ(client.general(in, prm::QueryRoceAddressOut::kBytes).error, EREMOTEIO);
  DevxClient infiniband;
  prm::QueryRoceAddressIn::roce_address_index::set(in.data(), 0);
  EXPECT_EQ(infiniband.general(in, prm::QueryRoceAddressOut::kBytes).error, EREMOTEIO);
}

// Guards against memory that is not there, rights without sense, and umems that go while in use.
TEST(UverbsDevx, Umems) {
  DevxClient client;
  const Pages pages(1);
  const Pages read_only(1, PROT_READ);
  EXPECT_EQ(client.reg_umem(kNowhere, 64, kAccessLocalWrite).error, EFAULT);
  EXPECT_EQ(client.reg_umem(pages.address(), 4097, kAccessLocalWrite).error, EFAULT);
  EXPECT_EQ(client.reg_umem(pages.address(), 0, kAccessLocalWrite).error, EINVAL);
  EXPECT_EQ(client.reg_umem(read_only.address(), 64, kAccessLocalWrite).error, EFAULT);
  EXPECT_EQ(client.reg_umem(read_only.address(), 64, 0).error, 0);
  EXPECT_EQ(client.reg_umem(pages.address(), 64, kAccessRemoteWrite).error, EINVAL);
  EXPECT_EQ(client.reg_umem(pages.address(), 64, 1u << 9).error, EINVAL);

  DevxQueues queues(client);
  const DevxReply cq = client.create(queues.cq_mailbox());
  ASSERT_EQ(cq.error, 0);
  EXPECT_EQ(client.dereg_umem(queues.umem.handle), EBUSY);
  EXPECT_EQ(client.destroy_object(cq.handle), 0);
  EXPECT_EQ(client.dereg_umem(queues.umem.handle), 0);
  EXPECT_EQ(client.dereg_umem(queues.umem.handle), ENOENT);
  EXPECT_EQ(client.create(queues.cq_mailbox()).status(), prm::Status::bad_resource);
}

// Guards against keys that reach behind their umem, or allow what it does not.
TEST(UverbsDevx, Mkeys) {
  DevxClient client;
  const Pages pages(2);
  const auto umem = client.reg_umem(pages.address(), pages.size(), kAccessLocalWrite);
  const auto frozen = client.reg_umem(pages.address(), pages.size(), 0);
  Bytes in = mailbox_of<prm::CreateMkeyIn>(prm::Opcode::create_mkey);
  std::uint8_t* c = prm::CreateMkeyIn::memory_key_mkey_entry::at(in.data());
  using M = prm::MkeyContext;
  M::access_mode_1_0::set(c, static_cast<std::uint64_t>(prm::MkeyAccessMode::mtt));
  M::pd::set(c, client.pd_number(client.alloc_pd()));
  M::lr::set(c, 1);
  M::lw::set(c, 1);
  M::rw::set(c, 1);
  M::qpn::set(c, 0xffffff);
  M::mkey_7_0::set(c, 0x42);
  M::start_addr::set(c, pages.address());
  M::len::set(c, pages.size());
  prm::CreateMkeyIn::mkey_umem_id::set(in.data(), umem.id);
  const DevxReply made = client.create(in);
  ASSERT_EQ(made.error, 0);
  EXPECT_NE(made.object_id(), 0u);
  EXPECT_EQ(client.dereg_umem(umem.handle), EBUSY);

  const auto refused = [&](auto change) {
    Bytes changed = in;
    change(changed.data(), prm::CreateMkeyIn::memory_key_mkey_entry::at(changed.data()));
    const DevxReply reply = client.create(changed);
    EXPECT_EQ(reply.error, EREMOTEIO);
    return reply.status();
  };
  using enum prm::Status;
  EXPECT_EQ(refused([](auto*, auto* m) { M::len::set(m, 8193); }), bad_parameter);
  EXPECT_EQ(refused([](auto*, auto* m) { M::len::set(m, UINT64_MAX); }), bad_parameter);
  EXPECT_EQ(refused([](auto*, auto* m) { M::length64::set(m, 1); }), bad_parameter);
  EXPECT_EQ(refused([](auto*, auto* m) { M::pd::set(m, 0xfffff); }), bad_parameter);
  EXPECT_EQ(refused([](auto*, auto* m) { M::access_mode_1_0::set(m, 2); }), bad_parameter);
  EXPECT_EQ(refused([](auto* i, auto*) { prm::CreateMkeyIn::mkey_umem_offset::set(i, 1); }), bad_parameter);
  EXPECT_EQ(refused([](auto* i, auto*) { prm::CreateMkeyIn::mkey_umem_offset::set(i, UINT64_MAX); }),
            bad_parameter);
  EXPECT_EQ(refused([](auto* i, auto*) { prm::CreateMkeyIn::mkey_umem_id::set(i, 999); }), bad_resource);
  EXPECT_EQ(refused([&](auto* i, auto*) { prm::CreateMkeyIn::mkey_umem_id::set(i, frozen.id); }),
            bad_resource);
  EXPECT_EQ(client.destroy_object(made.handle), 0);
  EXPECT_EQ(client.dereg_umem(umem.handle), 0);
}

// Guards against queues that lie outside their umem, or hang on objects that are not there.
TEST(UverbsDevx, QueuesAreChecked) {
  DevxClient client;
  DevxQueues queues(client);
  const auto cq_refused = [&](auto change) {
    Bytes in = queues.cq_mailbox();
    change(in.data(), prm::CreateCqIn::cq_context::at(in.data()));
    const DevxReply reply = client.create(in);
    EXPECT_EQ(reply.error, EREMOTEIO);
    return reply.status();
  };
  using enum prm::Status;
  using C = prm::CqContext;
  EXPECT_EQ(cq_refused([](auto*, auto* c) { C::log_cq_size::set(c, 31); }), bad_parameter);
  EXPECT_EQ(cq_refused([](auto*, auto* c) { C::cqe_sz::set(c, 5); }), bad_parameter);
  EXPECT_EQ(cq_refused([](auto*, auto* c) { C::cqe_comp_en::set(c, 1); }), bad_parameter);
  EXPECT_EQ(cq_refused([](auto*, auto* c) { C::uar_page::set(c, 0xffffff); }), bad_parameter);
  EXPECT_EQ(cq_refused([](auto*, auto* c) { C::dbr_umem_id::set(c, 0); }), bad_resource);
  EXPECT_EQ(cq_refused([](auto*, auto* c) { C::dbr_addr::set(c, UINT64_MAX); }), bad_parameter);
  EXPECT_EQ(cq_refused([](auto*, auto* c) { C::dbr_addr::set(c, 3); }), bad_parameter);
  EXPECT_EQ(cq_refused([](auto* i, auto*) { prm::CreateCqIn::cq_umem_offset::set(i, 4096 * 3 - 64); }),
            bad_parameter);
  EXPECT_EQ(cq_refused([](auto* i, auto*) { prm::CreateCqIn::cq_umem_id::set(i, 77); }), bad_resource);

  const DevxReply cq = client.create(queues.cq_mailbox());
  ASSERT_EQ(cq.error, 0);
  const auto qp_refused = [&](auto change) {
    Bytes in = queues.qp_mailbox(cq.object_id());
    change(in.data(), prm::CreateQpIn::qpc::at(in.data()));
    const DevxReply reply = client.create(in);
    EXPECT_EQ(reply.error, EREMOTEIO);
    return reply.status();
  };
  using Q = prm::QpContext;
  EXPECT_EQ(
      qp_refused([](auto*, auto* q) { Q::st::set(q, static_cast<std::uint64_t>(prm::ServiceType::ud)); }),
      bad_parameter);
  EXPECT_EQ(qp_refused([](auto*, auto* q) { Q::log_sq_size::set(q, 15); }), bad_parameter);
  EXPECT_EQ(qp_refused([](auto*, auto* q) { Q::pd::set(q, 0xabcdef); }), bad_parameter);
  EXPECT_EQ(qp_refused([](auto*, auto* q) { Q::cqn_snd::set(q, 0xabcdef); }), bad_parameter);
  EXPECT_EQ(qp_refused([](auto*, auto* q) { Q::uar_page::set(q, 0xabcdef); }), bad_parameter);
  EXPECT_EQ(qp_refused([](auto*, auto* q) { Q::rq_type::set(q, 1); }), bad_parameter);
  EXPECT_EQ(qp_refused([](auto*, auto* q) { Q::send_dbr_mode::set(q, 2); }), bad_parameter);
  EXPECT_EQ(qp_refused([](auto*, auto* q) { Q::dbr_umem_id::set(q, 55); }), bad_resource);
  EXPECT_EQ(qp_refused([](auto* i, auto*) { prm::CreateQpIn::wq_umem_id::set(i, 55); }), bad_resource);
  EXPECT_EQ(qp_refused([](auto* i, auto*) { prm::CreateQpIn::wq_umem_offset::set(i, UINT64_MAX - 10); }),
            bad_parameter);

  // Without a record for sends none is needed.
  Bytes recordless = queues.qp_mailbox(cq.object_id());
  std::uint8_t* q = prm::CreateQpIn::qpc::at(recordless.data());
  Q::send_dbr_mode::set(q, static_cast<std::uint64_t>(prm::SendDoorbellMode::no_record_external));
  Q::dbr_umem_id::set(q, 0);
  const DevxReply qp = client.create(recordless);
  ASSERT_EQ(qp.error, 0);
  EXPECT_EQ(client.destroy_object(cq.handle), EBUSY);
  EXPECT_EQ(client.destroy_object(qp.handle), 0);
  EXPECT_EQ(client.destroy_object(cq.handle), 0);
  EXPECT_EQ(client.destroy_object(cq.handle), ENOENT);
}

// Guards against transitions from the wrong state, for another object than the handle's, or with
// attributes that get lost on the way.
TEST(UverbsDevx, QpTransitions) {
  DevxClient client;
  DevxQueues queues(client);
  const DevxReply cq = client.create(queues.cq_mailbox());
  const DevxReply qp = client.create(queues.qp_mailbox(cq.object_id()));
  ASSERT_EQ(qp.error, 0);
  const std::uint32_t qpn = qp.object_id();
  const DevxReply early = client.modify(qp.handle, queues.transition(prm::Opcode::rtr2rts_qp, qpn));
  EXPECT_EQ(early.error, EREMOTEIO);
  EXPECT_EQ(early.status(), prm::Status::bad_qp_state);
  EXPECT_EQ(client.modify(qp.handle, queues.transition(prm::Opcode::rst2init_qp, qpn + 1)).error, EINVAL);
  EXPECT_EQ(client.modify(cq.handle, queues.transition(prm::Opcode::rst2init_qp, cq.object_id())).error,
            EINVAL);
  EXPECT_EQ(client.modify(queues.umem.handle, queues.transition(prm::Opcode::rst2init_qp, qpn)).error,
            EINVAL);
  EXPECT_EQ(client.modify(9999, queues.transition(prm::Opcode::rst2init_qp, qpn)).error, ENOENT);
  EXPECT_EQ(client.modify(qp.handle, queues.transition(prm::Opcode::query_qp, qpn)).error, EINVAL);
  Bytes wrong_port = queues.transition(prm::Opcode::rst2init_qp, qpn);
  prm::AddressPath::vhca_port_num::set(
      prm::QpContext::primary_address_path::at(prm::ModifyQpIn::qpc::at(wrong_port.data())), 2);
  EXPECT_EQ(client.modify(qp.handle, wrong_port).status(), prm::Status::bad_parameter);

  queues.connect(qp.handle, qpn);
  Bytes query = mailbox_of<prm::QueryQpIn>(prm::Opcode::query_qp);
  prm::QueryQpIn::qpn::set(query.data(), qpn);
  const DevxReply state = client.query(qp.handle, query, prm::QueryQpOut::kBytes);
  ASSERT_EQ(state.error, 0);
  const std::uint8_t* c = prm::QueryQpOut::qpc::at(state.out.data());
  using Q = prm::QpContext;
  EXPECT_EQ(Q::state::get(c), static_cast<std::uint32_t>(prm::QpcState::rts));
  EXPECT_EQ(Q::remote_qpn::get(c), qpn);
  EXPECT_EQ(Q::mtu::get(c), 3u);
  EXPECT_EQ(Q::log_sra_max::get(c), 3u);
  EXPECT_EQ(Q::log_rra_max::get(c), 4u);
  EXPECT_EQ(Q::retry_count::get(c), 5u);
  EXPECT_EQ(Q::rnr_retry::get(c), 6u);
  EXPECT_EQ(Q::min_rnr_nak::get(c), 12u);
  EXPECT_EQ(Q::next_send_psn::get(c), 0x111u);
  EXPECT_EQ(prm::AddressPath::ack_timeout::get(Q::primary_address_path::at(c)), 14u);
  EXPECT_EQ(client.query(qp.handle, query, 100).error, EINVAL);

  Bytes stop = mailbox_of<prm::StopQpIn>(prm::Opcode::to_error_qp);
  prm::StopQpIn::qpn::set(stop.data(), qpn);
  EXPECT_EQ(client.modify(qp.handle, stop).error, 0);
  const DevxReply stopped = client.query(qp.handle, query, prm::QueryQpOut::kBytes);
  EXPECT_EQ(Q::state::get(prm::QueryQpOut::qpc::at(stopped.out.data())),
            static_cast<std::uint32_t>(prm::QpcState::error));
}

// Guards against objects of verbs that DEVX cannot ask about.
TEST(UverbsDevx, VerbsQueuesAnswerQueries) {
  DevxClient client;
  const std::uint32_t cq = client.create_cq(64).core_as<ib_uverbs_create_cq_resp>().cq_handle;
  const auto qp = client.create_qp(client.alloc_pd(), cq).core_as<ib_uverbs_create_qp_resp>();
  Bytes query = mailbox_of<prm::QueryQpIn>(prm::Opcode::query_qp);
  prm::QueryQpIn::qpn::set(query.data(), qp.qpn);
  EXPECT_EQ(client.query(qp.qp_handle, query, prm::QueryQpOut::kBytes).error, 0);
}

// Guards against a PD of DEVX that verbs objects could not hang on, and a failed answer that leaks it.
TEST(UverbsDevx, Pds) {
  Config config = quiet_config();
  config.limits.pds = 1;
  DevxClient client(config);
  const Bytes in = mailbox_of<prm::AllocPdIn>(prm::Opcode::alloc_pd);
  Client::Attributes a;
  a.add(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, 0)
      .bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in)
      .add(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, kNowhere, 16);
  EXPECT_EQ(client.ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, a), EFAULT);
  const DevxReply pd = client.create(in);
  ASSERT_EQ(pd.error, 0);
  EXPECT_NE(pd.object_id(), 0u);
  const DevxReply second = client.create(in);
  EXPECT_EQ(second.error, EREMOTEIO);
  EXPECT_EQ(second.status(), prm::Status::no_resources);
  EXPECT_EQ(client.destroy_object(pd.handle), 0);
}

}  // namespace
}  // namespace belfry::softnic::test

#include "belfry/host/connection.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "belfry/host/errors.hpp"
#include "belfry/host/mtu.hpp"
#include "belfry/port/byte_order.hpp"
#include "belfry/wire/infiniband.hpp"

namespace belfry::host {

namespace {

/// How an address travels between the ends of a bootstrap.
struct EncodedAddress {
  Be32 magic;
  Be16 version;
  std::uint8_t link;
  std::uint8_t gid_type;
  Be32 qpn;
  Be32 psn;
  Be16 lid;
  Be16 path_mtu;
  std::uint8_t initiator;
  std::uint8_t responder;
  std::uint8_t reserved[2];
  std::uint8_t gid[16];
};
static_assert(sizeof(EncodedAddress) == QueueAddress::kEncodedBytes);
static_assert(offsetof(EncodedAddress, qpn) == 8 && offsetof(EncodedAddress, gid) == 24);

constexpr std::uint32_t kMagic = 0x62667161;  // "bfqa"
constexpr std::uint16_t kVersion = 1;

[[noreturn]] void refuse_address(const char* what) {
  throw Error(ErrorKind::bad_argument, std::string("the peer's queue address is not valid: ") + what,
              "Both ends must run the same version of belfry");
}

void require(bool holds, const char* parameter, const char* range) {
  if (holds) return;
  throw Error(ErrorKind::bad_argument, std::string(parameter) + " is out of range",
              std::string("It takes ") + range);
}

void check_parameters(const ConnectionParameters& p, LinkLayer link) {
  require(p.ack_timeout <= 31, "the acknowledgement timeout", "0..31, for 4.096 us << n");
  require(p.retry_count <= 7, "the retry count", "0..7");
  require(p.rnr_retry <= 7, "the RNR retry count", "0..7");
  require(p.min_rnr_timer <= 31, "the RNR timer", "0..31, a code of IBTA table 45");
  require(p.service_level <= (link == LinkLayer::ethernet ? 7 : 15), "the service level",
          "0..15, on Ethernet 0..7");
  require(p.flow_label <= 0xfffff, "the flow label", "20 bits");
}

bool is_ipv4(const Gid& gid) { return scope_of(gid) == GidScope::ipv4; }

[[noreturn]] void refuse_pair(const std::string& why, const std::string& remedy) {
  throw Error(ErrorKind::not_reachable, "the two ends cannot be connected: " + why, remedy);
}

std::string name_of(const QueueAddress& address) {
  return format_gid(address.gid) + " (" + std::string(to_string(address.gid_type)) + ")";
}

void check_pair(const QueueAddress& local, const QueueAddress& remote) {
  if (local.link != remote.link) {
    refuse_pair("this end's port is " + std::string(to_string(local.link)) + ", the peer's is " +
                    std::string(to_string(remote.link)),
                "Choose ports of one network (BELFRY_NIC=NAME:PORT)");
  }
  if (local.link == LinkLayer::ethernet) {
    if (local.gid_type != remote.gid_type || is_ipv4(local.gid) != is_ipv4(remote.gid)) {
      refuse_pair("this end uses " + name_of(local) + ", the peer " + name_of(remote),
                  "Choose GIDs of one RoCE version and address family on both ends (BELFRY_GID_INDEX)");
    }
    if (scope_of(remote.gid) == GidScope::empty)
      refuse_pair("the peer's GID is empty", "Check its RoCE address");
    return;
  }
  if (local.lid == 0 || remote.lid == 0) {
    refuse_pair(local.lid == 0 ? "this end's port has no LID" : "the peer's port has no LID",
                "A subnet manager must run, and the port be active (`ibv_devinfo`)");
  }
}

/// InfiniBand needs a GRH only across subnets, which differ in the GID's prefix.
bool needs_grh(const QueueAddress& local, const QueueAddress& remote) {
  if (local.link == LinkLayer::ethernet) return true;
  return !std::equal(local.gid.begin(), local.gid.begin() + 8, remote.gid.begin()) &&
         scope_of(local.gid) != GidScope::empty && scope_of(remote.gid) != GidScope::empty;
}

}  // namespace

QueueAddress::Encoded QueueAddress::encode() const {
  EncodedAddress raw{};
  raw.magic.set(kMagic);
  raw.version.set(kVersion);
  raw.link = static_cast<std::uint8_t>(link);
  raw.gid_type = static_cast<std::uint8_t>(gid_type);
  raw.qpn.set(qpn);
  raw.psn.set(psn);
  raw.lid.set(lid);
  raw.path_mtu.set(path_mtu);
  raw.initiator = depth.initiator;
  raw.responder = depth.responder;
  std::memcpy(raw.gid, gid.data(), gid.size());
  Encoded bytes;
  std::memcpy(bytes.data(), &raw, sizeof raw);
  return bytes;
}

QueueAddress QueueAddress::decode(std::span<const std::byte> bytes) {
  if (bytes.size() != kEncodedBytes) refuse_address("wrong length");
  EncodedAddress raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic.get() != kMagic) refuse_address("not an address of belfry");
  if (raw.version.get() != kVersion) refuse_address("another version");
  if (raw.link > 1 || raw.gid_type > 2) refuse_address("unknown link layer or GID type");
  if (raw.qpn.get() > wire::kQpnMask || raw.psn.get() > wire::kPsnMask)
    refuse_address("QPN or PSN above 24 bits");
  if (mtu_code(raw.path_mtu.get()) == 0) refuse_address("no path MTU");
  QueueAddress address;
  address.qpn = raw.qpn.get();
  address.psn = raw.psn.get();
  address.lid = raw.lid.get();
  address.link = static_cast<LinkLayer>(raw.link);
  address.gid_type = static_cast<GidType>(raw.gid_type);
  std::memcpy(address.gid.data(), raw.gid, address.gid.size());
  address.path_mtu = raw.path_mtu.get();
  address.depth = {raw.initiator, raw.responder};
  return address;
}

ConnectionPlan plan_connection(const QueueAddress& local, const QueueAddress& remote,
                               const ConnectionParameters& parameters) {
  check_parameters(parameters, local.link);
  check_pair(local, remote);
  const MtuChoice mtu = agree_mtu(local.path_mtu, remote.path_mtu);
  ConnectionPlan plan;
  plan.remote = remote;
  plan.parameters = parameters;
  plan.path_mtu = mtu.bytes;
  plan.depth = agree_read_atomic_depth(local.depth, remote.depth);
  plan.global = needs_grh(local, remote);
  plan.decisions = {mtu.reason, describe(plan.depth)};
  return plan;
}

std::uint32_t random_psn() {
  std::random_device source;
  return source() & wire::kPsnMask;
}

}  // namespace belfry::host

#include "softnic/uverbs/devx_opcodes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace belfry::softnic {
namespace {

using Code = std::uint16_t;

/// Everything from here to there is passed on as general.
constexpr Code kGeneralStart = 0xb00;
constexpr Code kGeneralEnd = 0xd00;

/// Commands that any context may issue, made for DEVX or not.
constexpr std::array<Code, 4> kForEveryone{
    0x100,  // QUERY_HCA_CAP
    0x740,  // QUERY_ESW_FUNCTIONS
    0x752,  // QUERY_ESW_VPORT_CONTEXT
    0x762,  // QUERY_HCA_VPORT_CONTEXT
};

constexpr std::array<Code, 17> kDeviceQueries{
    0x100, 0x101, 0x10a,         // QUERY_HCA_CAP, _ADAPTER, _ISSI
    0x740, 0x750, 0x752, 0x754,  // QUERY_ESW_FUNCTIONS, _VPORT_STATE, _ESW_VPORT_CONTEXT, _NIC_VPORT_CONTEXT
    0x760, 0x762, 0x76f, 0x770,  // QUERY_ROCE_ADDRESS, _HCA_VPORT_CONTEXT, _VNIC_ENV, _VPORT_COUNTER
    0x80a, 0x80d,                // GET_DROPPED_PACKET_LOG, NOP
    0x822, 0x824, 0x826, 0x842,  // QUERY_CONG_STATUS, _CONG_PARAMS, _CONG_STATISTICS, _LAG
};

constexpr std::array<Code, 29> kCreations{
    0x200, 0x400, 0x500, 0x600,  // MKEY, CQ, QP, PSV
    0x700, 0x705, 0x710, 0x717,  // SRQ, XRC_SRQ, DCT, XRQ
    0x771, 0x782,                // Q_COUNTER, SCHEDULING_ELEMENT
    0x800, 0x806, 0x80e, 0x816,
    0x827, 0x829,  // PD, MCG, XRCD, TRANSPORT_DOMAIN, VXLAN_UDP_DPORT, L2_TABLE_ENTRY
    0x900, 0x904, 0x908, 0x90c,
    0x912, 0x916,  // TIR, SQ, RQ, RMP, TIS, RQT
    0x930, 0x933, 0x936, 0x939,
    0x93d, 0x940,  // FLOW_TABLE, _GROUP, _ENTRY, _COUNTER, PACKET_REFORMAT, MODIFY_HEADER
    0xa00,         // GENERAL_OBJECT
};

constexpr std::array<Code, 28> kModifications{
    0x403, 0x502, 0x503, 0x504, 0x505, 0x506, 0x507, 0x50a, 0x50e,  // MODIFY_CQ; transitions of a QP
    0x703, 0x708, 0x714, 0x71a, 0x726, 0x729, 0x72a,                // ARM_RQ, _XRC_SRQ, _DCT, _XRQ; XRQ's own
    0x785, 0x827, 0x829,                       // SCHEDULING_ELEMENT, VXLAN_UDP_DPORT, L2_TABLE_ENTRY
    0x901, 0x905, 0x909, 0x90d, 0x913, 0x917,  // TIR, SQ, RQ, RMP, TIS, RQT
    0x936, 0x93c, 0xa01,                       // FLOW_TABLE_ENTRY, FLOW_TABLE, GENERAL_OBJECT
};

constexpr std::array<Code, 25> kQueries{
    0x201, 0x402, 0x50b,  // MKEY, CQ, QP
    0x702, 0x707, 0x713, 0x719, 0x725, 0x727, 0x773,
    0x784, 0x82a,                                     // SRQ ... XRQ, Q_COUNTER, element, L2 entry
    0x903, 0x907, 0x90b, 0x90f, 0x915, 0x919,         // TIR, SQ, RQ, RMP, TIS, RQT
    0x932, 0x935, 0x937, 0x93b, 0x93f, 0x942, 0xa02,  // flow objects, GENERAL_OBJECT
};

template <std::size_t N>
bool contains(const std::array<Code, N>& codes, wire::prm::Opcode opcode) {
  return std::find(codes.begin(), codes.end(), static_cast<Code>(opcode)) != codes.end();
}

}  // namespace

bool queries_device(wire::prm::Opcode opcode) {
  const auto code = static_cast<Code>(opcode);
  return (code >= kGeneralStart && code < kGeneralEnd) || contains(kDeviceQueries, opcode);
}
bool open_to_everyone(wire::prm::Opcode opcode) { return contains(kForEveryone, opcode); }
bool creates_object(wire::prm::Opcode opcode) { return contains(kCreations, opcode); }
bool modifies_object(wire::prm::Opcode opcode) { return contains(kModifications, opcode); }
bool queries_object(wire::prm::Opcode opcode) { return contains(kQueries, opcode); }

}  // namespace belfry::softnic

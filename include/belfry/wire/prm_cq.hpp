#pragma once
/// \file
/// PRM commands of completion queues. Offsets: Linux, include/linux/mlx5/mlx5_ifc.h; the umem fields,
/// as_notify and cq_timestamp_format: rdma-core, tests/mlx5_prm_structs.py.

#include <cstdint>

#include "belfry/wire/prm_command.hpp"

// Fields keep the PRM's own lower-case names.
// NOLINTBEGIN(readability-identifier-naming)
namespace belfry::wire::prm {

enum class CqStatus : std::uint8_t { ok = 0, overflow = 9, write_failed = 10 };
enum class CqeSize : std::uint8_t { bytes_64 = 0, bytes_128 = 1, bytes_128_padded = 2 };
enum class CqState : std::uint8_t { idle = 0, armed_solicited = 6, armed = 9, fired = 10 };

/// Completion queue context.
struct CqContext {
  static constexpr std::uint32_t kBytes = 64;
  using status = PrmField<0x000, 4>;  ///< CqStatus
  using as_notify = PrmField<0x004, 1>;
  using dbr_umem_valid = PrmField<0x006, 1>;
  using cqe_sz = PrmField<0x008, 3>;  ///< CqeSize
  using cc = PrmField<0x00b, 1>;      ///< collapsed: every CQE goes to entry 0
  using scqe_break_moderation_en = PrmField<0x00d, 1>;
  using oi = PrmField<0x00e, 1>;  ///< overrun ignore: the consumer index is not looked at
  using cq_period_mode = PrmField<0x00f, 2>;
  using cqe_comp_en = PrmField<0x011, 1>;
  using mini_cqe_res_format = PrmField<0x012, 2>;
  using st = PrmField<0x014, 4>;  ///< CqState
  using dbr_umem_id = PrmField<0x020, 32>;
  using page_offset = PrmField<0x054, 6>;
  using cq_timestamp_format = PrmField<0x05e, 2>;
  using log_cq_size = PrmField<0x063, 5>;  ///< entries
  using uar_page = PrmField<0x068, 24>;
  using cq_period = PrmField<0x084, 12>;
  using cq_max_count = PrmField<0x090, 16>;
  using c_eqn = PrmField<0x0b8, 8>;
  using log_page_size = PrmField<0x0c3, 5>;  ///< minus 12
  using last_notified_index = PrmField<0x108, 24>;
  using last_solicit_index = PrmField<0x128, 24>;
  using consumer_counter = PrmField<0x148, 24>;
  using producer_counter = PrmField<0x168, 24>;
  using dbr_addr = PrmField<0x1c0, 64>;  ///< address, or the offset in dbr_umem_id
};
static_assert(CqContext::uar_page::kEnd == 0x10 * 8 && CqContext::c_eqn::kEnd == 0x18 * 8);
static_assert(CqContext::dbr_addr::kEnd == CqContext::kBytes * 8);

struct CreateCqIn : CommandIn {
  static constexpr std::uint32_t kBytes = 272;  ///< page addresses follow where there is no umem
  using cq_context = PrmPart<0x080, CqContext>;
  using cq_umem_offset = PrmField<0x280, 64>;
  using cq_umem_id = PrmField<0x2c0, 32>;
  using cq_umem_valid = PrmField<0x2e0, 1>;
};
static_assert(CreateCqIn::cq_context::kEnd == CreateCqIn::cq_umem_offset::kBit);
static_assert(CreateCqIn::cq_umem_offset::kEnd == CreateCqIn::cq_umem_id::kBit);
static_assert(CreateCqIn::cq_umem_id::kEnd == CreateCqIn::cq_umem_valid::kBit);

struct CreateCqOut : CommandOut {
  using cqn = PrmField<0x048, 24>;
};

struct DestroyCqIn : CommandIn {
  using cqn = PrmField<0x048, 24>;
};
struct DestroyCqOut : CommandOut {};

struct QueryCqIn : CommandIn {
  using cqn = PrmField<0x048, 24>;
};
struct QueryCqOut : CommandOut {
  static constexpr std::uint32_t kBytes = 272;
  using cq_context = PrmPart<0x080, CqContext>;
};
static_assert(QueryCqOut::cq_context::kEnd == 0x280);

/// op_mod of MODIFY_CQ; the two read field_select differently.
inline constexpr std::uint16_t kModifyCqFields = 0;
inline constexpr std::uint16_t kModifyCqResize = 1;
/// field_select with kModifyCqFields.
inline constexpr std::uint32_t kModifyCqPeriod = 1u << 0;
inline constexpr std::uint32_t kModifyCqMaxCount = 1u << 1;
inline constexpr std::uint32_t kModifyCqOverrunIgnore = 1u << 2;
inline constexpr std::uint32_t kModifyCqPeriodMode = 1u << 4;
/// field_select with kModifyCqResize.
inline constexpr std::uint32_t kResizeCqLogSize = 1u << 0;
inline constexpr std::uint32_t kResizeCqPageOffset = 1u << 1;
inline constexpr std::uint32_t kResizeCqPageSize = 1u << 2;

struct ModifyCqIn : CommandIn {
  static constexpr std::uint32_t kBytes = 272;
  using cqn = PrmField<0x048, 24>;
  using field_select = PrmField<0x060, 32>;
  using cq_context = PrmPart<0x080, CqContext>;
  using cq_umem_offset = PrmField<0x280, 64>;
  using cq_umem_id = PrmField<0x2c0, 32>;
  using cq_umem_valid = PrmField<0x2e0, 1>;
};
static_assert(ModifyCqIn::field_select::kEnd == ModifyCqIn::cq_context::kBit);
struct ModifyCqOut : CommandOut {};

}  // namespace belfry::wire::prm
// NOLINTEND(readability-identifier-naming)

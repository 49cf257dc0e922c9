#pragma once
/// \file
/// PRM commands of memory keys. Offsets: Linux, include/linux/mlx5/mlx5_ifc.h; mkey_umem_id and
/// mkey_umem_offset: rdma-core, tests/mlx5_prm_structs.py.

#include <cstdint>

#include "belfry/wire/prm_command.hpp"

// Fields keep the PRM's own lower-case names.
// NOLINTBEGIN(readability-identifier-naming)
namespace belfry::wire::prm {

/// How a key's addresses are translated: access_mode_4_2 << 2 | access_mode_1_0.
enum class MkeyAccessMode : std::uint8_t {
  physical = 0,
  mtt = 1,  ///< pages of one size
  klm = 2,  ///< a list of (key, length, address)
  ksm = 3,  ///< a list of equally long pieces
  software_icm = 4,
  device_memory = 5,
};

/// Memory key context.
struct MkeyContext {
  static constexpr std::uint32_t kBytes = 64;
  using free = PrmField<0x001, 1>;
  using access_mode_4_2 = PrmField<0x003, 3>;
  using relaxed_ordering_write = PrmField<0x00d, 1>;
  using small_fence_on_rdma_read_response = PrmField<0x00f, 1>;
  using umr_en = PrmField<0x010, 1>;
  using a = PrmField<0x011, 1>;   ///< remote atomic
  using rw = PrmField<0x012, 1>;  ///< remote write
  using rr = PrmField<0x013, 1>;  ///< remote read
  using lw = PrmField<0x014, 1>;  ///< local write
  using lr = PrmField<0x015, 1>;  ///< local read
  using access_mode_1_0 = PrmField<0x016, 2>;
  using qpn = PrmField<0x020, 24>;  ///< 0xffffff: any QP of the domain
  using mkey_7_0 = PrmField<0x038, 8>;
  using length64 = PrmField<0x060, 1>;  ///< the whole address space; len is ignored
  using bsf_en = PrmField<0x061, 1>;
  using en_rinval = PrmField<0x067, 1>;
  using pd = PrmField<0x068, 24>;
  using start_addr = PrmField<0x080, 64>;
  using len = PrmField<0x0c0, 64>;
  using bsf_octword_size = PrmField<0x100, 32>;
  using translations_octword_size = PrmField<0x1a0, 32>;  ///< in 16 B units
  using relaxed_ordering_read = PrmField<0x1d9, 1>;
  /// Five bits; devices with umr_log_entity_size_5 take a sixth above it.
  using log_page_size = PrmField<0x1db, 5>;
};
static_assert(MkeyContext::start_addr::kEnd == MkeyContext::len::kBit);
static_assert(MkeyContext::log_page_size::kEnd == 0x3c * 8 && MkeyContext::kBytes == 0x40);

struct CreateMkeyIn : CommandIn {
  static constexpr std::uint32_t kBytes = 272;  ///< the translation list follows
  using pg_access = PrmField<0x060, 1>;
  using mkey_umem_valid = PrmField<0x061, 1>;  ///< translations come from mkey_umem_id
  using memory_key_mkey_entry = PrmPart<0x080, MkeyContext>;
  using translations_octword_actual_size = PrmField<0x300, 32>;
  using mkey_umem_id = PrmField<0x320, 32>;
  using mkey_umem_offset = PrmField<0x340, 64>;
};
static_assert(CreateMkeyIn::memory_key_mkey_entry::kEnd == 0x280);
static_assert(CreateMkeyIn::translations_octword_actual_size::kEnd == CreateMkeyIn::mkey_umem_id::kBit);
static_assert(CreateMkeyIn::mkey_umem_id::kEnd == CreateMkeyIn::mkey_umem_offset::kBit);

struct CreateMkeyOut : CommandOut {
  using mkey_index = PrmField<0x048, 24>;  ///< the key is mkey_index << 8 | mkey_7_0
};

struct DestroyMkeyIn : CommandIn {
  using mkey_index = PrmField<0x048, 24>;
};
struct DestroyMkeyOut : CommandOut {};

struct QueryMkeyIn : CommandIn {
  using mkey_index = PrmField<0x048, 24>;
};
struct QueryMkeyOut : CommandOut {
  static constexpr std::uint32_t kBytes = 304;
  using memory_key_mkey_entry = PrmPart<0x080, MkeyContext>;
};
static_assert(QueryMkeyOut::memory_key_mkey_entry::kEnd <= QueryMkeyOut::kBytes * 8);

}  // namespace belfry::wire::prm
// NOLINTEND(readability-identifier-naming)

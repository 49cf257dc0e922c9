#include "belfry/host/memory.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "belfry/host/errors.hpp"
#include "belfry/port/byte_order.hpp"
#include "host/host_allocation.hpp"
#include "host/queue_layout.hpp"

namespace belfry::host {

namespace {

struct EncodedWindow {
  Be32 magic;
  Be32 rkey;
  Be64 address;
  Be64 length;
};
static_assert(sizeof(EncodedWindow) == WindowDescription::kEncodedBytes);

constexpr std::uint32_t kMagic = 0x62667764;  // "bfwd"

}  // namespace

WindowDescription::Encoded WindowDescription::encode() const {
  const EncodedWindow raw{Be32(kMagic), Be32(rkey), Be64(address), Be64(length)};
  Encoded bytes;
  std::memcpy(bytes.data(), &raw, sizeof raw);
  return bytes;
}

WindowDescription WindowDescription::decode(std::span<const std::byte> bytes) {
  EncodedWindow raw;
  if (bytes.size() == sizeof raw) {
    std::memcpy(&raw, bytes.data(), sizeof raw);
    if (raw.magic.get() == kMagic) return {raw.address.get(), raw.length.get(), raw.rkey.get()};
  }
  throw Error(ErrorKind::bad_argument, "the peer's window description is not valid",
              "Both ends must run the same version of belfry");
}

Memory::Memory(const ProtectionDomain& domain, std::shared_ptr<void> storage, void* address,
               std::size_t bytes, Access access)
    : address_(address), bytes_(bytes), owns_(storage != nullptr) {
  if (address == nullptr || bytes == 0) {
    throw Error(ErrorKind::bad_argument, "a memory region of " + std::to_string(bytes) + " bytes",
                "A region has an address and at least 1 byte");
  }
  const bool needs_local_write = has(access, Access::remote_write) || has(access, Access::remote_atomic);
  if (needs_local_write && !has(access, Access::local_write)) {
    throw Error(ErrorKind::bad_argument, "remote writes or atomics without local_write",
                "Add Access::local_write: verbs demand it");
  }
  errno = 0;
  ibv_mr* region = ibv_reg_mr(domain.get(), address, bytes, static_cast<int>(access));
  if (region == nullptr) {
    throw verbs_error(VerbsCall::reg_mr, errno != 0 ? errno : EIO, "a region of " + format_bytes(bytes),
                      bytes);
  }
  region_ = {region, [domain, kept = std::move(storage)](ibv_mr* r) { ibv_dereg_mr(r); }};
}

Memory Memory::allocate(const ProtectionDomain& domain, std::size_t bytes, Access access,
                        const AllocationOptions& options) {
  std::shared_ptr<void> storage = allocate_host(bytes, options.alignment, options.huge_pages);
  void* address = storage.get();
  return {domain, std::move(storage), address, bytes, access};
}

Memory Memory::allocate_from(const ProtectionDomain& domain, QueueMemory& provider, std::size_t bytes,
                             Access access) {
  const std::size_t pages = bytes / kPageBytes + (bytes % kPageBytes != 0 ? 1 : 0);
  std::shared_ptr<void> storage = bytes != 0 ? provider.allocate(pages * kPageBytes) : nullptr;
  void* address = storage.get();
  return {domain, std::move(storage), address, bytes, access};
}

Memory Memory::adopt(const ProtectionDomain& domain, void* address, std::size_t bytes, Access access) {
  return {domain, nullptr, address, bytes, access};
}

WindowDescription Memory::window() const {
  return {reinterpret_cast<std::uint64_t>(address_), bytes_, region_->rkey};
}

}  // namespace belfry::host

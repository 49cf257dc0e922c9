#include "softnic/gpu/gpu_payload.hpp"

#include <algorithm>
#include <cstring>

#include "softnic/firmware/memory_fault.hpp"
#include "softnic/firmware/mover.hpp"
#include "softnic/gpu/gpu_copiers.hpp"

namespace belfry::softnic {

namespace {

// Staging memory: what is on its way to the GPU, what was read ahead, and what stage() copies.
constexpr std::size_t kAheadAt = kGpuStagedBytes;
constexpr std::size_t kPartsAt = 2 * kGpuStagedBytes;
static_assert(kPartsAt + kGpuStagedBytes <= kGpuStagingBytes - kBetweenBytes);

/// From here on a copy of its own costs less than to gather staged bytes with others.
constexpr std::size_t kGoesAlone = 16 << 10;

/// Huge where `address` lies before `begin`.
std::uint64_t offset_of(const void* begin, const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin);
}

bool overlap(const void* a, const void* b, std::size_t bytes) {
  return offset_of(a, b) < bytes || offset_of(b, a) < bytes;
}

}  // namespace

void GpuPayload::add(const MkeyEntry& key) {
  const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(key.memory);
  ranges_.push_back({begin, begin + key.length, key.key, key.owner});
  find_bounds();
}

void GpuPayload::remove(const MkeyEntry& key) {
  std::erase_if(ranges_, [&](const Range& range) { return range.key == key.key; });
  find_bounds();
}

void GpuPayload::find_bounds() {
  lowest_ = ranges_.empty() ? 0 : ~std::uint64_t{0};
  std::uint64_t highest = 0;
  for (const Range& range : ranges_) {
    lowest_ = std::min(lowest_, range.begin);
    highest = std::max(highest, range.end);
  }
  reach_ = highest - lowest_;
}

MemoryOwner GpuPayload::find_owner(std::uint64_t address) const {
  const auto found = std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return address >= range.begin && address < range.end;
  });
  return found == ranges_.end() ? kHostMemory : found->owner;
}

void GpuPayload::move(unsigned char* to, const unsigned char* from, std::size_t bytes) {
  if (bytes == 0) return;
  const MemoryOwner source = owner_of(from);
  if (is_gpu(source)) return move_from_gpu(source, to, from, bytes);
  const MemoryOwner owner = owner_of(to);
  if (is_gpu(owner)) return gather(owner, to, from, bytes);
  flush();
  move_payload(to, from, bytes);
}

void GpuPayload::move_from_gpu(MemoryOwner source, unsigned char* to, const unsigned char* from,
                               std::size_t bytes) {
  flush();  // it may lie in what is read
  if (owner_of(to) == source && !overlap(to, from, bytes)) {
    if (!copiers_.between(source, to, from, bytes)) memory_fault::raise();
    return;
  }
  unsigned char* const staged = copiers_.staging() + kPartsAt;
  while (bytes != 0) {
    const std::size_t some = std::min(bytes, kGpuStagedBytes);
    download(source, staged, from, some);
    move(to, staged, some);
    to += some;
    from += some;
    bytes -= some;
  }
}

std::uint64_t GpuPayload::update(unsigned char* at, wire::WqeOpcode opcode, const AtomicOperands& operands) {
  flush();
  forget_ahead();
  std::uint64_t former = 0;
  if (!copiers_.update(owner_of(at), at, opcode, operands, &former)) memory_fault::raise();
  return former;
}

void GpuPayload::gather(MemoryOwner owner, unsigned char* to, const unsigned char* from, std::size_t bytes) {
  if (bytes >= kGoesAlone && offset_of(copiers_.staging(), from) < kGpuStagingBytes) {
    flush();
    return upload(owner, to, from, bytes);
  }
  while (bytes != 0) {
    if (pending_bytes_ == kGpuStagedBytes || to != pending_to_ + pending_bytes_ || owner != pending_owner_)
      flush();
    if (pending_bytes_ == 0) {
      pending_owner_ = owner;
      pending_to_ = to;
    }
    const std::size_t some = std::min(bytes, kGpuStagedBytes - pending_bytes_);
    std::memcpy(copiers_.staging() + pending_bytes_, from, some);
    pending_bytes_ += some;
    to += some;
    from += some;
    bytes -= some;
  }
}

void GpuPayload::flush() {
  if (pending_bytes_ == 0) return;
  const std::size_t bytes = pending_bytes_;
  pending_bytes_ = 0;  // also where the copy fails
  upload(pending_owner_, pending_to_, copiers_.staging(), bytes);
}

void GpuPayload::upload(MemoryOwner owner, unsigned char* to, const unsigned char* staged,
                        std::size_t bytes) {
  if (!copiers_.to_gpu(owner, to, staged, bytes)) memory_fault::raise();
}

void GpuPayload::download(MemoryOwner owner, unsigned char* staged, const unsigned char* from,
                          std::size_t bytes) {
  if (!copiers_.from_gpu(owner, staged, from, bytes)) memory_fault::raise();
}

void GpuPayload::stage(FramePart* parts, std::uint32_t count) {
  unsigned char* at = copiers_.staging() + kPartsAt;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const unsigned char*>(parts[i].data);
    const std::size_t bytes = parts[i].bytes;
    const MemoryOwner owner = bytes == 0 ? kHostMemory : owner_of(from);
    if (!is_gpu(owner)) continue;
    const std::uint64_t offset = offset_of(ahead_from_, from);
    if (offset < ahead_bytes_ && bytes <= ahead_bytes_ - offset) {
      parts[i].data = copiers_.staging() + kAheadAt + offset;
      continue;
    }
    download(owner, at, from, bytes);
    parts[i].data = at;
    at += bytes;
  }
}

void GpuPayload::vouch(const FramePart& part) {
  const MemoryOwner owner = part.bytes == 0 ? kHostMemory : owner_of(part.data);
  if (!is_gpu(owner)) return touch(&part, 1);
  if (copiers_.holds(owner, part.data, part.bytes)) return;
  // Gone, or of a kind that only a copy can tell of.
  const auto* from = static_cast<const unsigned char*>(part.data);
  download(owner, copiers_.staging() + kPartsAt, from, 1);
  download(owner, copiers_.staging() + kPartsAt, from + part.bytes - 1, 1);
}

void GpuPayload::read_ahead(const FramePart& part) {
  forget_ahead();
  const MemoryOwner owner = part.bytes == 0 ? kHostMemory : owner_of(part.data);
  if (!is_gpu(owner)) return;
  const auto* from = static_cast<const unsigned char*>(part.data);
  const std::size_t bytes = std::min(part.bytes, kGpuStagedBytes);
  download(owner, copiers_.staging() + kAheadAt, from, bytes);
  ahead_from_ = from;
  ahead_bytes_ = bytes;
}

}  // namespace belfry::softnic

#include "softnic/preload/descriptors.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "softnic/preload/process.hpp"
#include "softnic/preload/real.hpp"

namespace belfry::softnic::preload {

constinit std::atomic<std::uint16_t> descriptor_table[kMostDescriptors]{};

namespace {

/// Slots are reused but never freed, so that a thread may touch one that another has just released: it
/// then finds no references, or a table entry that has changed, and lets go. Slot 0 is "foreign".
constexpr unsigned kSlots = 16384;
constinit OpenFile slots[kSlots]{};
constinit std::atomic<std::uint32_t> never_used{1};

/// Head of the stack of released slots: the index in the low half, a change count in the high half, so
/// that a pop cannot take a head that has gone and come back.
constinit std::atomic<std::uint64_t> released{0};

/// No descriptor at or above it was ever ours: closing ranges need not look there.
constinit std::atomic<unsigned> past_highest{0};

OpenFile* pop_released() {
  std::uint64_t head = released.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(head) != 0) {
    OpenFile& slot = slots[static_cast<std::uint32_t>(head)];
    const std::uint64_t below = slot.next_free.load(std::memory_order_relaxed);
    const std::uint64_t next = ((head >> 32) + 1) << 32 | below;
    if (released.compare_exchange_weak(head, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
      return &slot;
    }
  }
  return nullptr;
}

OpenFile* take_slot() {
  if (OpenFile* slot = pop_released()) return slot;
  std::uint32_t index = never_used.load(std::memory_order_relaxed);
  while (index < kSlots) {
    if (never_used.compare_exchange_weak(index, index + 1, std::memory_order_relaxed)) return &slots[index];
  }
  return nullptr;
}

void push_released(OpenFile& slot) {
  const auto index = static_cast<std::uint64_t>(&slot - slots);
  std::uint64_t head = released.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    slot.next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    next = ((head >> 32) + 1) << 32 | index;
  } while (!released.compare_exchange_weak(head, next, std::memory_order_acq_rel, std::memory_order_relaxed));
}

void drop(OpenFile& slot) {
  if (slot.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::shared_ptr<UverbsFile>* uverbs = std::exchange(slot.uverbs, nullptr);
  // A parent's file is left as it is: its locks may be held by threads that do not exist here.
  const bool ours = slot.generation == process_generation();
  push_released(slot);
  if (!ours || uverbs == nullptr) return;
  const int saved = errno;  // the caller's result stands
  delete uverbs;
  errno = saved;
}

/// Takes a reference if the slot still has one.
bool acquire(OpenFile& slot) {
  std::uint32_t count = slot.references.load(std::memory_order_relaxed);
  while (count != 0) {
    if (slot.references.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

/// Whether the descriptor still is of the file that it was published with. It is not if it was closed
/// where we cannot see it (a plain system call, the C library's own close) and its number used again.
bool same_backing(int fd, const OpenFile& file) {
  struct stat now;
  const int saved = errno;
  const bool same =
      real().fstat(fd, &now) == 0 && now.st_dev == file.backing_device && now.st_ino == file.backing_inode;
  errno = saved;
  return same;
}

void set_entry(int fd, std::uint16_t index) {
  const std::uint16_t before = descriptor_table[fd].exchange(index, std::memory_order_acq_rel);
  if (before != 0) drop(slots[before]);
}

void raise_highest(int fd) {
  unsigned past = past_highest.load(std::memory_order_relaxed);
  const unsigned wanted = static_cast<unsigned>(fd) + 1;
  while (past < wanted && !past_highest.compare_exchange_weak(past, wanted, std::memory_order_relaxed)) {
  }
}

}  // namespace

FileReference::~FileReference() {
  if (file_ != nullptr) drop(*file_);
}

FileReference look_up(int fd) {
  if (is_foreign(fd)) return {};
  for (;;) {
    const std::uint16_t index = descriptor_table[fd].load(std::memory_order_acquire);
    if (index == 0) return {};
    OpenFile& slot = slots[index];
    if (!acquire(slot)) continue;  // being closed: the entry is about to change
    FileReference reference(&slot);
    if (descriptor_table[fd].load(std::memory_order_acquire) != index) continue;
    if (same_backing(fd, slot)) return reference;
    std::uint16_t stale = index;
    if (owns_its_memory() && descriptor_table[fd].compare_exchange_strong(stale, 0)) drop(slot);
    return {};
  }
}

int publish(int fd, const Node& node, std::shared_ptr<UverbsFile> uverbs) {
  if (static_cast<unsigned>(fd) >= kMostDescriptors) return EMFILE;
  struct stat backing;
  if (real().fstat(fd, &backing) != 0) return errno;
  std::shared_ptr<UverbsFile>* held = nullptr;
  if (uverbs != nullptr) {
    held = new (std::nothrow) std::shared_ptr<UverbsFile>(std::move(uverbs));
    if (held == nullptr) return ENOMEM;
  }
  OpenFile* slot = take_slot();
  if (slot == nullptr) {
    delete held;
    return ENFILE;
  }
  slot->node = &node;
  slot->uverbs = held;
  slot->generation = process_generation();
  slot->backing_device = backing.st_dev;
  slot->backing_inode = backing.st_ino;
  slot->references.store(1, std::memory_order_release);
  raise_highest(fd);
  set_entry(fd, static_cast<std::uint16_t>(slot - slots));
  return 0;
}

void share(int fd, int copy) {
  if ((is_foreign(fd) && is_foreign(copy)) || fd == copy || !owns_its_memory()) return;
  const FileReference file = look_up(fd);
  if (static_cast<unsigned>(copy) >= kMostDescriptors) return;
  std::uint16_t index = 0;
  if (file) {
    index = static_cast<std::uint16_t>(&*file - slots);
    acquire(slots[index]);
    raise_highest(copy);
  }
  set_entry(copy, index);
}

void forget(int fd) {
  if (is_foreign(fd) || !owns_its_memory()) return;
  set_entry(fd, 0);
}

void forget_range(unsigned first, unsigned last) {
  const unsigned end = past_highest.load(std::memory_order_relaxed);
  if (first >= end || !owns_its_memory()) return;
  last = std::min(last, end - 1);
  for (unsigned fd = first; fd <= last; ++fd) {
    if (descriptor_table[fd].load(std::memory_order_relaxed) != 0) set_entry(static_cast<int>(fd), 0);
  }
}

}  // namespace belfry::softnic::preload

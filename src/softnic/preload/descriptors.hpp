#pragma once
/// \file
/// Which of the process's file descriptors are ours. A descriptor that is not costs one relaxed load.
///
/// Descriptors are real ones (of memfds), so that close-on-exec, select and the rest work as always; this
/// table says what they stand for. Nothing here locks, and only publish() allocates: close() and write()
/// are called from signal handlers and between fork() and exec().

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "softnic/preload/vfs.hpp"
#include "softnic/uverbs/file.hpp"

namespace belfry::softnic::preload {

/// What descriptors that dup() made of one another share, like the kernel's struct file.
struct OpenFile {
  std::atomic<std::uint32_t> references{0};
  std::atomic<std::uint32_t> next_free{0};
  const Node* node = nullptr;
  std::shared_ptr<UverbsFile>* uverbs = nullptr;  ///< only of devices
  std::uint32_t generation = 0;                   ///< process_generation() at its opening
  dev_t backing_device = 0;                       ///< of the real file behind the descriptor
  ino_t backing_inode = 0;
};

/// Keeps an OpenFile alive during a call, even if another thread closes the descriptor.
class FileReference {
 public:
  FileReference() = default;
  explicit FileReference(OpenFile* file) : file_(file) {}
  FileReference(FileReference&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
  FileReference& operator=(FileReference&&) = delete;
  ~FileReference();

  explicit operator bool() const { return file_ != nullptr; }
  const OpenFile* operator->() const { return file_; }
  const OpenFile& operator*() const { return *file_; }

 private:
  OpenFile* file_ = nullptr;
};

inline constexpr unsigned kMostDescriptors = 1u << 20;
extern std::atomic<std::uint16_t> descriptor_table[kMostDescriptors];

inline bool is_foreign(int fd) {
  return static_cast<unsigned>(fd) >= kMostDescriptors ||
         descriptor_table[fd].load(std::memory_order_relaxed) == 0;
}

/// \return empty for a foreign descriptor
FileReference look_up(int fd);

/// Says what a fresh descriptor stands for. \return 0, or ENFILE, EMFILE (then the caller closes it)
int publish(int fd, const Node& node, std::shared_ptr<UverbsFile> uverbs);

/// Lets `copy` (a descriptor that dup() has just made) stand for the same as `fd`, or for nothing.
void share(int fd, int copy);

/// Before the real close(): from now on `fd` is foreign. The last descriptor of a device destroys its
/// UverbsFile, unless that is the parent's.
void forget(int fd);

/// forget() for first..last, both included.
void forget_range(unsigned first, unsigned last);

}  // namespace belfry::softnic::preload

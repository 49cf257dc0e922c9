#pragma once
/// \file
/// What sanitizers have to be told of fibers. Without a sanitizer all of it is nothing.
///
/// TSan takes each lane for a thread of its own, and a switch between lanes orders nothing, so that it finds
/// the races that the same code would have on a GPU. What collectives order is told to it in so many words.

#if defined(__SANITIZE_THREAD__)
#define BELFRY_LANES_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define BELFRY_LANES_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BELFRY_LANES_TSAN 1
#elif __has_feature(address_sanitizer)
#define BELFRY_LANES_ASAN 1
#endif
#endif

#if defined(BELFRY_LANES_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#elif defined(BELFRY_LANES_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/// Of a function that begins as one lane and ends as another, or never: TSan does not look into it.
#if defined(BELFRY_LANES_TSAN)
#define BELFRY_LANES_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define BELFRY_LANES_NO_TSAN
#endif

namespace belfry::lanes {

/// What this thread did before is seen by whoever acquires the tag later.
inline void tsan_release([[maybe_unused]] void* tag) {
#if defined(BELFRY_LANES_TSAN)
  __tsan_release(tag);
#endif
}

inline void tsan_acquire([[maybe_unused]] void* tag) {
#if defined(BELFRY_LANES_TSAN)
  __tsan_acquire(tag);
#endif
}

/// While it lives, TSan does not look at this lane's plain accesses: the runner's own tables belong to the
/// CPU thread, whichever of its lanes touches them.
class [[maybe_unused]] RunnerSection {
 public:
#if defined(BELFRY_LANES_TSAN)
  RunnerSection() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~RunnerSection() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  RunnerSection() = default;
  ~RunnerSection() = default;
#endif
  RunnerSection(const RunnerSection&) = delete;
  RunnerSection& operator=(const RunnerSection&) = delete;
};

}  // namespace belfry::lanes

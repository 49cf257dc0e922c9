#pragma once
/// \file
/// A descriptor from which an application reads events: the completion channel, the channel of
/// asynchronous events, and the one of DEVX. Behind it is a socket pair of the kind that keeps records
/// apart, so that one read returns one event, as the kernel's event files do.

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "softnic/result.hpp"

namespace belfry::softnic {

class EventChannel {
 public:
  static constexpr std::size_t kMaxRecordBytes = 80;

  enum class Purpose : std::uint8_t { asynchronous, completion, devx };

  /// \param record_bytes of every record that this channel carries, at most kMaxRecordBytes
  /// \param[out] application the descriptor for the application, which closes it when it likes
  /// \return EMFILE or ENFILE: no descriptors left
  static Result<std::shared_ptr<EventChannel>> create(Purpose purpose, std::size_t record_bytes,
                                                      int& application);

  ~EventChannel();
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  /// Queues one record. Never blocks: what the descriptor cannot take waits here, in order, for a
  /// thread of the channel's own to pass it on.
  /// \param source whom withdraw() names; the address is compared, not used
  void post(const void* source, const void* record) noexcept;

  /// Takes back the records of `source` that the application has not read.
  /// \return how many it has read since the source's first post or last withdrawal
  std::uint32_t withdraw(const void* source);

  Purpose purpose() const { return purpose_; }
  std::size_t record_bytes() const { return record_bytes_; }

  /// Whether `descriptor` is the application's end of this channel.
  bool is(int descriptor) const;

  /// Whether the application still has the descriptor that it got.
  bool held_by_application() const { return is(application_); }

 private:
  using Record = std::array<std::byte, kMaxRecordBytes>;
  struct Event {
    const void* source;
    Record record;
  };

  EventChannel(Purpose purpose, std::size_t record_bytes, int application, int own_end,
               int copy_of_application);
  bool send(const Event& event);
  void flush();
  void forget_read();
  void start_pump();
  void pump();

  const Purpose purpose_;
  const std::size_t record_bytes_;
  const int application_;  ///< a number that may have been closed or reused since
  const int writer_;
  const int reader_;  ///< a second descriptor of the application's end, to take records back
  std::uint64_t identity_ = 0;

  std::mutex mutex_;
  std::condition_variable backlogged_;
  std::deque<Event> sent_;  ///< the records in the socket, oldest first; some may be read
  std::size_t forget_at_ = 64;
  std::deque<Event> backlog_;
  std::unordered_map<const void*, std::uint32_t> sent_by_source_;
  bool stop_ = false;
  std::thread pump_;
};

}  // namespace belfry::softnic

#include "softnic/uverbs/event_channel.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <vector>

namespace belfry::softnic {
namespace {

// Direct system calls where the C function may be interposed by our own preload library; and where what they
// make is closed by one, or TSan takes the next user of the number for a user of this one.
void close_descriptor(int descriptor) { ::syscall(SYS_close, descriptor); }

std::uint64_t inode_of(int descriptor) {
  struct stat status {};
  if (descriptor < 0 || ::syscall(SYS_fstat, descriptor, &status) != 0) return 0;
  return S_ISSOCK(status.st_mode) ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace

Result<std::shared_ptr<EventChannel>> EventChannel::create(Purpose purpose, std::size_t record_bytes,
                                                           int& application) {
  int ends[2];
  if (::syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Errno{errno};
  const long copy = ::syscall(SYS_fcntl, ends[1], F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    const int error = errno;
    close_descriptor(ends[0]);
    close_descriptor(ends[1]);
    return Errno{error};
  }
  application = ends[1];
  return std::shared_ptr<EventChannel>(
      new EventChannel(purpose, record_bytes, ends[1], ends[0], static_cast<int>(copy)));
}

EventChannel::EventChannel(Purpose purpose, std::size_t record_bytes, int application, int own_end,
                           int copy_of_application)
    : purpose_(purpose),
      record_bytes_(record_bytes),
      application_(application),
      writer_(own_end),
      reader_(copy_of_application),
      identity_(inode_of(copy_of_application)) {}

EventChannel::~EventChannel() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  backlogged_.notify_all();
  ::shutdown(writer_, SHUT_RDWR);  // ends a poll() of the pump
  if (pump_.joinable()) pump_.join();
  close_descriptor(writer_);
  close_descriptor(reader_);
}

bool EventChannel::is(int descriptor) const { return identity_ != 0 && inode_of(descriptor) == identity_; }

void EventChannel::post(const void* source, const void* record) noexcept {
  try {
    Event event{source, {}};
    std::memcpy(event.record.data(), record, record_bytes_);
    const std::lock_guard lock(mutex_);
    flush();
    if (backlog_.empty() && send(event)) return;
    backlog_.push_back(event);
    start_pump();
  } catch (const std::bad_alloc&) {
    // Without memory the event is dropped, as the kernel drops it.
  }
}

bool EventChannel::send(const Event& event) {
  const ssize_t sent = ::send(writer_, event.record.data(), record_bytes_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(record_bytes_)) return false;
  sent_.push_back(event);
  ++sent_by_source_[event.source];
  if (sent_.size() >= forget_at_) forget_read();
  return true;
}

/// Passes on what waits, as far as the socket takes it.
void EventChannel::flush() {
  while (!backlog_.empty() && send(backlog_.front())) backlog_.pop_front();
}

/// Drops the records that the application has read from the list of those in the socket.
void EventChannel::forget_read() {
  int unread_bytes = 0;
  if (::syscall(SYS_ioctl, reader_, SIOCINQ, &unread_bytes) != 0) return;
  const std::size_t unread = static_cast<std::size_t>(unread_bytes) / record_bytes_;
  while (sent_.size() > unread) sent_.pop_front();
  forget_at_ = sent_.size() * 2 + 64;
}

std::uint32_t EventChannel::withdraw(const void* source) {
  const std::lock_guard lock(mutex_);
  std::erase_if(backlog_, [source](const Event& e) { return e.source == source; });
  const auto found = sent_by_source_.find(source);
  if (found == sent_by_source_.end()) return 0;
  const std::uint32_t sent = found->second;

  // Everything unread comes out of the socket. It is the tail of what was sent, unless the application reads
  // beside us: then a record's own bytes say whose it is. What is not the source's goes back in, in front of
  // anything newer.
  std::vector<Record> unread;
  Record record{};
  while (::recv(reader_, record.data(), record_bytes_, MSG_DONTWAIT) > 0) unread.push_back(record);
  const std::deque<Event> known = std::move(sent_);
  sent_.clear();

  std::uint32_t removed = 0;
  std::deque<Event> again;
  auto at = known.end() - static_cast<std::ptrdiff_t>(std::min(unread.size(), known.size()));
  for (const Record& r : unread) {
    const auto same = [&](const Event& e) {
      return std::memcmp(e.record.data(), r.data(), record_bytes_) == 0;
    };
    auto event = std::find_if(at, known.end(), same);
    if (event == known.end()) event = std::find_if(known.begin(), known.end(), same);
    if (event == known.end()) continue;
    at = event + 1;
    --sent_by_source_[event->source];
    if (event->source == source) {
      ++removed;
    } else {
      again.push_back(*event);
    }
  }
  sent_by_source_.erase(source);
  again.insert(again.end(), backlog_.begin(), backlog_.end());
  backlog_ = std::move(again);
  flush();
  if (!backlog_.empty()) start_pump();
  return sent - removed;
}

void EventChannel::start_pump() {
  if (!pump_.joinable()) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the application's threads' business
    try {
      pump_ = std::thread([this] { pump(); });
    } catch (const std::system_error&) {
      // No thread to be had: the next post or withdrawal passes the backlog on.
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  backlogged_.notify_one();
}

void EventChannel::pump() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    backlogged_.wait(lock, [this] { return stop_ || !backlog_.empty(); });
    if (stop_) return;
    lock.unlock();
    pollfd writable{writer_, POLLOUT, 0};
    ::poll(&writable, 1, -1);
    lock.lock();
    if (!stop_) flush();
  }
}

}  // namespace belfry::softnic

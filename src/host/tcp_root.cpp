// Rank 0 of a TCP bootstrap: admits the others, collects their blobs, sends everybody all of them.

#include <poll.h>

#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <utility>

#include "belfry/host/errors.hpp"
#include "belfry/host/tcp_bootstrap.hpp"
#include "host/tcp_frame.hpp"

namespace belfry::host {

namespace {

constexpr std::chrono::seconds kHelloTime{10};  // for a connection to say who it is
constexpr std::chrono::seconds kAbortTime{1};   // spent at most on telling a leaf why all is over
constexpr std::size_t kMaxStrangers = 256;      // connections that have not said who they are

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  constexpr std::size_t kShown = 16;
  for (std::size_t i = 0; i < ranks.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kShown) text += " and " + std::to_string(ranks.size() - kShown) + " more";
  return text;
}

class TcpRoot final : public Bootstrap {
 public:
  TcpRoot(int size) : leaves_(static_cast<std::size_t>(size)) {}

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(leaves_.size()); }
  std::vector<Blob> all_gather(std::span<const std::byte> mine, Deadline deadline) override;

  void admit_all(TcpListener listener, Deadline deadline);

 private:
  struct Stranger {
    Channel channel;
    Deadline deadline;
  };

  void accept_strangers(int listener);
  void hear_strangers();
  void hear_members();
  /// \return true once it is a member or gone
  bool hear_stranger(Stranger& stranger);
  void refuse(Channel& channel, const std::string& why);
  void wait_for_joining(int listener, Deadline deadline);
  std::vector<int> missing_members() const;

  void collect(std::vector<std::optional<Blob>>& blobs, Deadline deadline);
  void wait_for_leaves(Deadline deadline);
  void take_contributions(std::vector<std::optional<Blob>>& blobs);
  void send_results(const std::vector<Blob>& all, Deadline deadline);

  /// Tells every leaf, closes, and throws.
  [[noreturn]] void break_up(const Error& error);

  std::vector<Channel> leaves_;  ///< by rank; 0 is unused
  std::list<Stranger> strangers_;
  std::string last_refusal_;
  std::uint64_t sequence_ = 0;
  std::optional<Error> broken_;
};

void TcpRoot::admit_all(TcpListener listener, Deadline deadline) {
  while (!missing_members().empty()) {
    if (Clock::now() >= deadline) {
      std::string message = "rank 0 waited in vain at " + listener.address().to_string() + " for " +
                            list_ranks(missing_members());
      if (!last_refusal_.empty()) message += " (the last connection refused: " + last_refusal_ + ")";
      break_up({ErrorKind::timed_out, message,
                "See whether they run and reach that address; BELFRY_BOOTSTRAP_TIMEOUT allows more time"});
    }
    wait_for_joining(listener.descriptor(), deadline);
    accept_strangers(listener.descriptor());
    hear_members();
    hear_strangers();
  }
  strangers_.clear();
  for (std::size_t rank = 1; rank < leaves_.size(); ++rank) {
    if (const int code = leaves_[rank].write(FrameKind::welcome, 0, {}, deadline); code != 0) {
      break_up({ErrorKind::not_reachable,
                "rank " + std::to_string(rank) + " left while the group was forming",
                "Its own error says why", code});
    }
  }
}

std::vector<int> TcpRoot::missing_members() const {
  std::vector<int> missing;
  for (std::size_t rank = 1; rank < leaves_.size(); ++rank) {
    if (!leaves_[rank].open()) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

void TcpRoot::wait_for_joining(int listener, Deadline deadline) {
  std::vector<pollfd> entries = {{listener, POLLIN, 0}};
  for (const Stranger& stranger : strangers_) {
    entries.push_back({stranger.channel.descriptor(), POLLIN, 0});
    deadline = std::min(deadline, stranger.deadline);
  }
  for (const Channel& leaf : leaves_) {
    if (leaf.open()) entries.push_back({leaf.descriptor(), POLLIN, 0});
  }
  ::poll(entries.data(), entries.size(), poll_timeout(deadline));
}

void TcpRoot::accept_strangers(int listener) {
  while (Descriptor socket = accept_connection(listener)) {
    if (strangers_.size() == kMaxStrangers) strangers_.pop_front();
    strangers_.push_back({Channel(std::move(socket)), deadline_after(kHelloTime)});
  }
}

void TcpRoot::hear_strangers() {
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    stranger = hear_stranger(*stranger) ? strangers_.erase(stranger) : std::next(stranger);
  }
}

bool TcpRoot::hear_stranger(Stranger& stranger) {
  Frame frame;
  switch (stranger.channel.read(frame)) {
    case ChannelState::nothing:
      if (Clock::now() < stranger.deadline) return false;
      last_refusal_ = "it never said who it is";
      return true;
    case ChannelState::closed:
      return true;
    case ChannelState::garbage:
      last_refusal_ = "it speaks another protocol";
      return true;
    case ChannelState::frame:
      break;
  }
  Hello hello;
  if (frame.kind != FrameKind::hello || frame.payload.size() != sizeof hello) {
    refuse(stranger.channel, "it did not begin with a greeting");
    return true;
  }
  std::memcpy(&hello, frame.payload.data(), sizeof hello);
  const std::uint32_t rank = hello.rank.get();
  if (hello.size.get() != leaves_.size()) {
    refuse(stranger.channel, "rank " + std::to_string(rank) + " expects a group of " +
                                 std::to_string(hello.size.get()) + ", rank 0 one of " +
                                 std::to_string(leaves_.size()));
  } else if (rank == 0 || rank >= leaves_.size()) {
    refuse(stranger.channel, "there is no free rank " + std::to_string(rank) + " in a group of " +
                                 std::to_string(leaves_.size()));
  } else if (leaves_[rank].open()) {
    refuse(stranger.channel, "rank " + std::to_string(rank) + " is in the group already");
  } else {
    leaves_[rank] = std::move(stranger.channel);
  }
  return true;
}

void TcpRoot::refuse(Channel& channel, const std::string& why) {
  last_refusal_ = why;
  channel.write(FrameKind::refusal, 0, as_payload(why), deadline_after(kAbortTime));
  channel.close();
}

/// A member that leaves before the group is complete can come again.
void TcpRoot::hear_members() {
  for (Channel& leaf : leaves_) {
    Frame frame;
    if (leaf.open() && leaf.read(frame) != ChannelState::nothing) leaf.close();
  }
}

std::vector<Blob> TcpRoot::all_gather(std::span<const std::byte> mine, Deadline deadline) {
  if (broken_) throw Error(*broken_);
  if (mine.size() > kMaxBlobBytes) {
    throw Error(ErrorKind::bad_argument, "a blob of " + format_bytes(mine.size()),
                "The limit is " + format_bytes(kMaxBlobBytes));
  }
  ++sequence_;
  std::vector<std::optional<Blob>> blobs(leaves_.size());
  blobs[0] = Blob(mine.begin(), mine.end());
  collect(blobs, deadline);
  std::vector<Blob> all;
  all.reserve(blobs.size());
  for (auto& blob : blobs) all.push_back(std::move(*blob));
  send_results(all, deadline);
  return all;
}

void TcpRoot::collect(std::vector<std::optional<Blob>>& blobs, Deadline deadline) {
  for (;;) {
    take_contributions(blobs);
    std::vector<int> missing;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
      if (!blobs[rank]) missing.push_back(static_cast<int>(rank));
    }
    if (missing.empty()) return;
    if (Clock::now() >= deadline) {
      break_up({ErrorKind::timed_out, "rank 0 waited in vain for " + list_ranks(missing),
                "Raise the deadline, or see why they do not come"});
    }
    wait_for_leaves(deadline);
  }
}

void TcpRoot::wait_for_leaves(Deadline deadline) {
  std::vector<pollfd> entries;
  for (const Channel& leaf : leaves_) {
    if (leaf.open()) entries.push_back({leaf.descriptor(), POLLIN, 0});
  }
  ::poll(entries.data(), entries.size(), poll_timeout(deadline));
}

void TcpRoot::take_contributions(std::vector<std::optional<Blob>>& blobs) {
  for (std::size_t rank = 1; rank < leaves_.size(); ++rank) {
    Frame frame;
    const std::string name = "rank " + std::to_string(rank);
    switch (leaves_[rank].read(frame)) {
      case ChannelState::nothing:
        continue;
      case ChannelState::closed:
        break_up({ErrorKind::not_reachable, name + " has left or died",
                  "Its own error, or its exit status, says why"});
      case ChannelState::garbage:
        break_up({ErrorKind::not_reachable, name + " sent something that is no frame",
                  "All ranks must run the same version of belfry"});
      case ChannelState::frame:
        break;
    }
    if (frame.kind != FrameKind::contribution || frame.sequence != sequence_ || blobs[rank]) {
      break_up({ErrorKind::bad_argument, name + " is in another exchange than rank 0",
                "Every rank must make the same calls in the same order"});
    }
    blobs[rank] = std::move(frame.payload);
  }
}

void TcpRoot::send_results(const std::vector<Blob>& all, Deadline deadline) {
  Blob payload;
  for (const Blob& blob : all) {
    const Be64 bytes(blob.size());
    const auto raw = std::as_bytes(std::span(&bytes, 1));
    payload.insert(payload.end(), raw.begin(), raw.end());
  }
  for (const Blob& blob : all) payload.insert(payload.end(), blob.begin(), blob.end());
  if (payload.size() > kMaxResultBytes) {
    break_up({ErrorKind::bad_argument, "the blobs of all ranks together are " + format_bytes(payload.size()),
              "The limit is " + format_bytes(kMaxResultBytes)});
  }
  for (std::size_t rank = 1; rank < leaves_.size(); ++rank) {
    const int code = leaves_[rank].write(FrameKind::result, sequence_, payload, deadline);
    if (code == 0) continue;
    break_up({code == ETIMEDOUT ? ErrorKind::timed_out : ErrorKind::not_reachable,
              "rank " + std::to_string(rank) +
                  (code == ETIMEDOUT ? " does not take its results" : " has left or died"),
              "Its own error, or its exit status, says why", code});
  }
}

void TcpRoot::break_up(const Error& error) {
  const Be32 kind(static_cast<std::uint32_t>(error.kind()));
  const auto head = std::as_bytes(std::span(&kind, 1));
  const auto text = as_payload(error.message());
  Blob payload(head.begin(), head.end());
  payload.insert(payload.end(), text.begin(),
                 text.begin() + std::min(text.size(), kMaxTextBytes - head.size()));
  const Deadline deadline = deadline_after(kAbortTime);
  for (Channel& leaf : leaves_) {
    if (leaf.open()) leaf.write(FrameKind::abort, sequence_, payload, deadline);
    leaf.close();
  }
  broken_ = error;
  throw Error(error);
}

}  // namespace

std::unique_ptr<Bootstrap> make_tcp_root(TcpListener listener, int size, Deadline deadline) {
  if (size < 1 || size > 65536) {
    throw Error(ErrorKind::bad_argument, "a group of " + std::to_string(size) + " ranks", "It has 1..65536");
  }
  auto root = std::make_unique<TcpRoot>(size);
  root->admit_all(std::move(listener), deadline);
  return root;
}

}  // namespace belfry::host

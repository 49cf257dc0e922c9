// Any rank but 0 of a TCP bootstrap.

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "belfry/host/errors.hpp"
#include "belfry/host/tcp_bootstrap.hpp"
#include "host/tcp_frame.hpp"

namespace belfry::host {

namespace {

constexpr std::chrono::milliseconds kFirstPause{10};
constexpr std::chrono::milliseconds kLongestPause{500};
constexpr std::chrono::seconds kConnectTime{5};  // for one try, so that a lost SYN is not the end

/// An error that rank 0 told.
Error told_error(const Frame& frame) {
  Be32 kind(static_cast<std::uint32_t>(ErrorKind::not_reachable));
  std::string text = "rank 0 ended the exchange";
  if (frame.payload.size() >= sizeof kind) {
    std::memcpy(&kind, frame.payload.data(), sizeof kind);
    text = frame.text().substr(sizeof kind);
  }
  const bool timed_out = kind.get() == static_cast<std::uint32_t>(ErrorKind::timed_out);
  const bool bad_argument = kind.get() == static_cast<std::uint32_t>(ErrorKind::bad_argument);
  return {timed_out      ? ErrorKind::timed_out
          : bad_argument ? ErrorKind::bad_argument
                         : ErrorKind::not_reachable,
          "rank 0 ended the exchange: " + text, "Look at the rank that it names first"};
}

Error lost_root() {
  return {ErrorKind::not_reachable, "rank 0 has left or died", "Its own error, or its exit status, says why"};
}

Error no_belfry(const TcpAddress& address) {
  return {ErrorKind::not_reachable,
          "what listens at " + address.to_string() + " is no bootstrap of this version of belfry",
          "Check BELFRY_BOOTSTRAP_ADDRESS, and that all ranks run the same version"};
}

/// \param payload every length, then every blob
/// \return nothing if it does not add up
std::optional<std::vector<Blob>> take_apart(std::span<const std::byte> payload, int size) {
  const std::size_t count = static_cast<std::size_t>(size);
  if (payload.size() < count * sizeof(Be64)) return std::nullopt;
  std::span<const std::byte> rest = payload.subspan(count * sizeof(Be64));
  std::vector<Blob> all;
  all.reserve(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    Be64 bytes;
    std::memcpy(&bytes, payload.data() + rank * sizeof bytes, sizeof bytes);
    if (bytes.get() > rest.size()) return std::nullopt;
    const auto blob = rest.first(bytes.get());
    all.emplace_back(blob.begin(), blob.end());
    rest = rest.subspan(blob.size());
  }
  if (!rest.empty()) return std::nullopt;
  return all;
}

class TcpLeaf final : public Bootstrap {
 public:
  TcpLeaf(Channel root, int rank, int size) : root_(std::move(root)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::vector<Blob> all_gather(std::span<const std::byte> mine, Deadline deadline) override {
    if (broken_) throw Error(*broken_);
    if (mine.size() > kMaxBlobBytes) {
      throw Error(ErrorKind::bad_argument, "a blob of " + format_bytes(mine.size()),
                  "The limit is " + format_bytes(kMaxBlobBytes));
    }
    ++sequence_;
    // A failed write is not reported yet: rank 0 may have said why before it closed.
    const int code = root_.write(FrameKind::contribution, sequence_, mine, deadline);
    Frame frame;
    const ChannelState state = root_.read(frame, deadline);
    if (state == ChannelState::nothing || code == ETIMEDOUT) {
      leave({ErrorKind::timed_out, "rank " + std::to_string(rank_) + " waited in vain for rank 0",
             "Raise the deadline, or see which rank does not come"});
    }
    if (state != ChannelState::frame) leave(lost_root());
    if (frame.kind == FrameKind::abort) leave(told_error(frame));
    std::optional<std::vector<Blob>> all;
    if (frame.kind == FrameKind::result && frame.sequence == sequence_)
      all = take_apart(frame.payload, size_);
    if (!all) {
      leave({ErrorKind::bad_argument, "rank 0 answered with something else than this exchange's result",
             "All ranks must run the same version of belfry"});
    }
    return std::move(*all);
  }

 private:
  /// Closing tells rank 0, which tells the others.
  [[noreturn]] void leave(const Error& error) {
    root_.close();
    broken_ = error;
    throw Error(error);
  }

  Channel root_;
  int rank_;
  int size_;
  std::uint64_t sequence_ = 0;
  std::optional<Error> broken_;
};

/// Greets rank 0 and waits for the group to be complete.
/// \return false if the connection closed before an answer: worth another try
bool join(Channel& channel, const TcpAddress& address, int rank, int size, Deadline deadline) {
  const Hello hello{Be32(static_cast<std::uint32_t>(rank)), Be32(static_cast<std::uint32_t>(size))};
  // As above: an answer may be there even if the greeting could not be written.
  channel.write(FrameKind::hello, 0, std::as_bytes(std::span(&hello, 1)), deadline);
  Frame frame;
  switch (channel.read(frame, deadline)) {
    case ChannelState::closed:
      return false;
    case ChannelState::garbage:
      throw no_belfry(address);
    case ChannelState::nothing:
      throw Error(ErrorKind::timed_out,
                  "rank " + std::to_string(rank) + " reached rank 0 at " + address.to_string() +
                      ", and the group of " + std::to_string(size) + " was not complete in time",
                  "See which other ranks are missing; rank 0's error names them");
    case ChannelState::frame:
      break;
  }
  if (frame.kind == FrameKind::welcome) return true;
  if (frame.kind == FrameKind::refusal) {
    throw Error(ErrorKind::bad_argument, "rank 0 refused this rank: " + std::string(frame.text()),
                "Check BELFRY_BOOTSTRAP_RANK and BELFRY_BOOTSTRAP_SIZE on every rank");
  }
  if (frame.kind == FrameKind::abort) throw told_error(frame);
  throw no_belfry(address);
}

}  // namespace

std::unique_ptr<Bootstrap> make_tcp_leaf(const TcpAddress& address, int rank, int size, Deadline deadline) {
  if (size < 2 || size > 65536 || rank < 1 || rank >= size) {
    throw Error(ErrorKind::bad_argument,
                "rank " + std::to_string(rank) + " of a group of " + std::to_string(size),
                "A rank that connects is 1..size-1");
  }
  std::string problem = "no try was made";
  auto pause = kFirstPause;
  do {
    ConnectAttempt attempt = connect_once(address, std::min(deadline, deadline_after(kConnectTime)));
    if (attempt.bad_name) {
      throw Error(ErrorKind::bad_argument, "cannot resolve " + address.to_string() + ": " + attempt.problem,
                  "Check BELFRY_BOOTSTRAP_ADDRESS");
    }
    if (attempt.socket) {
      Channel channel(std::move(attempt.socket));
      if (join(channel, address, rank, size, deadline)) {
        return std::make_unique<TcpLeaf>(std::move(channel), rank, size);
      }
      attempt.problem = "the connection was closed before an answer";
    }
    problem = attempt.problem;
    std::this_thread::sleep_until(std::min(deadline, deadline_after(pause)));
    pause = std::min(pause * 2, kLongestPause);
  } while (Clock::now() < deadline);
  throw Error(
      ErrorKind::timed_out,
      "rank " + std::to_string(rank) + " could not join rank 0 at " + address.to_string() + ": " + problem,
      "Start rank 0, check that its address is reachable from here, and that the group was not complete "
      "before (a late rank cannot join)");
}

std::unique_ptr<Bootstrap> make_tcp_bootstrap(const Environment& environment) {
  std::string unset;
  const auto require = [&](bool is_set, const char* name) {
    if (!is_set) unset += (unset.empty() ? "" : ", ") + std::string(name);
  };
  require(environment.bootstrap_address.has_value(), "BELFRY_BOOTSTRAP_ADDRESS");
  require(environment.bootstrap_rank.has_value(), "BELFRY_BOOTSTRAP_RANK");
  require(environment.bootstrap_size.has_value(), "BELFRY_BOOTSTRAP_SIZE");
  if (!unset.empty()) {
    const std::string& launcher = environment.launcher;
    throw Error(ErrorKind::bad_argument,
                "not set: " + unset + (launcher.empty() ? "" : ", and " + launcher + " does not tell it"),
                "Set BELFRY_BOOTSTRAP_ADDRESS=HOST:PORT of rank 0" +
                    std::string(launcher.empty()
                                    ? ", _RANK and _SIZE on every rank, or use a launcher: belfry launch, "
                                      "mpirun, srun or torchrun"
                                    : " on every rank"));
  }
  const TcpAddress address = TcpAddress::parse(*environment.bootstrap_address);
  const Deadline deadline = deadline_after(environment.bootstrap_timeout);
  if (*environment.bootstrap_rank == 0) {
    return make_tcp_root(TcpListener(address), *environment.bootstrap_size, deadline);
  }
  return make_tcp_leaf(address, *environment.bootstrap_rank, *environment.bootstrap_size, deadline);
}

}  // namespace belfry::host

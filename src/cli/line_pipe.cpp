#include "cli/line_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace belfry::cli {
namespace {

void close_if_open(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

/// What cannot be written (a closed terminal) is lost: the ranks go on.
void write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t wrote = write(fd, text.data() + at, text.size() - at);
    if (wrote > 0) {
      at += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

LinePipe::LinePipe(std::string prefix, int out) : prefix_(std::move(prefix)), out_(out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  read_ = ends[0];
  write_ = ends[1];
  fcntl(read_, F_SETFL, O_NONBLOCK);
}

LinePipe::~LinePipe() {
  close_if_open(read_);
  close_if_open(write_);
}

LinePipe::LinePipe(LinePipe&& other) noexcept
    : prefix_(std::move(other.prefix_)),
      held_(std::move(other.held_)),
      out_(other.out_),
      read_(std::exchange(other.read_, -1)),
      write_(std::exchange(other.write_, -1)) {}

void LinePipe::close_write_end() { close_if_open(write_); }

void LinePipe::drain() {
  if (read_ < 0) return;
  char buffer[16384];
  for (;;) {
    const ssize_t got = read(read_, buffer, sizeof buffer);
    if (got > 0) {
      held_.append(buffer, static_cast<std::size_t>(got));
      pass_on(false);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) finish();
    return;
  }
}

void LinePipe::finish() {
  pass_on(true);
  close_if_open(read_);
}

void LinePipe::pass_on(bool all) {
  std::string text;
  std::size_t begin = 0;
  for (std::size_t end; (end = held_.find('\n', begin)) != held_.npos; begin = end + 1)
    text.append(prefix_).append(held_, begin, end + 1 - begin);
  if (all && begin < held_.size()) {
    text.append(prefix_).append(held_, begin).append("\n");
    begin = held_.size();
  }
  held_.erase(0, begin);
  write_all(out_, text);
}

}  // namespace belfry::cli

#include "softnic/verbs/target.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

extern char** environ;

namespace belfry::softnic::test {

namespace {

bool read_all(int fd, void* data, std::size_t bytes) {
  auto* p = static_cast<char*>(data);
  while (bytes != 0) {
    const ssize_t n = ::read(fd, p, bytes);
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* data, std::size_t bytes) {
  return ::send(fd, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

Answer execute(Endpoint& e, const Request& r) {
  Answer answer;
  switch (r.command) {
    case Command::fill:
      fill(e.memory + r.a, r.b, r.c);
      break;
    case Command::checksum:
      answer.value = checksum(e.memory + r.a, r.b);
      break;
    case Command::set:
      std::memcpy(e.memory + r.a, &r.b, 8);
      break;
    case Command::get:
      std::memcpy(&answer.value, e.memory + r.a, 8);
      break;
    case Command::post_receive:
      e.post_receive(r.a, static_cast<std::uint32_t>(r.b));
      break;
    case Command::receive: {
      const ibv_wc wc = e.complete();
      answer.bytes = wc.byte_len;
      answer.immediate = wc.imm_data;
      answer.opcode = wc.opcode;
      answer.status = wc.status;
      break;
    }
    case Command::connect:
      break;
  }
  return answer;
}

}  // namespace

void serve(int socket, const Options& options) {
  Endpoint endpoint(options);
  Request request;
  while (read_all(socket, &request, sizeof request)) {
    if (request.command == Command::connect) {
      Address peer;
      if (!read_all(socket, &peer, sizeof peer)) return;
      if (endpoint.qp->state != IBV_QPS_RESET) endpoint.make_qp();
      endpoint.connect(peer);
      const Address own = endpoint.address();
      if (!write_all(socket, &own, sizeof own)) return;
      continue;
    }
    const Answer answer = execute(endpoint, request);
    if (!write_all(socket, &answer, sizeof answer)) return;
  }
}

Target::Target(Kind kind, const Options& options) {
  int ends[2];
  checked(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
  socket_ = ends[0];
  if (kind == Kind::thread) {
    thread_ = std::thread([fd = ends[1], options] {
      serve(fd, options);
      ::close(fd);
    });
    return;
  }
  std::string bytes = std::to_string(options.bytes);
  char* arguments[] = {const_cast<char*>(BELFRY_VERBS_TARGET), bytes.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  const int result = ::posix_spawn(&pid_, BELFRY_VERBS_TARGET, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  checked(result, "posix_spawn");
}

Target::~Target() {
  ::close(socket_);
  if (thread_.joinable()) thread_.join();
  if (pid_ > 0) {
    int status;
    ::waitpid(pid_, &status, 0);
  }
}

Address Target::connect(Endpoint& endpoint) {
  const Request request{Command::connect};
  const Address own = endpoint.address();
  Address peer;
  if (!write_all(socket_, &request, sizeof request) || !write_all(socket_, &own, sizeof own) ||
      !read_all(socket_, &peer, sizeof peer))
    throw std::runtime_error("the target does not answer");
  endpoint.connect(peer);
  return peer;
}

Answer Target::ask(Command command, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const Request request{command, 0, a, b, c};
  Answer answer;
  if (!write_all(socket_, &request, sizeof request) || !read_all(socket_, &answer, sizeof answer))
    throw std::runtime_error("the target does not answer");
  return answer;
}

void Target::kill() {
  ::kill(pid_, SIGKILL);
  int status;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
}

}  // namespace belfry::softnic::test

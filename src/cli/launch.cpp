/// \file
/// `belfry launch -n N -- COMMAND [ARGS]`: N ranks of a program on this host.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/program.hpp"
#include "cli/rank_group.hpp"
#include "softnic/config.hpp"

namespace belfry::cli {
namespace {

constexpr const char* kDescription =
    "Run N processes of a program on this host as the ranks of one group: each gets BELFRY_BOOTSTRAP_RANK, "
    "_SIZE and "
    "_ADDRESS, and on the software NIC all share a fabric of their own. The first rank that fails ends the "
    "others, and "
    "nothing is left behind";

constexpr const char* kFooter =
    "Examples:\n"
    "  belfry launch -n 2 -- belfry bench op\n"
    "  belfry launch -n 4 --prefix -- ./my_program --size 1M\n"
    "\n"
    "Ranks have an empty stdin. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to all of them, and after "
    "the grace\n"
    "they are killed; SIGUSR1 and SIGUSR2 are passed on.\n"
    "Programs that use belfry's bootstrap also know mpirun (OpenMPI), srun (Slurm) and torchrun as "
    "launchers.\n"
    "\n"
    "Exit code: that of the rank that failed first (128 + signal if a signal ended it); 0 if all ended well; "
    "127 if\n"
    "the command is not found, 126 if it cannot be executed, 2 if an option is wrong.\n";

struct Options {
  int ranks = 0;
  bool prefix = false;
  unsigned grace = 5;
  std::vector<std::string> command;  ///< as CLI11 sees it
};

/// A free port of 127.0.0.1, bound for as long as this lives and never listened to: so nobody else is given
/// it, and rank 0 can still listen there, for both sockets allow the address to be reused.
class HeldPort {
 public:
  HeldPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    if (fd_ < 0 || setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
      const int error = errno;
      if (fd_ >= 0) close(fd_);
      throw std::system_error(error, std::generic_category(), "cannot get a port of 127.0.0.1 for the ranks");
    }
    number_ = ntohs(address.sin_port);
  }
  ~HeldPort() { close(fd_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int number() const { return number_; }

 private:
  int fd_;
  int number_ = 0;
};

void run(const Options& options, std::vector<std::string> command) {
  const Program program = find_program(command.front());
  if (program.error != 0) cannot_run("launch", command.front(), program.error);
  const HeldPort port;
  RankGroupOptions group;
  group.ranks = options.ranks;
  group.program = program.path;
  group.arguments = std::move(command);
  group.prefix = options.prefix;
  group.grace = std::chrono::seconds(options.grace);
  const bool own_fabric = softnic::Config::from_environment().fabric == softnic::Config{}.fabric;
  group.environment = [&](int rank) {
    std::vector<std::pair<std::string, std::string>> variables = {
        {"BELFRY_BOOTSTRAP_ADDRESS", "127.0.0.1:" + std::to_string(port.number())},
        {"BELFRY_BOOTSTRAP_RANK", std::to_string(rank)},
        {"BELFRY_BOOTSTRAP_SIZE", std::to_string(options.ranks)}};
    if (own_fabric)
      variables.emplace_back("BELFRY_SOFTNIC_FABRIC", "launch-" + std::to_string(port.number()));
    return variables;
  };
  if (const int code = run_rank_group(group); code != 0) throw CLI::RuntimeError(code);
}

}  // namespace

void add_launch(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("launch", kDescription);
  command->add_option("-n,--ranks", options->ranks, "Number of ranks")
      ->required()
      ->check(CLI::Range(1, 1024));
  command->add_flag("--prefix", options->prefix,
                    "Begin each line of a rank's output with its number, \"[3] \"");
  command
      ->add_option("--grace", options->grace,
                   "Time to end that ranks have before they are killed, s (default 5)")
      ->check(CLI::Range(0u, 3600u));
  add_command_words(*command, options->command);
  command->footer(kFooter);
  command->callback(
      [options, command] { run(*options, command_words("launch", options->command, command->remaining())); });
}

}  // namespace belfry::cli

/// \file
/// `belfry softnic [options] -- COMMAND [ARGS]`: runs any program with a software ConnectX.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/program.hpp"
#include "cli/reexec.hpp"
#include "softnic/config_variables.hpp"

namespace belfry::cli {
namespace {

constexpr const char* kDescription =
    "Run a program with a software ConnectX: unmodified RDMA programs find devices mlx5_0, mlx5_1, ... that "
    "execute their work queues in this process. Programs that run at the same time on one fabric reach each "
    "other. Nothing is installed, no privilege is needed, and nothing is left behind";

constexpr const char* kFooter =
    "Examples:\n"
    "  belfry softnic -- ibv_devinfo -v\n"
    "  belfry softnic -- ib_write_bw -a & belfry softnic -- ib_write_bw -a localhost\n"
    "  belfry softnic --link eth --mtu 4200 -- ib_send_lat -x 3\n"
    "  belfry softnic --devices 2 --node 1 -- ibv_devices\n"
    "  belfry softnic --drop 0.01 --seed 7 -- ibv_rc_pingpong -c\n"
    "\n"
    "The options become environment variables, named with each: they can be set there too, and an option\n"
    "wins over its variable. BELFRY_SOFTNIC=off switches the library off without unloading it.\n"
    "\n"
    "Exit code: the command's own; 127 if it is not found, 126 if it cannot be executed, 2 if an option is\n"
    "wrong. Statically linked programs and set-user-id programs cannot be reached this way.\n";

struct Options {
  std::vector<std::optional<std::string>> values;  ///< one for each of config_variables()
  bool no_direct = false;
  bool enforce_memlock = false;
  std::vector<std::string> command;  ///< as CLI11 sees it
};

std::string help_of(const softnic::ConfigVariable& variable) {
  std::string text(variable.help);
  text.append(" [").append(variable.accepted);
  if (!variable.unit.empty()) text.append("; ").append(variable.unit);
  text.append("; default ").append(variable.write(softnic::Config{}));
  text.append("; ").append(softnic::kEnvironmentPrefix).append(variable.suffix).append("]");
  return text;
}

/// What the environment says, then what the options say.
softnic::Config settings(const Options& options) try {
  softnic::Config config = softnic::Config::from_environment();
  const auto variables = softnic::config_variables();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (options.values[i]) set_variable(config, variables[i], *options.values[i], variables[i].flag);
  }
  if (options.no_direct) config.direct_loopback = false;
  check_together(config);
  return config;
} catch (const std::invalid_argument& error) {
  throw CLI::ValidationError("softnic", error.what());
}

void run(const Options& options, std::vector<std::string> command) {
  const softnic::Config config = settings(options);
  const Program program = find_program(command.front());
  if (program.error != 0) cannot_run("softnic", command.front(), program.error);
  const std::string warning = unreachable_reason(program.path);
  if (!warning.empty()) {
    std::fprintf(stderr, "belfry softnic: warning: %s %s; it will see no software NIC\n",
                 command.front().c_str(), warning.c_str());
  }
  apply(softnic_environment(config));
  if (options.enforce_memlock) apply({{"BELFRY_SOFTNIC_MEMLOCK", "enforce"}});
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.path.c_str(), arguments.data());
  cannot_run("softnic", command.front(), errno);
}

}  // namespace

void add_softnic(CLI::App& app) {
  auto options = std::make_shared<Options>();
  const auto variables = softnic::config_variables();
  options->values.resize(variables.size());
  CLI::App* command = app.add_subcommand("softnic", kDescription);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const softnic::ConfigVariable& variable = variables[i];
    if (variable.flag == "--direct") {
      command->add_flag("--no-direct", options->no_direct,
                        "QPs of one process send packets to each other, as between processes, instead of "
                        "meeting directly [BELFRY_SOFTNIC_DIRECT=0]");
    } else {
      command->add_option(std::string(variable.flag), options->values[i], help_of(variable))
          ->type_name(std::string(variable.placeholder));
    }
  }
  command->add_flag("--enforce-memlock", options->enforce_memlock,
                    "registered memory counts against the limit of locked memory (ulimit -l), as with a real "
                    "device [BELFRY_SOFTNIC_MEMLOCK=enforce]");
  add_command_words(*command, options->command);
  command->footer(kFooter);
  command->callback([options, command] {
    run(*options, command_words("softnic", options->command, command->remaining()));
  });
}

}  // namespace belfry::cli

/// \file
/// `belfry`: parses the command line, runs one subcommand, turns what it throws into an exit code.

#include <cstdio>
#include <exception>

#include "cli/commands.hpp"

namespace belfry::cli {

Invocation& invocation() {
  static Invocation the_one;
  return the_one;
}

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  belfry list                              experiments, their arms and metrics\n"
    "  belfry bench op                          what one operation costs (software NIC if there is no "
    "other)\n"
    "  belfry bench op --nic mlx5_0 --json op.jsonl\n"
    "  belfry softnic -- ib_write_lat --help    any RDMA program, with a software ConnectX\n"
    "  belfry launch -n 2 -- belfry bench op    ranks of a program on this host\n"
    "  belfry doctor                            what stands between this machine and GPU-initiated RDMA\n"
    "  belfry decode cqe 93005204 0a0019a1 c0921cd2\n"
    "\n"
    "Exit codes: 0 done; 1 a run failed or its payload did not verify; 2 the command line is wrong.\n";

void add_commands(CLI::App& app) {
  add_bench(app);
  add_launch(app);
  add_list(app);
  add_decode(app);
  add_doctor(app);
  add_softnic(app);
  add_version(app);
}

/// Says what is wrong with the command line; `--help` comes here too.
int usage(const CLI::App& app, const CLI::Error& error) {
  return app.exit(error) == 0 ? kExitOk : kExitUsage;
}

int run(int argc, char** argv) {
  CLI::App app("belfry: GPU-initiated RDMA at the GPU-NIC boundary", "belfry");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("belfry: ") + error.what() + "\nRun with --help for the options.\n";
  });
  try {
    add_commands(app);
    app.parse(argc, argv);
    return kExitOk;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::Error& error) {
    return usage(app, error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "belfry: %s\n", error.what());
    return kExitFailed;
  }
}

}  // namespace
}  // namespace belfry::cli

int main(int argc, char** argv) {
  belfry::cli::invocation() = {argc, argv};
  return belfry::cli::run(argc, argv);
}

#include "belfry/version.hpp"

#include <cstdio>

#include "cli/commands.hpp"

namespace belfry::cli {

void add_version(CLI::App& app) {
  app.add_subcommand("version", "Version and source revision of this program")->callback([] {
    std::printf("belfry %s (%s)\n", kVersion, kRevision);
  });
}

}  // namespace belfry::cli

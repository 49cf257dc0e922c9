#pragma once
/// \file
/// Subcommands that run another program: `belfry NAME [options] -- COMMAND [ARGS]`.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace belfry::cli {

/// Lets the subcommand take a command's words. \param words as CLI11 sees them, for command_words()
void add_command_words(CLI::App& command, std::vector<std::string>& words);

/// The words as they were typed: CLI11 would split one like "[a,b]". They follow the first "--".
/// Throws CLI::ValidationError where there are none, or an option is nobody's.
std::vector<std::string> command_words(const std::string& name, std::vector<std::string> words,
                                       const std::vector<std::string>& extras);

/// Says why the command cannot be run, and throws CLI::RuntimeError: 127 if it is not found, else 126.
[[noreturn]] void cannot_run(const std::string& name, const std::string& command, int error);

}  // namespace belfry::cli

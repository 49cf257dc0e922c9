#pragma once
/// \file
/// The subcommands of `belfry`. Each is one file, NAME.cpp, that adds itself to the application.
///
/// A subcommand's callback ends in one of these ways:
///  - it returns: exit code 0;
///  - it throws CLI::RuntimeError(code): that exit code, nothing printed (the callback has said why);
///  - it throws CLI::ValidationError: the message on stderr, exit code 2;
///  - it throws any other std::exception: "belfry: MESSAGE" on stderr, exit code 1. The message names
///    what is wrong and what to do about it.

#include <CLI/CLI.hpp>

namespace belfry::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< a run failed, or its payload did not verify
inline constexpr int kExitUsage = 2;   ///< the command line cannot be understood

/// The command line as main got it, for commands that execute the program anew.
struct Invocation {
  int argc = 0;
  char** argv = nullptr;
};
Invocation& invocation();

void add_bench(CLI::App& app);
void add_decode(CLI::App& app);
void add_doctor(CLI::App& app);
void add_launch(CLI::App& app);
void add_list(CLI::App& app);
void add_softnic(CLI::App& app);
void add_version(CLI::App& app);

}  // namespace belfry::cli

#pragma once
/// \file
/// The settings of Config as text, one table for the environment, the command line and the help: each
/// has a name, a unit, a range, a reader and a writer.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softnic/config.hpp"

namespace belfry::softnic {

inline constexpr std::string_view kEnvironmentPrefix = "BELFRY_SOFTNIC_";

struct ConfigVariable {
  std::string_view suffix;       ///< BELFRY_SOFTNIC_<suffix>
  std::string_view flag;         ///< the option of `belfry softnic`
  std::string_view placeholder;  ///< of its value in help
  std::string_view unit;         ///< "" where there is none
  std::string_view accepted;     ///< the range or the choice, in words
  std::string_view help;
  bool (*read)(Config&, std::string_view);  ///< false: not in the accepted range
  std::string (*write)(const Config&);
};

/// Every setting, in the order in which help prints them.
std::span<const ConfigVariable> config_variables();

/// Sets one setting from text. \param spelled_as how the user wrote its name, for the message
/// \throw std::invalid_argument that names setting, value, range and unit
void set_variable(Config& config, const ConfigVariable& variable, std::string_view value,
                  std::string_view spelled_as);

/// What the settings must hold together (the MTU that fits the link layer).
/// \throw std::invalid_argument
void check_together(const Config& config);

/// Name and value of each setting that differs from its default: what Config::from_environment() reads.
std::vector<std::pair<std::string, std::string>> to_environment(const Config& config);

}  // namespace belfry::softnic

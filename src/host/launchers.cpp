#include "host/launchers.hpp"

#include <charconv>

#include "belfry/host/errors.hpp"

namespace belfry::host {

namespace {

using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

std::optional<int> parse_number(const std::string& text, int least, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc() || stop != end || value < least || value > most) return std::nullopt;
  return value;
}

/// One of a launcher's numbers, which it must have set well if it has set it.
std::optional<int> number(const Lookup& lookup, const char* name) {
  const std::optional<std::string> text = lookup(name);
  if (!text) return std::nullopt;
  const std::optional<int> value = parse_number(*text, 0, 65536);
  if (!value) {
    throw Error(ErrorKind::bad_argument, std::string(name) + "=\"" + *text + "\" is no number of ranks",
                "A launcher sets it; unset it, or set BELFRY_BOOTSTRAP_RANK, _SIZE and _ADDRESS");
  }
  return value;
}

std::optional<LaunchedRank> ranked(const char* launcher, std::optional<int> rank, std::optional<int> size) {
  if (!rank || !size) return std::nullopt;
  if (*rank >= *size) {
    throw Error(ErrorKind::bad_argument,
                std::string(launcher) + " says that this is rank " + std::to_string(*rank) + " of " +
                    std::to_string(*size),
                "Set BELFRY_BOOTSTRAP_RANK, _SIZE and _ADDRESS");
  }
  return LaunchedRank{launcher, *rank, *size, std::nullopt};
}

/// A port for all ranks of a job, away from those that systems hand out by themselves; another one for most
/// other jobs. FNV-1a.
std::string port_of(std::string_view job) {
  std::uint32_t hash = 2166136261u;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return std::to_string(20000 + hash % 10000);
}

/// torchrun's names are anybody's: they count only if all four are there and make sense. Its own store
/// listens on MASTER_PORT.
std::optional<LaunchedRank> of_torchrun(const Lookup& lookup) {
  const auto rank = lookup("RANK");
  const auto size = lookup("WORLD_SIZE");
  const auto host = lookup("MASTER_ADDR");
  const auto port = lookup("MASTER_PORT");
  if (!rank || !size || !host || !port || host->empty()) return std::nullopt;
  const auto rank_number = parse_number(*rank, 0, 65535);
  const auto size_number = parse_number(*size, 1, 65536);
  const auto port_number = parse_number(*port, 1, 65534);
  if (!rank_number || !size_number || !port_number || *rank_number >= *size_number) return std::nullopt;
  const bool is_ipv6 = host->find(':') != std::string::npos;
  return LaunchedRank{"torchrun", *rank_number, *size_number,
                      (is_ipv6 ? "[" + *host + "]" : *host) + ":" + std::to_string(*port_number + 1)};
}

std::optional<LaunchedRank> of_openmpi(const Lookup& lookup) {
  auto launched =
      ranked("OpenMPI", number(lookup, "OMPI_COMM_WORLD_RANK"), number(lookup, "OMPI_COMM_WORLD_SIZE"));
  if (!launched) return launched;
  // It does not tell where rank 0 runs, unless all run here.
  if (number(lookup, "OMPI_COMM_WORLD_LOCAL_SIZE") == launched->size) {
    auto job = lookup("PMIX_NAMESPACE");
    if (!job) job = lookup("OMPI_MCA_ess_base_jobid");
    if (job) launched->address = "127.0.0.1:" + port_of(*job);
  }
  return launched;
}

/// SLURM_STEP_NUM_TASKS, which srun sets: SLURM_NTASKS is there in a batch script too, which runs once.
std::optional<LaunchedRank> of_slurm(const Lookup& lookup) {
  auto launched = ranked("Slurm", number(lookup, "SLURM_PROCID"), number(lookup, "SLURM_STEP_NUM_TASKS"));
  if (!launched) return launched;
  const auto nodes = lookup("SLURM_STEP_NODELIST");
  const auto job = lookup("SLURM_JOB_ID");
  const auto step = lookup("SLURM_STEP_ID");
  if (nodes && job && step) launched->address = first_host(*nodes) + ":" + port_of(*job + "." + *step);
  return launched;
}

}  // namespace

std::string first_host(std::string_view list) {
  const std::size_t bracket = list.find_first_of("[,");
  std::string host(list.substr(0, bracket));
  if (bracket == list.npos || list[bracket] != '[') return host;
  const std::string_view inside = list.substr(bracket + 1);
  return host.append(inside.substr(0, inside.find_first_of("-,]")));
}

std::optional<LaunchedRank> launched_rank(const Lookup& lookup) {
  if (auto launched = of_torchrun(lookup)) return launched;
  if (auto launched = of_openmpi(lookup)) return launched;
  return of_slurm(lookup);
}

}  // namespace belfry::host

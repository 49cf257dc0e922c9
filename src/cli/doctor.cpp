/// \file
/// `belfry doctor`: what stands between this machine and GPU-initiated RDMA, tried where it can be tried.

#include "doctor/doctor.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "belfry/host/device_list.hpp"
#include "cli/commands.hpp"
#include "cli/reexec.hpp"
#include "doctor/report.hpp"

namespace belfry::cli {
namespace {

constexpr const char* kDescription =
    "Find out what stands between this machine and GPU-initiated RDMA, and how to mend it. Tries things "
    "where "
    "they can be tried, and ends with one RDMA WRITE from each device to itself";

struct Request {
  doctor::Options options;
  std::string nic;
  std::string root = "/";
  bool json = false;
  bool problems = false;
  bool no_wqe = false;
};

std::string footer() {
  std::string text = "Checks, for --only and --skip:\n";
  for (const doctor::Check& check : doctor::checks()) {
    std::string line = "  " + std::string(check.name);
    line.resize(std::max<std::size_t>(line.size() + 1, 18), ' ');
    text += line.append(check.what) + "\n";
  }
  return text +
         "\nExamples:\n"
         "  belfry doctor --problems                 only what is not in order\n"
         "  belfry doctor --json > doctor.json\n"
         "  belfry doctor --device mlx5_0,mlx5_1     both of these have to be usable\n"
         "  belfry doctor --nic soft                 on belfry's software NIC\n"
         "\n"
         "Severities: ok; note: nothing to mend; warning: works, but worse than it could; error: stops\n"
         "GPU-initiated RDMA on its subject; unknown: could not be read or tried; skipped.\n"
         "Exit codes: 0 usable: no error concerns the machine, and at least one device has none (with "
         "--device:\n"
         "every one named); 1 not usable; 2 the command line is wrong. docs/doctor.md lists every finding.\n";
}

bool software_nic_is_here() {
  const host::DeviceList devices;
  const auto infos = devices.infos();
  return std::any_of(infos.begin(), infos.end(), [](const auto& info) { return info.software_nic; });
}

/// With `soft`, starts the program anew under the software NIC, unless it runs there already.
void settle_nic(const Request& request, host::Environment& environment) {
  const bool soft = request.nic.empty() ? environment.nic == "soft" : request.nic == "soft";
  if (is_under_softnic()) {
    restore_environment();
  } else if (soft && !software_nic_is_here()) {
    reexec_under_softnic(invocation().argc, invocation().argv, config_with_own_fabric("doctor"));
  }
  if (!request.nic.empty()) environment.nic = request.nic;
}

void run(Request request) {
  host::Environment environment = host::Environment::of_this_process();
  const doctor::Tree tree(request.root);
  if (!tree.live() && !request.nic.empty()) {
    throw CLI::ValidationError("--nic", "below another root nothing is opened: leave --nic or --root out");
  }
  if (tree.live()) settle_nic(request, environment);
  if (request.no_wqe) request.options.skip.emplace_back("proof");
  const auto trials = tree.live() ? doctor::live_trials() : nullptr;
  const doctor::Diagnosis diagnosis = doctor::examine(tree, environment, trials.get(), request.options);
  const std::string text =
      request.json ? doctor::to_json(diagnosis) : doctor::to_text(diagnosis, request.problems);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!diagnosis.usable) throw CLI::RuntimeError(kExitFailed);
}

}  // namespace

void add_doctor(CLI::App& app) {
  const auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("doctor", kDescription);
  std::vector<std::string> names;
  for (const doctor::Check& check : doctor::checks()) names.emplace_back(check.name);
  command->add_flag("--json", request->json, "One JSON object on stdout, instead of text");
  command->add_flag("--problems", request->problems, "Text only about what is not in order");
  command->add_option("--only", request->options.only, "These checks only, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->type_name("CHECK");
  command->add_option("--skip", request->options.skip, "Not these checks, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->type_name("CHECK");
  command->add_option("--device", request->options.devices, "These RDMA devices only, separated by commas")
      ->delimiter(',')
      ->type_name("NAME");
  command
      ->add_option("--nic", request->nic,
                   "auto: the devices of this machine; soft: the software NIC [BELFRY_NIC]")
      ->check(CLI::IsMember({"auto", "soft"}))
      ->type_name("NIC");
  command->add_flag("--no-wqe", request->no_wqe, "Post nothing (the same as --skip proof)");
  command->add_option("--root", request->root, "Read /sys, /proc and /dev below DIR, and try nothing")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  command->footer(footer());
  command->callback([request] { run(*request); });
}

}  // namespace belfry::cli

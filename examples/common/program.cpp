#include "common/program.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "belfry/host/errors.hpp"
#include "belfry/host/tcp_bootstrap.hpp"
#include "belfry/host/thread_bootstrap.hpp"
#include "common/gpu.hpp"

namespace belfry::examples {

namespace {

constexpr const char* kFooter =
    "Without an RDMA device, run it on the software NIC: belfry softnic -- ./EXAMPLE [OPTIONS]\n"
    "PEs are threads of this process (--pes), or processes, each started with --rank, --size and --root.\n"
    "Exit status: 0 all payload arrived and was right; 1 something failed; 2 the command line is wrong.\n";

struct Group {
  int pes;
  std::string nic;
  std::uint64_t timeout = 20;
  int rank = -1;
  int size = 0;
  std::string root;
  Path path = Path::gda;
  bool on_gpu = false;
  std::vector<int> gpus = {0};
  bool gpu_windows = false;  ///< of mini-proxy

  bool of_processes() const { return rank >= 0; }
};

}  // namespace

struct Program::Impl {
  Impl(std::string name, const std::string& description, PeRange range)
      : app(description, std::move(name)), pes(range), group{.pes = range.usual, .nic = {}, .root = {}} {}

  void add_group_options();
  std::unique_ptr<host::Bootstrap> join() const;
  Pe make_pe(host::Bootstrap& bootstrap) const;
  bool run_one(host::Bootstrap& bootstrap, const std::function<void(const Pe&)>& body) const;
  bool run_threads(const std::function<void(const Pe&)>& body) const;

  CLI::App app;
  PeRange pes;
  Group group;
};

void Program::Impl::add_group_options() {
  const auto range = CLI::Range(pes.least, pes.most);
  const auto number = [](int n) { return std::to_string(n); };
  auto* threads = app.add_option("--pes", group.pes,
                                 "PEs, as threads of this process (default " + number(pes.usual) + ")")
                      ->check(range);
  app.add_option("--nic", group.nic, "auto, soft (the software NIC), NAME or NAME:PORT [BELFRY_NIC]")
      ->type_name("NIC");
  app.add_option("--timeout", group.timeout, "Longest time that any step may take, s (default 20)")
      ->check(CLI::Range(1, 3600));
  auto* lanes =
      app.add_option("--lanes", group.on_gpu, "What runs kernels: cpu (threads), or cuda (a GPU)")
          ->type_name("LANES")
          ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"cpu", false}, {"cuda", true}})
                          .description(""));
  app.add_option(
         "--gpus", group.gpus,
         "With --lanes cuda, GPUs by CUDA's numbers, separated by commas: kernels and memory of PE r are on "
         "the one at r modulo their count (default 0)")
      ->type_name("N[,N...]")
      ->delimiter(',')
      ->needs(lanes)
      ->check(CLI::Range(0, 63));
  auto* rank = app.add_option("--rank", group.rank, "This process is one PE, the one of this number")
                   ->excludes(threads)
                   ->excludes(lanes);
  auto* size = app.add_option("--size", group.size, "Number of processes")->check(range)->needs(rank);
  auto* root = app.add_option("--root", group.root,
                              "Where rank 0 listens and the others connect; port 0 takes a free one, which "
                              "rank 0 prints")
                   ->type_name("HOST:PORT")
                   ->needs(rank);
  rank->needs(size)->needs(root)->check(CLI::Range(0, pes.most - 1));
  app.footer(kFooter);
}

/// Over TCP: rank 0 listens, the others connect.
std::unique_ptr<host::Bootstrap> Program::Impl::join() const {
  const auto deadline = host::deadline_after(std::chrono::seconds(group.timeout));
  const host::TcpAddress address = host::TcpAddress::parse(group.root);
  if (group.rank != 0) return host::make_tcp_leaf(address, group.rank, group.size, deadline);
  host::TcpListener listener(address);
  std::printf("rank 0 listens on %s\n", listener.address().to_string().c_str());
  std::fflush(stdout);
  return host::make_tcp_root(std::move(listener), group.size, deadline);
}

Pe Program::Impl::make_pe(host::Bootstrap& bootstrap) const {
  const host::Environment environment = host::Environment::of_this_process();
  Pe pe{bootstrap,
        host::DeviceEndpointOptions::from(environment),
        std::chrono::seconds(group.timeout),
        group.path,
        group.on_gpu,
        group.gpus[static_cast<std::size_t>(bootstrap.rank()) % group.gpus.size()],
        nullptr};
  if (!group.nic.empty()) pe.options.context.nic = group.nic;
  pe.options.timeout = pe.patience;
  if (!group.on_gpu) {
    pe.window_memory = host::host_queue_memory();
  } else if (group.path == Path::proxy) {
    pe.window_memory = group.gpu_windows ? gpu_memory(pe.gpu) : pinned_memory(pe.gpu);
    pe.window_kind = group.gpu_windows ? device::MemoryKind::own : device::MemoryKind::host;
  } else {
    pe.window_memory = gpu_memory(pe.gpu);
    pe.options.placement = gpu_placement(pe.gpu);
  }
  pe.report_memory = pe.shared_memory(sizeof(Report));
  return pe;
}

bool Program::Impl::run_one(host::Bootstrap& bootstrap, const std::function<void(const Pe&)>& body) const {
  try {
    body(make_pe(bootstrap));
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: PE %d: %s\n", app.get_name().c_str(), bootstrap.rank(), error.what());
    return false;
  }
}

bool Program::Impl::run_threads(const std::function<void(const Pe&)>& body) const {
  std::vector<std::thread> threads;
  std::mutex mutex;
  bool good = true;
  for (auto& member : host::make_thread_bootstrap(group.pes)) {
    // A PE that fails leaves the group with its membership, so that nobody waits for it.
    threads.emplace_back([&, mine = std::move(member)]() mutable {
      const bool ok = run_one(*mine, body);
      mine.reset();
      const std::lock_guard lock(mutex);
      good = good && ok;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return good;
}

std::vector<host::WindowOptions> Pe::placed(std::vector<host::WindowOptions> windows) const {
  if (!on_gpu) return windows;
  for (host::WindowOptions& window : windows) {
    window.memory = window_memory;
    window.kind = window_kind;
  }
  return windows;
}

std::shared_ptr<void> Pe::shared_memory(std::size_t bytes) const {
  constexpr std::size_t kPage = 4096;
  const auto memory = on_gpu ? pinned_memory(gpu) : host::host_queue_memory();
  return memory->allocate((bytes + kPage - 1) / kPage * kPage);
}

Program::Program(std::string name, std::string description, PeRange pes)
    : impl_(std::make_unique<Impl>(std::move(name), description, pes)) {
  impl_->add_group_options();
}
Program::~Program() = default;

void Program::option(const std::string& flag, std::uint64_t& value, std::uint64_t least, std::uint64_t most,
                     const std::string& help) {
  impl_->app.add_option(flag, value, help + " (default " + std::to_string(value) + ")")
      ->check(CLI::Range(least, most));
}

void Program::path_option() {
  const std::map<std::string, Path> paths{
      {"gda", Path::gda}, {"cpu-assisted", Path::cpu_assisted}, {"proxy", Path::proxy}};
  impl_->app
      .add_option("--path", impl_->group.path,
                  "gda: device code builds WQEs and rings the NIC; cpu-assisted: a CPU thread rings for it; "
                  "proxy: a CPU worker does both (default gda)")
      ->type_name("PATH")
      ->transform(CLI::CheckedTransformer(paths).description(""));
  impl_->app
      .add_option("--windows", impl_->group.gpu_windows,
                  "With --lanes cuda --path proxy, where windows and completion counters lie: host or gpu "
                  "(default host)")
      ->type_name("PLACE")
      ->needs("--lanes")
      ->needs("--path")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"host", false}, {"gpu", true}})
                      .description(""));
}

int Program::run(int argc, char** argv, const std::function<void(const Pe&)>& body) {
  Impl& impl = *impl_;
  try {
    impl.app.parse(argc, argv);
    if (impl.group.of_processes() && impl.group.rank >= impl.group.size)
      throw CLI::ValidationError("--rank", "ranks of " + std::to_string(impl.group.size) +
                                               " processes are 0.." + std::to_string(impl.group.size - 1));
  } catch (const CLI::ParseError& error) {
    return impl.app.exit(error) == 0 ? 0 : 2;
  }
  // A kernel's first launch would wait for kernels that wait for it.
  if (impl.group.on_gpu) setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (!impl.group.of_processes()) return impl.run_threads(body) ? 0 : 1;
  try {
    const auto bootstrap = impl.join();
    return impl.run_one(*bootstrap, body) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: rank %d: %s\n", impl.app.get_name().c_str(), impl.group.rank, error.what());
    return 1;
  }
}

std::string describe(const char* transport, const host::Context& context) {
  return std::string(transport) + " on " + context.device_name() +
         (context.is_software_nic() ? " (software NIC)" : "");
}

}  // namespace belfry::examples

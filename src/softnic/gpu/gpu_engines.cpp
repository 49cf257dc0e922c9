#include "softnic/gpu/gpu_engines.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic {

namespace {

std::atomic<GpuEngines*> engines_of_process{nullptr};

}  // namespace

GpuEngines::GpuEngines(NicCore& core) : core_(core) {}

GpuEngines::~GpuEngines() {
  GpuEngines* self = this;
  engines_of_process.compare_exchange_strong(self, nullptr);
}

void GpuEngines::use(std::unique_ptr<GpuLibrary> library) { library_ = std::move(library); }

bool GpuEngines::load() {
  if (library_ == nullptr && !cuda_is_loaded()) return false;
  std::call_once(loaded_, [this] {
    if (library_ != nullptr) return;
    std::string error;
    library_ = load_gpu_library(error);
    if (library_ == nullptr)
      std::fprintf(stderr, "belfry softnic: no engine for queues in GPU memory: %s\n", error.c_str());
  });
  return library_ != nullptr;
}

MemoryOwner GpuEngines::owner_of(const void* address, std::size_t bytes) {
  if (!load()) return kHostMemory;
  const MemoryOwner owner = library_->owner_of(address, bytes);
  if (!is_gpu(owner)) return kHostMemory;
  const std::lock_guard lock(mutex_);
  meet(owner);
  return owner;
}

/// Now, before a kernel runs that waits for an engine: CUDA might wait for that kernel.
void GpuEngines::meet(MemoryOwner gpu) {
  if (!seen_.insert(gpu).second) return;
  if (seen_.size() == 1) stop_at_exit();
  core_.gpu_copiers.add(gpu, *library_, core_.config.gpu);
  for (const auto& driver : drivers_) driver->reach(gpu);
}

MemoryOwner GpuEngines::engine_for(MemoryOwner owner) {
  if (!load()) return kHostMemory;
  const MemoryOwner gpu = core_.config.gpu.gpu ? static_cast<MemoryOwner>(*core_.config.gpu.gpu) : owner;
  const std::lock_guard lock(mutex_);
  meet(owner);
  GpuDriver* driver = find(gpu);
  if (driver == nullptr) driver = make(gpu);
  return driver != nullptr && driver->reaches(owner) ? gpu : kHostMemory;
}

GpuDriver* GpuEngines::find(MemoryOwner gpu) const {
  const auto found = std::find_if(drivers_.begin(), drivers_.end(),
                                  [&](const auto& driver) { return driver->gpu() == gpu; });
  return found == drivers_.end() ? nullptr : found->get();
}

GpuDriver* GpuEngines::make(MemoryOwner gpu) {
  if (failed_.contains(gpu)) return nullptr;
  const GpuConfig& config = core_.config.gpu;
  GpuEngineOptions options;
  options.gpu = gpu;
  options.blocks = config.blocks;
  options.warps = config.warps;
  options.idle_us = static_cast<unsigned>(config.idle.count());
  std::string error;
  auto engine = library_->make_engine(options, error);
  if (engine == nullptr) {
    failed_.insert(gpu);
    std::fprintf(stderr, "belfry softnic: no engine on GPU %d, which queues need (BELFRY_SOFTNIC_GPU): %s\n",
                 gpu, error.c_str());
    return nullptr;
  }
  drivers_.push_back(std::make_unique<GpuDriver>(core_, gpu, std::move(engine), changes_, pins_, pages_));
  for (const MemoryOwner other : seen_) drivers_.back()->reach(other);
  return drivers_.back().get();
}

/// CUDA is taken down at exit by a handler registered before this one, and so after it: by then all threads
/// must have left it.
void GpuEngines::stop_at_exit() {
  engines_of_process = this;
  std::atexit([] {
    GpuEngines* engines = engines_of_process.exchange(nullptr);
    if (engines == nullptr) return;
    engines->core_.gpu_copiers.quit();
    for (const auto& driver : engines->drivers_) driver->stop();
  });
}

std::uint64_t* GpuEngines::register_of(const void* doorbell, MemoryOwner gpu, std::string& error) {
  error.clear();
  Register at;
  if (core_.config.gpu.doorbells != GpuDoorbells::gpu || !find_register(doorbell, at)) return nullptr;
  std::uint64_t* found = nullptr;
  {
    const std::lock_guard lock(registers_mutex_);
    const MemoryOwner engine = engine_of(at, error);
    if (!is_gpu(engine)) return nullptr;
    GpuDoorbellPage* page = pages_.find_or_make(engine, *library_, error);
    if (page == nullptr || !page->open_to(gpu, error)) return nullptr;
    for (auto& [known, given] : given_) {
      if (given.at.uar != at.uar || given.at.index != at.index) continue;
      ++given.users;
      return const_cast<std::uint64_t*>(known);
    }
    found = page->take(error);
    if (found == nullptr) return nullptr;
    given_[found] = {at, page, 1};
    set_register(at, found);
  }
  // Whoever waits for a queue that the kernels ring must not keep its engine from the new tables.
  settle();
  return found;
}

void GpuEngines::return_register(std::uint64_t* gpu_register) {
  const std::lock_guard lock(registers_mutex_);
  const auto found = given_.find(gpu_register);
  if (found == given_.end() || --found->second.users != 0) return;
  set_register(found->second.at, nullptr);
  found->second.page->give_back(gpu_register);
  given_.erase(found);
}

/// Its page says whose it is: the program has mapped it elsewhere than the NIC.
bool GpuEngines::find_register(const void* doorbell, Register& found) const {
  const auto address = reinterpret_cast<std::uintptr_t>(doorbell);
  const std::uintptr_t offset = address % wire::kUarBytes;
  const auto* tag = reinterpret_cast<std::uint64_t*>(address - offset + kUarTagOffset);
  const std::uint64_t value = std::atomic_ref(*const_cast<std::uint64_t*>(tag)).load();
  if (value >> 32 != kUarTag >> 32 || offset < wire::kUarFirstRegister) return false;
  found.uar = static_cast<std::uint32_t>(value);
  found.index = static_cast<unsigned>((offset - wire::kUarFirstRegister) / wire::kUarRegisterBytes);
  return found.index < kGpuRegisters;
}

/// Whose queues ring there. \return kHostMemory: the CPU's alone
MemoryOwner GpuEngines::engine_of(const Register& at, std::string& error) {
  ControlLock guard(core_);
  const Uar* uar = core_.uars.find(at.uar);
  MemoryOwner engine = kHostMemory;
  if (uar == nullptr || uar->gpu_users == 0) return engine;
  bool several = !uar->qps.empty();
  for (const QueuePair* qp : core_.gpu_qps) {
    if (qp->uar != uar) continue;
    several = several || (is_gpu(engine) && qp->engine != engine);
    engine = qp->engine;
  }
  if (!several) return engine;
  error = "queues of one doorbell page are executed by the CPU and a GPU, or by several GPUs";
  return kHostMemory;
}

void GpuEngines::set_register(const Register& at, const std::uint64_t* gpu_register) {
  ControlLock guard(core_);
  if (Uar* uar = core_.uars.find(at.uar)) uar->gpu_registers[at.index] = gpu_register;
  note_change();
}

void GpuEngines::settle() {
  std::vector<std::pair<GpuDriver*, std::uint64_t>> asked;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& driver : drivers_) asked.emplace_back(driver.get(), 0);
  }
  // All at once: one may have to wait for another to leave its GPU.
  for (auto& [driver, ticket] : asked) ticket = driver->ask();
  for (const auto& [driver, ticket] : asked) driver->await(ticket);
}

}  // namespace belfry::softnic

#include "softnic/gpu/gpu_doorbell_page.hpp"

namespace belfry::softnic {

bool GpuDoorbellPage::open_to(MemoryOwner gpu, std::string& error) {
  const std::lock_guard lock(mutex_);
  const bool open = memory_->open_to(gpu);
  if (!open) error = memory_->error();
  return open;
}

std::uint64_t* GpuDoorbellPage::take(std::string& error) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t index = used_.take();
  if (index < kGpuPageRegisters && memory_->write(index, 0)) {
    if (index < values_.size()) values_[index] = 0;
    return reinterpret_cast<std::uint64_t*>(memory_->registers() + index * kGpuRegisterBytes);
  }
  error = index < kGpuPageRegisters
              ? memory_->error()
              : "all " + std::to_string(kGpuPageRegisters) + " registers in GPU memory are in use";
  used_.free(index);
  return nullptr;
}

void GpuDoorbellPage::give_back(const std::uint64_t* gpu_register) {
  const std::lock_guard lock(mutex_);
  used_.free(index_of(gpu_register));
}

bool GpuDoorbellPage::holds(const std::uint64_t* gpu_register) const {
  return index_of(gpu_register) < kGpuPageRegisters;
}

bool GpuDoorbellPage::look() {
  const std::lock_guard lock(mutex_);
  values_.resize(used_.size());
  return values_.empty() || memory_->read(values_.data(), used_.size());
}

std::uint64_t GpuDoorbellPage::value_of(const std::uint64_t* gpu_register) const {
  const std::lock_guard lock(mutex_);
  const std::uint32_t index = index_of(gpu_register);
  return index < values_.size() ? values_[index] : 0;
}

bool GpuDoorbellPage::clear(const std::uint64_t* gpu_register) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t index = index_of(gpu_register);
  if (index < values_.size()) values_[index] = 0;
  return memory_->write(index, 0);
}

/// \return kGpuPageRegisters or more where it is none of them
std::uint32_t GpuDoorbellPage::index_of(const std::uint64_t* gpu_register) const {
  const std::uint64_t offset =
      reinterpret_cast<std::uintptr_t>(gpu_register) - reinterpret_cast<std::uintptr_t>(memory_->registers());
  const std::uint64_t index = offset / kGpuRegisterBytes;
  return index < kGpuPageRegisters ? static_cast<std::uint32_t>(index) : kGpuPageRegisters;
}

GpuDoorbellPage* GpuDoorbellPages::find(MemoryOwner gpu) {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(gpu);
  return found == pages_.end() ? nullptr : &found->second;
}

GpuDoorbellPage* GpuDoorbellPages::find_or_make(MemoryOwner gpu, GpuLibrary& library, std::string& error) {
  const std::lock_guard lock(mutex_);
  if (const auto found = pages_.find(gpu); found != pages_.end()) return &found->second;
  auto memory = library.make_register_memory(gpu, error);
  return memory == nullptr ? nullptr : &pages_.try_emplace(gpu, std::move(memory)).first->second;
}

}  // namespace belfry::softnic

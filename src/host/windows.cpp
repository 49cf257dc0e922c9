#include "belfry/host/windows.hpp"

#include <bit>
#include <utility>
#include <vector>

#include "belfry/host/errors.hpp"
#include "host/collective.hpp"
#include "host/window_list.hpp"

namespace belfry::host {

struct Windows::Impl {
  struct Window {
    Memory memory;
    Access access;
    device::MemoryKind kind;
    std::optional<int> gpu;
    std::vector<WindowDescription> remotes;  ///< by PE, this one included
    std::uint64_t alignment;
  };

  const Window& at(std::uint32_t window) const {
    if (window >= windows.size()) {
      throw Error(ErrorKind::bad_argument, "there is no window " + std::to_string(window),
                  "There are " + std::to_string(windows.size()) + ", counted from 0");
    }
    return windows[window];
  }

  ProtectionDomain domain;
  std::uint32_t pe;
  std::uint32_t pe_count;
  std::vector<Window> windows;
  std::vector<std::string> decisions;
};

namespace {

Memory make_memory(const ProtectionDomain& domain, const WindowOptions& o) {
  if (o.adopt != nullptr) return Memory::adopt(domain, o.adopt, o.bytes, o.access);
  if (o.memory != nullptr) return Memory::allocate_from(domain, *o.memory, o.bytes, o.access);
  return Memory::allocate(domain, o.bytes, o.access, o.allocation);
}

std::optional<int> gpu_of(const WindowOptions& o) {
  return o.adopt == nullptr && o.memory != nullptr ? o.memory->gpu() : std::nullopt;
}

std::string describe(std::size_t index, const Memory& memory, Access access) {
  std::string text = "window " + std::to_string(index) + ": " + format_bytes(memory.bytes());
  text += memory.owns() ? "" : ", memory of the caller";
  if (has(access, Access::relaxed_ordering)) text += ", relaxed ordering: it may hold no signal";
  return text;
}

}  // namespace

Windows::Windows(Bootstrap& bootstrap, const ProtectionDomain& domain, std::span<const WindowOptions> options,
                 std::chrono::nanoseconds timeout) {
  auto impl = std::make_shared<Impl>(Impl{domain,
                                          static_cast<std::uint32_t>(bootstrap.rank()),
                                          static_cast<std::uint32_t>(bootstrap.size()),
                                          {},
                                          {}});
  const auto register_all = [&] {
    std::vector<WindowEntry> mine;
    for (std::size_t i = 0; i < options.size(); ++i) {
      const WindowOptions& o = options[i];
      Memory memory = make_memory(domain, o);
      mine.push_back({memory.window(), o.access});
      impl->decisions.push_back(describe(i, memory, o.access));
      impl->windows.push_back({std::move(memory), o.access, o.kind, gpu_of(o), {}, 0});
    }
    return encode_windows(mine);
  };
  const std::vector<Blob> blobs =
      exchange(bootstrap, "make its windows", register_all, deadline_after(timeout));

  std::vector<std::vector<WindowEntry>> lists;
  for (std::size_t peer = 0; peer < blobs.size(); ++peer) lists.push_back(decode_windows(peer, blobs[peer]));
  check_windows_agree(lists);
  for (std::size_t i = 0; i < impl->windows.size(); ++i) {
    std::uint64_t addresses = 0;
    for (const auto& list : lists) {
      impl->windows[i].remotes.push_back(list[i].description);
      addresses |= list[i].description.address;
    }
    impl->windows[i].alignment = std::uint64_t{1} << std::countr_zero(addresses);
  }
  impl_ = std::move(impl);
}

std::uint32_t Windows::pe() const { return impl_->pe; }
std::uint32_t Windows::pe_count() const { return impl_->pe_count; }
std::uint32_t Windows::count() const { return static_cast<std::uint32_t>(impl_->windows.size()); }
const ProtectionDomain& Windows::domain() const { return impl_->domain; }
const Memory& Windows::memory(std::uint32_t window) const { return impl_->at(window).memory; }
device::MemoryKind Windows::kind(std::uint32_t window) const { return impl_->at(window).kind; }
std::optional<int> Windows::gpu(std::uint32_t window) const { return impl_->at(window).gpu; }
std::uint64_t Windows::alignment(std::uint32_t window) const { return impl_->at(window).alignment; }
std::span<const std::string> Windows::decisions() const { return impl_->decisions; }

const WindowDescription& Windows::remote(std::uint32_t window, std::uint32_t pe) const {
  const Impl::Window& w = impl_->at(window);
  if (pe >= impl_->pe_count) {
    throw Error(ErrorKind::bad_argument, "there is no PE " + std::to_string(pe),
                "PEs are 0.." + std::to_string(impl_->pe_count - 1));
  }
  return w.remotes[pe];
}

device::LocalWindow Windows::local_entry(std::uint32_t window) const {
  const Impl::Window& w = impl_->at(window);
  const std::uint32_t flags = has(w.access, Access::relaxed_ordering) ? device::kWindowRelaxedOrdering : 0;
  return {reinterpret_cast<std::uint64_t>(w.memory.data()), w.memory.bytes(), Be32(w.memory.lkey()), flags};
}

device::RemoteWindow Windows::remote_entry(std::uint32_t window, std::uint32_t pe) const {
  const WindowDescription& d = remote(window, pe);
  return {d.address, Be32(d.rkey), 0};
}

}  // namespace belfry::host

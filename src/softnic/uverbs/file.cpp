#include "softnic/uverbs/file.hpp"

#include <rdma/rdma_user_ioctl_cmds.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <string_view>

#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/file_state.hpp"

namespace belfry::softnic {

FileState::~FileState() {
  objects.destroy_all(*this);
  for (const StaticUar& uar : static_uars) detach_page(uar);
}

std::shared_ptr<EventChannel> FileState::find_channel(EventChannel::Purpose purpose, int descriptor) const {
  for (const auto& channel : channels_) {
    if (channel->purpose() == purpose && channel->is(descriptor)) return channel;
  }
  return nullptr;
}

void FileState::keep_channel(std::shared_ptr<EventChannel> channel) {
  // Nobody says when the application closes one: drop those that neither it nor an object holds.
  std::erase_if(channels_, [](const auto& c) { return c.use_count() == 1 && !c->held_by_application(); });
  channels_.push_back(std::move(channel));
}

Result<StaticUar> FileState::attach_page(Result<UarPages::Page> page) {
  if (!page) return Errno{page.error()};
  const Result<std::uint32_t> uar = nic.attach_uar(page->address);
  if (!uar) {
    pages.free(*page);
    return Errno{uar.error()};
  }
  return StaticUar{*page, *uar};
}

int FileState::detach_page(const StaticUar& uar) {
  if (const int error = nic.detach_uar(uar.uar); error != 0) return error;
  pages.free(uar.page);
  return 0;
}

Result<std::shared_ptr<UverbsFile>> UverbsFile::open(Nic& nic, unsigned device) {
  if (device >= nic.config().devices) return Errno{ENODEV};
  try {
    auto impl = std::make_unique<Impl>(nic, device);
    if (const int error = impl->pages.open(); error != 0) return Errno{error};
    const char* memlock = std::getenv("BELFRY_SOFTNIC_MEMLOCK");
    impl->enforce_memlock = memlock != nullptr && std::string_view(memlock) == "enforce";
    return std::shared_ptr<UverbsFile>(new UverbsFile(std::move(impl)));
  } catch (const std::bad_alloc&) {
    return Errno{ENOMEM};
  }
}

UverbsFile::UverbsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UverbsFile::~UverbsFile() = default;

int UverbsFile::fd() const { return impl_->pages.descriptor(); }

ssize_t UverbsFile::write(const void* command, std::size_t bytes) {
  try {
    const int error = run_write(*impl_, reinterpret_cast<std::uintptr_t>(command), bytes);
    return error != 0 ? -error : static_cast<ssize_t>(bytes);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

int UverbsFile::ioctl(unsigned long request, void* argument) {
  if (request != RDMA_VERBS_IOCTL) return -ENOTTY;
  try {
    return -run_ioctl(*impl_, reinterpret_cast<std::uintptr_t>(argument));
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

}  // namespace belfry::softnic

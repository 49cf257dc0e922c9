#include "fuzz/nic_world.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>

#include "softnic/fabric/memory_fabric.hpp"
#include "softnic/firmware/nic_core.hpp"

namespace belfry::fuzz {
namespace {

softnic::Config config() {
  softnic::Config c;
  c.devices = 1;
  c.seed = 7;
  c.limits.qps = 64;
  c.limits.cqs = 64;
  c.limits.mkeys = 64;
  c.limits.pds = 64;
  return c;
}

std::set<int> open_descriptors() {
  std::set<int> found;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) std::abort();
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(folder)) found.insert(fd);
  }
  closedir(folder);
  return found;
}

}  // namespace

NicWorld::NicWorld()
    : nic(config(), softnic::MemoryHub::create()->open_port()), own_descriptors_(open_descriptors()) {}

void NicWorld::poll(unsigned times) {
  for (; times != 0; --times) nic.poll();
}

void NicWorld::end_of_input() {
  const softnic::NicCore& core = nic.impl();
  if (core.qps_used != 0 || core.keys_used != 0 || core.cqs.size() != 0 || core.pds.size() != 0) std::abort();
  if (core.uars.size() != 0) std::abort();
  for (const int fd : open_descriptors())
    if (!own_descriptors_.contains(fd)) close(fd);
  memory.clear();
}

}  // namespace belfry::fuzz

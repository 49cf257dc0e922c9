#include "softnic/fabric/make_fabric.hpp"

#include <string>
#include <utility>

#include "softnic/fabric/faulty_fabric.hpp"
#include "softnic/fabric/memory_fabric.hpp"
#include "softnic/fabric/note.hpp"
#include "softnic/fabric/random.hpp"
#include "softnic/fabric/shared_fabric.hpp"

namespace belfry::softnic {

std::unique_ptr<Fabric> make_fabric(const Config& config) {
  std::unique_ptr<Fabric> fabric;
  if (const std::string obstacle = SharedFabric::obstacle(); obstacle.empty()) {
    SharedFabricOptions options;
    options.fabric = config.fabric;
    options.seed = config.seed;
    fabric = std::make_unique<SharedFabric>(options);
  } else {
    note("other processes cannot be reached, only QPs of this one: " + obstacle);
    fabric = MemoryHub::create()->open_port();
  }
  if (!config.faults.any()) return fabric;
  return std::make_unique<FaultyFabric>(std::move(fabric), config.faults, seed_or_system(config.seed));
}

}  // namespace belfry::softnic

#pragma once
/// \file
/// One NIC, driven by hand, for the harnesses of the kernel's side; and what must hold when an open
/// file is gone.

#include <cstdint>
#include <set>

#include "fuzz/user_memory.hpp"
#include "softnic/firmware/nic.hpp"

namespace belfry::fuzz {

struct NicWorld {
  NicWorld();

  void poll(unsigned times);

  /// Aborts where the NIC still holds anything, closes descriptors that an application would have had to
  /// close, and empties the application's memory.
  void end_of_input();

  UserMemory memory;
  softnic::Nic nic;

 private:
  std::set<int> own_descriptors_;
};

}  // namespace belfry::fuzz

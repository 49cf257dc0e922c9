#pragma once
/// \file
/// What this process has one of: its settings, its tree of files, its NIC and the engine that drives it.

#include <cstdint>
#include <memory>

#include "softnic/preload/vfs.hpp"
#include "softnic/result.hpp"
#include "softnic/uverbs/file.hpp"

namespace belfry::softnic::preload {

/// The process's tree, built when a path first asks for it; null where BELFRY_SOFTNIC is "off", or where
/// the settings are not accepted (said once on standard error).
const Tree* process_tree();

/// Opens a device of the process's NIC, and starts the NIC where there is none yet.
/// \return ENODEV: no such device, or the NIC cannot start (said on standard error)
Result<std::shared_ptr<UverbsFile>> open_device(unsigned index);

/// The NIC, where a device has been opened; else null.
Nic* process_nic();

/// Counts the forks that lie between the process that started and this one: what was opened under
/// another number belongs to the parent's NIC.
std::uint32_t process_generation();

/// False in a child that has come about without fork() (by vfork() or clone()): it may share its memory,
/// but not its descriptors, with its parent, so it must not change what is known of descriptors.
bool owns_its_memory();

}  // namespace belfry::softnic::preload

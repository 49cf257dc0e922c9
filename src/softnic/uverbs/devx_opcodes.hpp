#pragma once
/// \file
/// Which PRM commands the kernel passes on from where. A command that it would pass on and this device
/// lacks fails as a device's commands fail; any other is the kernel's EINVAL. Source: Linux,
/// drivers/infiniband/hw/mlx5/devx.c; opcodes: include/linux/mlx5/mlx5_ifc.h.

#include "belfry/wire/prm_command.hpp"

namespace belfry::softnic {

/// Queries of the device itself (DEVX_OTHER).
bool queries_device(wire::prm::Opcode opcode);
/// Those of them that a context may issue that was not made for DEVX.
bool open_to_everyone(wire::prm::Opcode opcode);
bool creates_object(wire::prm::Opcode opcode);
bool modifies_object(wire::prm::Opcode opcode);
bool queries_object(wire::prm::Opcode opcode);

}  // namespace belfry::softnic

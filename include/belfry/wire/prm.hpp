#pragma once
/// \file
/// The PRM commands that belfry issues through mlx5dv's DEVX calls and its software NIC answers. An
/// input and its output are byte arrays of In::kBytes and Out::kBytes; example:
///
///     std::uint8_t in[prm::CreateCqIn::kBytes] = {}, out[prm::CreateCqOut::kBytes] = {};
///     prm::CreateCqIn::opcode::set(in, static_cast<std::uint64_t>(prm::Opcode::create_cq));
///     auto* cqc = prm::CreateCqIn::cq_context::at(in);
///     prm::CqContext::log_cq_size::set(cqc, 10);

#include "belfry/wire/prm_capability.hpp"
#include "belfry/wire/prm_command.hpp"
#include "belfry/wire/prm_cq.hpp"
#include "belfry/wire/prm_mkey.hpp"
#include "belfry/wire/prm_port.hpp"
#include "belfry/wire/prm_qp.hpp"

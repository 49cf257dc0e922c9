#pragma once
/// \file
/// The handlers of write commands, each in the file of its family. A command is added by a handler
/// here and a line in the table of write.cpp.

#include "softnic/uverbs/file_state.hpp"
#include "softnic/uverbs/write_call.hpp"

namespace belfry::softnic {

int get_context(FileState& file, const WriteCall& call);
int query_device(FileState& file, const WriteCall& call);
int query_device_extended(FileState& file, const WriteCall& call);
int query_port(FileState& file, const WriteCall& call);

int alloc_pd(FileState& file, const WriteCall& call);
int dealloc_pd(FileState& file, const WriteCall& call);

int reg_mr(FileState& file, const WriteCall& call);
int rereg_mr(FileState& file, const WriteCall& call);
int dereg_mr(FileState& file, const WriteCall& call);

int create_comp_channel(FileState& file, const WriteCall& call);
int create_cq(FileState& file, const WriteCall& call);
int create_cq_extended(FileState& file, const WriteCall& call);
int resize_cq(FileState& file, const WriteCall& call);
int destroy_cq(FileState& file, const WriteCall& call);

int create_qp(FileState& file, const WriteCall& call);
int create_qp_extended(FileState& file, const WriteCall& call);
int modify_qp(FileState& file, const WriteCall& call);
int modify_qp_extended(FileState& file, const WriteCall& call);
int query_qp(FileState& file, const WriteCall& call);
int destroy_qp(FileState& file, const WriteCall& call);

int create_ah(FileState& file, const WriteCall& call);
int destroy_ah(FileState& file, const WriteCall& call);

/// Parses and runs one command. \return 0 or a positive errno
int run_write(FileState& file, UserAddress command, std::size_t bytes);

/// The same for RDMA_VERBS_IOCTL; `argument` is the address of a struct ib_uverbs_ioctl_hdr.
int run_ioctl(FileState& file, UserAddress argument);

}  // namespace belfry::softnic

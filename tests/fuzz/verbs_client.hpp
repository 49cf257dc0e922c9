#pragma once
/// \file
/// An application on an open UverbsFile that mostly does what libibverbs and libmlx5 do. Every call
/// reads its choices from an input: a choice of 0 is the right one, so an input of zeros is a correct
/// program, and each other byte is one thing done wrong.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fuzz/harness.hpp"
#include "fuzz/user_memory.hpp"
#include "softnic/firmware/nic.hpp"
#include "softnic/uverbs/file.hpp"

struct ib_uverbs_attr;

namespace belfry::fuzz {

enum class Kind : unsigned {
  pd,
  mr,
  cq,
  qp,
  uar,
  umem,
  devx_pd,
  devx_mkey,
  devx_cq,
  devx_qp,
  channel,
  devx_events,
  count
};

class VerbsClient {
 public:
  /// \param device of `nic`
  VerbsClient(softnic::Nic& nic, UserMemory& memory, unsigned device);

  bool is_open() const { return file_ != nullptr; }
  std::size_t count(Kind kind) const { return of(kind).size(); }

  // write() commands.
  void get_context(Reader& r);
  void query_device(Reader& r);
  void query_port(Reader& r);
  void alloc_pd(Reader& r);
  void dealloc_pd(Reader& r);
  void reg_mr(Reader& r);
  void rereg_mr(Reader& r);
  void dereg_mr(Reader& r);
  void create_channel(Reader& r);
  void create_cq(Reader& r);
  void resize_cq(Reader& r);
  void destroy_cq(Reader& r);
  void create_qp(Reader& r);
  void modify_qp(Reader& r);
  void query_qp(Reader& r);
  void destroy_qp(Reader& r);
  void create_ah(Reader& r);
  void raw_write(Reader& r);

  // ioctl methods.
  void alloc_uar(Reader& r);
  void destroy_uar(Reader& r);
  void reg_umem(Reader& r);
  void dereg_umem(Reader& r);
  void query_gid(Reader& r);
  void query_numbers(Reader& r);
  void alloc_events(Reader& r);
  void subscribe(Reader& r);
  void invoke_write(Reader& r);
  void raw_ioctl(Reader& r);

  /// DEVX: a mailbox through one of its methods, on the objects of `kind`.
  void devx_other(Reader& r, std::span<const std::uint8_t> in, std::size_t out_bytes);
  void devx_create(Reader& r, Kind kind, std::span<const std::uint8_t> in, std::size_t out_bytes);
  void devx_modify(Reader& r, Kind kind, std::span<const std::uint8_t> in, std::size_t out_bytes);
  void devx_query(Reader& r, Kind kind, std::span<const std::uint8_t> in, std::size_t out_bytes);
  void devx_destroy(Reader& r, Kind kind);

  /// A handle: of a choice of 0 the latest of its kind, else an older one, another kind's or none at all.
  std::uint32_t handle(Reader& r, Kind kind) const;
  /// The number that goes with a handle: QPN, lkey, UAR page id, umem id, DEVX object id.
  std::uint32_t number(Reader& r, Kind kind) const;

 private:
  std::uint8_t* slot() { return memory_.slot(); }
  std::uint64_t address(Reader& r, const void* nominal) const { return memory_.address(r, nominal); }

  struct Object {
    std::uint32_t handle = 0;
    std::uint32_t number = 0;
  };
  class Command;

  ssize_t send(Command& command, Reader& r, void* response, std::size_t bytes);
  /// \param attributes what the call has made of them afterwards
  int ioctl(Reader& r, unsigned object, unsigned method, std::vector<ib_uverbs_attr>& attributes);
  void destroy_object(Reader& r, unsigned object, unsigned method, unsigned attribute, Kind kind);
  int devx(Reader& r, unsigned object, unsigned method, std::vector<ib_uverbs_attr> attributes,
           std::span<const std::uint8_t> in, std::size_t out_bytes, std::uint32_t* made);
  void destroy_simple(Reader& r, unsigned command, Kind kind);
  void note(Kind kind, std::uint32_t handle, std::uint32_t number);
  void forget(Kind kind, std::uint32_t handle);
  std::vector<Object>& of(Kind kind) { return objects_[static_cast<std::size_t>(kind)]; }
  const std::vector<Object>& of(Kind kind) const { return objects_[static_cast<std::size_t>(kind)]; }

  UserMemory& memory_;
  std::shared_ptr<softnic::UverbsFile> file_;
  std::vector<Object> objects_[static_cast<std::size_t>(Kind::count)];
  std::uint8_t* output_ = nullptr;  ///< a slot: where commands and mailboxes are answered
  std::uint8_t* call_ = nullptr;    ///< a slot: ioctl arguments and input mailboxes
};

}  // namespace belfry::fuzz

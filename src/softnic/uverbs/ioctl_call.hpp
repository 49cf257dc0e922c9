#pragma once
/// \file
/// A call of RDMA_VERBS_IOCTL: object, method and attributes. A method states which attributes it
/// knows, and the framing checks them before the handler runs. Formats: <rdma/rdma_user_ioctl_cmds.h>;
/// the rules are those of Linux' drivers/infiniband/core/uverbs_ioctl.c.

#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "softnic/uverbs/file_state.hpp"
#include "softnic/uverbs/user_memory.hpp"

namespace belfry::softnic {

enum class AttributeKind : std::uint8_t {
  in,          ///< bytes; up to 8 of them lie in the attribute itself
  out,         ///< room for bytes
  handle,      ///< of an object, new or old
  descriptor,  ///< of a file, new or old
};

struct AttributeSpec {
  std::uint16_t id;
  AttributeKind kind;
  bool mandatory;
  std::uint16_t least = 0;  ///< bytes, of in and out
  std::uint16_t most = 0;
};

constexpr AttributeSpec in_attribute(std::uint16_t id, std::uint16_t bytes, bool mandatory = true) {
  return {id, AttributeKind::in, mandatory, bytes, bytes};
}
constexpr AttributeSpec out_attribute(std::uint16_t id, std::uint16_t bytes, bool mandatory = true) {
  return {id, AttributeKind::out, mandatory, bytes, bytes};
}
/// A number that libraries send with four bytes or eight.
constexpr AttributeSpec number_attribute(std::uint16_t id, bool mandatory = true) {
  return {id, AttributeKind::in, mandatory, 4, 8};
}
constexpr AttributeSpec in_at_least(std::uint16_t id, std::uint16_t bytes, bool mandatory = true) {
  return {id, AttributeKind::in, mandatory, bytes, 0xffff};
}
constexpr AttributeSpec out_at_least(std::uint16_t id, std::uint16_t bytes, bool mandatory = true) {
  return {id, AttributeKind::out, mandatory, bytes, 0xffff};
}
constexpr AttributeSpec handle_attribute(std::uint16_t id, bool mandatory = true) {
  return {id, AttributeKind::handle, mandatory};
}
constexpr AttributeSpec descriptor_attribute(std::uint16_t id, bool mandatory = true) {
  return {id, AttributeKind::descriptor, mandatory};
}

class IoctlCall;

struct IoctlMethod {
  std::uint16_t object;
  std::uint16_t method;
  std::span<const AttributeSpec> attributes;
  int (*handler)(FileState&, IoctlCall&);
};

/// The attributes of one call that the method knows. Ids must be in the method's list.
class IoctlCall {
 public:
  bool has(std::uint16_t id) const { return find(id) != nullptr; }

  /// Bytes that the attribute holds or has room for; 0 if it is absent.
  std::size_t size(std::uint16_t id) const;

  /// Reads a number; what is absent or shorter is zero. \return 0 or EFAULT
  int read_number(std::uint16_t id, std::uint64_t& value) const;

  /// Reads all of an attribute's bytes. \return 0 or EFAULT
  int read_bytes(std::uint16_t id, std::vector<std::byte>& bytes) const;

  /// Writes as much as there is room for, and zeros behind it; nothing where it is absent.
  /// \return 0 or EFAULT
  int write_bytes(std::uint16_t id, const void* from, std::size_t bytes) const;
  template <class T>
  int write(std::uint16_t id, const T& value) const {
    return write_bytes(id, &value, sizeof value);
  }

  /// The object's handle or the file's descriptor.
  std::uint32_t handle(std::uint16_t id) const;
  int descriptor(std::uint16_t id) const { return static_cast<int>(handle(id)); }

  /// Tells the handle or descriptor of what is new. \return 0 or EFAULT
  int answer_handle(std::uint16_t id, std::uint32_t value) const;

  /// \return 0 or the errno of the kernel's check
  int parse(UserAddress attributes, std::size_t count, const IoctlMethod& method);

 private:
  struct Attribute {
    const AttributeSpec* spec;
    UserAddress address;  ///< of the attribute itself
    std::uint64_t data;
    std::uint16_t bytes;
  };
  const Attribute* find(std::uint16_t id) const;
  int add(const AttributeSpec& spec, UserAddress address, const ib_uverbs_attr& attribute);

  std::vector<Attribute> attributes_;
};

// The methods of each family, in the file of that family.
std::span<const IoctlMethod> device_methods();
std::span<const IoctlMethod> mr_methods();
std::span<const IoctlMethod> uar_methods();
std::span<const IoctlMethod> devx_methods();
std::span<const IoctlMethod> devx_umem_methods();
std::span<const IoctlMethod> devx_object_methods();
std::span<const IoctlMethod> devx_event_methods();

}  // namespace belfry::softnic

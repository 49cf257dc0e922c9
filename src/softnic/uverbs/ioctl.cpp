#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>
#include <cerrno>

#include "softnic/uverbs/commands.hpp"
#include "softnic/uverbs/ioctl_call.hpp"

namespace belfry::softnic {
namespace {

static_assert(sizeof(ib_uverbs_attr) == 16 && sizeof(ib_uverbs_ioctl_hdr) == 24);

constexpr std::size_t kMaxCallBytes = 4096;

const IoctlMethod* find_method(const ib_uverbs_ioctl_hdr& header) {
  for (const auto family : {device_methods(), mr_methods(), uar_methods(), devx_methods(),
                            devx_umem_methods(), devx_object_methods(), devx_event_methods()}) {
    for (const IoctlMethod& method : family) {
      if (method.object == header.object_id && method.method == header.method_id) return &method;
    }
  }
  return nullptr;
}

const AttributeSpec* find_spec(const IoctlMethod& method, std::uint16_t id) {
  const auto found = std::find_if(method.attributes.begin(), method.attributes.end(),
                                  [id](const auto& s) { return s.id == id; });
  return found == method.attributes.end() ? nullptr : &*found;
}

}  // namespace

int run_ioctl(FileState& file, UserAddress argument) {
  ib_uverbs_ioctl_hdr header{};
  if (const int error = copy_in(&header, argument, sizeof header); error != 0) return error;
  if (header.length > kMaxCallBytes ||
      header.length != sizeof header + std::size_t{header.num_attrs} * sizeof(ib_uverbs_attr)) {
    return EINVAL;
  }
  if (header.reserved1 != 0 || header.reserved2 != 0) return EPROTONOSUPPORT;
  if (header.driver_id != RDMA_DRIVER_MLX5) return EINVAL;
  // What is not known as an ioctl is refused in the way that makes libraries send it as a write.
  const IoctlMethod* method = find_method(header);
  if (method == nullptr) return EPROTONOSUPPORT;

  IoctlCall call;
  if (const int error = call.parse(argument + sizeof header, header.num_attrs, *method); error != 0)
    return error;
  const std::lock_guard lock(file.mutex);
  return file.has_context ? method->handler(file, call) : EINVAL;
}

int IoctlCall::parse(UserAddress attributes, std::size_t count, const IoctlMethod& method) {
  for (std::size_t i = 0; i < count; ++i) {
    const UserAddress address = attributes + i * sizeof(ib_uverbs_attr);
    ib_uverbs_attr attribute{};
    if (const int error = copy_in(&attribute, address, sizeof attribute); error != 0) return error;
    const AttributeSpec* spec = find_spec(method, attribute.attr_id);
    if (spec == nullptr) {
      if ((attribute.flags & UVERBS_ATTR_F_MANDATORY) != 0) return EPROTONOSUPPORT;
      continue;
    }
    if (has(attribute.attr_id)) return EINVAL;
    if (const int error = add(*spec, address, attribute); error != 0) return error;
  }
  for (const AttributeSpec& spec : method.attributes) {
    if (spec.mandatory && !has(spec.id)) return EINVAL;
  }
  return 0;
}

int IoctlCall::add(const AttributeSpec& spec, UserAddress address, const ib_uverbs_attr& attribute) {
  if (attribute.attr_data.reserved != 0) return EINVAL;
  switch (spec.kind) {
    case AttributeKind::in:
    case AttributeKind::out:
      if (attribute.len < spec.least || attribute.len > spec.most) return EINVAL;
      break;
    case AttributeKind::handle:
      if (attribute.len != 0 || attribute.data > UINT32_MAX) return EINVAL;
      break;
    case AttributeKind::descriptor:
      if (attribute.len != 0 || attribute.data > INT32_MAX) return EINVAL;
      break;
  }
  attributes_.push_back({&spec, address, attribute.data, attribute.len});
  return 0;
}

const IoctlCall::Attribute* IoctlCall::find(std::uint16_t id) const {
  const auto found =
      std::find_if(attributes_.begin(), attributes_.end(), [id](const auto& a) { return a.spec->id == id; });
  return found == attributes_.end() ? nullptr : &*found;
}

std::size_t IoctlCall::size(std::uint16_t id) const {
  const Attribute* attribute = find(id);
  return attribute == nullptr ? 0 : attribute->bytes;
}

int IoctlCall::read_number(std::uint16_t id, std::uint64_t& value) const {
  value = 0;
  const Attribute* attribute = find(id);
  if (attribute == nullptr) return 0;
  if (attribute->bytes > sizeof value) return EINVAL;
  value = attribute->data;
  if (attribute->bytes < sizeof value) value &= (std::uint64_t{1} << (8 * attribute->bytes)) - 1;
  return 0;
}

int IoctlCall::read_bytes(std::uint16_t id, std::vector<std::byte>& bytes) const {
  const Attribute* attribute = find(id);
  bytes.assign(attribute == nullptr ? 0 : attribute->bytes, std::byte{0});
  if (bytes.empty()) return 0;
  if (bytes.size() > sizeof attribute->data) return copy_in(bytes.data(), attribute->data, bytes.size());
  std::copy_n(reinterpret_cast<const std::byte*>(&attribute->data), bytes.size(), bytes.begin());
  return 0;
}

int IoctlCall::write_bytes(std::uint16_t id, const void* from, std::size_t bytes) const {
  const Attribute* attribute = find(id);
  if (attribute == nullptr) return 0;
  const std::size_t some = std::min<std::size_t>(bytes, attribute->bytes);
  if (const int error = copy_out(attribute->data, from, some); error != 0) return error;
  if (attribute->bytes > some) {
    if (const int error = clear_out(attribute->data + some, attribute->bytes - some); error != 0)
      return error;
  }
  std::uint16_t flags = 0;
  const UserAddress flags_address = attribute->address + offsetof(ib_uverbs_attr, flags);
  if (const int error = copy_in(&flags, flags_address, sizeof flags); error != 0) return error;
  flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return copy_out(flags_address, &flags, sizeof flags);
}

std::uint32_t IoctlCall::handle(std::uint16_t id) const {
  const Attribute* attribute = find(id);
  return attribute == nullptr ? UINT32_MAX : static_cast<std::uint32_t>(attribute->data);
}

int IoctlCall::answer_handle(std::uint16_t id, std::uint32_t value) const {
  const Attribute* attribute = find(id);
  if (attribute == nullptr) return EINVAL;
  const std::uint64_t wide = value;
  return copy_out(attribute->address + offsetof(ib_uverbs_attr, data), &wide, sizeof wide);
}

}  // namespace belfry::softnic

#include "softnic/uverbs/devx_mailbox.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace belfry::softnic {

namespace prm = wire::prm;

PrmOutcome outcome_of(int error) {
  switch (error) {
    case 0:
      return {};
    case EBUSY:
      return {prm::Status::resource_busy, DevxSyndrome::refused};
    case ENOMEM:
    case ENOSPC:
      return {prm::Status::no_resources, DevxSyndrome::refused};
    case EOPNOTSUPP:
      return bad_parameter(DevxSyndrome::not_supported);
    default:
      return bad_parameter(DevxSyndrome::refused);
  }
}

int Mailbox::read(const IoctlCall& call, std::uint16_t in_id, std::uint16_t out_id) {
  std::vector<std::byte> bytes;
  if (const int error = call.read_bytes(in_id, bytes); error != 0) return error;
  in_bytes_ = bytes.size();
  out_bytes_ = call.size(out_id);
  in_.assign(std::max(in_bytes_, kPaddedBytes), 0);
  out_.assign(std::max(out_bytes_, kPaddedBytes), 0);
  std::memcpy(in_.data(), bytes.data(), bytes.size());
  return 0;
}

int Mailbox::answer(const IoctlCall& call, std::uint16_t out_id, const PrmOutcome& outcome) {
  prm::CommandOut::status::set(out_.data(), static_cast<std::uint64_t>(outcome.status));
  prm::CommandOut::syndrome::set(out_.data(), static_cast<std::uint64_t>(outcome.syndrome));
  if (const int error = call.write_bytes(out_id, out_.data(), out_bytes_); error != 0) return error;
  return outcome.ok() ? 0 : EREMOTEIO;
}

}  // namespace belfry::softnic

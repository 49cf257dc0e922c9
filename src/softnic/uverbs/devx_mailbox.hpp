#pragma once
/// \file
/// A PRM command on its way through DEVX: the input that the application wrote and the output that it
/// gets. Layouts: belfry/wire/prm.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "belfry/wire/prm.hpp"
#include "softnic/uverbs/ioctl_call.hpp"

namespace belfry::softnic {

/// Vendor syndromes in outputs of failed commands. A device's are secret numbers; these say which of
/// our checks failed.
enum class DevxSyndrome : std::uint32_t {
  none = 0,
  unknown_command = 0xbe1f0001,
  unknown_group = 0xbe1f0002,      ///< QUERY_HCA_CAP of a group that does not exist
  bad_port = 0xbe1f0003,           ///< another port or virtual port than the one there is
  bad_index = 0xbe1f0004,          ///< behind the end of a table
  unknown_umem = 0xbe1f0005,       ///< no such umem in this context
  outside_umem = 0xbe1f0006,       ///< the object does not fit into its umem
  umem_not_writable = 0xbe1f0007,  ///< the umem lacks local write, or its memory is not mapped so
  bad_size = 0xbe1f0008,           ///< size of a queue, of its entries, or of a key
  not_supported = 0xbe1f0009,      ///< a kind of object or a mode that this device lacks
  bad_state = 0xbe1f000a,          ///< not a transition from the queue's present state
  bad_attribute = 0xbe1f000b,      ///< a value that the device refuses
  refused = 0xbe1f000c,            ///< the device refuses: unknown PD, CQ or UAR, or a limit
};

/// How a command ended as the device tells it.
struct PrmOutcome {
  wire::prm::Status status = wire::prm::Status::ok;
  DevxSyndrome syndrome = DevxSyndrome::none;

  bool ok() const { return status == wire::prm::Status::ok; }
};

inline PrmOutcome bad_parameter(DevxSyndrome syndrome) {
  return {wire::prm::Status::bad_parameter, syndrome};
}
inline PrmOutcome bad_resource(DevxSyndrome syndrome) { return {wire::prm::Status::bad_resource, syndrome}; }

/// What an errno of a control call is to the device.
PrmOutcome outcome_of(int error);

class Mailbox {
 public:
  /// Fields may be read to here, however short the input is: the rest reads as zero.
  static constexpr std::size_t kPaddedBytes = 4352;

  /// \return 0 or EFAULT
  int read(const IoctlCall& call, std::uint16_t in_id, std::uint16_t out_id);

  wire::prm::Opcode opcode() const {
    return static_cast<wire::prm::Opcode>(wire::prm::CommandIn::opcode::get(in_.data()));
  }
  const std::uint8_t* in() const { return in_.data(); }
  std::uint8_t* out() { return out_.data(); }
  std::size_t in_bytes() const { return in_bytes_; }
  std::size_t out_bytes() const { return out_bytes_; }

  /// Writes status, syndrome and the rest of the output.
  /// \return 0; EREMOTEIO: the command failed, as the output says; EFAULT: it could not be written
  int answer(const IoctlCall& call, std::uint16_t out_id, const PrmOutcome& outcome);

 private:
  std::vector<std::uint8_t> in_;
  std::vector<std::uint8_t> out_;
  std::size_t in_bytes_ = 0;
  std::size_t out_bytes_ = 0;
};

}  // namespace belfry::softnic

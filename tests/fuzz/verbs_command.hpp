#pragma once
/// \file
/// A write() command under construction: header, the kernel's struct, the driver's struct behind it.

#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "fuzz/verbs_client.hpp"

namespace belfry::fuzz {

class VerbsClient::Command {
 public:
  explicit Command(std::uint32_t command, bool extended = false)
      : bytes_(sizeof(ib_uverbs_cmd_hdr) + (extended ? sizeof(ib_uverbs_ex_cmd_hdr) : 0)),
        extended_(extended) {
    header().command = extended ? command | IB_USER_VERBS_CMD_FLAG_EXTENDED : command;
  }

  /// Appends `value`, of which only the first `bytes` count (a flexible array's struct ends there).
  template <class T>
  Command& add(const T& value, std::size_t bytes = sizeof(T)) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + bytes);
    std::memcpy(bytes_.data() + at, &value, bytes);
    return *this;
  }

  /// Ends the core part of an extended command: what follows is the driver's, and so are the last
  /// `out_bytes` of the answer.
  Command& driver(std::size_t out_bytes) {
    core_end_ = bytes_.size();
    driver_out_bytes_ = out_bytes;
    return *this;
  }

  /// Fills the lengths in. \param response where the answer goes; extended commands only
  void finish(std::size_t out_bytes, std::uint64_t response) {
    if (!extended_) {
      header().out_words = static_cast<std::uint16_t>(out_bytes / 4);
      header().in_words = static_cast<std::uint16_t>(bytes_.size() / 4);
      return;
    }
    const std::size_t head = sizeof(ib_uverbs_cmd_hdr) + sizeof(ib_uverbs_ex_cmd_hdr);
    const std::size_t core_end = core_end_ == 0 ? bytes_.size() : core_end_;
    header().in_words = static_cast<std::uint16_t>((core_end - head) / 8);
    ib_uverbs_ex_cmd_hdr more{};
    more.response = response;
    const std::size_t driver_out = std::min(driver_out_bytes_, out_bytes);
    header().out_words = static_cast<std::uint16_t>((out_bytes - driver_out) / 8);
    more.provider_out_words = static_cast<std::uint16_t>(driver_out / 8);
    more.provider_in_words = static_cast<std::uint16_t>((bytes_.size() - core_end) / 8);
    std::memcpy(bytes_.data() + sizeof(ib_uverbs_cmd_hdr), &more, sizeof more);
  }

  bool extended() const { return extended_; }
  std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  ib_uverbs_cmd_hdr& header() { return *reinterpret_cast<ib_uverbs_cmd_hdr*>(bytes_.data()); }

  std::vector<std::uint8_t> bytes_;
  bool extended_;
  std::size_t core_end_ = 0;
  std::size_t driver_out_bytes_ = 0;
};

}  // namespace belfry::fuzz

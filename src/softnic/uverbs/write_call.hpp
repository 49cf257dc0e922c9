#pragma once
/// \file
/// A command written to a uverbs file: header, request of the core, request of the driver; and the
/// places for the two responses. Formats: <rdma/ib_user_verbs.h>, <rdma/mlx5-abi.h>.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "softnic/uverbs/user_memory.hpp"

namespace belfry::softnic {

class FileState;

/// Where a part of a command lies in the application's memory.
struct UserPart {
  UserAddress address = 0;
  std::size_t bytes = 0;
};

class WriteCall {
 public:
  UserPart request;
  UserPart response;
  UserPart driver_request;
  UserPart driver_response;

  /// Copies the core's request. What a shorter one lacks is zero; what a longer one has more must be.
  /// \return 0, EFAULT or EOPNOTSUPP
  template <class T>
  int read(T& to) const {
    return copy_request(request, &to, sizeof to, true);
  }

  /// Copies the driver's request, of which `least` bytes must be there.
  /// \return 0, EFAULT, EINVAL (too short) or, where `strict`, EOPNOTSUPP (unknown tail that is not zero)
  template <class T>
  int read_driver(T& to, std::size_t least, bool strict = false) const {
    if (driver_request.bytes < least) return EINVAL;
    return copy_request(driver_request, &to, sizeof to, strict);
  }

  /// Copies as much of the response as there is room for, and zeros behind it. \return 0 or EFAULT
  template <class T>
  int respond(const T& from) const {
    return copy_response(response, &from, sizeof from);
  }

  /// The driver's response, whole: EFAULT where there is less room, as for a kernel driver.
  template <class T>
  int respond_driver(const T& from) const {
    return driver_response.bytes < sizeof from ? EFAULT
                                               : copy_out(driver_response.address, &from, sizeof from);
  }

  /// The driver's response as far as there is room.
  template <class T>
  int respond_driver_some(const T& from) const {
    return copy_out(driver_response.address, &from, std::min(sizeof from, driver_response.bytes));
  }

 private:
  static int copy_request(const UserPart& part, void* to, std::size_t bytes, bool strict);
  static int copy_response(const UserPart& part, const void* from, std::size_t bytes);
};

}  // namespace belfry::softnic

#pragma once
/// \file
/// What the host library's tests share.

#include <gtest/gtest.h>

#include <utility>

#include "belfry/host/errors.hpp"

namespace belfry::host {

/// Runs `action`, which must throw an Error of that kind. \return the error, or an empty one if it did not
template <class Action>
Error expect_error(ErrorKind kind, Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    return error;
  }
  ADD_FAILURE() << "nothing was thrown, expected " << to_string(kind);
  return {kind, "nothing was thrown", ""};
}

}  // namespace belfry::host

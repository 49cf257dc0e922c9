#pragma once
/// \file
/// What must hold in every execution.

#include <string>

namespace belfry::check {

enum class Property {
  fetch_after_stores,        ///< no fetch of a slot before its stores
  ready_before_doorbell,     ///< no doorbell past an unready slot
  payload_before_doorbell,   ///< the payload is there when the NIC reads it
  retired_before_overwrite,  ///< no overwrite of an unretired slot
  exactly_once,  ///< every operation is executed and completes once, and only what was not has failed
  in_order,      ///< in the order of its queue
  signal_implies_payload,   ///< whoever sees a signal sees its payload
  completion_implies_data,  ///< whoever sees a completion sees what it stands for
  cause_known,              ///< who is told of a failure is told its cause
  waits_end,                ///< no wait without an end
};

constexpr const char* property_name(Property property) {
  switch (property) {
    case Property::fetch_after_stores:
      return "fetch_after_stores";
    case Property::ready_before_doorbell:
      return "ready_before_doorbell";
    case Property::payload_before_doorbell:
      return "payload_before_doorbell";
    case Property::retired_before_overwrite:
      return "retired_before_overwrite";
    case Property::exactly_once:
      return "exactly_once";
    case Property::in_order:
      return "in_order";
    case Property::signal_implies_payload:
      return "signal_implies_payload";
    case Property::completion_implies_data:
      return "completion_implies_data";
    case Property::cause_known:
      return "cause_known";
    case Property::waits_end:
      return "waits_end";
  }
  return "unknown";
}

struct Violation {
  Property property = Property::waits_end;
  std::string text;
};

}  // namespace belfry::check

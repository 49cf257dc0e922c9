#include "belfry/host/completion.hpp"

#include <cstdio>

namespace belfry::host {

namespace {

struct Explanation {
  const char* name;
  const char* remedy;
};

Explanation explain(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::success:
      return {"success", ""};
    case CompletionStatus::local_length:
      return {"local length error", "The message is longer than the receive buffer or the device's limit"};
    case CompletionStatus::local_qp_operation:
      return {"local QP operation error", "The work request is malformed for this QP"};
    case CompletionStatus::local_protection:
      return {"local protection error",
              "A local address or lkey does not lie in a region of this protection domain"};
    case CompletionStatus::flushed:
      return {"flushed", "An earlier operation failed and took the QP down: look at the first error"};
    case CompletionStatus::memory_window_bind:
      return {"memory window bind error", "The window's region or rights do not allow the bind"};
    case CompletionStatus::bad_response:
      return {"bad response", "The peer answered with an unexpected packet"};
    case CompletionStatus::local_access:
      return {"local access error", "The peer's request violated this end's protection"};
    case CompletionStatus::remote_invalid_request:
      return {"remote invalid request",
              "The peer's QP does not take this operation: check its access rights, sizes and alignment"};
    case CompletionStatus::remote_access:
      return {"remote access error",
              "The rkey, the address range or the access rights do not match at the peer"};
    case CompletionStatus::remote_operation:
      return {"remote operation error", "The peer's side failed to carry it out: look at its completions"};
    case CompletionStatus::retry_exceeded:
      return {
          "transport retry exceeded",
          "The peer does not answer: it is gone, its QP is not connected, or path, GID or MTU do not match"};
    case CompletionStatus::rnr_retry_exceeded:
      return {"receiver-not-ready retry exceeded", "The peer posted no receive in time"};
    case CompletionStatus::remote_aborted:
      return {"remote aborted", "The peer gave the operation up"};
    case CompletionStatus::fatal:
      return {"fatal error", "The device or the QP is not usable any more"};
    case CompletionStatus::general:
      return {"general error", ""};
  }
  return {"unknown status", ""};
}

}  // namespace

std::string describe(const Completion& completion) {
  char text[160];
  std::snprintf(text, sizeof text, "%s (status %u, vendor syndrome 0x%02x) on QP 0x%06x, request %llu",
                explain(completion.status).name, static_cast<unsigned>(completion.status),
                completion.vendor_syndrome, completion.qpn,
                static_cast<unsigned long long>(completion.wr_id));
  return text;
}

Error completion_error(const Completion& completion) {
  return {ErrorKind::completion, describe(completion), explain(completion.status).remedy};
}

}  // namespace belfry::host

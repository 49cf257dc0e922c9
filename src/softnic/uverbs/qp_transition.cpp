#include "softnic/uverbs/qp_transition.hpp"

#include <array>

namespace belfry::softnic {
namespace {

struct Transition {
  QpState from;
  QpState to;
  std::uint32_t required;
  std::uint32_t optional;
};

constexpr std::uint32_t kPathChoice = kQpAlternatePath | kQpPathMigration;

constexpr std::array kTransitions{
    Transition{QpState::reset, QpState::init, kQpPkeyIndex | kQpPort | kQpAccess, 0},
    Transition{QpState::init, QpState::init, 0, kQpPkeyIndex | kQpPort | kQpAccess},
    Transition{QpState::init, QpState::rtr,
               kQpPath | kQpPathMtu | kQpDestination | kQpReceivePsn | kQpResponderDepth | kQpMinRnrTimer,
               kQpAlternatePath | kQpAccess | kQpPkeyIndex},
    Transition{QpState::rtr, QpState::rts,
               kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpSendPsn | kQpInitiatorDepth,
               kQpCurrentState | kQpAccess | kQpMinRnrTimer | kPathChoice},
    Transition{QpState::rts, QpState::rts, 0, kQpCurrentState | kQpAccess | kQpMinRnrTimer | kPathChoice},
    Transition{QpState::rts, QpState::sqd, 0, kQpNotifyWhenDrained},
    Transition{QpState::sqd, QpState::rts, 0, kQpCurrentState | kQpAccess | kQpMinRnrTimer | kPathChoice},
    Transition{QpState::sqd, QpState::sqd, 0,
               kQpPort | kQpPath | kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpInitiatorDepth |
                   kQpResponderDepth | kQpAccess | kQpPkeyIndex | kQpMinRnrTimer | kPathChoice},
    Transition{QpState::sqe, QpState::rts, 0, 0},
};

const Transition* find(QpState from, QpState to) {
  for (const Transition& transition : kTransitions) {
    if (transition.from == from && transition.to == to) return &transition;
  }
  return nullptr;
}

/// The caller's idea of the present state is only heard where states change by themselves.
bool current_state_allowed(QpState from) {
  return from == QpState::rtr || from == QpState::rts || from == QpState::sqd || from == QpState::sqe;
}

}  // namespace

bool transition_allowed(QpState from, QpState to, std::uint32_t mask) {
  if ((mask & kQpCurrentState) != 0 && !current_state_allowed(from)) return false;
  const bool always = to == QpState::reset || (to == QpState::error && from != QpState::reset);
  const Transition* transition = find(from, to);
  if (!always && transition == nullptr) return false;
  const std::uint32_t required = transition == nullptr ? 0 : transition->required;
  const std::uint32_t optional = transition == nullptr ? 0 : transition->optional;
  return (mask & required) == required && (mask & ~(required | optional | kQpState)) == 0;
}

}  // namespace belfry::softnic

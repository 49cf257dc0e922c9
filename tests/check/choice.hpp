#pragma once
/// \file
/// An execution asks, an exploration answers. Choice 0 is always the usual one: the same agent goes on, a
/// read takes the newest message, a store goes to the end.

#include <cstdint>
#include <optional>
#include <vector>

namespace belfry::check {

enum class ChoiceKind : std::uint8_t {
  agent,    ///< who goes on
  message,  ///< what a read takes
  place,    ///< where a store goes in its line's order
  fulfil,   ///< whether a store is the one that somebody foresaw
  news,     ///< which of the things that a waiting loop looks at has changed
};

struct Choice {
  ChoiceKind kind = ChoiceKind::agent;
  bool free = false;  ///< nothing unusual about any answer: the agent that ran cannot go on
  std::uint16_t count = 0;
  std::uint16_t taken = 0;
};

/// What the other side of a foresight says (docs/checker.md, "Load buffering").
enum class Certificate { unknown, granted, refused };

class Chooser {
 public:
  virtual ~Chooser() = default;
  /// \return below choice.count, or nothing: the execution ends here
  virtual std::optional<unsigned> choose(const Choice& choice) = 0;
  /// The state before a choice of agent. \return false: all that follows has been seen
  virtual bool enter(std::uint64_t state, int running) = 0;
  /// Whether the reader of a foresight would have come to this point without it.
  /// \param emitted hash of what the reader has done
  virtual Certificate certificate(const std::vector<Choice>& taken, std::size_t foresight,
                                  std::uint64_t emitted) = 0;
};

}  // namespace belfry::check

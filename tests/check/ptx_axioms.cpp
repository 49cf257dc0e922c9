// The PTX memory consistency model, as axioms over candidate executions of a litmus test: reads-from,
// coherence and Fence-SC orders are enumerated, and each candidate is held against the axioms one by one.
// Source: PTX ISA, chapter "Memory Consistency Model": names of relations and axioms are those of its
// sections.

#include <algorithm>
#include <bitset>
#include <functional>
#include <numeric>
#include <optional>

#include "check/litmus.hpp"
#include "check/misuse.hpp"

namespace belfry::check {
namespace {

constexpr std::size_t kMostEvents = 24;

class Relation {
 public:
  bool operator()(std::size_t a, std::size_t b) const { return rows_[a][b]; }
  void add(std::size_t a, std::size_t b) { rows_[a].set(b); }
  Relation& operator|=(const Relation& o) {
    for (std::size_t i = 0; i < kMostEvents; ++i) rows_[i] |= o.rows_[i];
    return *this;
  }
  /// a -> c where a -> b here and b -> c there.
  Relation then(const Relation& next) const {
    Relation r;
    for (std::size_t a = 0; a < kMostEvents; ++a)
      for (std::size_t b = 0; b < kMostEvents; ++b)
        if (rows_[a][b]) r.rows_[a] |= next.rows_[b];
    return r;
  }
  void close() {
    for (std::size_t b = 0; b < kMostEvents; ++b)
      for (std::size_t a = 0; a < kMostEvents; ++a)
        if (rows_[a][b]) rows_[a] |= rows_[b];
  }
  bool cyclic() const {
    Relation closed = *this;
    closed.close();
    for (std::size_t i = 0; i < kMostEvents; ++i)
      if (closed.rows_[i][i]) return true;
    return false;
  }

 private:
  std::array<std::bitset<kMostEvents>, kMostEvents> rows_{};
};

struct Event {
  Instruction instruction;
  Place place;
  int thread = -1;  ///< -1: the initial write of a variable

  bool initial() const { return thread < 0; }
  bool reads() const { return !initial() && instruction.reads(); }
  bool writes() const { return initial() || instruction.writes(); }
  bool is_fence() const { return !initial() && instruction.is_fence(); }
  bool is_atomic() const { return !initial() && instruction.kind == Instruction::Kind::add; }
  bool is_sequential() const { return !initial() && instruction.kind == Instruction::Kind::fence_sequential; }
  bool strong() const { return initial() || !instruction.weak; }
};

class Candidate {
 public:
  explicit Candidate(const Program& program) {
    for (unsigned v = 0; v < program.variables; ++v) {
      Event e;
      e.instruction.kind = Instruction::Kind::store;
      e.instruction.variable = v;
      events_.push_back(e);
    }
    for (std::size_t t = 0; t < program.threads.size(); ++t)
      for (const Instruction& i : program.threads[t].instructions)
        events_.push_back({i, program.threads[t].place, static_cast<int>(t)});
    if (events_.size() > kMostEvents) throw Misuse("a litmus test that is too long for the axioms");
    for (std::size_t a = 0; a < events_.size(); ++a)
      for (std::size_t b = 0; b < events_.size(); ++b)
        if (a < b && (events_[a].initial() || events_[a].thread == events_[b].thread))
          program_order_.add(a, b);
    from_.assign(events_.size(), 0);
    rank_.assign(events_.size(), 0);
  }

  Outcomes outcomes() {
    choose_reads(0);
    return std::move(found_);
  }

 private:
  bool same_variable(std::size_t a, std::size_t b) const {
    return !events_[a].is_fence() && !events_[b].is_fence() &&
           events_[a].instruction.variable == events_[b].instruction.variable;
  }
  bool morally_strong(std::size_t a, std::size_t b) const {
    const Event &x = events_[a], &y = events_[b];
    if (!x.is_fence() && !y.is_fence() && !same_variable(a, b)) return false;
    if (x.initial() || y.initial() || x.thread == y.thread) return true;
    const Scope common = common_scope(x.place, y.place);
    return x.strong() && y.strong() && effective_scope(x.place, x.instruction.scope) >= common &&
           effective_scope(y.place, y.instruction.scope) >= common;
  }

  void choose_reads(std::size_t event) {
    if (event == events_.size()) return choose_coherence(0);
    if (!events_[event].reads()) return choose_reads(event + 1);
    for (std::size_t w = 0; w < events_.size(); ++w) {
      if (w == event || !events_[w].writes() || !same_variable(w, event)) continue;
      from_[event] = w;
      choose_reads(event + 1);
    }
  }
  /// Ranks the writes of one variable after another; the initial one comes first.
  void choose_coherence(unsigned variable) {
    std::vector<std::size_t> writes;
    bool any = false;
    for (std::size_t e = 0; e < events_.size(); ++e) {
      if (events_[e].is_fence() || events_[e].instruction.variable != variable) continue;
      any = true;
      if (events_[e].writes() && !events_[e].initial()) writes.push_back(e);
    }
    if (!any) return choose_fences();
    do {
      for (std::size_t i = 0; i < writes.size(); ++i) rank_[writes[i]] = i + 1;
      choose_coherence(variable + 1);
    } while (std::next_permutation(writes.begin(), writes.end()));
  }
  void choose_fences() {
    std::vector<std::size_t> fences;
    for (std::size_t e = 0; e < events_.size(); ++e)
      if (events_[e].is_sequential()) fences.push_back(e);
    do {
      for (std::size_t i = 0; i < fences.size(); ++i) rank_[fences[i]] = i;
      judge();
    } while (std::next_permutation(fences.begin(), fences.end()));
  }

  /// Observation order: a write and what reads it strongly, and so on through atomics.
  Relation observation() const {
    Relation r;
    for (std::size_t e = 0; e < events_.size(); ++e)
      if (events_[e].reads() && morally_strong(from_[e], e)) r.add(from_[e], e);
    for (std::size_t z = 0; z < events_.size(); ++z) {
      if (!events_[z].is_atomic()) continue;
      for (std::size_t a = 0; a < events_.size(); ++a)
        for (std::size_t b = 0; b < events_.size(); ++b)
          if (r(a, z) && r(z, b)) r.add(a, b);
    }
    return r;
  }

  struct Pattern {
    std::size_t first, last;
  };
  std::vector<Pattern> release_patterns() const {
    std::vector<Pattern> found;
    for (std::size_t w = 0; w < events_.size(); ++w) {
      if (!events_[w].writes() || events_[w].initial() || !events_[w].strong()) continue;
      if (events_[w].instruction.release) found.push_back({w, w});
      for (std::size_t first = 0; first < w; ++first) {
        if (events_[first].thread != events_[w].thread) continue;
        const bool releases_here = events_[first].instruction.release && same_variable(first, w);
        if (events_[first].is_fence() || releases_here) found.push_back({first, w});
      }
    }
    return found;
  }
  std::vector<Pattern> acquire_patterns() const {
    std::vector<Pattern> found;
    for (std::size_t r = 0; r < events_.size(); ++r) {
      if (!events_[r].reads() || !events_[r].strong()) continue;
      if (events_[r].instruction.acquire) found.push_back({r, r});
      for (std::size_t last = r + 1; last < events_.size(); ++last) {
        if (events_[last].thread != events_[r].thread) continue;
        const bool acquires_here = events_[last].instruction.acquire && same_variable(last, r);
        if (events_[last].is_fence() || acquires_here) found.push_back({r, last});
      }
    }
    return found;
  }
  Relation synchronizes(const Relation& observed) const {
    Relation r;
    for (std::size_t a = 0; a < events_.size(); ++a)
      for (std::size_t b = 0; b < events_.size(); ++b)
        if (a != b && events_[a].is_sequential() && events_[b].is_sequential() && morally_strong(a, b) &&
            rank_[a] < rank_[b])
          r.add(a, b);
    const auto acquires = acquire_patterns();
    for (const Pattern& release : release_patterns())
      for (const Pattern& acquire : acquires)
        if (observed(release.last, acquire.first) && morally_strong(release.first, acquire.last))
          r.add(release.first, acquire.last);
    return r;
  }

  void judge() {
    const auto n = events_.size();
    const Relation observed = observation();
    Relation base = synchronizes(observed);
    base |= program_order_;
    base.close();
    Relation causality = observed.then(base);
    causality |= base;

    Relation coherence, reads_from, from_reads;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b || !same_variable(a, b) || !events_[a].writes() || !events_[b].writes()) continue;
        if (causality(a, b) && rank_[a] > rank_[b]) return;  // Coherence
        if (rank_[a] < rank_[b] && (morally_strong(a, b) || causality(a, b))) coherence.add(a, b);
      }
    }
    coherence.close();
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b)
        if (a != b && events_[a].is_sequential() && events_[b].is_sequential() && morally_strong(a, b) &&
            causality(a, b) && rank_[a] > rank_[b])
          return;  // Fence-SC
    for (std::size_t r = 0; r < n; ++r) {
      if (!events_[r].reads()) continue;
      reads_from.add(from_[r], r);
      for (std::size_t w = 0; w < n; ++w)
        if (w != r && coherence(from_[r], w)) from_reads.add(r, w);
    }
    if (!atomic(coherence) || !sequential_per_location(coherence, reads_from, from_reads)) return;
    for (std::size_t r = 0; r < n; ++r) {
      if (!events_[r].reads()) continue;
      if (causality(r, from_[r])) return;  // Causality, 1
      for (std::size_t w = 0; w < n; ++w)
        if (w != r && events_[w].writes() && same_variable(w, r) && causality(w, r) && coherence(from_[r], w))
          return;  // Causality, 2
    }
    const auto results = values();
    if (results) found_.insert(*results);
  }

  /// Nothing that is morally strong with an atomic comes between what it reads and what it writes.
  bool atomic(const Relation& coherence) const {
    for (std::size_t a = 0; a < events_.size(); ++a) {
      if (!events_[a].is_atomic()) continue;
      for (std::size_t w = 0; w < events_.size(); ++w)
        if (w != a && events_[w].writes() && same_variable(a, w) && morally_strong(a, w) &&
            coherence(from_[a], w) && coherence(w, a))
          return false;
    }
    return true;
  }

  /// Every set of overlapping operations that are pairwise morally strong is sequentially consistent.
  bool sequential_per_location(const Relation& co, const Relation& rf, const Relation& fr) const {
    for (unsigned v = 0; v < events_.size() && events_[v].initial(); ++v) {
      std::vector<std::size_t> all;
      for (std::size_t e = 0; e < events_.size(); ++e)
        if (!events_[e].is_fence() && events_[e].instruction.variable == v) all.push_back(e);
      for (std::uint32_t set = 1; set < 1u << all.size(); ++set) {
        Relation r;
        bool pairwise = true;
        for (std::size_t i = 0; i < all.size(); ++i) {
          for (std::size_t j = 0; j < all.size(); ++j) {
            if (i == j || (set >> i & 1u) == 0 || (set >> j & 1u) == 0) continue;
            pairwise = pairwise && morally_strong(all[i], all[j]);
            const std::size_t a = all[i], b = all[j];
            if (program_order_(a, b) || co(a, b) || rf(a, b) || fr(a, b)) r.add(a, b);
          }
        }
        if (pairwise && r.cyclic()) return false;
      }
    }
    return true;
  }

  /// What the reads return; nothing if a value would come out of thin air.
  std::optional<Results> values() const {
    std::vector<std::optional<std::uint64_t>> written(events_.size());
    const std::function<std::optional<std::uint64_t>(std::size_t, std::size_t)> value =
        [&](std::size_t e, std::size_t depth) -> std::optional<std::uint64_t> {
      if (depth > events_.size()) return std::nullopt;
      if (!events_[e].is_atomic()) return events_[e].instruction.value;
      const auto before = value(from_[e], depth + 1);
      if (!before) return std::nullopt;
      return *before + events_[e].instruction.value;
    };
    Results results;
    for (std::size_t e = 0; e < events_.size(); ++e) {
      if (!events_[e].reads()) continue;
      const auto read = value(from_[e], 0);
      if (!read) return std::nullopt;
      results.push_back(*read);
    }
    return results;
  }

  std::vector<Event> events_;
  Relation program_order_;
  std::vector<std::size_t> from_;  ///< of a read: the write
  std::vector<std::size_t> rank_;  ///< of a write: in coherence order; of a fence: in Fence-SC order
  Outcomes found_;
};

}  // namespace

Outcomes ptx_outcomes(const Program& program) { return Candidate(program).outcomes(); }

}  // namespace belfry::check

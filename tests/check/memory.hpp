#pragma once
/// \file
/// A memory weaker than a GPU's. docs/checker.md states the model; in short:
///
/// Every 16 B line keeps all messages (stores) it ever got, in one order. Every observer keeps a view: for
/// each cell the oldest message it may still read. A read takes any message that is not older. What raises a
/// view is reading strongly (the same cell never goes back), and acquiring what somebody released within
/// reach of both scopes. Nothing else does: time does not.
///
/// This class holds no choice: it says which messages a read may take and where a store may go, and is told.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "check/place.hpp"
#include "check/view.hpp"

namespace belfry::check {

inline constexpr unsigned kLineBytes = 16;
inline constexpr unsigned kMaxForesights = 2;
inline constexpr int kNobody = -1;

struct Field {
  std::size_t offset = 0;
  std::string name;
};

/// A named piece of shared memory. A granule is the smallest access; each is a cell of every view.
struct Region {
  std::string name;
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::gpu;
  int gpu = 0;  ///< of MemoryKind::gpu
  unsigned granule = 8;
  std::size_t first_line = 0;
  std::size_t first_cell = 0;
  std::size_t stride = 0;     ///< bytes of one of its objects, for traces
  std::size_t used = 0;       ///< bytes of all of them
  std::vector<Field> fields;  ///< of such an object, in order
  std::size_t memory = 0;     ///< regions of one kind and GPU lie in the same one
};

/// The bytes of one access, within one line.
struct Where {
  std::size_t line = 0;
  std::uint16_t mask = 0;  ///< bytes of the line
  unsigned shift = 0;      ///< first of them
  unsigned bytes = 0;
  std::size_t first_cell = 0;
  unsigned cells = 0;
};

/// What a message hands to those who acquire it, by how far away they are.
struct Release {
  int by = kNobody;
  std::array<SharedView, 3> to;  ///< [Scope]: to observers whose common scope with the releaser it is
};

struct Message {
  Stamp stamp = 0;
  std::uint16_t mask = 0xffff;
  std::array<std::uint8_t, kLineBytes> bytes{};
  int writer = kNobody;
  unsigned number = 0;  ///< the writer's how-manieth store: with it a name that no schedule changes
  Scope scope = Scope::system;
  bool strong = true;
  bool modifies = false;  ///< written by a read-modify-write
  Stamp read_from = 0;    ///< then: the message that it read
  std::vector<Release> releases;
  std::uint64_t hash = 0;  ///< of what it says and what it hands over
  unsigned step = 0;       ///< when it was made, for traces
};

struct Line {
  std::vector<Message> order;
  std::size_t region = 0;
  std::uint64_t hash = 0;
};

/// An agent as the memory knows it. A NIC has several: its requester, its responder.
struct Observer {
  int id = 0;
  int device = 0;  ///< of a NIC's ports: its writes go to a memory by one way (A3)
  Place place;
  std::string name;
  unsigned stores = 0;
  View now;                  ///< what follows from what it has read and acquired, and its own stores
  View learnt;               ///< the same without its own stores
  View floor;                ///< what it has waited past: it binds its own reads only, and is never handed on
  std::array<View, 3> read;  ///< [Scope] releases it has read, for an acquiring fence of that scope
  std::array<SharedView, 3> released;  ///< [Scope] what its fences have released
  /// The same for what a release or a read of certain bytes did, for later accesses to these bytes only.
  struct AtBytes {
    std::size_t line = 0;
    std::uint16_t mask = 0;
    std::array<SharedView, 3> views;
  };
  std::vector<AtBytes> released_at, read_at;
  std::array<SharedView, 3> fenced;  ///< [Scope] at its last sequentially consistent fence
};

/// How an access is made.
struct Manner {
  Scope scope = Scope::system;
  bool strong = true;
  bool acquire = false;
  bool release = false;
};

/// A load that took a value which nobody had stored yet (load buffering).
struct Foresight {
  int reader = kNobody;
  Where where;
  std::uint64_t value = 0;
  Manner how;
  View known;           ///< the reader's, then
  bool fenced = false;  ///< the reader has made an acquiring fence since
  Stamp stamp = 0;      ///< of the store that came true; 0: none yet
};

class Memory {
 public:
  explicit Memory(Assumptions assumptions = {}) : assumptions_(assumptions) {}

  // Before it is used: regions, then observers.
  /// \param granule 1, 2, 4, 8 or 16 B: the smallest access to it
  std::size_t add_region(std::string name, std::span<std::byte> bytes, MemoryKind kind, int gpu,
                         unsigned granule);
  /// For traces: what one of the region's objects is made of.
  void describe_region(const void* at, std::size_t stride, std::size_t count, std::vector<Field> fields);
  /// Takes the regions' contents as the initial messages.
  void freeze();
  bool frozen() const { return frozen_; }
  int add_observer(Place place, std::string name);

  const Region* find_region(const void* at) const;
  Where locate(const void* at, unsigned bytes) const;  ///< throws Misuse
  const std::vector<Region>& regions() const { return regions_; }
  const Region& region_of(const Where& where) const { return regions_[lines_[where.line].region]; }
  /// Noted in each message, for traces.
  unsigned step = 0;
  std::size_t lines() const { return lines_.size(); }
  const Line& line(const Where& where) const { return lines_[where.line]; }
  bool has_observer(int id) const { return id >= 0 && static_cast<std::size_t>(id) < observers_.size(); }
  Observer& observer(int id) { return observers_[static_cast<std::size_t>(id)]; }
  const Observer& observer(int id) const { return observers_[static_cast<std::size_t>(id)]; }

  // Reads.
  /// Messages that it may read, newest first: their indices in the line's order.
  std::vector<std::size_t> readable(const Observer& who, const Where& where) const;
  /// The access's bytes as of a message of the line; of 16 B the first 8.
  std::uint64_t value_at(const Where& where, std::size_t message) const;
  /// Of 16 B the last 8.
  std::uint64_t high_at(const Where& where, std::size_t message) const;
  std::uint64_t read(Observer& who, const Where& where, std::size_t message, const Manner& how);
  /// Step of the message of these bytes that comes next behind this one in the line's order; 0: none.
  unsigned step_above(const Where& where, std::size_t message) const;
  /// Newest message of the line that overlaps.
  std::size_t newest(const Where& where) const;

  // Writes.
  /// Messages behind which its store may go, newest first.
  std::vector<std::size_t> places_for_store(const Observer& who, const Where& where, const Manner& how) const;
  /// \param high of 16 B the last 8
  const Message& write(Observer& who, const Where& where, std::uint64_t value, const Manner& how,
                       std::size_t behind, std::uint64_t high = 0);
  /// Whether a store may go behind this message: it must not come between a read-modify-write and what that
  /// has read, if the two are morally strong.
  bool may_go_behind(const Observer& who, const Where& where, std::size_t message, const Manner& how) const;
  /// \return the value before
  std::uint64_t modify(Observer& who, const Where& where, std::size_t message, std::uint64_t value,
                       const Manner& how);

  // Fences and barriers.
  void fence(Observer& who, Scope scope);
  void fence_sequential(Observer& who, Scope scope);
  /// Each has seen what any of them had.
  void meet(std::span<Observer* const> all);

  // Loads of what is yet to come.
  bool may_foresee() const { return foresights_.size() < kMaxForesights; }
  void foresee(Observer& who, const Where& where, std::uint64_t value, const Manner& how);
  const std::vector<Foresight>& foresights() const { return foresights_; }
  bool foresight_open() const;
  /// Whether an access has to wait: its agent has read from a store to the same bytes that is yet to come.
  bool awaits_foresight(const Observer& who, const Where& where) const;
  /// Whether this store may be the one that a foresight read.
  bool may_fulfil(std::size_t foresight, const Observer& who, const Message& message,
                  const Where& where) const;
  void fulfil(std::size_t foresight, const Message& message);

  /// Of all that binds an observer.
  std::uint64_t hash_of(const Observer& who) const;
  /// Equal for equal contents, whatever the order in which they came about.
  std::uint64_t hash() const { return hash_; }

 private:
  bool reads_through_l2(const Observer& reader, const Observer& writer) const;
  bool linked(const Message& message, const Observer& reader, const Manner& how) const;
  bool strongly_related(const Message& message, const Observer& who, const Manner& how) const;
  void take(Observer& who, const Where& where, const Message& message, const Manner& how);
  SharedView handed(const Release& release, const Observer& to) const;
  std::vector<Release> releases_of(Observer& who, const Where& where, const Manner& how) const;
  Stamp floor_of(const Observer& who, const Where& where) const;
  std::uint64_t bytes_at(const Where& where, std::size_t message, unsigned first, unsigned count) const;
  Message& insert(Observer& who, const Where& where, std::uint64_t value, std::uint64_t high,
                  const Manner& how, std::size_t behind, bool modifies);
  static std::uint64_t hash_of(const Message& message);
  void rehash(std::size_t line);
  void acquire_read(Observer& who, Scope scope);
  void release_now(Observer& who, Scope scope);
  static void learn(Observer& who, const View& view);
  SharedView released_by(const Observer& who, const Where& where) const;
  std::size_t view_size() const { return cells_ + kMaxForesights; }

  Assumptions assumptions_;
  bool frozen_ = false;
  std::size_t cells_ = 0;
  std::vector<Region> regions_;
  std::vector<Line> lines_;
  std::vector<Observer> observers_;
  std::vector<Foresight> foresights_;
  std::vector<std::vector<bool>> cells_of_gpu_;     ///< [GPU] which cells are its memory
  std::vector<std::vector<bool>> cells_of_memory_;  ///< [Region::memory]
  std::uint64_t hash_ = 0;
};

}  // namespace belfry::check

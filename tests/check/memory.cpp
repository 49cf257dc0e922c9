#include "check/memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "check/hash.hpp"
#include "check/misuse.hpp"

namespace belfry::check {
namespace {

/// Room between two neighbours in a line's order, for stores that go between them.
constexpr int kStampStep = 64;

std::size_t index_of(Scope scope) { return static_cast<std::size_t>(scope); }

/// The cells of a message's bytes in its line.
template <class Use>
void for_each_cell(const Region& region, std::size_t line, std::uint16_t mask, Use use) {
  const std::size_t first = region.first_cell + (line - region.first_line) * (kLineBytes / region.granule);
  for (unsigned cell = 0; cell < kLineBytes / region.granule; ++cell)
    if ((mask >> (cell * region.granule) & 1u) != 0) use(first + cell);
}

bool overlaps(const Observer::AtBytes& kept, const Where& where) {
  return kept.line == where.line && (kept.mask & where.mask) != 0;
}

/// Of two things that one agent released, or null.
SharedView later(const SharedView& a, const SharedView& b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return a->covers(*b) ? a : b;
}

void keep_at(std::vector<Observer::AtBytes>& all, const Where& where, Scope scope, const SharedView& view) {
  auto at = std::find_if(all.begin(), all.end(), [&](const Observer::AtBytes& kept) {
    return kept.line == where.line && kept.mask == where.mask;
  });
  if (at == all.end()) at = all.insert(all.end(), {where.line, where.mask, {}});
  SharedView& kept = at->views[static_cast<std::size_t>(scope)];
  if (kept == nullptr) {
    kept = view;
    return;
  }
  View both = *kept;
  both.join(*view);
  kept = std::make_shared<const View>(std::move(both));
}

}  // namespace

// ---------------------------------------------------------------- set-up

std::size_t Memory::add_region(std::string name, std::span<std::byte> bytes, MemoryKind kind, int gpu,
                               unsigned granule) {
  if (frozen_) throw Misuse("regions are declared before agents run: " + name);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kLineBytes != 0 || bytes.size() % kLineBytes != 0)
    throw Misuse("a region starts and ends at 16 B: " + name);
  Region r;
  r.name = std::move(name);
  r.at = bytes.data();
  r.bytes = bytes.size();
  r.kind = kind;
  r.gpu = gpu;
  r.granule = granule;
  regions_.push_back(std::move(r));
  return regions_.size() - 1;
}

void Memory::describe_region(const void* at, std::size_t stride, std::size_t count,
                             std::vector<Field> fields) {
  for (Region& r : regions_) {
    if (r.at != at) continue;
    r.stride = stride;
    r.used = stride * count;
    r.fields = std::move(fields);
  }
}

void Memory::freeze() {
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    Region& r = regions_[i];
    r.first_line = lines_.size();
    r.first_cell = cells_;
    for (std::size_t at = 0; at < r.bytes; at += kLineBytes) {
      Line line;
      line.region = i;
      line.order.emplace_back();
      std::memcpy(line.order.back().bytes.data(), r.at + at, kLineBytes);
      lines_.push_back(std::move(line));
    }
    cells_ += r.bytes / r.granule;
    if (r.kind == MemoryKind::gpu && cells_of_gpu_.size() <= static_cast<std::size_t>(r.gpu))
      cells_of_gpu_.resize(static_cast<std::size_t>(r.gpu) + 1);
  }
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const auto same = std::find_if(regions_.begin(), regions_.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const Region& other) {
                                     return other.kind == regions_[i].kind &&
                                            (other.kind != MemoryKind::gpu || other.gpu == regions_[i].gpu);
                                   });
    regions_[i].memory = same->memory;
    if (same == regions_.begin() + static_cast<std::ptrdiff_t>(i)) {
      regions_[i].memory = cells_of_memory_.size();
      cells_of_memory_.emplace_back();
    }
  }
  for (auto& marks : cells_of_memory_) marks.assign(view_size(), false);
  for (const Region& r : regions_)
    for (std::size_t cell = 0; cell < r.bytes / r.granule; ++cell)
      cells_of_memory_[r.memory][r.first_cell + cell] = true;
  for (auto& marks : cells_of_gpu_) marks.assign(view_size(), false);
  for (const Region& r : regions_) {
    if (r.kind != MemoryKind::gpu) continue;
    for (std::size_t cell = 0; cell < r.bytes / r.granule; ++cell)
      cells_of_gpu_[static_cast<std::size_t>(r.gpu)][r.first_cell + cell] = true;
  }
  frozen_ = true;
  for (Observer& o : observers_) {
    o.now = o.floor = o.learnt = View(view_size());
    for (View& v : o.read) v = View(view_size());
  }
}

int Memory::add_observer(Place place, std::string name) {
  if (frozen_) throw Misuse("agents are declared before any runs: " + name);
  Observer o;
  o.id = o.device = static_cast<int>(observers_.size());
  o.place = place;
  o.name = std::move(name);
  observers_.push_back(std::move(o));
  return observers_.back().id;
}

const Region* Memory::find_region(const void* at) const {
  const auto* byte = static_cast<const std::byte*>(at);
  for (const Region& r : regions_)
    if (byte >= r.at && byte < r.at + r.bytes) return &r;
  return nullptr;
}

Where Memory::locate(const void* at, unsigned bytes) const {
  const Region* region = find_region(at);
  if (region == nullptr) throw Misuse("an access to memory that was not declared as a region");
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - region->at);
  if (offset % bytes != 0) throw Misuse("an access that is not naturally aligned: " + region->name);
  if (bytes < region->granule) throw Misuse("an access below the granule of region " + region->name);
  Where w;
  w.line = region->first_line + offset / kLineBytes;
  w.shift = static_cast<unsigned>(offset % kLineBytes);
  w.bytes = bytes;
  w.mask = static_cast<std::uint16_t>(((1u << bytes) - 1u) << w.shift);
  w.first_cell = region->first_cell + offset / region->granule;
  w.cells = bytes / region->granule;
  return w;
}

// ---------------------------------------------------------------- reads

Stamp Memory::floor_of(const Observer& who, const Where& where) const {
  Stamp floor = 0;
  for (unsigned i = 0; i < where.cells; ++i) {
    floor = std::max(floor, who.now[where.first_cell + i]);
    floor = std::max(floor, who.floor[where.first_cell + i]);
  }
  // A store that was foreseen binds everybody to whom the load that foresaw it was made known.
  for (std::size_t i = 0; i < foresights_.size(); ++i) {
    const Foresight& f = foresights_[i];
    if (who.now[cells_ + i] != 0 && f.where.line == where.line && (f.where.mask & where.mask) != 0)
      floor = std::max(floor, f.stamp);
  }
  return floor;
}

std::vector<std::size_t> Memory::readable(const Observer& who, const Where& where) const {
  const auto& order = lines_[where.line].order;
  const Stamp floor = floor_of(who, where);
  std::vector<std::size_t> found;
  for (std::size_t i = order.size(); i-- > 0;) {
    if ((order[i].mask & where.mask) == 0) continue;
    found.push_back(i);
    if (order[i].stamp <= floor) break;
  }
  return found;
}

unsigned Memory::step_above(const Where& where, std::size_t message) const {
  const auto& order = lines_[where.line].order;
  for (std::size_t i = message + 1; i < order.size(); ++i)
    if ((order[i].mask & where.mask) != 0) return order[i].step;
  return 0;
}

std::size_t Memory::newest(const Where& where) const {
  const auto& order = lines_[where.line].order;
  std::size_t i = order.size() - 1;
  while ((order[i].mask & where.mask) == 0) --i;
  return i;
}

std::uint64_t Memory::value_at(const Where& where, std::size_t message) const {
  return bytes_at(where, message, 0, std::min(where.bytes, 8u));
}

std::uint64_t Memory::high_at(const Where& where, std::size_t message) const {
  return where.bytes > 8 ? bytes_at(where, message, 8, where.bytes - 8) : 0;
}

std::uint64_t Memory::bytes_at(const Where& where, std::size_t message, unsigned first,
                               unsigned count) const {
  const auto& order = lines_[where.line].order;
  std::uint64_t value = 0;
  for (unsigned b = 0; b < count; ++b) {
    const unsigned at = where.shift + first + b;
    std::size_t i = message;
    while ((order[i].mask >> at & 1u) == 0) --i;
    value |= static_cast<std::uint64_t>(order[i].bytes[at]) << (8 * b);
  }
  return value;
}

/// Both strong, and each scope includes the other's agent: "morally strong" in the words of the PTX ISA.
bool Memory::strongly_related(const Message& message, const Observer& who, const Manner& how) const {
  if (message.writer == who.id || message.writer == kNobody) return true;
  if (!message.strong || !how.strong) return false;
  const Observer& writer = observer(message.writer);
  const Scope common = common_scope(writer.place, who.place);
  return message.scope >= common && effective_scope(who.place, how.scope) >= common;
}

/// A1: the reader looks at the memory of the writer's GPU from outside.
bool Memory::reads_through_l2(const Observer& reader, const Observer& writer) const {
  if (!assumptions_.own_memory || writer.place.kind != AgentKind::gpu) return false;
  return reader.place.kind == AgentKind::nic ||
         (assumptions_.past_cpu && reader.place.kind == AgentKind::cpu);
}

bool Memory::linked(const Message& message, const Observer& reader, const Manner& how) const {
  if (strongly_related(message, reader, how)) return true;
  // It sees what left the GPU's L2, of whatever scope from the GPU's up.
  return message.strong && how.strong && message.scope >= Scope::gpu &&
         reads_through_l2(reader, observer(message.writer));
}

SharedView Memory::handed(const Release& release, const Observer& to) const {
  const Place& from = observer(release.by).place;
  const SharedView& plain = release.to[index_of(common_scope(from, to.place))];
  const SharedView& within = release.to[index_of(Scope::gpu)];
  if (!reads_through_l2(to, observer(release.by)) || within == nullptr ||
      static_cast<std::size_t>(from.gpu) >= cells_of_gpu_.size())
    return plain;
  View both = plain ? *plain : View(view_size());
  both.join_where(*within, cells_of_gpu_[static_cast<std::size_t>(from.gpu)]);
  return std::make_shared<const View>(std::move(both));
}

/// What the message releases is acquired, or kept: for an acquiring fence, and for an acquiring access to the
/// same bytes.
void Memory::take(Observer& who, const Where& where, const Message& message, const Manner& how) {
  if (message.writer == kNobody || !linked(message, who, how)) return;
  for (const Release& r : message.releases) {
    if (r.by == who.id) continue;
    const SharedView view = handed(r, who);
    if (view == nullptr) continue;
    const Scope common = common_scope(observer(r.by).place, who.place);
    if (how.acquire && effective_scope(who.place, how.scope) >= common) {
      learn(who, *view);
    } else {
      who.read[index_of(common)].join(*view);
      keep_at(who.read_at, where, common, view);
    }
  }
}

std::uint64_t Memory::read(Observer& who, const Where& where, std::size_t message, const Manner& how) {
  const auto& order = lines_[where.line].order;
  std::uint16_t left = where.mask;
  for (std::size_t i = message; left != 0; --i) {
    const Message& m = order[i];
    const auto part = static_cast<std::uint16_t>(m.mask & left);
    if (part == 0) continue;
    left = static_cast<std::uint16_t>(left & ~part);
    if (linked(m, who, how))
      for_each_cell(region_of(where), where.line, part, [&](std::size_t cell) {
        who.now.raise(cell, m.stamp);
        who.learnt.raise(cell, m.stamp);
      });
    take(who, where, m, how);
    if (i == 0) break;
  }
  if (how.acquire && !who.read_at.empty())
    for (const Observer::AtBytes& kept : who.read_at)
      for (std::size_t l = 0; l <= index_of(effective_scope(who.place, how.scope)); ++l)
        if (overlaps(kept, where) && kept.views[l] != nullptr) learn(who, *kept.views[l]);
  return value_at(where, message);
}

// ---------------------------------------------------------------- writes

void Memory::learn(Observer& who, const View& view) {
  who.now.join(view);
  who.learnt.join(view);
}

/// What a release at these bytes hands over. Without A3 a NIC's write waits for what the NIC knows to be
/// done, and for what it has posted to the same memory before, on whichever of its queues.
SharedView Memory::released_by(const Observer& who, const Where& where) const {
  if (assumptions_.ordered_writes || who.place.kind != AgentKind::nic)
    return std::make_shared<const View>(who.now);
  View view = who.learnt;
  for (const Observer& port : observers_)
    if (port.device == who.device) view.join_where(port.now, cells_of_memory_[region_of(where).memory]);
  return std::make_shared<const View>(std::move(view));
}

std::vector<Release> Memory::releases_of(Observer& who, const Where& where, const Manner& how) const {
  if (!how.strong) return {};
  Release r;
  r.by = who.id;
  r.to = who.released;
  if (how.release) {
    const SharedView now = released_by(who, where);
    for (std::size_t l = 0; l <= index_of(effective_scope(who.place, how.scope)); ++l) {
      r.to[l] = now;
      keep_at(who.released_at, where, static_cast<Scope>(l), now);
    }
  }
  for (const Observer::AtBytes& kept : who.released_at)
    if (overlaps(kept, where))
      for (std::size_t l = 0; l < r.to.size(); ++l) r.to[l] = later(r.to[l], kept.views[l]);
  if (r.to[0] == nullptr) return {};
  return {std::move(r)};
}

std::vector<std::size_t> Memory::places_for_store(const Observer& who, const Where& where,
                                                  const Manner& how) const {
  const auto& order = lines_[where.line].order;
  const Stamp floor = floor_of(who, where);
  std::vector<std::size_t> found;
  for (std::size_t i = order.size(); i-- > 0;) {
    const Message& m = order[i];
    if ((m.mask & where.mask) == 0) continue;
    if (may_go_behind(who, where, i, how)) found.push_back(i);
    if (m.stamp <= floor) break;
  }
  return found;
}

bool Memory::may_go_behind(const Observer& who, const Where& where, std::size_t message,
                           const Manner& how) const {
  const auto& order = lines_[where.line].order;
  for (std::size_t i = message + 1; i < order.size(); ++i) {
    const Message& m = order[i];
    if ((m.mask & where.mask) != 0 && m.modifies && m.read_from <= order[message].stamp &&
        strongly_related(m, who, how))
      return false;
  }
  return true;
}

Message& Memory::insert(Observer& who, const Where& where, std::uint64_t value, std::uint64_t high,
                        const Manner& how, std::size_t behind, bool modifies) {
  Line& line = lines_[where.line];
  // Stores to other bytes of the line do not mind: as late as can be, so that the order's end stays an end.
  while (behind + 1 < line.order.size() && (line.order[behind + 1].mask & where.mask) == 0) ++behind;
  Message m;
  const int before = line.order[behind].stamp;
  const bool last = behind + 1 == line.order.size();
  const int stamp = last ? before + kStampStep : (before + line.order[behind + 1].stamp) / 2;
  if (stamp == before || stamp > INT16_MAX)
    throw Misuse("too many stores to one line of " + region_of(where).name);
  m.stamp = static_cast<Stamp>(stamp);
  m.mask = where.mask;
  for (unsigned b = 0; b < where.bytes; ++b)
    m.bytes[where.shift + b] = static_cast<std::uint8_t>((b < 8 ? value : high) >> (8 * (b % 8)));
  m.writer = who.id;
  m.number = ++who.stores;
  m.scope = effective_scope(who.place, how.scope);
  m.strong = how.strong;
  m.modifies = modifies;
  m.step = step;
  m.releases = releases_of(who, where, how);
  for_each_cell(region_of(where), where.line, where.mask,
                [&](std::size_t cell) { who.now.raise(cell, m.stamp); });
  const auto at = line.order.begin() + static_cast<std::ptrdiff_t>(behind) + 1;
  Message& stored = *line.order.insert(at, std::move(m));
  stored.hash = hash_of(stored);
  rehash(where.line);
  return stored;
}

std::uint64_t Memory::hash_of(const Message& m) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(m.writer + 1) << 32 | m.mask,
                           m.modifies ? static_cast<std::uint64_t>(m.read_from) + 1 : 0);
  for (std::uint8_t byte : m.bytes) hash = (hash ^ byte) * 0x100000001b3u;
  hash = mix(hash, static_cast<std::uint64_t>(m.scope) << 1 | (m.strong ? 1 : 0));
  for (const Release& r : m.releases) {
    hash = mix(hash, static_cast<std::uint64_t>(r.by));
    for (const SharedView& view : r.to) hash = mix(hash, view == nullptr ? 0 : view->hash());
  }
  return hash;
}

void Memory::rehash(std::size_t number) {
  Line& line = lines_[number];
  hash_ ^= line.hash;
  line.hash = number + 1;
  for (const Message& each : line.order)
    line.hash = mix(line.hash, each.hash + static_cast<std::uint64_t>(each.stamp));
  hash_ ^= line.hash;
}

std::uint64_t Memory::hash_of(const Observer& who) const {
  std::uint64_t hash = mix(who.now.hash(), who.floor.hash());
  if (!assumptions_.ordered_writes) hash = mix(hash, who.learnt.hash());
  for (const View& view : who.read) hash = mix(hash, view.hash());
  for (const auto* views : {&who.released, &who.fenced})
    for (const SharedView& view : *views) hash = mix(hash, view == nullptr ? 0 : view->hash());
  for (const auto* kept : {&who.released_at, &who.read_at})
    for (const Observer::AtBytes& at : *kept)
      for (const SharedView& view : at.views)
        hash = mix(mix(hash, at.line << 16 | at.mask), view == nullptr ? 0 : view->hash());
  return hash;
}

const Message& Memory::write(Observer& who, const Where& where, std::uint64_t value, const Manner& how,
                             std::size_t behind, std::uint64_t high) {
  return insert(who, where, value, high, how, behind, false);
}

std::uint64_t Memory::modify(Observer& who, const Where& where, std::size_t message, std::uint64_t value,
                             const Manner& how) {
  const std::uint64_t before = read(who, where, message, how);
  const Message& from = lines_[where.line].order[message];
  const bool passes_on = strongly_related(from, who, how);
  std::vector<Release> inherited = passes_on ? from.releases : std::vector<Release>{};
  const Stamp read_from = from.stamp;
  Message& written = insert(who, where, value, 0, how, message, true);
  written.read_from = read_from;
  for (Release& r : inherited)
    if (r.by != who.id) written.releases.push_back(std::move(r));
  written.hash = hash_of(written);
  rehash(where.line);
  return before;
}

// ---------------------------------------------------------------- fences

void Memory::acquire_read(Observer& who, Scope scope) {
  for (std::size_t l = 0; l <= index_of(scope); ++l) learn(who, who.read[l]);
  for (Foresight& f : foresights_) f.fenced = f.fenced || f.reader == who.id;
}

void Memory::release_now(Observer& who, Scope scope) {
  const auto now = std::make_shared<const View>(who.now);
  for (std::size_t l = 0; l <= index_of(scope); ++l) who.released[l] = now;
}

void Memory::fence(Observer& who, Scope scope) {
  scope = effective_scope(who.place, scope);
  acquire_read(who, scope);
  release_now(who, scope);
}

void Memory::fence_sequential(Observer& who, Scope scope) {
  scope = effective_scope(who.place, scope);
  acquire_read(who, scope);
  for (const Observer& other : observers_) {
    const Scope common = other.id == who.id ? Scope::block : common_scope(other.place, who.place);
    if (scope < common) continue;
    for (std::size_t l = index_of(common); l < 3; ++l)
      if (other.fenced[l] != nullptr) learn(who, *other.fenced[l]);
  }
  release_now(who, scope);
  who.fenced[index_of(scope)] = who.released[0];
}

void Memory::meet(std::span<Observer* const> all) {
  View now(view_size());
  for (const Observer* o : all) now.join(o->now);
  for (Observer* o : all) o->now = now;
}

// ---------------------------------------------------------------- loads of what is yet to come

void Memory::foresee(Observer& who, const Where& where, std::uint64_t value, const Manner& how) {
  // Before it is one of them itself: what binds it, another foresight of the same bytes included.
  const Stamp floor = floor_of(who, where);
  who.now.raise(cells_ + foresights_.size(), 1);
  Foresight f;
  f.reader = who.id;
  f.where = where;
  f.value = value;
  f.how = how;
  f.known = who.now;
  for (unsigned i = 0; i < where.cells; ++i) f.known.raise(where.first_cell + i, floor);
  foresights_.push_back(std::move(f));
}

bool Memory::foresight_open() const {
  return std::any_of(foresights_.begin(), foresights_.end(), [](const Foresight& f) { return f.stamp == 0; });
}

bool Memory::awaits_foresight(const Observer& who, const Where& where) const {
  for (std::size_t i = 0; i < foresights_.size(); ++i)
    if (foresights_[i].stamp == 0 && who.now[cells_ + i] != 0 && foresights_[i].where.line == where.line &&
        (foresights_[i].where.mask & where.mask) != 0)
      return true;
  return false;
}

bool Memory::may_fulfil(std::size_t foresight, const Observer& who, const Message& message,
                        const Where& where) const {
  const Foresight& f = foresights_[foresight];
  if (f.stamp != 0 || f.reader == who.id || f.where.line != where.line || f.where.mask != where.mask)
    return false;
  if (value_at(where, static_cast<std::size_t>(&message - lines_[where.line].order.data())) != f.value)
    return false;
  // The load must not have happened before the store.
  if (who.now[cells_ + foresight] != 0) return false;
  // Nor may the store be older, in the line's order, than what the reader knew of it.
  for (unsigned i = 0; i < where.cells; ++i)
    if (f.known[where.first_cell + i] > message.stamp) return false;
  // What it releases would have been acquired before now: then the past of its writer would have to be looked
  // at again. Only stores that release nothing are let through.
  const Observer& reader = observer(f.reader);
  if (!linked(message, reader, f.how) || (!f.how.acquire && !f.fenced)) return true;
  for (const Release& r : message.releases) {
    const SharedView view = handed(r, reader);
    if (r.by != f.reader && view != nullptr) return false;
  }
  return true;
}

void Memory::fulfil(std::size_t foresight, const Message& message) {
  Foresight& f = foresights_[foresight];
  f.stamp = message.stamp;
  if (!f.how.acquire) take(observer(f.reader), f.where, message, f.how);
}

}  // namespace belfry::check

#include "softnic/uverbs/object_table.hpp"

#include <algorithm>
#include <cerrno>

namespace belfry::softnic {

void Object::hold(Object& other) {
  held_.push_back(&other);
  ++other.users_;
}

void Object::hold_instead(Object& from, Object& to) {
  const auto found = std::find(held_.begin(), held_.end(), &from);
  if (found == held_.end()) return;
  --from.users_;
  *found = &to;
  ++to.users_;
}

void Object::let_go() {
  for (Object* other : held_) --other->users_;
  held_.clear();
}

std::uint32_t ObjectTable::insert(std::unique_ptr<Object> object) {
  std::uint32_t handle = 0;
  if (free_.empty()) {
    handle = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(nullptr);
  } else {
    handle = *free_.begin();
    free_.erase(free_.begin());
  }
  object->handle_ = handle;
  slots_[handle] = std::move(object);
  return handle;
}

Object* ObjectTable::find(std::uint32_t handle) const {
  return handle < slots_.size() ? slots_[handle].get() : nullptr;
}

Result<std::unique_ptr<Object>> ObjectTable::remove(FileState& file, ObjectType type, std::uint32_t handle) {
  Object* object = find(handle);
  if (object == nullptr) return Errno{ENOENT};
  if (object->type() != type) return Errno{EINVAL};
  if (object->in_use()) return Errno{EBUSY};
  if (const int error = object->release(file); error != 0) return Errno{error};
  return take(handle);
}

std::unique_ptr<Object> ObjectTable::take(std::uint32_t handle) {
  std::unique_ptr<Object> object = std::move(slots_[handle]);
  object->let_go();
  free_.insert(handle);
  return object;
}

void ObjectTable::destroy_all(FileState& file) {
  // Each pass frees what nothing uses any more. Where the NIC refuses to release something, and so
  // nothing else can follow, it goes all the same: the file is closing.
  bool forced = false;
  while (size() != 0) {
    bool progress = false;
    for (auto handle = static_cast<std::uint32_t>(slots_.size()); handle-- > 0;) {
      Object* object = slots_[handle].get();
      if (object == nullptr || object->in_use()) continue;
      if (object->release(file) != 0 && !forced) continue;
      take(handle);
      progress = true;
    }
    forced = !progress;
  }
}

}  // namespace belfry::softnic

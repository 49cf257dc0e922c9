#pragma once
/// \file
/// The objects of one uverbs file and the handles that name them. As in the kernel there is one space
/// of handles for all types, and the lowest free one is given out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "softnic/result.hpp"

namespace belfry::softnic {

class FileState;

enum class ObjectType : std::uint8_t { pd, mr, cq, qp, ah, uar, devx_umem, devx_object };

/// What a handle names. An object that others need counts them and cannot be destroyed meanwhile.
class Object {
 public:
  explicit Object(ObjectType type) : type_(type) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  ObjectType type() const { return type_; }
  std::uint32_t handle() const { return handle_; }
  bool in_use() const { return users_ != 0; }

  /// Keeps `other` alive as long as this object lives.
  void hold(Object& other);
  /// Holds `to` in the place of `from`.
  void hold_instead(Object& from, Object& to);

  /// Gives back what the object has of the NIC. \return 0 or a positive errno: it lives on
  virtual int release(FileState& file) = 0;

 private:
  friend class ObjectTable;
  void let_go();

  const ObjectType type_;
  std::uint32_t handle_ = 0;
  std::uint32_t users_ = 0;
  std::vector<Object*> held_;
};

class ObjectTable {
 public:
  /// \return its handle
  std::uint32_t insert(std::unique_ptr<Object> object);

  /// \return null if there is none
  Object* find(std::uint32_t handle) const;

  /// \return null if there is none or it is of another type
  template <class T>
  T* find(std::uint32_t handle) const {
    Object* object = find(handle);
    return object != nullptr && object->type() == T::kType ? static_cast<T*>(object) : nullptr;
  }

  /// Releases an object and takes it out of the table.
  /// \return ENOENT: no such handle; EINVAL: of another type; EBUSY: in use, or what release() says
  Result<std::unique_ptr<Object>> remove(FileState& file, ObjectType type, std::uint32_t handle);
  int destroy(FileState& file, ObjectType type, std::uint32_t handle) {
    return remove(file, type, handle).error();
  }

  /// Releases and deletes everything, users before what they use.
  void destroy_all(FileState& file);

  std::size_t size() const { return slots_.size() - free_.size(); }

  /// Calls `visit` with each object.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& slot : slots_) {
      if (slot) visit(*slot);
    }
  }

 private:
  std::unique_ptr<Object> take(std::uint32_t handle);

  std::vector<std::unique_ptr<Object>> slots_;
  std::set<std::uint32_t> free_;
};

}  // namespace belfry::softnic

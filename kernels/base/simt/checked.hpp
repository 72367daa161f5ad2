#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/base/simt/emulator/emulator.hpp"

namespace tilestep::simt {

/// A named array under emulation: behaves like `T*`, with every access checked. An access outside
/// throws Error with the kernel, block, thread, name and index. Where a `T*` is expected it converts to
/// one at the origin, whose accesses are unchecked; a view made from a `T*` has no known end.
template <class T>
class Checked {
 public:
  Checked() = default;
  /// `name` must outlive the view (a string literal).
  Checked(T* data, std::size_t count, const char* name) : data_(data), count_(count), name_(name) {}
  template <class Pointer>
  requires(std::is_pointer_v<Pointer>&& std::is_convertible_v<Pointer, T*>) Checked(Pointer data)
      : Checked(data, PTRDIFF_MAX / sizeof(T), "an array given as a pointer") {}

  T& operator[](std::ptrdiff_t index) const {
    const std::ptrdiff_t at = origin_ + index;
    if (static_cast<std::size_t>(at) >= count_) [[unlikely]] {
      emulated::out_of_bounds(name_, at, count_);
    }
    return data_[at];
  }
  T& operator*() const { return (*this)[0]; }
  T* operator->() const { return &(*this)[0]; }

  /// Pointer arithmetic moves the origin; indices in error texts stay those of the whole array.
  Checked operator+(std::ptrdiff_t offset) const {
    Checked moved = *this;
    moved.origin_ += offset;
    return moved;
  }
  Checked operator-(std::ptrdiff_t offset) const { return *this + -offset; }
  Checked& operator+=(std::ptrdiff_t offset) { return *this = *this + offset; }
  Checked& operator-=(std::ptrdiff_t offset) { return *this = *this + -offset; }
  Checked& operator++() { return *this += 1; }
  Checked& operator--() { return *this += -1; }
  Checked operator++(int) { return std::exchange(*this, *this + 1); }
  Checked operator--(int) { return std::exchange(*this, *this + -1); }

  operator T*() const { return reinterpret_cast<T*>(address()); }
  /// A cast to a pointer to something else, `(const float4*)in`. Throws Error as `as` does.
  template <class V>
  requires(!std::is_same_v<V, T> && (std::is_const_v<V> || !std::is_const_v<T>)) explicit
  operator V*() const {
    if constexpr (!std::is_void_v<V>) require_aligned<V>();
    return reinterpret_cast<V*>(address());
  }
  operator Checked<const T>() const requires(!std::is_const_v<T>) {
    return Checked<const T>(data_, count_, name_) + origin_;
  }
  explicit operator bool() const { return data_ != nullptr; }
  /// All of it, whatever the origin. What is const is only read.
  MemoryUse use() const { return {data_, count_ * sizeof(T), !std::is_const_v<T>}; }

  /// The same memory from the origin on, as elements of type V.
  template <class V>
  auto as() const {
    using Element = std::conditional_t<std::is_const_v<T>, const V, V>;
    const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(count_) - origin_;
    if (origin_ < 0 || left < 0) emulated::out_of_bounds(name_, origin_, count_);
    require_aligned<V>();
    return Checked<Element>(reinterpret_cast<Element*>(address()),
                            static_cast<std::size_t>(left) * sizeof(T) / sizeof(V), name_);
  }

 private:
  std::uintptr_t address() const {
    return reinterpret_cast<std::uintptr_t>(data_) + origin_ * sizeof(T);
  }
  template <class V>
  void require_aligned() const {
    if (address() % alignof(V) != 0) emulated::misaligned(name_, origin_, sizeof(V), alignof(V));
  }

  T* data_ = nullptr;
  std::size_t count_ = 0;
  const char* name_ = "array";
  std::ptrdiff_t origin_ = 0;
};

/// The same memory as elements of type V (float4, int2, …). Throws Error that names kernel, block,
/// thread and array if it is not aligned to V.
template <class V, class T>
auto as(const Checked<T>& array) {
  return array.template as<V>();
}
/// The same for a pointer, whose alignment is not checked.
template <class V, class T>
auto as(T* array) {
  return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const V, V>*>(array);
}

}  // namespace tilestep::simt

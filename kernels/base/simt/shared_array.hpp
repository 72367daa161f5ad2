#pragma once

/// \file
/// Shared memory with sizes known to the compiler: `__shared__ simt::Array<float, 16, 17> tile;` is
/// `float tile[16][17]` on a GPU. Under emulation each index is checked, and all bytes start as 0xFF
/// (NaN in floats), as in dynamic shared memory, so unwritten elements show. Included by simt.hpp.

#include <cstddef>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)

namespace tilestep::simt {

template <class T, int kCount, int... kRest>
struct PlainArray {
  using type = typename PlainArray<T, kRest...>::type[kCount];
};
template <class T, int kCount>
struct PlainArray<T, kCount> {
  using type = T[kCount];
};
template <class T, int kCount, int... kRest>
using Array = typename PlainArray<T, kCount, kRest...>::type;

}  // namespace tilestep::simt

#else

#include "kernels/base/simt/checked.hpp"

namespace tilestep::simt {

/// One row of a shared array: indexes as the array does, without owning.
template <class T, int kCount, int... kRest>
class ArrayRow {
 public:
  explicit ArrayRow(T* first) : first_(first) {}

  decltype(auto) operator[](std::ptrdiff_t index) const {
    if (static_cast<std::size_t>(index) >= kCount) [[unlikely]] {
      emulated::outside_shared_array(index, kCount);
    }
    if constexpr (sizeof...(kRest) == 0) {
      return (first_[index]);
    } else {
      return ArrayRow<T, kRest...>(first_ + index * (kRest * ... * 1));
    }
  }

 private:
  T* first_;
};

template <class T, int kCount, int... kRest>
class Array {
  static_assert(std::is_trivially_copyable_v<T>, "shared memory is not constructed");

 public:
  Array() { emulated::register_shared(this, sizeof *this); }
  Array(const Array&) = delete;  // would be a thread's own copy
  Array& operator=(const Array&) = delete;

  decltype(auto) operator[](std::ptrdiff_t index) {
    return ArrayRow<T, kCount, kRest...>(data_)[index];
  }
  /// As an array of one dimension becomes a pointer.
  operator Checked<T>() requires(sizeof...(kRest) == 0) {
    return {data_, kCount, "a shared array"};
  }

 private:
  T data_[kCount * (kRest * ... * 1)];
};

}  // namespace tilestep::simt

#endif

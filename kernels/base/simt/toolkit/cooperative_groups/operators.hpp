#pragma once

/// \file
/// How reduce.h and scan.h put two values together. Included by those two.

#include "kernels/base/simt/toolkit/cooperative_groups.h"

namespace cooperative_groups {
inline namespace tilestep_toolkit {

#define TILESTEP_REDUCER(name, expression)                            \
  template <class T>                                                  \
  struct name {                                                       \
    T operator()(const T& a, const T& b) const { return expression; } \
  };
TILESTEP_REDUCER(plus, a + b)
TILESTEP_REDUCER(less, b < a ? b : a)
TILESTEP_REDUCER(greater, a < b ? b : a)
TILESTEP_REDUCER(bit_and, (a & b))
TILESTEP_REDUCER(bit_or, a | b)
TILESTEP_REDUCER(bit_xor, a ^ b)
#undef TILESTEP_REDUCER

}  // namespace tilestep_toolkit
}  // namespace cooperative_groups

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/report.hpp"

/// Ways to make a Check; the worst of many comparisons is in closest.hpp.
namespace tilestep::lab {

/// Passes if `error` is at most `tolerance`; NaN fails.
Check within(std::string id, AnyNumber error, AnyNumber tolerance, std::string detail);
/// Passes if `wrong`, a count of wrong elements or misplaced rows, is 0.
Check none_wrong(std::string id, std::int64_t wrong, std::string detail);
/// Passes if both are the same number.
Check equal(std::string id, AnyNumber got, AnyNumber want, std::string detail);

/// Whether two floats have the same bits.
bool same_bits(float a, float b);
/// The same, but all NaN are equal, and so are the two zeros.
bool same_number(float a, float b);

/// How many elements differ; the longer length if the lengths differ.
template <class Elements>
std::int64_t differing(const Elements& a, const Elements& b) {
  if (a.size() != b.size()) return static_cast<std::int64_t>(std::max(a.size(), b.size()));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

}  // namespace tilestep::lab

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/report.hpp"

/// Ways to make a Check; the worst of many comparisons is in closest.hpp.
namespace tilestep::lab {

/// `error` is at most `tolerance`; NaN is not.
Check within(std::string id, AnyNumber error, AnyNumber tolerance, std::string detail);
/// Nothing is wrong, where `wrong` counts what is: wrong elements, misplaced rows.
Check none_wrong(std::string id, std::int64_t wrong, std::string detail);
/// Both are the same number.
Check equal(std::string id, AnyNumber got, AnyNumber want, std::string detail);

/// Whether two floats have the same bits.
bool same_bits(float a, float b);
/// The same, but any two NaN are the same, and so are the two zeros.
bool same_number(float a, float b);

/// How many elements differ; all of the longer one's if they have different lengths.
template <class Elements>
std::int64_t differing(const Elements& a, const Elements& b) {
  if (a.size() != b.size()) return static_cast<std::int64_t>(std::max(a.size(), b.size()));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

}  // namespace tilestep::lab

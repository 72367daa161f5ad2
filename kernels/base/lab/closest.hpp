#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {

/// The worst of many comparisons, each against its own bound: any that exceeds its bound is worse than
/// one that does not; otherwise the one with the larger error relative to its bound.
class Closest {
 public:
  /// Adds the error of `got` against `want`; NaN, or an infinity in only one of them, exceeds any
  /// bound. Equal infinities are equal.
  void add(AnyNumber got, AnyNumber want, AnyNumber bound) {
    add(got, want, bound, [] { return std::string(); });
  }
  /// The same; `where()` returns a std::string naming the comparison, and is called only when this
  /// becomes the worst comparison so far.
  template <class Where>
  requires std::is_invocable_r_v<std::string, const Where&>
  void add(AnyNumber got, AnyNumber want, AnyNumber bound, const Where& where) {
    if (takes(got.value, want.value, bound.value)) where_ = where();
  }
  void add(const Closest& other);

  bool any() const { return any_; }  ///< whether anything was compared
  bool ok() const { return ok_; }
  double error() const { return error_; }
  double bound() const { return bound_; }
  const std::string& where() const { return where_; }
  Check check(std::string id, std::string detail) const;

 private:
  bool takes(double got, double want, double bound);

  bool any_ = false, ok_ = true;
  double error_ = 0, bound_ = 0;
  std::string where_;
};

/// Compares got[i] with want[i], with the bound bounds[i].
template <class Got, class Want>
Closest compared(const std::vector<Got>& got, const std::vector<Want>& want,
                 const std::vector<double>& bounds) {
  Closest closest;
  for (std::size_t i = 0; i < got.size(); ++i) closest.add(got[i], want[i], bounds[i]);
  return closest;
}

}  // namespace tilestep::lab

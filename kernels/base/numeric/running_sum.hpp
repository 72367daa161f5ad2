#pragma once

#include <cmath>
#include <vector>

#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::numeric {

/// How a kernel adds its k products, and so how far it may be off. u = 2^−24 throughout.
enum class Adding {
  /// One after another along k, each product and sum rounded to FP32 (or the two together, by FMA):
  /// u · Σ (|product| + |partial sum|), the running bound of Higham, "Accuracy and Stability of
  /// Numerical Algorithms", 3.3. For data of both signs it is hundreds of times below `any_order`.
  in_order,
  /// mma.m16n8k16 along k: products exact, 16 of them and the accumulator aligned to the largest
  /// and cut off, each loses less than one spacing, 2u, of what the largest can be (truncation
  /// seen by Fasi, Higham, Mikaitis & Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021):
  /// 17 · 2u · Σ over groups of 16 of (|sum before| + Σ |product|).
  tensor_core,
  /// FP32 in an order that is not known, as in a library: k·u / (1 − k·u) · Σ|product| (the same
  /// book, 3.1).
  any_order,
  /// The same on tensor cores: 4 times that, for truncation and fewer bits kept while they add.
  any_order_tensor_core,
};

/// An answer in double and the largest error that rounding can explain; or many, one after another.
struct Bounded {
  double value = 0, bound = 0;
};
struct AllBounded {
  std::vector<double> value, bound;

  void push_back(const Bounded& one) {
    value.push_back(one.value);
    bound.push_back(one.bound);
  }
};

/// A sum of products in double, product by product, and how far the kernel's may be from it.
class RunningSum {
 public:
  explicit RunningSum(Adding adding) : adding_(adding) {}

  TILESTEP_INLINED void add(double product) {
    if (adding_ == Adding::tensor_core && terms_ % kMmaDepth == 0) close_group();
    sum_ += product;
    magnitude_ += std::abs(product);
    if (adding_ == Adding::in_order) weight_ += std::abs(product) + std::abs(sum_);
    ++terms_;
  }
  double sum() const { return sum_; }
  Bounded result() { return {sum_, bound()}; }
  double bound() {
    const double ku = static_cast<double>(terms_) * kUnit;
    switch (adding_) {
      case Adding::in_order:
        return kSlack * kUnit * weight_;
      case Adding::tensor_core:
        close_group();
        return kSlack * (kMmaDepth + 1) * 2 * kUnit * weight_;
      case Adding::any_order:
        return ku / (1 - ku) * magnitude_;
      case Adding::any_order_tensor_core:
        break;
    }
    return 4 * ku / (1 - ku) * magnitude_;
  }

 private:
  static constexpr double kUnit = Fp32::kUnitRoundoff;
  static constexpr int kMmaDepth = 16;  ///< products that mma.m16n8k16 adds at once
  /// The bounds are made of the exact sums; a kernel's own differ from them by what is bounded.
  static constexpr double kSlack = 1.01;

  TILESTEP_INLINED void close_group() {
    if (terms_ > 0) weight_ += std::abs(before_) + magnitude_;
    before_ = sum_;
    magnitude_ = 0;
  }

  Adding adding_;
  int terms_ = 0;
  double sum_ = 0, before_ = 0;
  double magnitude_ = 0;  ///< of the products, of this group alone for the tensor cores
  double weight_ = 0;     ///< what the unit roundoff is multiplied with
};

}  // namespace tilestep::numeric

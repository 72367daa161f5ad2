#pragma once

#include <cstdint>
#include <vector>

#include "kernels/systems/triage/shape.hpp"

namespace tilestep::triage {

/// Numbers of an array that repeats: number i is `period[i % size]`.
template <class T>
struct Repeating {
  std::vector<T> period;
  T operator[](std::size_t i) const { return period[i % period.size()]; }
};

/// A model's numbers, each the same in whatever form a plan stores it. Layers follow each other; all experts of a layer hold
/// the same, so that routing changes times and no result. The scales of INT8 rows are powers of two, so that BF16 holds
/// what it is expanded to exactly.
struct Numbers {
  std::vector<float> table;   ///< kVocabulary × width
  std::vector<float> gains;   ///< layers × 2 × width
  std::vector<float> router;  ///< layers × kExperts × width
  Repeating<std::uint16_t> qkv, out, gate, up, down;
  Repeating<std::uint16_t> keys, values;  ///< layers × kMostRows × context × cached
  Repeating<unsigned char> head;          ///< vocabulary × width, signed
  std::vector<float> scales;              ///< vocabulary
};
/// `period`: the length after which large arrays repeat, a prime.
Numbers make_numbers(const Shape& shape, std::int64_t seed, std::size_t period);

/// The row that a step leaves in h, and its logits, in double.
struct ReferenceRow {
  std::vector<double> h, logits;
};
/// For the row `row`, whose token is `token`.
ReferenceRow reference_row(const Shape& shape, const Numbers& numbers, int row, int token);
/// How far a kernel's numbers may be off: FP32 sums of numbers up to `largest`; and a key or value of the step's own that is
/// rounded to the other of two neighbours in BF16.
double bound_of(const Shape& shape, double largest);

}  // namespace tilestep::triage

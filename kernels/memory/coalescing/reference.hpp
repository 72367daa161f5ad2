#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/memory/coalescing/lesson.hpp"

/// The kernels' expected results, by walking the pattern's definition instead of its formula.
namespace tilestep::coalescing {

/// The indices of threads 0, 1, 2 …, found step by step: a stride is added up, a matrix walked cell
/// by cell, a permutation looked up in a table.
class IndexWalk {
 public:
  explicit IndexWalk(const PatternShape& shape);
  /// The index of the next thread.
  std::int64_t next();

 private:
  PatternShape shape_;
  std::int64_t thread_ = -1;
  std::int64_t index_ = 0;
  std::int64_t row_ = 0, column_ = 0;
  std::vector<std::uint32_t> order_;  ///< of the lanes, or what follows each place when permuted
};

/// How many elements of `out`, where every byte was `before`, are not what the first `threads` threads of a launch may
/// leave there: of a broadcast store the value of any lane.
std::int64_t wrong_elements(const PatternShape& shape, std::int64_t threads,
                            std::span<const unsigned char> in, std::span<const unsigned char> out,
                            unsigned char before);

/// The cost of the launch's requests on the pattern's side, over at most `max_warps` warps from the first on.
RequestTotals reference_cost(const PatternShape& shape, std::int64_t max_warps);

}  // namespace tilestep::coalescing

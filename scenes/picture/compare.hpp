#pragma once

#include <set>
#include <vector>

#include "scenes/picture/placed.hpp"

/// \file
/// Two runs of a lesson side by side: on the same domains, with their differences marked.
namespace tilestep::picture {

/// `mine`, with its number lines extended to cover those of the same name in `other`.
Extent united(const Extent& mine, const Extent& other);

/// The things of a picture that differ in another picture or are missing from it.
class Differences {
 public:
  /// From the marks of two pictures, as `marks_of` returns them.
  Differences(const std::vector<const Mark*>& marks, const std::vector<const Mark*>& others);
  bool differs(const Identity& of) const;
  /// How many items, and marks without items, differ, and how many there are.
  int count() const { return count_; }
  int total() const { return total_; }

 private:
  std::vector<std::vector<char>> items_;  ///< of each mark
  std::vector<char> marks_;               ///< without items
  int count_ = 0, total_ = 0;
};

}  // namespace tilestep::picture

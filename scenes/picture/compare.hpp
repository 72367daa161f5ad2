#pragma once

#include <set>
#include <vector>

#include "scenes/picture/placed.hpp"

/// \file
/// Two runs of a lesson side by side: on the same domains, and with what differs marked.
namespace tilestep::picture {

/// `mine`, its number lines made as long as those of the same name in `other` are.
Extent united(const Extent& mine, const Extent& other);

/// What of a picture the other one says otherwise, or does not have.
class Differences {
 public:
  /// Of the marks of two pictures, both as `marks_of` gives them.
  Differences(const std::vector<const Mark*>& marks, const std::vector<const Mark*>& others);
  bool differs(const Identity& of) const;
  /// Items and marks without items that differ, and all that there are.
  int count() const { return count_; }
  int total() const { return total_; }

 private:
  std::vector<std::vector<char>> items_;  ///< of each mark
  std::vector<char> marks_;               ///< without items
  int count_ = 0, total_ = 0;
};

}  // namespace tilestep::picture

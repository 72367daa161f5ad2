#pragma once

#include <string>
#include <vector>

/// What a recorded run and the same run on another machine need not have in common. A lesson declares
/// it beside its knobs; all else must be the same.
namespace tilestep::lab {

struct Replay {
  /// A part of a report by its ids, without places in lists: "trace.tiles.begin", "tables.tiles.begin"
  /// (a column), "tables.tiles" (all of it), "measurements.busy_share", "checks.result".
  struct Part {
    std::string path;
    std::string why;  ///< in a few words: "a clock", "counted by the chip"
  };
  /// Clocks, processors and what follows from them, and what only one kind of machine has.
  std::vector<Part> of_machine = {};

  /// What runs had once, and what took its place: recordings of before still have it.
  std::vector<Part> retired = {};

  /// A list whose entries stand in an order that the machine chose: sorted by these of its members
  /// before it is compared.
  struct Order {
    std::string path;  ///< "trace.tiles" or "tables.tiles"
    std::vector<std::string> by;
  };
  std::vector<Order> any_order = {};

  /// How far numbers in floating point may lie apart, as a part of the largest of their list (all
  /// numbers at one path). 0: they are the same. Whole numbers always are.
  double rounding = 0;
  std::string rounding_why = {};  ///< where it comes from, in a sentence
};

}  // namespace tilestep::lab

#pragma once

#include <string>
#include <vector>

/// The parts in which a recorded run and the same run on another machine may differ. A lesson declares
/// them beside its knobs; everything else must be equal.
namespace tilestep::lab {

struct Replay {
  /// A part of a report by its ids, without list indices: "trace.tiles.begin", "tables.tiles.begin"
  /// (a column), "tables.tiles" (all of it), "measurements.busy_share", "checks.result".
  struct Part {
    std::string path;
    std::string why;  ///< in a few words: "a clock", "counted by the chip"
  };
  /// Clocks, processors and everything derived from them, and parts that only one kind of machine has.
  std::vector<Part> of_machine = {};

  /// Former parts of runs, and their replacements: old recordings still have them.
  std::vector<Part> retired = {};

  /// A list whose order depends on the machine: its entries are sorted by these members before it is
  /// compared.
  struct Order {
    std::string path;  ///< "trace.tiles" or "tables.tiles"
    std::vector<std::string> by;
  };
  std::vector<Order> any_order = {};

  /// How far floating-point numbers may differ, as a fraction of the largest of their list (all
  /// numbers at one path). 0: they must be equal. Whole numbers always must.
  double rounding = 0;
  std::string rounding_why = {};  ///< where it comes from, in a sentence
};

}  // namespace tilestep::lab

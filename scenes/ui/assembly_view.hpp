#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/ui/syntax.hpp"

/// A listing of PTX or SASS.
namespace tilestep::ui {

struct AssemblyRow {
  std::string_view text;  ///< "@%p1 bra $L__BB0_3;", "LDG.E R2, [R2.64] ;"
  int line = 0;           ///< of the current source; 0: none
  bool lit = false;       ///< its line is the current one or pointed at
};

/// Text as it is shown: operands in the column `operands`, behind predicate and opcode; labels at the left edge.
std::string aligned_instruction(std::string_view text, std::size_t operands = 20);
/// Its colours: keywords are opcodes and directives, `cuda` registers, strings labels. Spans cover the text.
std::vector<SyntaxSpan> tinted_instruction(std::string_view aligned);

struct AssemblyLook {
  std::string_view label = "Assembly";  ///< in the map
  bool stale = false;                   ///< of another text: dim

  int go_to = -1;  ///< the row that is brought into sight; −1: none
  /// How a text is shown; empty: unchanged. A changed text shows its original at the pointer.
  std::function<std::string(std::string_view)> shown = {};
};
/// Rows that the pointer is on or has pressed; −1: none.
struct AssemblyPointed {
  int hovered = -1, clicked = -1;
};
/// Fills the current window's content region, less `below` real pixels. In the map: `assembly` (value "stale" or
/// empty) and `assembly_row_N`, whose value is "lit", the number of its line, or empty.
AssemblyPointed assembly_view(std::string_view id, std::span<const AssemblyRow> rows,
                              const AssemblyLook& look, float below = 0);

}  // namespace tilestep::ui

#pragma once

#include <string_view>
#include <vector>

#include "scenes/ui/ui.hpp"

namespace tilestep::ui {

/// Links a source with the compiler's listing beside it. Lines are counted from 1; 0: none.
struct LineLinks {
  std::vector<int> lit = {};  ///< the lines whose instruction is pointed at
  int go_to = 0;              ///< is brought into sight
  int hovered = 0;            ///< set by the view: the line under the pointer
  int clicked = 0;            ///< set by the view: the line pressed
};

/// As `source_view`, beside a listing.
int source_view(std::string_view id, std::string_view source, const SourceLook& look,
                LineLinks& links);

/// The ground and the bar at the left of a line that is lit.
void draw_lit_line(ImVec2 min, ImVec2 max);

}  // namespace tilestep::ui

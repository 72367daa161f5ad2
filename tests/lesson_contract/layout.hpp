#pragma once

#include <string>

#include "scenes/ui/context.hpp"

namespace tilestep::contract {

/// What is wrong with the frame that `context` has just drawn, a line a fault: parts and texts that
/// leave their panel and cannot be scrolled to, parts too small to read, texts that overprint each
/// other. Empty if all is well. The context must have recorded its texts.
std::string layout_faults(ui::Context& context);

}  // namespace tilestep::contract

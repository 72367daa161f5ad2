#pragma once

#include <string>

#include "scenes/ui/context.hpp"

namespace tilestep::contract {

/// Texts of the last frame that do not stand out from what they were really drawn on, a line each: less than
/// 4.5:1 (WCAG 2.1) at one of three points. What is disabled may be fainter. The context must have recorded
/// its texts. Empty if all is well; `checked` counts the texts that were looked at.
std::string contrast_faults(ui::Context& context, int& checked);

}  // namespace tilestep::contract

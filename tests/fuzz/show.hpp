#pragma once

#include <functional>

namespace tilestep::fuzz {

/// Draws a frame that nobody renders.
void in_a_frame(const std::function<void()>& draw);

}  // namespace tilestep::fuzz

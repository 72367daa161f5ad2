#pragma once

#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::contract {

/// The start, the first step under way, one in the middle and the end.
std::vector<scenes::Cursor> some_cursors(const scenes::Scene& scene);

/// Draws the lesson's picture and readouts with each of `cases`, at those cursors, in all sizes and
/// both themes; checks that nothing leaves its panel, shrinks to a sliver or overprints. The contract
/// does it with every knob at its ends; a lesson's own test adds the settings that are hard for it.
void check_pictures(const lab::Lesson& lesson, const std::vector<lab::Settings>& cases);

}  // namespace tilestep::contract

#pragma once

#include <string_view>

#include "scenes/shared/scene.hpp"

/// Moves of the cursor along a trace. All of them stay inside the axis.
namespace tilestep::app {

/// After `step` completed coarse steps.
scenes::Cursor at_step(const scenes::StepAxis& axis, int step);
/// Inside coarse step `step`, at a phase by its name or its number from 0. Throws Error naming the phases.
scenes::Cursor at_phase(const scenes::StepAxis& axis, int step, std::string_view phase);
/// How many coarse steps are complete at `cursor`.
int completed_steps(const scenes::StepAxis& axis, scenes::Cursor cursor);
scenes::Cursor inside(const scenes::StepAxis& axis, scenes::Cursor cursor);

/// A whole coarse step on, or where the axis has units, to the end of one; inside a step, to its end.
scenes::Cursor step_on(const scenes::StepAxis& axis, scenes::Cursor cursor);
/// The same back; inside one, to before it.
scenes::Cursor step_back(const scenes::StepAxis& axis, scenes::Cursor cursor);
/// One phase on or back.
scenes::Cursor line_on(const scenes::StepAxis& axis, scenes::Cursor cursor);
scenes::Cursor line_back(const scenes::StepAxis& axis, scenes::Cursor cursor);

bool at_start(const scenes::StepAxis& axis, scenes::Cursor cursor);
bool at_end(const scenes::StepAxis& axis, scenes::Cursor cursor);

}  // namespace tilestep::app

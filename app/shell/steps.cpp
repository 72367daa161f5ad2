#include "app/shell/steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/base/lab/number.hpp"

namespace tilestep::app {

using scenes::Cursor;
using scenes::StepAxis;

namespace {

int last_phase(const StepAxis& axis) {
  return std::max(axis.phases, 1) - 1;
}

}  // namespace

Cursor at_step(const StepAxis& axis, int step) {
  return {std::clamp(step, 0, std::max(axis.tiles, 0)), last_phase(axis)};
}

Cursor at_phase(const StepAxis& axis, int step, std::string_view phase) {
  const int count = std::max(axis.phases, 1);
  int at = lab::number_of<int>(phase).value_or(-1);
  for (int i = 0; i < std::ssize(axis.phase_names); ++i) {
    if (axis.phase_names[static_cast<std::size_t>(i)] == phase) at = i;
  }
  if (at < 0 || at >= count) {
    throw Error(fmt::format("there is no phase '{}' in a {} of this run; allowed: {}{}0–{}", phase,
                            axis.noun, fmt::join(axis.phase_names, ", "),
                            axis.phase_names.empty() ? "" : ", or ", count - 1));
  }
  return inside(axis, {std::min(step, axis.tiles), at});
}

int completed_steps(const StepAxis& axis, Cursor cursor) {
  return cursor.phase >= last_phase(axis) ? cursor.tile : std::max(cursor.tile - 1, 0);
}

Cursor inside(const StepAxis& axis, Cursor cursor) {
  if (cursor.tile <= 0) return at_step(axis, 0);
  if (cursor.tile > axis.tiles) return at_step(axis, axis.tiles);
  return {cursor.tile, std::clamp(cursor.phase, 0, last_phase(axis))};
}

Cursor step_on(const StepAxis& axis, Cursor cursor) {
  return at_step(axis, completed_steps(axis, cursor) + 1);
}

Cursor step_back(const StepAxis& axis, Cursor cursor) {
  return at_step(axis, cursor.tile - 1);
}

Cursor line_on(const StepAxis& axis, Cursor cursor) {
  if (cursor.phase < last_phase(axis)) return {cursor.tile, cursor.phase + 1};
  if (cursor.tile >= axis.tiles) return cursor;
  return {cursor.tile + 1, 0};
}

Cursor line_back(const StepAxis& axis, Cursor cursor) {
  if (cursor.tile <= 0) return cursor;
  if (cursor.phase > 0) return {cursor.tile, cursor.phase - 1};
  return at_step(axis, cursor.tile - 1);
}

bool at_start(const StepAxis&, Cursor cursor) {
  return cursor.tile <= 0;
}

bool at_end(const StepAxis& axis, Cursor cursor) {
  return completed_steps(axis, cursor) >= axis.tiles;
}

}  // namespace tilestep::app

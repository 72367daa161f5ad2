#include "app/shell/steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/base/lab/number.hpp"

namespace tilestep::app {

using scenes::Cursor;
using scenes::StepAxis;

Cursor at_step(const StepAxis& axis, int step) {
  const int tile = std::clamp(step, 0, std::max(axis.tiles, 0));
  return {tile, axis.last_phase(tile)};
}

Cursor at_phase(const StepAxis& axis, int step, std::string_view phase) {
  step = std::min(step, axis.tiles);
  const int count = axis.phases_in(step);
  int at = lab::number_of<int>(phase).value_or(-1);
  for (int i = 0; i < count; ++i) {
    if (axis.phase_name({step, i}) == phase) at = i;
  }
  if (at < 0 || at >= count) {
    const auto names =
        axis.phase_name({step, 0}).empty() ? decltype(axis.phase_names)() : axis.phase_names;
    throw Error(fmt::format("there is no phase '{}' in a {} of this run; allowed: {}{}0–{}", phase,
                            axis.noun, fmt::join(names, ", "), names.empty() ? "" : ", or ",
                            count - 1));
  }
  return inside(axis, {step, at});
}

int completed_steps(const StepAxis& axis, Cursor cursor) {
  return cursor.phase >= axis.last_phase(cursor.tile) ? cursor.tile : std::max(cursor.tile - 1, 0);
}

Cursor inside(const StepAxis& axis, Cursor cursor) {
  if (cursor.tile <= 0) return at_step(axis, 0);
  if (cursor.tile > axis.tiles) return at_step(axis, axis.tiles);
  return {cursor.tile, std::clamp(cursor.phase, 0, axis.last_phase(cursor.tile))};
}

Cursor step_on(const StepAxis& axis, Cursor cursor) {
  const int next = completed_steps(axis, cursor) + 1;
  const auto& ends = axis.unit_ends;
  if (ends.empty()) return at_step(axis, next);
  const auto end = std::lower_bound(ends.begin(), ends.end(), next);
  return at_step(axis, end == ends.end() ? axis.tiles : *end);
}

Cursor step_back(const StepAxis& axis, Cursor cursor) {
  const auto& ends = axis.unit_ends;
  if (ends.empty()) return at_step(axis, cursor.tile - 1);
  const auto end = std::lower_bound(ends.begin(), ends.end(), cursor.tile);
  return at_step(axis, end == ends.begin() ? 0 : *(end - 1));
}

Cursor line_on(const StepAxis& axis, Cursor cursor) {
  if (cursor.phase < axis.last_phase(cursor.tile)) return {cursor.tile, cursor.phase + 1};
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

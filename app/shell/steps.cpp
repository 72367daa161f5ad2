#include "app/shell/steps.hpp"

#include <algorithm>

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

#include <fmt/format.h>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/matmul/hopper_gemm/lesson.hpp"

namespace tilestep::hopper_gemm {
namespace {

constexpr std::int64_t kMostClock = std::int64_t{1} << 50;

lab::Fields<Event> event_fields() {
  return lab::Fields<Event>()
      .name("what", &Event::what)
      .whole("lane", &Event::lane, -1, 2)
      .whole("number", &Event::number, 0, lab::kMostCount)
      .whole("stage", &Event::stage, 0, 7)
      .whole("parity", &Event::parity, 0, 1)
      .whole("clock", &Event::clock, 0, kMostClock)
      .whole("bytes", &Event::bytes, 0, lab::kMostCount)
      .whole("pending", &Event::pending, -lab::kMostCount, lab::kMostCount);
}

lab::Fields<BlockTile> tile_fields() {
  return lab::Fields<BlockTile>()
      .whole("number", &BlockTile::number, 0, lab::kMostCount)
      .whole(TILESTEP_MEMBERS(BlockTile, row, column), 0, kMostEdge);
}

lab::When at_end(const Trace& trace) {
  return {trace.steps(), 0};
}

lab::Fields<Broken> broken_fields() {
  return lab::Fields<Broken>(lab::Digits::all)
      .text(TILESTEP_MEMBERS(Broken, outcome, where, report))
      .whole("wrong", &Broken::wrong, 0, lab::kMostCount)
      .whole(TILESTEP_MEMBERS(Broken, row, column), -1, kMostEdge)
      .real(TILESTEP_MEMBERS(Broken, got, want));
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name(TILESTEP_MEMBERS(Trace, variant, dtype, raster))
      .whole(TILESTEP_MEMBERS(Trace, m, n, k), 1, kMostEdge)
      .whole("rows", &Trace::rows, 64, 128)
      .whole("columns", &Trace::columns, 64, 256)
      .whole("depth", &Trace::depth, 64, 128)
      .whole("stages", &Trace::stages, 1, 8)
      .whole(TILESTEP_MEMBERS(Trace, consumers, cluster), 1, 2)
      .whole("swizzle", &Trace::swizzle, 0, 128)
      .whole(TILESTEP_MEMBERS(Trace, stage_bytes, shared_bytes, k_pitch_bytes), 0, lab::kMostCount)
      .whole(TILESTEP_MEMBERS(Trace, tiles_down, tiles_across), 1, kMostEdge)
      .whole("blocks", &Trace::blocks, 1, lab::kMostCount)
      .whole("block", &Trace::block, 0, [](const Trace& t) { return t.blocks - 1; })
      .text("clock_unit", &Trace::clock_unit)
      .list("tiles", &Trace::tiles, tile_fields())
      .list("events", &Trace::events, event_fields())
      .known_each(lab::kOneAStep)
      .wholes(
          "wrong", &Trace::wrong, [](const Trace& t) { return t.rows / 8 * (t.columns / 8); }, 0,
          64)
      .known(at_end)
      .object("broken", &Trace::broken, broken_fields())
      .known(at_end)
      .lines("lines", &Trace::lines, [](const Trace& t) { return step_lines(t.variant); });
}

}  // namespace

std::array<int, kWhats> step_lines(Variant variant) {
  const auto marks = lab::source_marks(source_path(variant)).all();
  std::array<int, kWhats> lines{};
  const auto names = names_of(What{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    // together.cu has two kernels, and says whose step it is where both have it.
    std::string mark(names[i]);
    if (variant == Variant::wgmma) mark = "wgmma " + mark;
    if (const auto found = marks.find(mark); found != marks.end()) lines[i] = found->second;
  }
  return lines;
}

TILESTEP_TRACE_JSON("hopper-gemm trace", trace_fields())

}  // namespace tilestep::hopper_gemm

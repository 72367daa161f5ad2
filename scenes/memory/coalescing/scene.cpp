#include "scenes/memory/coalescing/scene.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using coalescing::Access, coalescing::RequestStats, coalescing::WarpRequest;

StepAxis CoalescingScene::loaded(const coalescing::Trace&) {
  params_ = coalescing::knob_table().params(report_.params);
  find_events();
  return {static_cast<int>(trace_.requests.size()), 1, "request", {}, "requests"};
}

const WarpRequest* CoalescingScene::request(Cursor cursor) const {
  const std::size_t shown = std::min<std::size_t>(std::max(cursor.tile, 0), trace_.requests.size());
  return shown == 0 ? nullptr : &trace_.requests[shown - 1];
}

std::string CoalescingScene::sentence(Cursor cursor) const {
  const WarpRequest* shown = request(cursor);
  if (shown == nullptr) {
    return fmt::format("32 lanes are about to run {}, {} each.", trace_.statement,
                       words::counted(trace_.element_bytes, "byte"));
  }
  const RequestStats stats = request_stats(*shown, trace_.element_bytes);
  const std::string who = fmt::format("Block {}, warp {} {}", shown->block, shown->warp,
                                      shown->kind == Access::load ? "loads" : "stores");
  if (stats.sectors == stats.best_sectors) {
    return fmt::format("{}: {}, the fewest that can hold its {}.", who,
                       words::counted(stats.sectors, "sector"),
                       words::counted(stats.bytes_used, "byte"));
  }
  return fmt::format("{}: {} sectors move for {} that {} could hold.", who, stats.sectors,
                     words::counted(stats.bytes_used, "byte"), stats.best_sectors);
}

/// What patterns cost follows from their definitions, but answers the first questions.
Cursor CoalescingScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "requests") return {row + 1, 0};
  return {table.id == "patterns" && column > 1 ? 2 : 0, 0};
}

SourceMark CoalescingScene::source(const View& view) const {
  const bool apart = trace_.index_line != trace_.access_line;
  const int lines[] = {trace_.access_line, apart ? trace_.index_line : 0};
  return source_mark(coalescing::kSourcePath, lines, view.cursor.tile > 0 ? 0 : -1);
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(coalescing, CoalescingScene)

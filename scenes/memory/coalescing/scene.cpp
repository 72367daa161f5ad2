#include "scenes/memory/coalescing/scene.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using coalescing::Access, coalescing::RequestStats, coalescing::Site, coalescing::WarpRequest;

StepAxis CoalescingScene::loaded(const coalescing::Trace&) {
  params_ = coalescing::knob_table().params(report_.params);
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

/// What patterns cost follows from their definitions, but answers the first question.
Cursor CoalescingScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "requests") return {row + 1, 0};
  return {table.id == "patterns" && column > 1 ? 1 : 0, 0};
}

SourceMark CoalescingScene::source(const View& view) const {
  const bool apart = trace_.index_line != trace_.access_line;
  const int lines[] = {trace_.access_line, apart ? trace_.index_line : 0};
  return source_mark(coalescing::kSourcePath, lines, view.cursor.tile > 0 ? 0 : -1);
}

std::optional<Question> CoalescingScene::question(const View& view) const {
  if (view.cursor.tile >= steps().tiles) return std::nullopt;
  const WarpRequest& next = trace_.requests[view.cursor.tile];
  // Later warps repeat what the first has shown.
  if (next.site != Site::pattern || next.block != 0 || next.warp != 0) return std::nullopt;
  const RequestStats stats = request_stats(next, trace_.element_bytes);
  return about(
      {"memory"},
      ask_count(
          fmt::format(
              "{}, {} per element, 32 lanes. How many 32-byte sectors does the request touch?",
              trace_.statement, words::counted(trace_.element_bytes, "byte")),
          stats.sectors, {stats.best_sectors, 32, 4, 8, 1, 16},
          fmt::format("The lanes touch {} in {} of {}: {} of what moves is used.",
                      words::counted(stats.bytes_used, "different byte"),
                      words::counted(stats.sectors, "sector"), words::counted(stats.lines, "line"),
                      words::percent(stats.efficiency() / 100))));
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(coalescing, CoalescingScene)

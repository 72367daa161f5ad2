#include "scenes/matmul/tiling/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "scenes/shared/recorded.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using tiling::KTile, tiling::Phase, tiling::RemovedBarrier, tiling::Variant;
using words::counted, words::number, words::times;

StepAxis TilingScene::loaded(const tiling::Trace&) {
  params_ = tiling::knob_table().params(report_.params);
  find_events();
  if (is_rung()) measure_shares();
  if (is_rung()) return {1, tiling::kShares, "step", {"warps", "thread", "reads"}, ""};
  if (!shared()) return {k_tiles(), 1, "k-tile", {"multiply"}, "k_tiles"};
  const double each_k = std::clamp(trace_.tile / 2.0, 1.0, 4.0);  // time to see them one by one
  const std::vector<std::string> phases = {"load", "barrier", "multiply", "barrier"};
  return {k_tiles(), tiling::kPhases, "k-tile", phases, "k_tiles", 0, {1, 1, each_k, 1}};
}

double TilingScene::progress(Cursor cursor) const {
  if (is_rung()) return Scene::progress(cursor);
  return std::min<double>(Scene::progress(cursor) * trace_.tile, trace_.k);
}

TilingMoment TilingScene::moment(Cursor cursor) const {
  TilingMoment now;
  if (cursor.tile <= 0 || k_tiles() == 0) return now;
  now.k_tile = std::min(cursor.tile, k_tiles()) - 1;
  now.phase = shared() ? static_cast<Phase>(std::clamp(cursor.phase, 0, tiling::kPhases - 1))
                       : Phase::multiply;
  now.multiplied = now.phase >= Phase::multiply;
  now.loads = k_tile(now.k_tile).loads_so_far;
  const int naive_tile = now.multiplied ? now.k_tile : now.k_tile - 1;
  if (naive_tile >= 0) {
    now.naive_loads = trace_.naive.k_tiles[naive_tile].loads_so_far;
  }
  return now;
}

float TilingScene::sum(int element, Cursor cursor) const {
  const TilingMoment now = moment(cursor);
  const int tile = now.multiplied ? now.k_tile : now.k_tile - 1;
  return tile < 0 ? 0.0f : k_tile(tile).sums[element];
}

int TilingScene::thread_of(int element) const {
  // In `naive` threadIdx.x runs down the rows, which transposes the numbering; twice is the identity.
  return trace_.block.element_of(element, trace_.tile);
}

bool TilingScene::removed(Phase barrier) const {
  if (!shared()) return false;
  return (barrier == Phase::barrier_after_load &&
          params_.remove_barrier == RemovedBarrier::after_load) ||
         (barrier == Phase::barrier_after_multiply &&
          params_.remove_barrier == RemovedBarrier::after_multiply);
}

std::string TilingScene::name_in_c(int element) const {
  return fmt::format("C[{}][{}]", trace_.first_row() + element / trace_.tile,
                     trace_.first_column() + element % trace_.tile);
}

std::string TilingScene::brief(const TilingMoment& now) const {
  if (now.k_tile < 0) return "Nothing is loaded yet.";
  return fmt::format("K-tile {}: {}", now.k_tile,
                     steps().phase_names[shared() ? static_cast<int>(now.phase) : 0]);
}

std::string TilingScene::sentence(Cursor cursor) const {
  if (is_rung()) return rung_sentence(cursor);
  const TilingMoment now = moment(cursor);
  const int threads = trace_.tile * trace_.tile;
  if (now.k_tile < 0) {
    return fmt::format("Nothing is loaded yet: {} to go, by a block of {}.",
                       counted(k_tiles(), "k-tile"), counted(threads, "thread"));
  }
  const tiling::Races& races = trace_.races;
  if (finished(now) && races.orders > 0 &&
      (now.phase == Phase::barrier_after_multiply || races.wrong_orders > 0)) {
    if (races.wrong_orders == 0) {
      return fmt::format("Without the barrier {}, C is right in all {} orders of the threads.",
                         name_of(params_.remove_barrier), races.orders);
    }
    return fmt::format(
        "Without the barrier {}, C is wrong in {} of {} orders of the threads, first at C[{}][{}].",
        name_of(params_.remove_barrier), races.wrong_orders, races.orders, races.row, races.column);
  }
  const KTile& tile = k_tile(now.k_tile);
  const int loads = total(tile.a.loads) + total(tile.b.loads);
  const int products = trace_.rows() * trace_.columns() * depth(now.k_tile);
  const std::string name = fmt::format("K-tile {}", now.k_tile);
  if (!shared()) {
    return fmt::format("{}: {} for {}; each element of A is loaded {}.", name,
                       counted(loads, "global load"), counted(products, "product"),
                       times(most(tile.a.loads)));
  }
  switch (now.phase) {
    case Phase::load:
      return fmt::format("{}: {} load {} from global memory, each once.", name,
                         counted(threads, "thread"), counted(loads, "element"));
    case Phase::barrier_after_load:
      if (removed(now.phase))
        return "No barrier: a thread may read an element that is not stored yet.";
      return fmt::format("Barrier: no thread reads before all {} have stored.", threads);
    case Phase::multiply:
      return fmt::format("{}: each element is read {}, so {} feed {}.", name,
                         times(most(tile.a.reads)), counted(loads, "load"),
                         counted(products, "product"));
    case Phase::barrier_after_multiply:
      break;
  }
  if (removed(now.phase)) {
    return "No barrier: a thread may overwrite the tile that others still read.";
  }
  return fmt::format("{}: {} load {} once; each is then read {}.", name, counted(threads, "thread"),
                     counted(loads, "element"), times(most(tile.a.reads)));
}

int TilingScene::picked(const View& view) const {
  const int otherwise = trace_.rows() / 3 * trace_.tile + trace_.columns() / 2;
  const int element = thread_of(view.pick("thread", thread_of(otherwise)));
  // A thread stays picked from run to run as long as its number exists.
  return element >= 0 && element < trace_.tile * trace_.tile && within(element) ? element
                                                                                : otherwise;
}

std::vector<Readout> TilingScene::readouts(const View& view) const {
  const std::string variant(name_of(trace_.variant));
  // Counts recorded over all blocks are shown once this block is done; a formula's results are shown
  // from the start, unless they depend on the recorded loads.
  const bool over =
      is_rung() ? shows(view.cursor, tiling::Share::reads) : finished(moment(view.cursor));
  const auto known = [&](const lab::Measurement& m) {
    return over || (m.provenance == lab::Provenance::derived && m.id != "loads_per_output" &&
                    m.id != "reuse_factor" && m.id != "arithmetic_intensity");
  };
  // A second number that belongs to the first is shown in place of its unit.
  struct Row {
    const char *id, *label;
    int decimals;
    const char *unit, *second = "";
    const char* second_format = "{}";
    int second_decimals = 0;
    Readout::Look look = Readout::plain;
  };
  const Row rows[] = {
      {"global_loads", "global loads", 0, "", "loads_per_output", "{} per output", 1},
      {"reuse_factor", "reuse factor", 1, "×", "", "", 0, Readout::accent},
      {"arithmetic_intensity", "intensity", 2, "FLOP/B"},
      {"ideal_bytes", "HBM, at best", 0, "B"},
      {"shared_bytes_per_block", "shared memory", 0, "B", "bank_conflict_ways",
       "B, {}-way conflict"},
      {"registers_per_thread", "registers per thread", 0, "", "occupancy_limit", "occupancy ≤ {}",
       2},
      {"race_share", "orders gone wrong", 2, "", "", "", 0, Readout::wrong}};
  std::vector<Readout> all;
  for (const Row& row : rows) {
    const NumberOfRun of_run = number_of_run(report_, row.id, variant);
    const lab::Measurement* m = of_run.number;
    if (m == nullptr) {
      if (of_run.why_not.empty()) continue;
      all.push_back({row.id, row.label, "—", "", lab::Provenance::recorded, of_run.why_not});
      continue;
    }
    Readout made{row.id, row.label, "—", "", m->provenance, "Shown once the block has finished."};
    if (made.id == "global_loads") made.about = {"loads", 0};
    if (!known(*m)) {
      all.push_back(std::move(made));
      continue;
    }
    made.value = fmt::format("{:.{}f}", m->value, row.decimals);
    made.unit = row.unit;
    made.look = row.look;
    made.detail = lab::provenance_sentence(*m, report_);
    if (report_.recorded_at.empty() && !m->recorded_at.empty()) {
      made.provenance = lab::Provenance::recorded;
      made.detail += fmt::format("\nFrom the timed kernel, on {}, {}.", m->device, m->recorded_at);
    }
    const lab::Measurement* second = number_of_run(report_, row.second, variant).number;
    if (second != nullptr && known(*second)) {
      const std::string value = fmt::format("{:.{}f}", second->value, row.second_decimals);
      const bool conflict = second->id != "bank_conflict_ways" || second->value > 1;
      made.unit =
          conflict ? fmt::format(fmt::runtime(row.second_format), value) : "B, no bank conflict";
      made.detail += "\n" + lab::provenance_sentence(*second, report_);
    }
    all.push_back(std::move(made));
  }
  return all;
}

std::optional<picture::Subject> TilingScene::subject_of_column(std::string_view table_id,
                                                               std::string_view column_id) const {
  if (table_id != "k_tiles") return std::nullopt;
  if (column_id == "loads_so_far") return picture::Subject{"loads", 0};
  if (column_id == "naive_loads_so_far") return picture::Subject{"naive loads", 0};
  return std::nullopt;
}

SourceMark TilingScene::source(const View& view) const {
  const std::string_view path = tiling::source_path(trace_.variant);
  if (is_rung()) return source_mark(path, {}, -1);
  const TilingMoment now = moment(view.cursor);
  SourceMark mark =
      source_mark(path, trace_.block.lines, now.k_tile < 0 ? -1 : static_cast<int>(now.phase));
  if (now.k_tile < 0) return mark;
  const auto say = [&](tiling::Phase phase, std::string text) {
    const int line = trace_.block.lines[static_cast<std::size_t>(phase)];
    if (line > 0) mark.values[line] = std::move(text);
  };
  say(tiling::Phase::load, fmt::format("k0 = {}; {} so far", now.k_tile * trace_.tile,
                                       words::counted(now.loads, "load")));
  if (now.multiplied) {
    const int element = picked(view);
    say(tiling::Phase::multiply, fmt::format("thread {}: sum = {}", thread_of(element),
                                             words::number(sum(element, view.cursor), 3)));
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(tiling, TilingScene)

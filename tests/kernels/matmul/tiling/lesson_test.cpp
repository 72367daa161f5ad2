// The lesson's run: what it traces, counts and says.

#include "kernels/matmul/tiling/lesson.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::tiling;
using namespace tilestep::tests;

namespace {

const Runs run(lesson(), knob_table(), trace_from_json);

double loads_of(const lab::Report& report) {
  return report.measurement("global_loads", std::get<std::string>(report.params.at("variant")))
      ->value;
}

}  // namespace

TEST_CASE("a tile is loaded once and read tile times", "[tiling]") {
  const lab::Report tiled = run({.tile = 16, .m = 64, .n = 64, .k = 64});
  CHECK(loads_of(tiled) == 2.0 * 64 * 64 * 64 / 16);
  CHECK(tiled.measurement("reuse_factor", "shared-tile")->value == 16.0);
  CHECK(failed_checks(tiled).empty());
  const lab::Report naive = run({.variant = Variant::naive, .tile = 16, .m = 64, .n = 64, .k = 64});
  CHECK(loads_of(naive) == 2.0 * 64 * 64 * 64);
  CHECK(failed_checks(naive).empty());
}

TEST_CASE("shared memory is counted where it is static, too", "[tiling]") {
  const auto bytes = [](Variant variant) {
    return run({.variant = variant}).measurement("shared_bytes_per_block")->value;
  };
  CHECK(bytes(Variant::naive) == 0);
  CHECK(bytes(Variant::register_tile_1d) == 4096);  // as nvcc says of the compiled kernels
  CHECK(bytes(Variant::register_tile_2d) == 8192);
  CHECK(bytes(Variant::vectorized) > 8192);
}

TEST_CASE("loads and results are right where no tile divides", "[tiling]") {
  for (int i = 0; i < kVariants; ++i) {
    for (const int tile : {4, 5, 12, 32}) {
      const auto variant = static_cast<Variant>(i);
      const lab::Report report = run({.variant = variant, .tile = tile, .m = 37, .n = 29, .k = 41});
      CAPTURE(std::string(name_of(variant)), tile);
      CHECK(failed_checks(report).empty());
    }
  }
}

TEST_CASE("the trace of shared-tile tells who loaded what", "[tiling]") {
  for (const bool padding : {false, true}) {
    const Trace trace = run.trace({.tile = 8, .m = 20, .n = 27, .k = 19, .padding = padding});
    REQUIRE(trace.k_tiles() == 3);
    REQUIRE(trace.naive.k_tiles.size() == 3);
    std::int64_t loads = 0;
    for (int number = 0; number < 3; ++number) {
      const KTile& tile = trace.block.k_tiles[static_cast<std::size_t>(number)];
      for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) {
          const auto at = static_cast<std::size_t>(y * 8 + x);
          const bool a_inside = trace.first_row() + y < 20 && number * 8 + x < 19;
          const bool b_inside = trace.first_column() + x < 27 && number * 8 + y < 19;
          CHECK(tile.a.loads[at] == (a_inside ? 1 : 0));
          CHECK(tile.b.loads[at] == (b_inside ? 1 : 0));
          CHECK(tile.a.loader[at] == (a_inside ? y * 8 + x : -1));
          CHECK(tile.a.slot[at] == x * (8 + trace.padding) + y);
          CHECK(tile.b.slot[at] == y * 8 + x);
          CHECK(tile.a.reads[at] == 8);
          CHECK(tile.b.reads[at] == 8);
          loads += tile.a.loads[at] + tile.b.loads[at];
        }
      }
      CHECK(tile.loads_so_far == loads);
      CHECK(tile.along_k == 1);
    }
    CHECK(trace.padding == (padding ? 4 : 0));
    CHECK(trace.bank_ways.store_a == (padding ? 1 : 2));
    CHECK(trace.block.lines == phase_lines(Variant::shared_tile));
    CHECK(trace.naive.lines == phase_lines(Variant::naive));
  }
}

TEST_CASE("the numbered source lines are the statements of the phases", "[tiling]") {
  const auto lines = phase_lines(Variant::shared_tile);
  check_lines(kSourcePath, lines,
              {"a_tile[x * size.pitch + y] =", "__syncthreads();",
               "sum += a_tile[kk * size.pitch + y] * b_tile", "__syncthreads();"});
  CHECK(std::is_sorted(lines.begin(), lines.end()));
  const int naive = phase_lines(Variant::naive)[2];
  check_lines(kSourcePath, {&naive, 1},
              {"sum += a[row * shape.k + kk] * b[kk * shape.n + column]"});
  CHECK(phase_lines(Variant::coalesced)[2] > naive);
  CHECK(phase_lines(Variant::coalesced)[0] == 0);
  CHECK(phase_lines(Variant::warp_tile) == std::array<int, kPhases>{});
}

TEST_CASE("naive loads every element of the bands once a product", "[tiling]") {
  const Trace trace = run.trace({.variant = Variant::naive});
  CHECK(trace.block.variant == Variant::naive);
  CHECK(trace.block == trace.naive);
  for (const KTile& tile : trace.block.k_tiles) {
    for (const int loads : tile.a.loads) CHECK(loads == 8);
    for (const int loads : tile.b.loads) CHECK(loads == 8);
    CHECK(tile.a.loader.empty());
  }
  CHECK(trace.block.loads() == 2 * 8 * 8 * 32);
}

TEST_CASE("padding removes the conflicts of the turned stores", "[tiling]") {
  for (const int tile : {8, 16, 32}) {
    const Trace without = run.trace({.tile = tile});
    const Trace with = run.trace({.tile = tile, .padding = true});
    CAPTURE(tile);
    CHECK(without.bank_ways.store_a == tile * tile / 32);
    CHECK(with.bank_ways.worst() == 1);
  }
}

TEST_CASE("a removed barrier is found, a kept one never blamed", "[tiling]") {
  if (device_at_hand().info().backend != "emulated") return;  // a GPU need not run into the race
  CHECK(run.trace().races.orders == 0);
  for (const auto removed : {RemovedBarrier::after_load, RemovedBarrier::after_multiply}) {
    const lab::Report report = run({.remove_barrier = removed});
    CAPTURE(std::string(name_of(removed)));
    CHECK(failed_checks(report).empty());
    const Races races = trace_from_json(report.trace).races;
    CHECK(races.orders == 64);
    CHECK(races.wrong_orders > 32);
    CHECK(races.row >= 0);
    CHECK_FALSE(races.wrong_elements.empty());
    REQUIRE(report.table("races") != nullptr);
    CHECK(report.measurement("race_share", "shared-tile")->value > 0.5);
  }
  // With a single k-tile nothing is overwritten: the last barrier is not needed.
  constexpr auto kLast = RemovedBarrier::after_multiply;
  CHECK(run.trace({.k = 8, .remove_barrier = kLast}).races.wrong_orders == 0);
  const lab::Report coalesced =
      run({.variant = Variant::coalesced, .k = 8, .remove_barrier = kLast});
  CHECK(contains(coalesced.summary, "no barrier"));
}

namespace {

/// Who should have an element of the block's tile of C, by the rung's own words.
int owner_by_words(Variant variant, int row, int column) {
  switch (variant) {
    case Variant::register_tile_1d:
      return row / 8 * 64 + column;
    case Variant::register_tile_2d:
      return row / 8 * 16 + column / 8;
    case Variant::vectorized:
    case Variant::double_buffered:
      return row % 64 / 4 * 16 + column % 64 / 4;
    case Variant::warp_tile: {
      const int warp = row / 64 * 4 + column / 32, down = row % 32 / 4, across = column % 16 / 4;
      return warp * 32 + across % 2 + down % 2 * 2 + across / 2 * 4 + down / 2 * 8;
    }
    default:
      return (row / 64 * 2 + column / 64) * 32 + row % 8 * 4 + column % 8 / 2;
  }
}

}  // namespace

TEST_CASE("each element of C has the owner that its rung says, who reads as much as it says",
          "[tiling]") {
  // Of a block: its tile of C and depth, threads; of a thread: elements, numbers, instructions.
  const std::array<int, 7> expected[] = {
      {6, 6, 6, 36, 1, 12, 12},         {64, 64, 8, 512, 8, 72, 72},
      {128, 128, 8, 256, 64, 128, 128}, {128, 128, 8, 256, 64, 128, 32},
      {128, 128, 8, 256, 64, 128, 32},  {128, 128, 16, 256, 64, 256, 64},
      {128, 128, 64, 128, 128, 256, 32}};
  for (const Variant variant : all_of<Variant>()) {
    CAPTURE(std::string(name_of(variant)));
    const lab::Report report = run({.variant = variant, .tile = 6, .m = 13, .n = 9, .k = 11});
    CHECK(failed_checks(report).empty());
    const Trace trace = trace_from_json(report.trace);
    CHECK(report.trace->contains("rungs") == !has_picture(variant));
    if (has_picture(variant)) continue;
    CHECK(trace.block.k_tiles.empty());
    REQUIRE(std::ssize(trace.rungs) == static_cast<int>(variant) - 1);
    for (std::size_t i = 0; i < trace.rungs.size(); ++i) {
      const Rung& r = trace.rungs[i];
      CHECK(std::array{r.rows, r.columns, r.depth, r.threads, r.owned, r.reads, r.requests} ==
            expected[i]);
    }
    const Rung& shown = trace.rungs.back();
    int wrong = 0;
    for (int row = 0; row < shown.rows; ++row) {
      for (int column = 0; column < shown.columns; ++column) {
        wrong += shown.owner(row, column) == owner_by_words(variant, row, column) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
    const lab::Table* table = report.table("shares");
    REQUIRE(table != nullptr);
    CHECK(table->rows.size() == trace.rungs.size());
    CHECK(report.table("k_tiles") == nullptr);
  }
}

TEST_CASE("damage to a rung's trace is refused", "[tiling]") {
  const lab::Report report = run({.variant = Variant::tensor_core, .tile = 6});
  check_refusals(report.trace, trace_again,
                 {{"/tile", 0, "1–32"},
                  {"/rungs", nlohmann::json::array(), "'rungs' are not those"},
                  {"/rungs/6/unit_columns", 3, "no whole number"},
                  {"/variant", "odd", "odd"},
                  {"/a_band", nlohmann::json::array(), "a_band"},
                  {"/block", nlohmann::json::object(), "'block.variant'"}});
}

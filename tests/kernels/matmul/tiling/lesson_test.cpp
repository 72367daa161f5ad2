// The lesson's run: what it traces, counts and says.

#include <algorithm>
#include <numeric>
#include <string>

#include "kernels/base/lab/assets.hpp"
#include "tests/kernels/matmul/tiling/support.hpp"

using namespace tilestep;
using namespace tilestep::tiling;
using tests::error_of;
using tests::failed_checks;
using tests::run_tiling;
using tests::test_device;

namespace {

Params params_of(Variant variant, int tile, int m, int n, int k) {
  Params params;
  params.variant = variant;
  params.tile = tile;
  params.m = m;
  params.n = n;
  params.k = k;
  return params;
}

double loads_of(const lab::Report& report) {
  return report.measurement("global_loads", std::get<std::string>(report.params.at("variant")))
      ->value;
}

}  // namespace

TEST_CASE("a tile is loaded once and read tile times", "[tiling]") {
  const auto device = test_device();
  const lab::Report tiled = run_tiling(*device, params_of(Variant::shared_tile, 16, 64, 64, 64));
  CHECK(loads_of(tiled) == 2.0 * 64 * 64 * 64 / 16);
  CHECK(tiled.measurement("reuse_factor", "shared-tile")->value == 16.0);
  CHECK(failed_checks(tiled).empty());
  const lab::Report naive = run_tiling(*device, params_of(Variant::naive, 16, 64, 64, 64));
  CHECK(loads_of(naive) == 2.0 * 64 * 64 * 64);
  CHECK(failed_checks(naive).empty());
}

TEST_CASE("loads and results are right where no tile divides", "[tiling]") {
  const auto device = test_device();
  for (int i = 0; i < kVariants; ++i) {
    for (const int tile : {4, 5, 12, 32}) {
      const Params params = params_of(static_cast<Variant>(i), tile, 37, 29, 41);
      const lab::Report report = run_tiling(*device, params);
      CAPTURE(std::string(name_of(params.variant)), tile);
      CHECK(failed_checks(report).empty());
    }
  }
}

TEST_CASE("the trace of shared-tile tells who loaded what", "[tiling]") {
  const auto device = test_device();
  Params params = params_of(Variant::shared_tile, 8, 20, 27, 19);
  for (const bool padding : {false, true}) {
    params.padding = padding;
    const Trace trace = trace_from_json(run_tiling(*device, params).trace);
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
          CHECK(tile.a_loads[at] == (a_inside ? 1 : 0));
          CHECK(tile.b_loads[at] == (b_inside ? 1 : 0));
          CHECK(tile.a_loader[at] == (a_inside ? y * 8 + x : -1));
          CHECK(tile.a_slot[at] == x * (8 + trace.padding) + y);
          CHECK(tile.b_slot[at] == y * 8 + x);
          CHECK(tile.a_reads[at] == 8);
          CHECK(tile.b_reads[at] == 8);
          loads += tile.a_loads[at] + tile.b_loads[at];
        }
      }
      CHECK(tile.loads_so_far == loads);
    }
    CHECK(trace.padding == (padding ? 4 : 0));
    CHECK(trace.bank_ways.store_a == (padding ? 1 : 2));
    CHECK(trace.block.lines == phase_lines(Variant::shared_tile));
    CHECK(trace.naive.lines == phase_lines(Variant::naive));
  }
}

TEST_CASE("the numbered source lines are the statements of the phases", "[tiling]") {
  const auto line = [](int number) {
    std::string_view source = lab::asset(kSourcePath);
    for (int i = 1; i < number; ++i) source.remove_prefix(source.find('\n') + 1);
    return std::string(source.substr(0, source.find('\n')));
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  const auto lines = phase_lines(Variant::shared_tile);
  CHECK(has(line(lines[0]), "a_tile[x * size.pitch + y] ="));
  CHECK(has(line(lines[1]), "__syncthreads();"));
  CHECK(has(line(lines[2]), "sum += a_tile[kk * size.pitch + y] * b_tile"));
  CHECK(has(line(lines[3]), "__syncthreads();"));
  CHECK(std::is_sorted(lines.begin(), lines.end()));
  const int naive = phase_lines(Variant::naive)[2];
  CHECK(has(line(naive), "sum += a[row * shape.k + kk] * b[kk * shape.n + column]"));
  CHECK(phase_lines(Variant::coalesced)[2] > naive);
  CHECK(phase_lines(Variant::coalesced)[0] == 0);
  CHECK(phase_lines(Variant::warp_tile) == std::array<int, kPhases>{});
}

TEST_CASE("naive loads every element of the bands once a product", "[tiling]") {
  const auto device = test_device();
  const Trace trace =
      trace_from_json(run_tiling(*device, params_of(Variant::naive, 8, 32, 32, 32)).trace);
  CHECK(trace.block.variant == Variant::naive);
  CHECK(trace.block == trace.naive);
  for (const KTile& tile : trace.block.k_tiles) {
    for (const int loads : tile.a_loads) CHECK(loads == 8);
    for (const int loads : tile.b_loads) CHECK(loads == 8);
    CHECK(tile.a_loader.empty());
  }
  CHECK(trace.block.loads() == 2 * 8 * 8 * 32);
}

TEST_CASE("padding removes the conflicts of the turned stores", "[tiling]") {
  const auto device = test_device();
  for (const int tile : {8, 16, 32}) {
    Params params = params_of(Variant::shared_tile, tile, 32, 32, 32);
    const Trace without = trace_from_json(run_tiling(*device, params).trace);
    params.padding = true;
    const Trace with = trace_from_json(run_tiling(*device, params).trace);
    CAPTURE(tile);
    CHECK(without.bank_ways.store_a == tile * tile / 32);
    CHECK(with.bank_ways.worst() == 1);
  }
}

TEST_CASE("a removed barrier is found, a kept one never blamed", "[tiling]") {
  const auto device = test_device();
  if (device->info().backend != "emulated") return;  // a GPU need not run into the race
  Params params;
  CHECK(trace_from_json(run_tiling(*device, params).trace).races.orders == 0);
  for (const auto removed : {RemovedBarrier::after_load, RemovedBarrier::after_multiply}) {
    params.remove_barrier = removed;
    const lab::Report report = run_tiling(*device, params);
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
  params.k = params.tile;
  CHECK(trace_from_json(run_tiling(*device, params).trace).races.wrong_orders == 0);
  params.variant = Variant::coalesced;
  CHECK(run_tiling(*device, params).summary.find("no barrier") != std::string::npos);
}

TEST_CASE("a tiling trace survives JSON, and a broken one says what is wrong", "[tiling]") {
  const auto device = test_device();
  Params params = params_of(Variant::tensor_core, 6, 13, 9, 11);
  params.remove_barrier = RemovedBarrier::after_load;
  const lab::Report report = run_tiling(*device, params);
  const Trace trace = trace_from_json(report.trace);
  CHECK(trace.block.variant == Variant::shared_tile);
  // As JSON, because a race may leave a NaN, which equals nothing.
  const nlohmann::json json = to_json(trace);
  CHECK(json == report.trace);
  CHECK(to_json(trace_from_json(nlohmann::json::parse(json.dump()))) == json);
  const auto broken = [&](const char* member, const nlohmann::json& value) {
    nlohmann::json changed = report.trace;
    changed[member] = value;
    return error_of([&] { trace_from_json(changed); });
  };
  CHECK(broken("tile", 0).find("1–32") != std::string::npos);
  CHECK(broken("variant", "odd").find("odd") != std::string::npos);
  CHECK(broken("a_band", nlohmann::json::array()).find("a_band") != std::string::npos);
  CHECK(broken("block", nlohmann::json::object()).find("'block.variant'") != std::string::npos);
}

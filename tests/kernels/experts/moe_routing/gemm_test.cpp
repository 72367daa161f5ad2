// The large grouped product against double: every configuration, every scheme, experts with no
// token, with a few, and with one more than a tile.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "kernels/base/simt/backends.hpp"
#include "kernels/experts/moe_routing/bench/problem.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

namespace tilestep::moe_routing {
const simt::KernelSet& kernels_emulated();
}

using namespace tilestep;
using namespace tilestep::moe_routing;
using tests::contains, tests::error_of;

namespace {

const std::vector<int> kRagged = {7, 0, 129, 1, 64};

/// A grouped product of random numbers on the device, and its result.
struct GroupedRun {
  GroupedLayout layout;
  std::vector<float> y;
  std::vector<TileRun> recorded;
  int wrong = 0;  ///< elements of y: those of tokens against double, those of padding against 0
};

constexpr int kLibrary = -1;

int wrong_elements(const GroupedProblem& problem, const GroupedRun& run, numeric::Adding adding) {
  const auto hidden = static_cast<std::size_t>(problem.hidden);
  const auto width = static_cast<std::size_t>(problem.width);
  int wrong = 0;
  std::size_t token = 0;
  for (std::size_t e = 0; e < run.layout.kept.size(); ++e) {
    const auto weights = problem.weights.values(e * width * hidden, width * hidden);
    for (int slot = run.layout.first_slot[e]; slot < run.layout.first_slot[e + 1]; ++slot) {
      const bool kept = slot - run.layout.first_slot[e] < run.layout.kept[e];
      const auto x =
          kept ? problem.x.values(token++ * hidden, hidden) : std::vector<std::uint16_t>(hidden);
      for (std::size_t row = 0; row < width; ++row) {
        const numeric::Bounded want =
            grouped_element(std::span(weights).subspan(row * hidden, hidden), x, adding);
        const auto got = static_cast<double>(run.y[static_cast<std::size_t>(slot) * width + row]);
        wrong += std::abs(got - want.value) <= want.bound ? 0 : 1;  // NaN is not
      }
    }
  }
  return wrong;
}

/// `configuration` kLibrary: the library's loop.
GroupedRun run_grouped(simt::Device& device, int configuration, const GroupedLayout& layout,
                       int hidden, int width, int blocks, bool tails_at_end = false) {
  const Kernels& kernels = moe_routing::kernels_of(device);
  const bool library = configuration == kLibrary;
  const int tile_width =
      library ? width
              : kernels.configurations()[static_cast<std::size_t>(configuration)].tile_width;
  const GroupedProblem problem(device, static_cast<int>(layout.kept_tokens()), layout.experts(),
                               hidden, width);
  LaidOut laid_out(device, problem, layout, tails_at_end ? tile_width : 0);
  laid_out.y().fill(0xFF);
  GroupedShape shape = laid_out.shape();
  shape.blocks = blocks;
  GroupedRun run{layout, {}, {}};
  const auto tiles = static_cast<std::size_t>(layout.tiles() * (width / tile_width));
  simt::Trace recording(device, tiles * kTileEntries);
  if (library) {
    kernels.library_loop(device, shape, laid_out.arrays(), layout.first_slot, layout.kept);
  } else {
    kernels.grouped_gemm(device, configuration, shape, laid_out.arrays(), recording.tape());
  }
  device.synchronize();
  run.y = laid_out.y().download();
  run.recorded = tile_runs(recording, tiles);
  run.wrong = wrong_elements(
      problem, run,
      library ? numeric::Adding::any_order_tensor_core : numeric::Adding::tensor_core);
  return run;
}

}  // namespace

TEST_CASE("every configuration and scheme of the grouped product is right", "[moe_gemm]") {
  const auto device = tests::test_device(simt::ThreadOrder::shuffled, 3);
  const auto all = moe_routing::kernels_of(*device).configurations();
  REQUIRE(all.size() == 8);
  for (std::size_t c = 0; c < all.size(); ++c) {
    if (all[c].hopper && !runs_wgmma(device->info())) continue;
    for (const Scheme scheme : all_of<Scheme>()) {
      const GroupedLayout layout = layout_of(kRagged, scheme, all[c].tile_tokens);
      CAPTURE(std::string(all[c].name), std::string(name_of(scheme)));
      const int width = std::max(256, all[c].tile_width);
      const auto run = run_grouped(*device, static_cast<int>(c), layout, 128, width, 0);
      CHECK(run.wrong == 0);
    }
  }
}

TEST_CASE("persistent blocks go from tile to tile and from expert to expert", "[moe_gemm]") {
  const auto device = tests::test_device(simt::ThreadOrder::descending);
  const auto all = moe_routing::kernels_of(*device).configurations();
  // Fewer, as many and more stages than tiles along k; blocks that share out evenly, and not.
  for (const int hidden : {64, 128, 320}) {
    for (const int blocks : {1, 3, 40}) {
      // The smallest tiles, and Hopper's: the others share their code.
      for (std::size_t c = 3; c < all.size(); ++c) {
        if (all[c].hopper && !runs_wgmma(device->info())) continue;
        const GroupedLayout layout = layout_of(kRagged, Scheme::packed, all[c].tile_tokens);
        const int width = std::max(128, all[c].tile_width);
        CAPTURE(hidden, blocks, std::string(all[c].name));
        const auto run = run_grouped(*device, static_cast<int>(c), layout, hidden, width, blocks);
        CHECK(run.wrong == 0);
      }
    }
  }
}

TEST_CASE("tiles are handed out whole ones first, and none is lost", "[moe_gemm]") {
  const std::vector<int> kept = {300, 0, 129, 64, 1};
  const GroupedLayout layout = layout_of(kept, Scheme::packed, 64);
  const std::vector<int> order = tails_last(layout, 3);
  REQUIRE(order.size() == static_cast<std::size_t>(3 * layout.tiles()));
  std::set<int> seen(order.begin(), order.end());
  CHECK(seen.size() == order.size());
  // 4 + 2 + 1 whole tiles, then 44, 1 and 1 tokens, each by three tiles of W. Expert 0 has five
  // tiles down: its last are numbers 4, 9 and 14; expert 2 has three, from 15 on.
  CHECK(std::vector<int>(order.end() - 9, order.end()) ==
        std::vector<int>{4, 9, 14, 17, 20, 23, 27, 28, 29});

  const auto device = tests::test_device(simt::ThreadOrder::shuffled, 5);
  const auto all = moe_routing::kernels_of(*device).configurations();
  for (std::size_t c = 3; c < all.size(); ++c) {
    if (all[c].hopper && !runs_wgmma(device->info())) continue;
    CAPTURE(std::string(all[c].name));
    // Tails of more than half a tile, of half, and of less.
    const std::vector<int> ragged = {129, 0, 300, 64, 256, 1, 128};
    const int width = std::max(128, all[c].tile_width);
    const auto run =
        run_grouped(*device, static_cast<int>(c),
                    layout_of(ragged, Scheme::packed, all[c].tile_tokens), 128, width, 3, true);
    CHECK(run.wrong == 0);
  }
}

TEST_CASE("the order of threads changes no bit of the grouped product", "[moe_gemm]") {
  const GroupedLayout layout = layout_of(kRagged, Scheme::packed, 64);
  const std::vector<float> y = run_grouped(tests::device_at_hand(), 3, layout, 192, 64, 2).y;
  tests::in_other_orders(
      3, [&](simt::Device& device) { CHECK(run_grouped(device, 3, layout, 192, 64, 2).y == y); });
}

TEST_CASE("a recording holds every tile once, in the block that the schedule says", "[moe_gemm]") {
  const auto device = tests::test_device();
  constexpr int kBlocks = 3;
  // The smallest tiles, and a tile of two blocks.
  for (const int number : {3, 7}) {
    const Configuration& one =
        moe_routing::kernels_of(*device).configurations()[static_cast<std::size_t>(number)];
    if (one.hopper && !runs_wgmma(device->info())) continue;
    const GroupedLayout layout = layout_of(kRagged, Scheme::packed, one.tile_tokens);
    const auto run = run_grouped(*device, number, layout, 64, 2 * one.tile_width, kBlocks);
    const std::vector<TileRun>& r = run.recorded;
    REQUIRE(std::ssize(r) == 2 * layout.tiles());
    std::vector<unsigned long long> free_at(kBlocks, 0);
    for (std::size_t tile = 0; tile < r.size(); ++tile) {
      CAPTURE(std::string(one.name), tile);
      REQUIRE(r[tile].block == static_cast<int>(tile) % kBlocks);
      CHECK(r[tile].processor >= 0);
      CHECK(r[tile].end > r[tile].begin);
      auto& free = free_at[static_cast<std::size_t>(r[tile].block)];
      CHECK(r[tile].begin >= free);
      free = r[tile].end;
    }
    if (device->info().backend == "emulated") {
      // A tile of 64 × 64 over 64 of k is 4 · 8 · 4 mma; a warpgroup's half of 128 tokens × 256 is 4 · 2 wgmma.
      const unsigned long long each = one.hopper ? 8 : 128;
      CHECK(r[0].end - r[0].begin == each);
      CHECK(free_at[0] == 4 * each);
    }
  }
}

TEST_CASE(
    "nothing is read, overwritten or released too early, whenever copies and products are done",
    "[moe_gemm]") {
  static const simt::KernelEntry kTable[] = {{"moe_routing", kernels_emulated}};
  using simt::Completion, simt::ThreadOrder;
  std::vector<float> first;
  for (const auto& [completion, threads] :
       {std::pair{Completion::latest, ThreadOrder::ascending},
        std::pair{Completion::early_copies, ThreadOrder::descending},
        std::pair{Completion::earliest, ThreadOrder::descending}}) {
    const auto device = simt::make_emulated_device(
        kTable, {.order = threads, .os_threads = 1, .completion = completion});
    const auto all = moe_routing::kernels_of(*device).configurations();
    std::vector<float> each;
    for (std::size_t c = 4; c < all.size(); ++c) {
      CAPTURE(std::string(all[c].name));
      // More k-tiles than stages, two tiles a block.
      const GroupedLayout layout = layout_of(kRagged, Scheme::packed, all[c].tile_tokens);
      const auto run = run_grouped(*device, static_cast<int>(c), layout, 320, all[c].tile_width, 2);
      CHECK(run.wrong == 0);
      each.insert(each.end(), run.y.begin(), run.y.end());
    }
    if (first.empty()) first = each;
    CHECK(each == first);
  }
}

TEST_CASE("a grid of experts and tiles records no tile that is not there", "[moe_gemm]") {
  const auto device = tests::test_device();
  const GroupedLayout layout = layout_of(kRagged, Scheme::tile_padded, 64);
  const auto run = run_grouped(*device, 3, layout, 64, 64, 0);
  REQUIRE(run.recorded.size() == 6);
  std::set<int> blocks;
  for (const TileRun& tile : run.recorded) blocks.insert(tile.block);
  CHECK(blocks.size() == 6);
  CHECK(*blocks.begin() >= 0);
}

TEST_CASE("layouts keep their promises for any counts", "[moe_gemm]") {
  std::mt19937 generator(5);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<int> kept(1 + generator() % 9);
    for (int& count : kept) count = static_cast<int>(generator() % 300);
    const int tile = 8 << generator() % 5;
    const int most = *std::max_element(kept.begin(), kept.end());
    for (const Scheme scheme : all_of<Scheme>()) {
      const GroupedLayout layout = layout_of(kept, scheme, tile);
      for (std::size_t e = 0; e < kept.size(); ++e) {
        const int slots = layout.first_slot[e + 1] - layout.first_slot[e];
        const int tiles = layout.first_tile[e + 1] - layout.first_tile[e];
        const int held = scheme == Scheme::padded_to_capacity ? most : kept[e];
        CHECK(tiles * tile >= held);
        CHECK(tiles * tile - held < tile);
        CHECK(slots == (scheme == Scheme::packed ? kept[e] : tiles * tile));
      }
    }
  }
  CHECK(contains(error_of([] {
                   const std::vector<int> many(256, 16000000);
                   layout_of(many, Scheme::padded_to_capacity, 128);
                 }),
                 "2147483647"));
}

TEST_CASE("top-1 counts add up and follow the routing", "[moe_gemm]") {
  CHECK(top1_counts(Routing::balanced, 0, 32, 4) == std::vector<int>{8, 8, 8, 8});
  CHECK(top1_counts(Routing::balanced, 0, 10, 4) == std::vector<int>{3, 3, 2, 2});
  CHECK(top1_counts(Routing::one_hot, 0, 10, 3) == std::vector<int>{10, 0, 0});
  CHECK(top1_counts(Routing::skewed, 1, 11, 3) == std::vector<int>{6, 3, 2});
  for (const double skew : {0.0, 0.5, 1.0, 1.5, 4.0}) {
    const auto counts = top1_counts(Routing::skewed, skew, 8192, 64);
    CHECK(std::accumulate(counts.begin(), counts.end(), 0) == 8192);
    CHECK(std::is_sorted(counts.rbegin(), counts.rend()));
  }
  CHECK(contains(error_of([] { top1_counts(Routing::random, 0, 8, 4); }), "balanced, skewed"));
  CHECK(contains(error_of([] { top1_counts(Routing::balanced, 0, 8, 0); }), "1 expert"));
}

TEST_CASE("sizes that the grouped product does not take are refused by name", "[moe_gemm]") {
  const auto device = tests::test_device();
  const GroupedLayout layout = layout_of(kRagged, Scheme::packed, 64);
  const auto refusal = [&](int hidden, int width) {
    return error_of([&] { run_grouped(*device, 3, layout, hidden, width, 0); });
  };
  CHECK(contains(refusal(100, 64), "hidden is 100"));
  CHECK(contains(refusal(64, 96), "multiples of 64"));
  if (device->info().backend == "emulated") {
    CHECK(contains(error_of([&] { run_grouped(*device, kLibrary, layout, 64, 64, 0); }),
                   "emulation"));
  } else if (moe_routing::kernels_of(*device).library(*device).available) {
    CHECK(run_grouped(*device, kLibrary, layout, 64, 64, 0).wrong == 0);
  }
}

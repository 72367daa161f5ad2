// The tiling lesson's questions before steps, the events of its trace, and its questions about
// measurements; every answer is read off the trace or the bench.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "scenes/matmul/tiling/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using tiling::KTile, tiling::Phase, tiling::Variant;

Question TilingScene::load_question(int number) const {
  const tiling::KTile& tile = k_tile(number);
  const int of_a = total(tile.a.loads);
  const int of_b = total(tile.b.loads);
  const int products = trace_.rows() * trace_.columns() * depth(number);
  const int elements = (trace_.rows() + trace_.columns()) * depth(number);
  const int threads = trace_.tile * trace_.tile;
  return about(
      {"loads"},
      ask_count(fmt::format(
                    "K-tile {} has {} products. How many elements does the block load from global "
                    "memory for it?",
                    number, products),
                of_a + of_b, {2 * products, elements, products, threads, 2 * threads},
                shared() ? fmt::format("{} threads load {} of A and {} of B, each once.", threads,
                                       of_a, of_b)
                         : fmt::format("every product loads both operands: {} of A and {} of B, "
                                       "though only {} differ.",
                                       of_a, of_b, elements)));
}

/// Which of the tile's elements does the followed thread load?
std::optional<Question> TilingScene::loader_question(int number, int thread) const {
  const std::vector<int>& loaders = k_tile(number).a.loader;
  const int edge = trace_.tile;
  const auto found = std::find(loaders.begin(), loaders.end(), thread);
  if (found == loaders.end() || edge < 2) return std::nullopt;
  const int element = static_cast<int>(found - loaders.begin());
  const auto name = [&](int of) { return fmt::format("sA[{}][{}]", of / edge, of % edge); };
  std::vector<std::string> others;
  const int row = element / edge, column = element % edge;
  for (const int other : {column * edge + row, row * edge, column, (element + edge) % (edge * edge),
                          (element + 1) % (edge * edge)}) {
    others.push_back(name(other));
  }
  const auto thing = [](const std::string& choice) {
    const std::size_t second = choice.find('[', 3);
    return picture::Key{"sa", std::stoi(choice.substr(3)), std::stoi(choice.substr(second + 1))};
  };
  return about_each(
      thing, ask(fmt::format("Thread {} loads one element of A's next tile. Which one?", thread),
                 name(element), others,
                 fmt::format("threadIdx.x = {} is the column and threadIdx.y = {} the row, so that "
                             "a warp's lanes load neighbours.",
                             thread % edge, thread / edge)));
}

/// Where the bar of `naive` ends, once some of its k-tiles have been seen.
Question TilingScene::end_question() const {
  const std::int64_t end = trace_.naive.loads();
  const auto products = static_cast<std::int64_t>(trace_.rows()) * trace_.columns() * trace_.k;
  return ask_to_set(fmt::format("naive loads both operands of every product. Where on this scale "
                                "will its bar end, with k = {}?",
                                trace_.k),
                    {"load_bars"}, "loads", static_cast<double>(end),
                    0.06 * static_cast<double>(end),
                    fmt::format("naive loads two for each of {} products: {}; this block loads {}.",
                                products, end, trace_.block.loads()));
}

/// For the whole launch: each matrix once per block that needs it.
Question TilingScene::launch_question() const {
  const std::int64_t m = trace_.m, n = trace_.n, k = trace_.k;
  return about(
      {"matrices"},
      ask_count(
          fmt::format("This block is nearly done. How many elements of A and B does the whole "
                      "launch load from global memory, for a C of {} × {}?",
                      trace_.m, trace_.n),
          trace_.global_loads,
          {m * k + k * n, trace_.naive_global_loads, trace_.block.loads(), trace_.global_loads / 2},
          fmt::format("A and B have {} elements together, and every block that needs them loads "
                      "them again; naive loads {}.",
                      m * k + k * n, trace_.naive_global_loads)));
}

Question TilingScene::race_question() const {
  const tiling::Races& races = trace_.races;
  std::string because =
      fmt::format("C is wrong in {} of {} ({})", races.wrong_orders, races.orders, races.where);
  if (races.wrong_orders == 0 && k_tiles() == 1) {
    because += ": there is no second k-tile that could overwrite the first";
  }
  const std::vector<std::string> shares = {"In none", "In some", "In all"};
  const std::size_t is = races.wrong_orders == 0 ? 0 : races.wrong_orders < races.orders ? 1 : 2;
  return about(
      {"block"},
      ask(fmt::format("Without the barrier {}, in how many of {} thread orders is C wrong?",
                      name_of(params_.remove_barrier), races.orders),
          shares[is], shares, because + "."));
}

std::optional<Question> TilingScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (is_rung()) {
    if (next > 0) return std::nullopt;
    return shuffled(of_kind("reads", reads_question()), report_);
  }
  if (next >= k_tiles() || view.cursor.phase != steps().phases - 1) return std::nullopt;
  const bool last = next == k_tiles() - 1;
  const auto asked = [&](const char* kind, Question question) {
    return shuffled(of_kind(kind, std::move(question)), report_);
  };
  // The picture shows the result of the races at its end.
  if (last && trace_.races.orders > 0) return asked("races", race_question());
  if (next == 0) return asked("loads", load_question(0));
  // The last one may be narrower than those seen.
  if (last && depth(next) < trace_.tile) return asked("loads", load_question(next));
  if (next == 1 && shared()) {
    const auto loader = loader_question(next, thread_of(picked(view)));
    return loader ? std::optional(asked("loader", *loader)) : std::nullopt;
  }
  if (last) return asked("launch-loads", launch_question());
  const bool compared = trace_.block.variant != Variant::naive;
  if (next == 2 && compared) return of_kind("naive-end", end_question());
  return std::nullopt;
}

// ---- events ---------------------------------------------------------------------------------------

void TilingScene::find_events() {
  if (is_rung()) {
    events_.push_back({{1, static_cast<int>(tiling::Share::thread)}, "each thread's elements"});
    return;
  }
  const int last = k_tiles() - 1;
  const int load = 0, multiply = shared() ? static_cast<int>(Phase::multiply) : 0;
  if (last < 0) return;
  const KTile& first = k_tile(0);
  if (shared()) {
    events_.push_back({{1, load}, "the first tiles reach shared memory"});
    events_.push_back(
        {{1, multiply}, fmt::format("each element is read {}", words::times(most(first.a.reads)))});
    if (last > 0) events_.push_back({{last + 1, load}, "tiles are loaded for the last time"});
  } else {
    events_.push_back(
        {{1, multiply},
         fmt::format("each element of A is loaded {}", words::times(most(first.a.loads)))});
  }
  if (trace_.races.orders > 0) {
    const bool wrong = trace_.races.wrong_orders > 0;
    events_.push_back({{last + 1, wrong || !shared() ? multiply : tiling::kPhases - 1},
                       wrong ? fmt::format("C is wrong in {} of {} orders",
                                           trace_.races.wrong_orders, trace_.races.orders)
                             : "C is right in all orders"});
  } else {
    events_.push_back({{last + 1, multiply}, "C's block is done"});
  }
}

// ---- about measurements ---------------------------------------------------------------------------

namespace {

/// The largest size that both rungs were measured at.
constexpr const char* kSize = "4096";

std::optional<double> rate(const lab::Report& bench, std::string_view rung) {
  return number_with(bench, "ladder_measured", {{"rung", rung}, {"size", kSize}}, "tflops");
}

/// Far fewer loads, and hardly faster.
std::optional<Question> fewer_loads_question(const lab::Report& bench) {
  const auto asked = [&](const char* rung) {
    return number_with(bench, "counters", {{"rung", rung}}, "asked_bytes");
  };
  const auto slow = rate(bench, "coalesced"), fast = rate(bench, "shared-tile");
  const auto before = asked("coalesced"), after = asked("shared-tile");
  if (!slow || !fast || !before || !after || *slow <= 0 || *after <= 0) return std::nullopt;
  const double fewer = *before / *after;
  return about_view(
      {"Ladder", "Roofline"}, "fewer-loads",
      ask_ratio(fmt::format("At {0}³ shared-tile requests {1:.0f} times fewer global bytes than "
                            "coalesced. How many times as fast is it?",
                            kSize, fewer),
                *fast / *slow, {fewer, fewer / 4, 2},
                fmt::format("caches already served most of those loads, and each product now waits "
                            "for shared memory ({:.1f} against {:.1f} TFLOP/s, {}).",
                            *fast, *slow, measured::where_measured(bench))));
}

/// Requested bytes are not DRAM traffic.
std::optional<Question> dram_question(const lab::Report& bench) {
  const auto moved = [&](const char* rung) {
    return number_with(bench, "counters", {{"rung", rung}}, "dram_bytes");
  };
  const auto before = moved("coalesced"), after = moved("shared-tile");
  return ask_faster(
      bench, {"Counters", "Roofline"}, "dram-bytes", {after, before, "MB"},
      "How many times as many DRAM bytes as coalesced does shared-tile move at 4096³, as counted?",
      {1.0 / 32, 0.5, 1},
      "L2 serves many requests of both; how many depends on which blocks run together");
}

/// How close the best rung comes to the library, on CUDA cores and on tensor cores.
std::optional<Question> library_question(const lab::Report& bench) {
  const auto share = [&](const char* rung) {
    return number_with(bench, "ladder_measured", {{"rung", rung}, {"size", kSize}}, "fraction");
  };
  const auto fp32 = share("warp-tile"), bf16 = share("tensor-core");
  const auto rates = std::pair{rate(bench, "warp-tile"), rate(bench, "tensor-core")};
  if (!fp32 || !bf16 || !rates.first || !rates.second) return std::nullopt;
  const std::vector<std::string> choices = {"warp-tile, in FP32", "tensor-core, in BF16",
                                            "Equal, within 5 points"};
  const std::size_t is = *fp32 > *bf16 + 0.05 ? 0 : *bf16 > *fp32 + 0.05 ? 1 : 2;
  return about_view(
      {"Ladder", "Roofline", "Shared memory"}, "near-library",
      ask("warp-tile multiplies FP32 on CUDA cores, tensor-core BF16 on tensor cores. Which comes "
          "closer to cuBLAS in its format?",
          choices[is], choices,
          fmt::format("the faster the units, the harder it is to feed them ({} of cuBLAS at {:.0f} "
                      "TFLOP/s, and {} at {:.0f}, {}).",
                      words::percent(*fp32), *rates.first, words::percent(*bf16), *rates.second,
                      measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> TilingScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench,
                  {fewer_loads_question(bench), dram_question(bench), library_question(bench)});
}

std::vector<std::string> TilingScene::stage_knobs() const {
  return {"variant", "tile", "remove_barrier"};
}

}  // namespace tilestep::scenes

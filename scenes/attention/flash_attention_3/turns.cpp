// The point of ping-pong, before anything has run: two warpgroups in step and in turn, on one axis. Product times come
// from a formula; the idle time between them matches the hardware's count for the timed kernels.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/base/lab/recording.hpp"
#include "scenes/attention/flash_attention_3/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using flash_attention_3::Rung;
using words::number;

namespace {

constexpr int kTileQueries = 64, kTileKeys = 128;  ///< of a warpgroup's tile of scores
constexpr double kFlopsACycle = 4096;              ///< of a multiprocessor's tensor cores
constexpr int kDrawnTiles = 3;

/// Busy share of the tensor cores over all cycles of the timed kernel.
std::optional<double> busy_of(std::string_view rung, int head_dim) {
  const lab::Recording* recording = lab::recording("flash-attention-3");
  if (recording == nullptr) return std::nullopt;
  const auto percent =
      number_with(recording->bench, "pipes",
                  {{"rung", rung}, {"head_dim", std::to_string(head_dim)}}, "tensor_pipe");
  return percent && *percent > 0 ? std::optional(*percent / 100) : std::nullopt;
}

/// Cycles of one product of one warpgroup with the tensor cores to itself.
double product_cycles(int head_dim) {
  return 2.0 * kTileQueries * kTileKeys * head_dim / kFlopsACycle;
}

}  // namespace

/// Cycles in which both warpgroups do a tile; nothing without hardware counts.
std::optional<double> FlashAttention3Scene::tile_cycles(bool in_turn) const {
  const auto busy = busy_of(name_of(in_turn ? Rung::ping_pong : Rung::tma), trace_.shape.head_dim);
  if (!busy) return std::nullopt;
  return 4 * product_cycles(trace_.shape.head_dim) / *busy;
}

std::vector<Axis> FlashAttention3Scene::turn_axes() const {
  double high = 1;
  for (const bool in_turn : {false, true}) {
    high = std::max(high, kDrawnTiles * tile_cycles(in_turn).value_or(0));
  }
  return {
      {.name = "cycles", .high = rounded(0, high).second, .title = text("cycles"), .ticks = true},
      {.name = "unit",
       .kind = Axis::band,
       .count = 3,
       .names = {"warpgroup 1", "warpgroup 2", "tensor cores"},
       .least_slot = 3}};
}

/// Two warpgroups and the tensor cores they share, for some tiles in the middle of a long row.
Box FlashAttention3Scene::turns(bool in_turn) const {
  const std::optional<double> tile = tile_cycles(in_turn);
  const double product = product_cycles(trace_.shape.head_dim);
  // In step both products of a kind share the tensor cores.
  const double each = in_turn ? product : 2 * product;
  SpanList list(in_turn ? Name("turn") : Name("step"), "cycles", "unit", "tensor");
  constexpr std::uint8_t kS = tone_of(attention::Tensor::k), kO = tone_of(attention::Tensor::v),
                         kWeighing = 5;
  const auto add = [&](int lane, double begin, double end, const char* name, std::uint8_t tone,
                       State state) {
    const int tensor = tone == kS   ? static_cast<int>(attention::Tensor::k)
                       : tone == kO ? static_cast<int>(attention::Tensor::v)
                                    : -1;
    list.add({lane, begin, end, state, tone, name, tensor, -1, 1});
  };
  struct Product {
    double begin, end;
    bool of_values;
  };
  std::vector<Product> products;
  const double all = kDrawnTiles * tile.value_or(0);
  for (const int group : {0, 1}) {
    // Tiles in the middle of a long row: anything that began earlier is cut off.
    const double early = in_turn && group == 1 ? tile.value_or(0) / 2 : 0;
    const auto part = [&](double begin, double end, const char* name, std::uint8_t tone) {
      begin = std::max(begin, 0.0);
      end = std::min(end, all);
      if (end - begin < 1) return;
      add(group, begin, end, name, tone, State::plain);
      if (tone != kWeighing && (in_turn || group == 0))
        products.push_back({begin, end, tone == kO});
    };
    for (int i = 0; i <= kDrawnTiles && tile; ++i) {
      const double from = i * *tile - early, to = from + *tile;
      part(from, from + each, "S", kS);
      part(from + each, to - each, "softmax", kWeighing);
      part(to - each, to, "PV", kO);
    }
  }
  std::sort(products.begin(), products.end(),
            [](const Product& a, const Product& b) { return a.begin < b.begin; });
  double free = 0;  // start of the tensor cores' idle time
  const auto idle_until = [&](double until) {
    if (until - free >= 1) add(2, free, until, "idle", 0, State::to_come);
  };
  for (const Product& one : products) {
    idle_until(one.begin);
    add(2, one.begin, one.end, one.of_values ? "PV" : "S", one.of_values ? kO : kS, State::plain);
    free = one.end;
  }
  idle_until(all);
  Box made = box(in_turn ? Key{"turn_lanes"} : Key{"step_lanes"}, {}, {},
                 {.least_width = 12, .least_height = 3, .left = 5.4f, .right = 6});
  if (tile) {
    made.marks.emplace_back(lane_end({in_turn ? Name("turn_end") : Name("step_end"), 2}, "cycles",
                                     "unit", all, text(fmt::format("{:.0f} a tile", *tile)), 0, {},
                                     false));
  }
  made.marks.insert(made.marks.begin(), list.made());
  const lab::Recording* recording = lab::recording("flash-attention-3");
  const std::string device = recording == nullptr ? "a GPU" : recording->bench.device.name;
  const char* what = in_turn ? "in turn, flash-3-ping-pong" : "in step, flash-3-tma";
  const std::string busy =
      tile ? words::significant(100 * 4 * product / *tile, 3) + " %" : std::string("not counted");
  return labelled(
      in_turn ? Key{"in_turn"} : Key{"in_step"}, std::move(made),
      text(fmt::format("{}: products by formula; busy as counted on {}, {}", what, device, busy),
           what),
      {});
}

}  // namespace tilestep::scenes

#include "kernels/experts/moe_routing/bench/problem.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <random>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::moe_routing {
namespace {

using numeric::elements_of;

/// Repeats after a prime, so that rows and experts differ.
RandomArray random_array(simt::Device& device, std::size_t count, unsigned seed) {
  constexpr std::size_t kPeriod = 4194301;
  std::mt19937 generator = lab::generator_of(seed);
  return {device, count, lab::uniform_bf16(generator, std::min(count, kPeriod))};
}

}  // namespace

GroupedProblem::GroupedProblem(simt::Device& device, int of_tokens, int of_experts, int of_hidden,
                               int of_width)
    : tokens(of_tokens),
      experts(of_experts),
      hidden(of_hidden),
      width(of_width),
      x(random_array(device, elements_of(of_tokens, of_hidden), 11)),
      weights(random_array(
          device, elements_of(of_experts, of_width) * static_cast<std::size_t>(of_hidden), 12)) {}

namespace {

std::vector<int> order_of(const GroupedLayout& layout, int width, int tile_width) {
  if (layout.scheme != Scheme::packed || tile_width == 0) return {};
  return tails_last(layout, width / tile_width);
}

}  // namespace

LaidOut::LaidOut(simt::Device& device, const GroupedProblem& problem, GroupedLayout layout,
                 int tile_width)
    : problem_(problem),
      layout_(std::move(layout)),
      x_(device,
         layout_.scheme == Scheme::packed ? 0 : elements_of(layout_.slots(), problem.hidden)),
      first_slot_(device, layout_.first_slot),
      first_tile_(device, layout_.first_tile),
      kept_(device, layout_.kept),
      order_(device, order_of(layout_, problem.width, tile_width)),
      y_(device, elements_of(layout_.slots(), problem.width)) {
  assert(layout_.kept_tokens() == problem.tokens);
  if (x_.count() == 0) return;
  x_.fill(0);
  std::size_t token = 0;
  const auto hidden = static_cast<std::size_t>(problem.hidden);
  for (std::size_t e = 0; e < layout_.kept.size(); ++e) {
    const auto kept = static_cast<std::size_t>(layout_.kept[e]);
    if (kept == 0) continue;
    device.copy_on_device(x_.span().data + static_cast<std::size_t>(layout_.first_slot[e]) * hidden,
                          problem.x.span().data + token * hidden,
                          kept * hidden * sizeof(std::uint16_t));
    token += kept;
  }
}

GroupedShape LaidOut::shape() const {
  return {problem_.experts,
          problem_.hidden,
          problem_.width,
          layout_.tile,
          layout_.slots(),
          layout_.scheme,
          0};
}

GroupedArrays LaidOut::arrays() {
  const simt::Span<const std::uint16_t> own = x_.span();
  return {x_.count() == 0 ? problem_.x.span() : own,
          problem_.weights.span(),
          y_.span(),
          first_slot_.span(),
          first_tile_.span(),
          kept_.span(),
          order_.span()};
}

double LaidOut::bytes_of(const GroupedProblem& problem, const GroupedLayout& layout) {
  const int x_bytes = layout.scheme == Scheme::packed ? 0 : 2;
  return static_cast<double>(layout.slots()) * (x_bytes * problem.hidden + 4.0 * problem.width);
}

// ---- correctness --------------------------------------------------------------------------------

namespace {

constexpr int kRowsInAll = 64;  // about; two of each expert at least
constexpr int kElementsOfRow = 6;

/// The rows of an expert that are checked.
std::vector<int> rows_to_look_at(int kept, int experts, std::mt19937& generator) {
  std::vector<int> rows = {0, kept - 1};
  for (int i = 2; i < kRowsInAll / experts; ++i) {
    rows.push_back(static_cast<int>(generator() % static_cast<unsigned>(kept)));
  }
  return rows;
}

lab::Closest compare(simt::Device& device, const GroupedProblem& problem, LaidOut& laid_out,
                     numeric::Adding adding) {
  const auto hidden = static_cast<std::size_t>(problem.hidden);
  const auto width = static_cast<std::size_t>(problem.width);
  const GroupedLayout& layout = laid_out.layout();
  std::mt19937 generator(23);
  std::vector<float> y(width);
  std::size_t first_token = 0;
  lab::Closest closest;
  for (std::size_t e = 0; e < layout.kept.size(); ++e) {
    if (layout.kept[e] == 0) continue;
    for (const int row : rows_to_look_at(layout.kept[e], problem.experts, generator)) {
      const auto slot = static_cast<std::size_t>(layout.first_slot[e] + row);
      device.copy_out(y.data(), laid_out.y().span().data + slot * width, width * sizeof(float));
      for (const float one : y) {
        if (!std::isfinite(one)) closest.add(one, 0, 1);
      }
      const auto x =
          problem.x.values((first_token + static_cast<std::size_t>(row)) * hidden, hidden);
      for (int i = 0; i < kElementsOfRow; ++i) {
        const std::size_t column = i == 0 ? 0 : i == 1 ? width - 1 : generator() % width;
        const auto w = problem.weights.values((e * width + column) * hidden, hidden);
        const numeric::Bounded want = grouped_element(w, x, adding);
        closest.add(y[column], want.value, want.bound);
      }
    }
    first_token += static_cast<std::size_t>(layout.kept[e]);
  }
  return closest;
}

}  // namespace

lab::Runnable runnable(simt::Device& device, const GroupedProblem& problem,
                       std::shared_ptr<LaidOut> laid_out, numeric::Adding adding,
                       std::function<void()> launch) {
  return lab::judged(device, laid_out->y(), std::move(launch),
                     [&device, &problem, laid_out, adding] {
                       return compare(device, problem, *laid_out, adding);
                     });
}

// ---- recorded runs ------------------------------------------------------------------------------

namespace {

/// Gives each tile a lane: the blocks of one multiprocessor that did not overlap share one.
void share_lanes(std::vector<RanTile>& tiles, const std::vector<int>& processor) {
  std::map<int, std::vector<double>> free_at;  // by multiprocessor, by place in it
  std::vector<std::pair<int, std::size_t>> place(tiles.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    std::vector<double>& places = free_at[processor[i]];
    auto free = std::find_if(places.begin(), places.end(),
                             [&](double end_us) { return end_us <= tiles[i].begin_us; });
    if (free == places.end()) free = places.insert(free, 0.0);
    *free = tiles[i].end_us;
    place[i] = {processor[i], static_cast<std::size_t>(free - places.begin())};
  }
  std::map<std::pair<int, std::size_t>, int> lanes;
  for (const auto& one : place) lanes[one] = 0;
  int next = 0;
  for (auto& [key, lane] : lanes) lane = next++;
  for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i].lane = lanes[place[i]];
}

}  // namespace

std::vector<RanTile> record_tiles(simt::Device& device, const Kernels& kernels, int configuration,
                                  LaidOut& laid_out) {
  const Configuration& tile = kernels.configurations()[static_cast<std::size_t>(configuration)];
  const GroupedShape shape = laid_out.shape();
  const GroupedLayout& layout = laid_out.layout();
  const int across = shape.width / tile.tile_width;
  const auto count = elements_of(layout.tiles(), across);
  simt::Trace recording(device, count * kTileEntries);
  constexpr int kWarmups = 5;
  for (int i = 0; i < kWarmups; ++i) {
    kernels.grouped_gemm(device, configuration, shape, laid_out.arrays(), {});
  }
  kernels.grouped_gemm(device, configuration, shape, laid_out.arrays(), recording.tape());
  device.synchronize();
  const std::vector<TileRun> runs = tile_runs(recording, count);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return runs[a].begin < runs[b].begin; });
  std::vector<RanTile> tiles;
  std::vector<int> where;
  for (const std::size_t i : order) {
    const auto us = [&](unsigned long long ns) {
      return static_cast<double>(ns - runs[order.front()].begin) * 1e-3;
    };
    const auto expert = std::upper_bound(layout.first_tile.begin(), layout.first_tile.end(),
                                         static_cast<int>(i) / across) -
                        layout.first_tile.begin() - 1;
    const TileRun& run = runs[i];
    tiles.push_back({run.block, static_cast<int>(expert), us(run.begin), us(run.end)});
    where.push_back(run.processor);
  }
  if (layout.scheme != Scheme::packed) share_lanes(tiles, where);
  std::stable_sort(tiles.begin(), tiles.end(), [](const RanTile& a, const RanTile& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.begin_us < b.begin_us;
  });
  return tiles;
}

double busy_share(const std::vector<RanTile>& tiles) {
  double busy_us = 0;
  double end_us = 0;
  int lanes = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    busy_us += tiles[i].end_us - tiles[i].begin_us;
    end_us = std::max(end_us, tiles[i].end_us);
    lanes += i == 0 || tiles[i].lane != tiles[i - 1].lane ? 1 : 0;
  }
  return lanes > 0 && end_us > 0 ? busy_us / (lanes * end_us) : 0;
}

std::vector<RanTile> runs_of_experts(const std::vector<RanTile>& tiles, std::size_t most) {
  std::vector<RanTile> runs;
  for (const RanTile& tile : tiles) {
    const bool goes_on =
        !runs.empty() && runs.back().lane == tile.lane && runs.back().expert == tile.expert;
    if (goes_on) {
      runs.back().end_us = tile.end_us;
    } else {
      runs.push_back(tile);
    }
  }
  for (int every = 2;; ++every) {
    if (runs.size() <= most) return runs;
    std::vector<RanTile> fewer;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(fewer),
                 [&](const RanTile& run) { return run.lane % every == 0; });
    if (fewer.size() <= most) return fewer;
  }
}

}  // namespace tilestep::moe_routing

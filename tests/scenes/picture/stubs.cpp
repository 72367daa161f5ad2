#include "tests/scenes/picture/stubs.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tilestep::tests {

using namespace picture;

Picture attention_grid(int tiles, int now) {
  constexpr int kTile = 4;
  const int keys = tiles * kTile;
  Cells grid;
  grid.items = items("score", keys * keys);
  grid.items.per_row = grid.columns = keys;
  grid.groups = kTile;
  grid.x = "key";
  grid.items.heat = true;
  std::vector<float>& value = grid.items.value.each;
  std::vector<int> query, key;
  Frame frame{{"tile"}, {}, State::current, text(fmt::format("tile {}", now), "tile")};
  for (int q = 0; q < keys; ++q) {
    for (int k = 0; k < keys; ++k) {
      const int tile = q / kTile * tiles + k / kTile;
      const bool masked = k > q;
      value.push_back(masked || tile > now ? 0.0f : static_cast<float>((q * 7 + k * 3) % 10));
      grid.items.state.each.push_back(masked        ? State::wasted
                                      : tile < now  ? State::done
                                      : tile == now ? State::current
                                                    : State::to_come);
      query.push_back(q);
      key.push_back(k);
      if (tile == now) frame.round.push_back({"score", q, k});
    }
  }
  grid.items.about = {{"query", {0, query}}, {"key", {0, key}}};
  Cells sums;
  sums.items = items("l", std::vector<float>(static_cast<std::size_t>(keys), 1.0f),
                     {Format::significant, 3});
  sums.columns = 1;
  Picture picture;
  picture.headline =
      text(fmt::format("Tile {} of {}: no matrix of scores is ever written.", now, tiles * tiles),
           fmt::format("Tile {}", now));
  picture.axes = {
      {.name = "key", .kind = Axis::band, .count = keys, .group = kTile, .title = text("key")}};
  picture.root =
      row({"attention"}, {box({"scores"}, {grid, frame}), box({"sums"}, {sums}, text("l"))});
  return picture;
}

Picture copy_ring(int stages, int clock) {
  Ring ring;
  ring.stages = items("stage", stages);
  for (int s = 0; s < stages; ++s) {
    const int filled = (clock + stages - 1 - s) / stages, drained = (clock - s) / stages;
    ring.phase.push_back(filled % 2);
    ring.bytes_expected.push_back(filled > drained ? 16384 : 0);
    ring.stages.state.each.push_back(filled > drained ? State::current : State::plain);
  }
  ring.fill = clock % stages;
  ring.drain = clock > 0 ? (clock - 1) % stages : -1;
  Links copies;
  copies.items = items("copy", 1);
  copies.from = {{{"global"}}};
  copies.to = {{{"stage", ring.fill}}};
  Cells global;
  global.items = items("tile", clock + 1);
  for (int t = 0; t <= clock; ++t) {
    global.items.state.each.push_back(t == clock ? State::current : State::done);
    global.items.ways.push_back({});
  }
  const Wall barrier{{"full"}, State::current, false, text("mbarrier: full", "full")};
  Picture picture;
  picture.headline = text(fmt::format("The producer fills stage {}.", ring.fill));
  picture.root =
      column({"pipeline"}, {box({"global"}, {global}, text("global memory", "global")),
                            box({"barrier"}, {barrier}),
                            box({"shared"}, {ring, copies}, text("shared memory", "shared"))});
  return picture;
}

Picture warps_over_time(int warps, int clock) {
  constexpr int kIssue = 2, kWait = 20;
  Spans spans;
  std::vector<int> about;
  for (int w = 0; w < warps; ++w) {
    for (int begin = w * kIssue; begin <= clock;
         begin += std::max(kIssue * warps, kIssue + kWait)) {
      const int issued = std::min(begin + kIssue, clock);
      spans.lane.insert(spans.lane.end(), 2, w);
      spans.begin.insert(spans.begin.end(), {double(begin), double(issued)});
      spans.end.insert(spans.end.end(), {double(issued), double(std::min(issued + kWait, clock))});
      spans.items.state.each.insert(spans.items.state.each.end(), {State::current, State::wasted});
      about.insert(about.end(), 2, w);
    }
  }
  spans.items.name = "span";
  spans.items.count = static_cast<int>(spans.lane.size());
  spans.items.about = {{"warp", {0, about}}};
  spans.items.fold = Fold::share;
  spans.now = clock;
  spans.x = "cycle";
  spans.lanes = "warp";
  Picture picture;
  picture.headline = text(fmt::format("After {} cycles of {} warps.", clock, warps));
  picture.axes = {{.name = "cycle", .high = 200, .title = text("cycle")},
                  {.name = "warp", .kind = Axis::band, .count = warps, .title = text("warp")}};
  picture.root = box({"scheduler"}, {spans, Rule{{"now"}, "cycle", double(clock), State::current}});
  return picture;
}

Picture page_table(int sequences, int written) {
  constexpr int kPage = 16;
  Cells table, pool;
  table.items = items("entry", 0);
  Links maps;
  const int pages = (written + kPage - 1) / kPage;
  for (int s = 0; s < sequences; ++s) {
    for (int p = 0; p < pages; ++p) {
      maps.from.push_back({{"entry", table.items.count}});
      maps.to.push_back({{"page", p * sequences + s}});
      table.items.value.each.push_back(static_cast<float>(p * sequences + s));
      ++table.items.count;
    }
  }
  table.columns = pages;
  table.items.format = {Format::integer};
  maps.items = items("map", table.items.count);
  pool.items = items("page", sequences * pages);
  pool.columns = 8;
  for (int p = 0; p < pool.items.count; ++p) {
    const bool last = p / sequences == pages - 1;
    pool.items.value.each.push_back(float(last ? written - (pages - 1) * kPage : kPage));
    pool.items.state.each.push_back(last ? State::current : State::done);
  }
  pool.items.act = {Act::pick, "page"};
  Picture picture;
  picture.headline = text(fmt::format("{} tokens a sequence in pages of {}.", written, kPage));
  picture.root = row({"cache"}, {box({"table"}, {table, maps}, text("page table", "table")),
                                 box({"pool"}, {pool}, text("pool"))});
  return picture;
}

Picture byte_ledger(int ran) {
  constexpr int kKernels = 3;
  const float bytes[kKernels][2] = {{8, 8}, {8, 8}, {16, 8}};
  Ledger ledger;
  ledger.items = items("bytes", 2 * kKernels);
  ledger.items.format = {Format::bytes, 0, "MB"};
  ledger.columns = {text("read"), text("written", "wr.")};
  std::vector<float> sums;
  for (int k = 0; k < kKernels; ++k) {
    ledger.rows.push_back(text(fmt::format("kernel {}", k), fmt::format("{}", k)));
    for (const float b : bytes[k]) {
      ledger.items.value.each.push_back(k < ran ? b : 0);
      ledger.items.state.each.push_back(k < ran - 1    ? State::done
                                        : k == ran - 1 ? State::current
                                                       : State::to_come);
    }
    sums.push_back(k < ran ? bytes[k][0] + bytes[k][1] : 0);
  }
  Bars bars;
  bars.items = items("moved", sums, {Format::bytes, 0, "MB"});
  bars.x = "kernel";
  bars.y = "bytes";
  const Note note{
      {"fused"}, {{"moved", 0}}, text("One kernel would keep this in registers.", "fuse")};
  Picture picture;
  picture.headline = text(fmt::format("{} of {} kernels have run.", ran, kKernels));
  picture.axes = {{.name = "kernel", .kind = Axis::band, .count = kKernels},
                  {.name = "bytes", .high = 50}};
  picture.root = column({"traffic"}, {box({"ledger"}, {ledger}), box({"chart"}, {bars, note})});
  picture.root.boxes[1].rank = 1;
  return picture;
}

Picture two_gpus(int chunks, int steps) {
  Picture picture;
  picture.headline =
      text(fmt::format("Step {}: each GPU sends a chunk and adds the one it gets.", steps));
  picture.root = row({"ring"}, {});
  for (int gpu = 0; gpu < 2; ++gpu) {
    Cells cells;
    cells.items = items(gpu == 0 ? Name("chunk0") : Name("chunk1"), chunks);
    cells.scale = "chunk";
    for (int c = 0; c < chunks; ++c) {
      const bool arrives = c == (steps + gpu) % chunks;
      cells.items.value.each.push_back(float(1 + (c < steps)));
      cells.items.state.each.push_back(arrives     ? State::current
                                       : c < steps ? State::done
                                                   : State::plain);
      cells.items.ways.push_back(
          arrives ? Way{{gpu == 0 ? Name("chunk1") : Name("chunk0"), c}, {}, gpu, true} : Way{});
    }
    picture.root.boxes.push_back(box({"gpu", gpu}, {cells}, text(fmt::format("GPU {}", gpu))));
  }
  Links link;
  link.items = items("nvlink", 1);
  link.from = {{{"gpu", 0}}};
  link.to = {{{"gpu", 1}}};
  picture.root.boxes.push_back(box({"link"}, {link}, text("NVLink")));
  return picture;
}

}  // namespace tilestep::tests

// The picture of the Hopper lesson: the matrices with the boxes that TMA copies, the accumulators in registers,
// and where the swizzle puts the rows of a stage.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/matmul/hopper_gemm/kernels.hpp"
#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/matmul/hopper_gemm/tile_layout.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using hopper_gemm::What;
using words::counted;

namespace {

constexpr int kRows = kBankRows, kChunks = kBankGroups;  ///< shown in the swizzle view

std::string range(int first, int count) {
  return count <= 1 ? std::to_string(first) : fmt::format("{}–{}", first, first + count - 1);
}

/// Where the chunks of 8 rows are: the row and the chunk for each of 8 lines of 128 bytes and each of the
/// 8 groups of banks in it. Here panels follow each other after 8 rows.
struct Chunk {
  int row = 0, chunk = 0;
};
std::array<Chunk, kRows * kChunks> chunks_with(int swizzle, bool plain = false) {
  const TileLayout layout{kRows, 2, swizzle};
  std::array<Chunk, kRows * kChunks> places{};
  for (int row = 0; row < kRows; ++row) {
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int byte = plain ? layout.plain_byte(row, chunk * 8) : layout.byte(row, chunk * 8);
      places[static_cast<std::size_t>(byte / 16)] = {row, chunk};
    }
  }
  return places;
}

}  // namespace

// ---- the matrices --------------------------------------------------------------------------------

/// A is left of C, and B, which is stored transposed, above it: a cell is one k-tile's share of them.
Box HopperGemmScene::matrices(const HopperMoment& now, int followed) const {
  const float deep = static_cast<float>(k_tiles());
  const auto share = [&](int tiles) {
    return std::clamp(deep / static_cast<float>(2 * std::max(tiles, 1)), 1.0f, 2.2f);
  };
  const Layout left = {.weight = share(trace_.tiles_across),
                       .least_width = 4.5f,
                       .least_height = 1.6f},
               right = {.weight = 1, .least_width = 4.5f, .least_height = 1.6f};
  Layout words = left;
  words.least_height = 3.3f;  // three lines
  const auto with = [](Box of, const Layout& layout) {
    static_cast<Layout&>(of) = layout;
    return of;
  };
  std::vector<Text> said;
  for (const std::string& line : box_lines(followed)) {
    said.push_back(text(line));
  }
  Box corner = box({"box_of"}, {lines("box_line", std::move(said))});
  Box upper =
      row({"upper"}, {with(std::move(corner), words), with(operand(now, followed, false), right)},
          {.weight = 2 * share(trace_.tiles_down)});  // one row per k-tile, with its number
  Box lower =
      row({"lower"}, {with(operand(now, followed, true), left), with(tiles_of_c(now), right)});
  Box made = column({"matrices"}, {std::move(upper), std::move(lower)}, {.weight = 1.4f});
  made.label = text("A, B and C");
  made.place = Place::device_memory;
  return made;
}

/// The row of tiles of A, or of B, that the tile of C needs: the requested ones in their k-tiles' tones.
Box HopperGemmScene::operand(const HopperMoment& now, int followed, bool is_a) const {
  const int down = std::max(trace_.tiles_down, 1), across = std::max(trace_.tiles_across, 1);
  const int rows = is_a ? down : k_tiles(), columns = is_a ? k_tiles() : across;
  const bool any = now.last != nullptr;
  const int in_tile = followed % std::max(k_tiles(), 1),
            of_tile = followed / std::max(k_tiles(), 1);
  const hopper_gemm::BlockTile& at = tile(of_tile);
  Cells grid{items(is_a ? Name("A") : Name("B"), rows * columns)};
  grid.items.per_row = grid.columns = columns;
  grid.x = is_a ? Name("deep") : Name("across");
  grid.y = is_a ? Name("down") : Name("deep");
  grid.items.act = {Act::pick, "k-tile"};
  std::vector<int> numbers;
  for (int i = 0; i < rows * columns; ++i) {
    const int row = i / columns, column = i % columns, deep = is_a ? column : row;
    const bool within = is_a ? row == at.row : column == at.column;
    const int k = of_tile * k_tiles() + deep;
    const bool asked = now.life(k).when(What::copies) != kNever;
    grid.items.state.each.push_back(!within        ? State::plain
                                    : asked && any ? State::plain
                                                   : State::to_come);
    grid.items.tone.each.push_back(within && asked ? now.tone_of(k) : std::uint8_t{0});
    grid.items.names.push_back(within ? std::to_string(k) : "");
    numbers.push_back(within ? k : -1);
  }
  grid.items.about = {{"k-tile", {-1, numbers}}};
  const int extent = is_a ? trace_.m : trace_.n;
  Box made =
      box(is_a ? Key{"matrix_a"} : Key{"matrix_b"}, {grid},
          is_a ? text(fmt::format("A {} × {}, pitch {} B", extent, trace_.k, trace_.k_pitch_bytes),
                      fmt::format("A {} × {}", extent, trace_.k), "A")
               : text(fmt::format("B {} × {}", extent, trace_.k), "B"));
  if (any) {
    const Key here = is_a ? Key{"A", at.row, in_tile} : Key{"B", in_tile, at.column};
    made.marks.emplace_back(Frame{is_a ? Key{"a_box"} : Key{"b_box"}, {here}, State::current});
  }
  return made;
}

/// C's tiles in the order in which the launch computes them, up to the block's.
Box HopperGemmScene::tiles_of_c(const HopperMoment& now) const {
  const int down = std::max(trace_.tiles_down, 1), across = std::max(trace_.tiles_across, 1);
  const int cluster = std::max(trace_.cluster, 1);
  const hopper_gemm::TileOrder order = hopper_gemm::tiles_of(
      {trace_.m, trace_.n, trace_.k}, trace_.rows * cluster, trace_.columns, trace_.raster);
  std::vector<int> number_of(static_cast<std::size_t>(order.count() * cluster), 0);
  for (int n = 0; n < order.count(); ++n) {
    const hopper_gemm::TilePlace place = order.place(n);
    for (int rank = 0; rank < cluster; ++rank) {
      number_of[(place.row * cluster + rank) * across + place.column] = n;
    }
  }
  const hopper_gemm::BlockTile& at = tile(now.tile);
  const auto here = std::min<std::size_t>(at.row * across + at.column, number_of.size() - 1);
  Cells grid{items("C", down * across)};
  grid.items.per_row = grid.columns = across;
  grid.x = "across";
  grid.y = "down";
  std::vector<int> tiles;
  for (int i = 0; i < down * across; ++i) {
    const auto mine = std::find_if(trace_.tiles.begin(), trace_.tiles.end(), [&](const auto& each) {
      return each.row == i / across && each.column == i % across;
    });
    const auto turn = static_cast<int>(mine - trace_.tiles.begin());
    const bool of_block = mine != trace_.tiles.end() && turn <= now.tile;
    const bool begun = number_of[i] <= number_of[here] && now.last != nullptr;
    grid.items.state.each.push_back(of_block && turn == now.tile && now.last ? State::current
                                    : of_block && now.last != nullptr        ? State::done
                                    : begun                                  ? State::plain
                                                                             : State::to_come);
    grid.items.names.push_back(begun ? std::to_string(number_of[i]) : "");
    tiles.push_back(of_block ? turn : -1);
  }
  grid.items.about = {{"tile", {-1, tiles}}};
  Box made = box({"matrix_c"}, {grid}, text(fmt::format("C {} × {}", trace_.m, trace_.n), "C"));
  const int beside = at.row ^ 1;
  if (cluster > 1 && beside < down && now.last != nullptr) {
    made.marks.emplace_back(
        Frame{{"cluster"}, {{"C", at.row, at.column}, {"C", beside, at.column}}});
  }
  return made;
}

/// The boxes of a k-tile in words: the rows requested of A and of B.
std::vector<std::string> HopperGemmScene::box_lines(int k_tile) const {
  const int per_tile = std::max(k_tiles(), 1);
  const hopper_gemm::BlockTile& at = tile(k_tile / per_tile);
  const int k = k_tile % per_tile * trace_.depth;
  return {fmt::format("k-tile {}: k {}", k_tile, range(k, trace_.depth)),
          fmt::format("A rows {}", range(at.row * trace_.rows, trace_.rows)),
          fmt::format("B rows {}", range(at.column * trace_.columns, trace_.columns))};
}

// ---- the sums ------------------------------------------------------------------------------------

/// For each consumer warpgroup: the k-tiles already in its accumulators, and those in flight.
Box HopperGemmScene::sums(const HopperMoment& now) const {
  std::vector<Box> rows;
  bool any_under_way = false;
  for (int c = 0; c < static_cast<int>(now.consumers.size()); ++c) {
    const ConsumerNow& consumer = now.consumers[c];
    any_under_way = any_under_way || !consumer.under_way.empty();
    Cells cells{items("added", k_tiles())};
    cells.x = "added";
    Items& each = cells.items;
    each.name = c == 0 ? Name("added_1") : Name("added_2");
    each.act = {Act::pick, "k-tile"};
    std::vector<int> numbers;
    for (int i = 0; i < k_tiles(); ++i) {
      const int k = consumer.tile * k_tiles() + i;
      const bool issued = now.life(k).when(What::issues, c) != kNever;
      const bool done = issued && now.life(k).when(What::waited, c) != kNever;
      each.ids.push_back(k);
      each.names.push_back(std::to_string(k));
      each.state.each.push_back(done ? State::plain : issued ? State::current : State::to_come);
      each.tone.each.push_back(issued ? now.tone_of(k) : std::uint8_t{0});
      numbers.push_back(k);
    }
    each.about = {{"k-tile", {-1, numbers}}};
    Box made = box({"sums", c}, {cells}, text(this->consumer(c)),
                   {.least_height = 1.1f, .left = 5.4f, .right = 4.8f});
    made.value = text(fmt::format("{} of {}", consumer.added, k_tiles()));
    rows.push_back(std::move(made));
  }
  Box made = column({"sums"}, std::move(rows), {.close = true, .rank = 3, .weight = 0.4f});
  made.place = Place::registers;
  const std::string size = fmt::format("sums, 64 × {} each", trace_.columns);
  made.label = !has_wgmma() || now.lives.empty() ? text(size, "sums")
               : any_under_way ? text(size + ": not readable", "sums: not readable", "sums")
                               : text(size + ": readable", "sums: readable", "sums");
  return made;
}

// ---- the effect of the swizzle -------------------------------------------------------------------

/// A tile of A or of B in a stage.
TileLayout HopperGemmScene::layout_of(bool is_a) const {
  return {is_a ? trace_.rows : trace_.columns, hopper_gemm::element_bytes(trace_.dtype),
          trace_.swizzle};
}

/// Eight rows of a k-tile, plain or as stored in a stage: a line of cells is 128 bytes, a cell 16, in the tone of its
/// four banks. One chunk of each row is framed: those in the same group of banks take turns.
Box HopperGemmScene::rows_in_banks(int chunk, bool plain) const {
  const int swizzle = plain ? kDepthBytes : trace_.swizzle;
  const auto places = chunks_with(swizzle, plain);
  Cells grid{items(plain ? Name("plain_chunk") : Name("chunk"), kRows * kChunks)};
  grid.columns = kChunks;
  grid.x = plain ? Name("plain_bank") : Name("bank");
  grid.y = plain ? Name("row") : Name("line");
  std::vector<int> banks;
  for (int at = 0; at < kRows * kChunks; ++at) {
    const bool framed = places[static_cast<std::size_t>(at)].chunk == chunk;
    grid.items.names.push_back(std::to_string(places[static_cast<std::size_t>(at)].chunk));
    grid.items.state.each.push_back(framed ? State::plain : State::to_come);
    grid.items.flags.each.push_back(framed ? kPicked : kNone);
    banks.push_back(at % kChunks);
    grid.items.tone.each.push_back(category_tone(banks.back()));
  }
  grid.items.about = {{"banks", {-1, banks}}};
  if (!plain) grid.items.act = {Act::pick, "place"};
  const TileLayout rows{trace_.rows, hopper_gemm::element_bytes(trace_.dtype), swizzle};
  const std::string turns = counted(turns_of(rows, chunk, !plain).turns(), "turn");
  const std::string how = plain          ? std::string("plain rows")
                          : swizzle == 0 ? std::string("boxes of 16 B")
                                         : fmt::format("swizzle of {} B", swizzle);
  return labelled(
      plain ? Key{"plain"} : Key{"swizzled"},
      {box({plain ? Name("plain_turns") : Name("swizzled_turns")},
           {lines(plain ? Name("plain_turn") : Name("swizzled_turn"), {text(turns)}, Lines::large)},
           {}, {.weight = 0, .least_height = 1.5f}),
       box({plain ? Name("plain_rows") : Name("swizzled_rows")}, {grid}, {},
           {.least_width = 5, .least_height = 5.4f})},
      text(how), {.close = true});
}

/// The same rows before and after, side by side.
Box HopperGemmScene::swizzle(const View& view) const {
  const int place = std::clamp(view.pick("place", 0), 0, kRows * kChunks - 1);
  const int chunk = chunks_with(trace_.swizzle)[static_cast<std::size_t>(place)].chunk;
  Box made =
      row({"swizzle"}, {rows_in_banks(chunk, true), rows_in_banks(chunk, false)}, {.rank = 6});
  made.label = text("A in a stage: " + layout_of(true).text(), "swizzle");
  return made;
}

/// The wrong 8 × 8 parts of the block's first tile.
Box HopperGemmScene::fragments() const {
  Cells grid{items("fragment", static_cast<int>(trace_.wrong.size()))};
  grid.columns = std::max(trace_.columns / 8, 1);
  grid.x = "part_across";
  grid.y = "part_down";
  grid.items.format = {Format::integer};
  int wrong = 0;
  for (const int count : trace_.wrong) {
    wrong += count > 0 ? 1 : 0;
    grid.items.value.each.push_back(count > 0 ? static_cast<float>(count) : NAN);
    grid.items.state.each.push_back(count > 0 ? State::wrong : State::plain);
  }
  const hopper_gemm::Broken& what = trace_.broken;
  std::string report = what.report;
  if (const std::size_t colon = report.find(": "); colon != std::string::npos) {
    report = report.substr(colon + 2);
  }
  Box made =
      row({"fragments"},
          {box({"parts"}, {grid}, {}, {.least_width = 6, .least_height = 7}),
           box({"named"}, {lines("named_line", {text(report.empty() ? what.where : report)})}, {},
               {.weight = 0.3f, .least_width = 7, .least_height = 3})},
          {.rank = 6});
  made.label = text(fmt::format("the tile of C: wrong elements in {} of {} parts of 8 × 8 = 64",
                                wrong, trace_.wrong.size()),
                    fmt::format("{} parts wrong", wrong));
  return made;
}

// ---- what hovering shows -------------------------------------------------------------------------

std::string HopperGemmScene::explain_tiles(const HopperMoment& now, const Key& key) const {
  if (key.is({"added_1", "added_2"})) return explain_k_tile(now, key.i);
  if (key.is({"chunk"})) return explain_chunk(key.i);
  if (key.is({"A", "B"})) {
    const bool is_a = key.is({"A"});
    const int rows = is_a ? trace_.rows : trace_.columns, all = is_a ? trace_.m : trace_.n;
    const int row = (is_a ? key.i : key.j) * rows, first = (is_a ? key.j : key.i) * trace_.depth;
    std::string said = fmt::format("{}: rows {}, k {}", is_a ? "A" : "B", range(row, rows),
                                   range(first, trace_.depth));
    if (row + rows > all || first + trace_.depth > trace_.k) said += "\nzeros outside the matrix";
    if (!is_a && trace_.cluster > 1) said += "\neach block of the cluster fetches a half";
    return said;
  }
  if (key.is({"C"})) {
    return fmt::format("tile of C: rows {}, columns {}", range(key.i * trace_.rows, trace_.rows),
                       range(key.j * trace_.columns, trace_.columns));
  }
  if (key.is({"cluster"})) return "two blocks, one cluster: they share their columns of B";
  if (key.is({"fragment"}) && key.i >= 0 && key.i < std::ssize(trace_.wrong)) {
    const int across = std::max(trace_.columns / 8, 1);
    return fmt::format("rows {}, columns {} of the tile: {} of 64 wrong",
                       range(key.i / across * 8, 8), range(key.i % across * 8, 8),
                       trace_.wrong[key.i]);
  }
  return {};
}

/// From the coordinate over the layout to byte and banks.
std::string HopperGemmScene::explain_chunk(int place) const {
  if (place < 0 || place >= kRows * kChunks) return {};
  const Chunk at = chunks_with(trace_.swizzle)[static_cast<std::size_t>(place)];
  const TileLayout layout = layout_of(true);
  const int each = 16 / layout.element_bytes, k = at.chunk * each, byte = layout.byte(at.row, k);
  return fmt::format("{}\nrow {}, k {} of A in a stage\nbyte {}, plain {}\nbanks {}", layout.text(),
                     at.row, range(k, each), byte, layout.plain_byte(at.row, k),
                     range(TileLayout::group(byte) * 4, 4));
}

}  // namespace tilestep::scenes

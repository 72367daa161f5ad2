#include "scenes/attention/shared/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using attention::LedgerRow, attention::Tensor, attention::TileKind, attention::TileVisit;

namespace {

constexpr int kMostNumbered = 24;       ///< tiles with room for their numbers
constexpr float kBytes = 8.8f;          ///< margin for bytes, in heights of a line
constexpr std::size_t kShortNote = 45;  ///< characters of a note that fit on a line

}  // namespace

std::string bytes_text(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  constexpr const char* kUnits[] = {"KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  double shown = bytes / 1e3;
  for (; shown >= 999.5 && unit + 1 < std::size(kUnits); ++unit) shown /= 1e3;
  return fmt::format("{:.{}f} {}", shown, shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string rows_of(const attention::Matrix& trace, int tile, bool of_queries) {
  const int size = of_queries ? trace.plan.block_q : trace.plan.block_k;
  const int first = tile * size, last = std::min(first + size, trace.shape.length) - 1;
  return first == last ? std::to_string(first) : fmt::format("{}–{}", first, last);
}

// ---- axes and strips ----------------------------------------------------------------------------------

Axis band_axis(Name name, int count) {
  return {.name = name, .kind = Axis::band, .count = count, .align = 0.5f, .least_slot = 0};
}

Axis keys_axis(const attention::Matrix& trace) {
  Axis keys = band_axis("k", trace.plan.k_tiles);
  keys.ticks = trace.plan.k_tiles > kMostNumbered;
  return keys;
}

double most_bytes(const attention::Matrix& trace) {
  double most = 1;
  for (const LedgerRow& row : trace.ledger) {
    most = std::max(most, static_cast<double>(row.formula_loaded + row.formula_stored));
    most = std::max(most, static_cast<double>(row.loaded + row.stored));
  }
  return most;
}

void of_tensor(Items& items, Tensor tensor) {
  items.about.emplace_back(Name("tensor"), Column<int>{static_cast<int>(tensor)});
  items.tone.all = tone_of(tensor);
}

void hatch_filled(const attention::Matrix& trace, Cells& cells, bool upright) {
  const int all = trace.shape.columns, used = trace.shape.head_dim;
  if (all == used) return;
  const int chunks = all / kChunk, tiles = cells.items.count;
  const Items whole = cells.items;
  cells.items.count = tiles * chunks;
  cells.items.per_row = upright ? tiles : chunks;
  cells.columns = cells.items.per_row;
  cells.items.state.each.clear();
  cells.items.glyph.each.clear();
  cells.items.names.clear();
  for (int i = 0; i < cells.items.count; ++i) {
    const int tile = upright ? i % tiles : i / chunks, chunk = upright ? i / tiles : i % chunks;
    const bool hollow = !whole.glyph.each.empty() && whole.glyph.each[tile] == kHollow;
    const bool filled = chunk * kChunk >= used && !hollow;
    cells.items.state.each.push_back(filled ? State::wasted : whole.state.each[tile]);
    cells.items.glyph.each.push_back(hollow ? kHollow : kSolid);
  }
}

Box in_device_memory(const attention::Matrix& trace, const char* tensors, std::vector<Box> rows) {
  return labelled({"device_memory"}, std::move(rows),
                  text(fmt::format("{} of head {}", tensors, trace.chosen.head), tensors),
                  {.place = Place::device_memory});
}

Cells score_cells(const attention::Matrix& trace, const std::function<TileFate(int, int)>& fate) {
  const int across = trace.plan.k_tiles;
  Cells grid{items("S", trace.plan.q_tiles * across)};
  grid.items.per_row = grid.columns = across;
  grid.x = "k";
  grid.y = "q";
  grid.items.act = {Act::go};
  std::vector<int> steps;
  for (int i = 0; i < grid.items.count; ++i) {
    const int q = i / across, k = i % across;
    const TileVisit& visit = trace.visits[static_cast<std::size_t>(i)];
    const TileFate tile = fate(q, k);
    grid.items.state.each.push_back(tile == TileFate::now       ? State::current
                                    : tile <= TileFate::to_come ? State::to_come
                                                                : State::done);
    grid.items.glyph.each.push_back(tile == TileFate::never || tile == TileFate::gone ? kHollow
                                    : visit.kind == TileKind::partial                 ? kStriped
                                                                                      : kSolid);
    grid.items.names.push_back(visit.order < 0 ? "" : std::to_string(visit.order));
    steps.push_back(q == trace.chosen.q_tile ? k : -1);
  }
  grid.items.about = {{Name("k_tile"), Column<int>{-1, std::move(steps)}}};
  return grid;
}

bool is_tile(const attention::Matrix& trace, const Key& key) {
  return key.is({"S"}) && key.i >= 0 && key.j >= 0 && key.i < trace.plan.q_tiles &&
         key.j < trace.plan.k_tiles;
}

std::string explain_tile(const attention::Matrix& trace, int q, int k) {
  const TileVisit& visit = trace.visit(q, k);
  std::string said =
      fmt::format("queries {} × keys {}\n", rows_of(trace, q, true), rows_of(trace, k, false));
  said += visit.kind == TileKind::full ? "full: every query sees every key, no score is checked"
          : visit.kind == TileKind::partial ? "partial: each score is checked against the mask"
          : visit.order < 0                 ? "skipped: never fetched, never multiplied"
                                            : "fully masked, computed anyway";
  if (visit.order < 0) return said;
  return said + fmt::format("\nblock {}, its tile number {}", visit.block, visit.order);
}

Box legend(const attention::Matrix& trace, bool begun, const char* skipped, std::uint8_t glyph,
           int rank) {
  std::array<int, 3> counts{};
  for (const TileVisit& visit : trace.visits) ++counts[static_cast<std::size_t>(visit.kind)];
  Cells cells{items("kind", 3)};
  cells.x = "kind";
  // The counts are asked for before the first step.
  const char* const kWords[] = {skipped, "partial", "full"};
  for (const int kind : {2, 1, 0}) {
    std::string name = kWords[kind];
    if (begun) name += fmt::format(" {}", counts[static_cast<std::size_t>(kind)]);
    cells.items.names.push_back(std::move(name));
  }
  const bool stored = glyph != kHollow;
  const State state = stored ? State::done : State::to_come;
  cells.items.state.each = {state, state, stored && counts[0] > 0 ? State::wasted : State::to_come};
  cells.items.glyph.each = {kSolid, kStriped, glyph};
  return box({"legend"}, {std::move(cells)}, {},
             {.rank = rank, .weight = 0, .least_width = 12, .least_height = 1});
}

std::string explain_kind(int kind) {
  constexpr const char* kWords[] = {"every query of the tile sees every key: no masking code runs",
                                    "some scores are masked: each is checked",
                                    "no query sees any key"};
  return kWords[std::clamp(kind, 0, 2)];
}

// ---- bytes --------------------------------------------------------------------------------------------

namespace {

/// "Q", "m, ℓ", "dQ dK dV".
std::string group_name(const std::vector<const LedgerRow*>& group) {
  std::string name;
  for (const LedgerRow* row : group) {
    if (!name.empty()) name += ' ';
    name += row->tensor == Tensor::m_l ? "m, ℓ" : std::string(name_of(row->tensor));
  }
  return name;
}

/// "106 / 147 KB": one unit where both have the same.
std::string of_formula(double bytes, double formula) {
  const std::string now = bytes_text(bytes), all = bytes_text(formula);
  const std::size_t space = now.find(' ');
  const bool same = all.substr(all.find(' ')) == now.substr(space);
  return fmt::format("{} / {}", same ? now.substr(0, space) : now, all);
}

std::string explain_bytes(const LedgerRow& row, const Bytes& so_far, bool through) {
  const auto both = [](double loaded, double stored) {
    return fmt::format("loaded {}, stored {}", bytes_text(loaded), bytes_text(stored));
  };
  std::string said = fmt::format(
      "{}: {} so far{}\nformula {}\nwhole problem {}; {} of memory held", name_of(row.tensor),
      both(so_far.loaded, so_far.stored),
      through ? " (traced)" : " (traced bytes × share of tiles done)",
      both(static_cast<double>(row.formula_loaded), static_cast<double>(row.formula_stored)),
      both(static_cast<double>(row.whole_loaded), static_cast<double>(row.whole_stored)),
      bytes_text(static_cast<double>(row.held)));
  if (row.kept > 0) said += ", since the forward pass";
  return said;
}

}  // namespace

Box ledger_box(const LedgerGroups& groups, const BytesByNow& by_now, std::string_view who,
               float left, const LedgerRow* wrong) {
  std::vector<Box> rows;
  for (const std::vector<const LedgerRow*>& group : groups) {
    double bytes = 0, formula = 0;
    for (const LedgerRow* each : group) {
      const Bytes so_far = by_now(*each);
      bytes += so_far.loaded + so_far.stored;
      formula += static_cast<double>(each->formula_loaded + each->formula_stored);
    }
    const LedgerRow& row = *group.front();
    const int tensor = static_cast<int>(row.tensor);
    const auto bar = [&](Name name, double value) {
      Bars made{items(name, std::vector{static_cast<float>(value)}), "bytes", "one"};
      made.items.ids = {tensor};
      made.items.about = {{Name("tensor"), {tensor}}};
      return made;
    };
    Bars outline = bar("formula_bytes", formula), filled = bar("asked_bytes", bytes);
    outline.items.flags.all = kWas;
    filled.items.tone.all = tone_of(row.tensor);
    filled.items.state.all = &row == wrong && bytes > 0 ? State::wrong : State::plain;
    Box made =
        box({"tensor", tensor}, {std::move(outline), std::move(filled)}, text(group_name(group)),
            {.least_height = 0.86f, .most_height = 1.5f, .left = left, .right = kBytes});
    made.value = text(of_formula(bytes, formula), bytes_text(bytes));
    rows.push_back(std::move(made));
  }
  return labelled({"ledger"}, std::move(rows),
                  text(fmt::format("bytes requested by {}: so far / formula", who),
                       "bytes requested: so far / formula", "bytes requested"),
                  {.close = true, .rank = 3, .weight = 0.6f});
}

std::string explain_ledger(const LedgerGroups& groups, const BytesByNow& by_now, const Key& key,
                           bool through) {
  std::string said;
  for (const std::vector<const LedgerRow*>& group : groups) {
    if (static_cast<int>(group.front()->tensor) != key.i) continue;
    for (const LedgerRow* each : group) {
      if (!said.empty()) said += '\n';
      said += explain_bytes(*each, by_now(*each), through);
    }
  }
  return said;
}

// ---- lines --------------------------------------------------------------------------------------------

std::vector<Text> formula_texts(const std::vector<std::string>& rows,
                                const std::vector<Symbol>& symbols) {
  std::vector<Text> texts;
  for (const std::string& row : rows) {
    const std::size_t first = row.find('='), last = row.rfind('=');
    texts.push_back(text(row, first == last ? row.substr(0, row.find("   "))
                                            : row.substr(0, first) + row.substr(last)));
    texts.back().full = marked(row, symbols);
  }
  return texts;
}

Box notes_box(const attention::Matrix& trace, const Text& result, std::vector<std::string> lines,
              bool tight) {
  std::vector<Text> rows;
  std::vector<State> states;
  if (!result.full.empty()) {
    rows.push_back(result);
    states.push_back(trace.result.wrong > 0 ? State::wrong : State::plain);
  }
  for (std::string& line : lines) {
    rows.push_back(text(std::move(line)));
    states.push_back(State::plain);
  }
  // Where space is tight, a line that does not wrap gets no more than it needs.
  float height = 0;
  for (const Text& each : rows) {
    height += !tight ? 1.9f : plain(each.full).size() > kShortNote ? 2.4f : 1.3f;
  }
  Lines made = picture::lines("note", std::move(rows));
  made.items.state.each = std::move(states);
  return box({"notes"}, {std::move(made)}, {},
             {.weight = 0.1f, .least_width = 12, .least_height = height});
}

}  // namespace tilestep::scenes

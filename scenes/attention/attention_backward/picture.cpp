// The picture of a backward pass: input strips and growing gradients, the chosen query's row, and bytes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/attention_backward/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using attention::LedgerRow, attention::Tensor, attention::TileKind, attention::TileVisit;
using words::counted, words::number;

namespace {

constexpr float kLetters = 4.8f;  ///< margin for the names of several tensors, in line heights
constexpr float kTotals = 4.2f;
constexpr int kMatrices = 7;  ///< of weights and the like, moved by a pass that keeps them
constexpr Layout kQueries = {.weight = 0.05f, .least_width = 1.9f, .least_height = 3.1f};
constexpr Layout kColumn = {.weight = 1, .least_width = 8, .least_height = 0.76f};
constexpr Layout kRow = {.weight = 0.05f, .least_width = 2.3f, .least_height = 3.1f};
constexpr Layout kRight = {.weight = 0.08f, .least_width = 2.3f, .least_height = 3.1f};

/// "+ 0.25", "− 0.25".
std::string signed_text(double value, int digits) {
  return fmt::format("{} {}", value < 0 ? "−" : "+", number(std::abs(value), digits));
}

}  // namespace

// ---- where things stand -----------------------------------------------------------------------------

Extent AttentionBackwardScene::extent() const {
  const auto line = [](Name name, std::pair<double, double> ends) {
    return Axis{.name = name, .low = ends.first, .high = ends.second};
  };
  double lowest = 0, highest = 0, bytes = 0;
  for (const LedgerRow& row : trace_.ledger) {
    bytes += std::max(static_cast<double>(row.formula_loaded + row.formula_stored),
                      static_cast<double>(row.loaded + row.stored));
  }
  for (const float value : trace_.row.ds) {
    if (!std::isfinite(value)) continue;
    lowest = std::min<double>(lowest, value);
    highest = std::max<double>(highest, value);
  }
  return {{keys_axis(trace_),
           band_axis("q", trace_.plan.q_tiles),
           band_axis("kind", 3),
           line("bytes", rounded(0, most_bytes(trace_))),
           band_axis("one", 1),
           band_axis("key", trace_.shape.length),
           line("weight", {0, most_weight()}),
           line("ds", rounded(lowest, highest)),
           {.name = "pass", .kind = Axis::band, .count = 2, .names = {"recomputed", "kept"}},
           {.name = "total",
            .high = rounded(0, std::max(bytes_of_weights(), bytes) / 1000).second,
            .title = text("KB"),
            .ticks = true}}};
}

double AttentionBackwardScene::most_weight() const {
  double heaviest = 0;
  for (const float weight : trace_.row.p) {
    if (std::isfinite(weight)) heaviest = std::max<double>(heaviest, weight);
  }
  return rounded(0, heaviest).second;
}

Picture AttentionBackwardScene::picture(const Extent& extent, const View& view) const {
  const BackwardMoment now = moment(view.cursor);
  std::vector<Box> beside = {
      row_box(now), ledger_box(
                        ledger_groups(), [&](const LedgerRow& row) { return asked_by(now, row); },
                        "the backward pass", kLetters)};
  beside.push_back(passes(now));
  add_masks(beside, trace_);
  const std::vector<std::string> notes = dispatch_notes(trace_);
  if (!notes.empty() || judged(now)) {
    beside.push_back(
        notes_box(trace_, judged(now) ? result_sentence_of(trace_, true) : Text(), notes, true));
  }
  Box right = column({"beside"}, std::move(beside), {.rank = 1, .weight = 0.85f});
  return {{marked(sentence(now), symbols(view)), {{brief(now)}}},
          extent.axes,
          row({"all"}, {strips(now), std::move(right)}),
          {"scores", "weights_row", "gradient_row", "formulas"}};
}

// ---- the matrix, and what stands round it -----------------------------------------------------------

Box AttentionBackwardScene::strips(const BackwardMoment& now) const {
  int corners = 0;
  const auto beside = [&](Name name, const char* letter, Box middle) {
    const auto corner = [&](const Layout& layout, std::vector<Mark> marks = {}) {
      return box({"corner", corners++}, std::move(marks), {}, low(layout));
    };
    // The letter is next to its strip.
    return std::vector<Box>{corner(kQueries), corner(kRow, {lines(name, {text(letter)})}),
                            std::move(middle), corner(kRight)};
  };
  // Four flat strips leave their space to the matrix.
  constexpr Layout kFlat = {.weight = 0.03f};
  return column({"strips"},
                {in_device_memory(
                     trace_, "inputs and gradients",
                     {row({"above"}, beside("name_k", "K", of_keys(now, Tensor::k)), kFlat),
                      row({"above", 1}, beside("name_v", "V", of_keys(now, Tensor::v)), kFlat),
                      row({"across"}, {queries(now, false), queries(now, true), scores(now),
                                       query_gradients(now)}),
                      row({"below"}, beside("name_dk", "dK", of_keys(now, Tensor::dk)), kFlat),
                      row({"below", 1}, beside("name_dv", "dV", of_keys(now, Tensor::dv)), kFlat)}),
                 legend(trace_, now.step > 0, "skipped", kHollow, 5)});
}

Box AttentionBackwardScene::scores(const BackwardMoment& now) const {
  Cells grid = score_cells(trace_, [&](int q, int k) { return fate(now, q, k); });
  // As tall as wide, or somewhat wider, if the tiles are square; otherwise each side uses all of its space.
  if (trace_.plan.q_tiles == trace_.plan.k_tiles) grid.scale = "tile";
  grid.widest = 5;
  Box made = box({"scores"}, {std::move(grid)}, text("P: queries × keys", "P"),
                 {.weight = 1, .least_width = 8, .place = Place::registers});
  made.least_height = std::clamp(0.38f * static_cast<float>(trace_.plan.q_tiles), 3.1f, 6.8f);
  if (now.now == nullptr || now.through) return made;
  const int q = trace_.chosen.q_tile, k = now.now->k_tile;
  const bool chunks = trace_.shape.columns != trace_.shape.head_dim;
  made.marks.emplace_back(Frame{{"row"}, {chunks ? Key{"Q", q, 0} : Key{"Q", q}, Key{"dQ", q}}});
  made.marks.emplace_back(Frame{{"column"}, {chunks ? Key{"K", 0, k} : Key{"K", k}, Key{"dV", k}}});
  return made;
}

// ---- strips -------------------------------------------------------------------------------------------

/// Q, or dO beside it.
Box AttentionBackwardScene::queries(const BackwardMoment& now, bool gradients) const {
  Cells strip{items(gradients ? Name("dO") : Name("Q"), trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  of_tensor(strip.items, gradients ? Tensor::d_o : Tensor::q);
  if (!gradients) strip.items.act = {Act::set, "query"};
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const bool chosen = q == trace_.chosen.q_tile && now.step > 0 && !now.through;
    strip.items.state.each.push_back(chosen              ? State::current
                                     : now.through       ? State::done
                                     : row_begun(now, q) ? State::plain
                                                         : State::to_come);
    if (!gradients) strip.items.names.push_back(std::to_string(q));
  }
  if (gradients) return box({"output_gradients"}, {std::move(strip)}, text("dO"), kRow);
  hatch_filled(trace_, strip, false);
  return box({"queries"}, {std::move(strip)}, text("Q"), kQueries);
}

/// How many blocks have added to each tile of dQ.
Box AttentionBackwardScene::query_gradients(const BackwardMoment& now) const {
  Cells strip{items("dQ", trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  of_tensor(strip.items, Tensor::dq);
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    int added = 0;
    for (int k = 0; k < trace_.plan.k_tiles; ++k) {
      const TileFate tile = fate(now, q, k);
      added += tile == TileFate::gone || (tile == TileFate::now && now.phase == BackwardPhase::sums)
                   ? 1
                   : 0;
    }
    const int wrong = judged(now) ? trace_.wrong[static_cast<std::size_t>(q)] : 0;
    const bool works =
        q == trace_.chosen.q_tile && !now.through && now.phase == BackwardPhase::sums;
    strip.items.state.each.push_back(wrong > 0     ? State::wrong
                                     : works       ? State::current
                                     : now.through ? State::plain
                                     : added > 0   ? State::done
                                                   : State::to_come);
    strip.items.names.push_back(wrong > 0   ? std::to_string(wrong)
                                : added > 0 ? fmt::format("{}×", added)
                                            : "");
  }
  return box({"outputs"}, {std::move(strip)}, text("dQ"), kRight);
}

/// K, V, dK or dV: a block has a tile of each.
Box AttentionBackwardScene::of_keys(const BackwardMoment& now, Tensor tensor) const {
  const bool is_sum = tensor == Tensor::dk || tensor == Tensor::dv;
  const Name name = tensor == Tensor::k    ? Name("K")
                    : tensor == Tensor::v  ? Name("V")
                    : tensor == Tensor::dk ? Name("dK")
                                           : Name("dV");
  Cells strip{items(name, trace_.plan.k_tiles)};
  strip.x = "k";
  of_tensor(strip.items, tensor);
  // The phase in which it is at work.
  const bool works = is_sum ? now.phase == BackwardPhase::sums
                     : tensor == Tensor::v
                         ? now.phase == BackwardPhase::gradients
                         : now.phase == BackwardPhase::weights || now.phase == BackwardPhase::sums;
  const std::vector<int>& wrong = tensor == Tensor::dk ? trace_.wrong_dk : trace_.wrong_dv;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    bool ever = false;
    for (int q = 0; q < trace_.plan.q_tiles; ++q) ever = ever || trace_.visit(q, k).order >= 0;
    const int bad = is_sum && judged(now) ? wrong[static_cast<std::size_t>(k)] : 0;
    const bool here = now.now != nullptr && !now.through && now.now->k_tile == k;
    const bool begun = column_begun(now, k), through = column_through(now, k);
    strip.items.state.each.push_back(bad > 0         ? State::wrong
                                     : here && works ? State::current
                                     : !ever         ? State::to_come
                                     : through       ? is_sum ? State::plain : State::done
                                     : !begun        ? State::to_come
                                     : is_sum        ? State::done
                                                     : State::plain);
    // Until they are written the sums are in registers.
    strip.items.glyph.each.push_back(!ever || (is_sum && begun && !through) ? kHollow : kSolid);
    strip.items.names.push_back(bad > 0                       ? std::to_string(bad)
                                : tensor == Tensor::k && ever ? std::to_string(k)
                                                              : "");
  }
  if (!is_sum) hatch_filled(trace_, strip, true);
  const Key key = tensor == Tensor::k    ? Key{"keys"}
                  : tensor == Tensor::v  ? Key{"values"}
                  : tensor == Tensor::dk ? Key{"key_gradients"}
                                         : Key{"value_gradients"};
  return box(key, {std::move(strip)}, {}, kColumn);
}

// ---- the chosen query -----------------------------------------------------------------------------------

/// P or dS of each key.
Box AttentionBackwardScene::bars(const BackwardMoment& now, bool weights) const {
  std::vector<float> values = weights ? trace_.row.p : trace_.row.ds;
  std::vector<State> states;
  const int size = trace_.plan.block_k;
  for (int key = 0; key < static_cast<int>(values.size()); ++key) {
    const bool known = key_known(now, key, weights);
    if (!known) values[static_cast<std::size_t>(key)] = 0;
    const bool fresh = !now.through && now.now != nullptr && key / size == now.now->k_tile;
    states.push_back(!known ? State::to_come : fresh ? State::current : State::plain);
  }
  const Name name = weights ? Name("P") : Name("dS");
  Bars made{items(name, std::move(values)), "key", weights ? Name("weight") : Name("ds")};
  made.items.about = {{"key", {0, numbers(made.items.count)}}};
  made.items.state.each = std::move(states);
  return box(weights ? Key{"weights_row"} : Key{"gradient_row"}, {std::move(made)},
             text(weights ? "P" : "dS"),
             {.rank = 4, .weight = 0.6f, .least_width = 14, .least_height = 1.5f, .left = 2.2f});
}

std::vector<std::string> AttentionBackwardScene::formulas(const BackwardMoment& now) const {
  const std::string c = std::to_string(trace_.chosen.component);
  const std::optional<int> key = heaviest_key(now);
  if (!key) {
    const bool none = now.now != nullptr;
    return {none ? "P = 0   (masked)" : "P = exp(s − lse)", none ? "dP = …" : "dP = dO · v",
            none ? "dS = 0" : "dS = P (dP − D)", none ? "dQ = as it was" : "dQ = 0"};
  }
  const attention_backward::BackwardRow& row = trace_.row;
  const auto at = static_cast<std::size_t>(*key);
  const auto text = [](float value, int digits) {
    return number(static_cast<double>(value), digits);
  };
  const std::string p = text(row.p[at], 3), dp = text(row.dp[at], 2), ds = text(row.ds[at], 3);
  const auto [before, after] = sums_of_dq(now);
  std::vector<std::string> rows = {
      fmt::format("P[{}] = exp(s − {}) = {}", *key, text(row.lse, 2), p),
      fmt::format("dP[{}] = dO · V[{}] = {}", *key, *key, dp),
      fmt::format("dS = P ({} {}) = {}", dp, signed_text(-static_cast<double>(row.d), 2), ds),
      fmt::format("dQ[{}] = {} {} = {}", c, number(before, 4), signed_text(after - before, 4),
                  number(after, 4))};
  // Later values are named, not given away.
  const std::size_t known = now.phase == BackwardPhase::weights     ? 1
                            : now.phase == BackwardPhase::gradients ? 3
                                                                    : 4;
  for (std::size_t i = known; i < rows.size(); ++i) {
    rows[i] = rows[i].substr(0, rows[i].find('=') + 1) + " …";
  }
  return rows;
}

Box AttentionBackwardScene::row_box(const BackwardMoment& now) const {
  Lines made = lines("formula", formula_texts(formulas(now), symbols({})), Lines::formula);
  made.items.about = {{"d", {-1, {-1, -1, 0, -1}}},
                      {"tensor", {-1, {-1, -1, -1, static_cast<int>(Tensor::dq)}}}};
  const int first = now.phase == BackwardPhase::weights     ? 0
                    : now.phase == BackwardPhase::gradients ? 1
                                                            : 3;
  const int last = now.phase == BackwardPhase::weights ? 0 : std::max(first, 2);
  for (int row = 0; row < made.items.count; ++row) {
    const bool current = !now.through && row >= first && row <= last;
    made.items.state.each.push_back(now.now == nullptr           ? State::to_come
                                    : current                    ? State::current
                                    : row < first || now.through ? State::done
                                                                 : State::to_come);
  }
  Box lines_box = box({"formulas"}, {std::move(made)}, {},
                      {.weight = 1, .least_width = 14, .least_height = 4.6f, .most_height = 5.4f});
  Box all = column({"chosen"}, {bars(now, true), bars(now, false), std::move(lines_box)},
                   {.rank = 2, .weight = 0.6f});
  const std::string label = chosen_words(trace_, now.now == nullptr ? -1 : now.now->k_tile);
  all.label =
      text(label + ": weights P recomputed", label, fmt::format("query {}", trace_.chosen.query));
  return all;
}

LedgerGroups AttentionBackwardScene::ledger_groups() const {
  // One bar each would be too many.
  constexpr Tensor kGroups[][3] = {{Tensor::q, Tensor::k, Tensor::v},
                                   {Tensor::o, Tensor::d_o, Tensor::d_o},
                                   {Tensor::lse, Tensor::d, Tensor::d},
                                   {Tensor::dq, Tensor::dk, Tensor::dv},
                                   {Tensor::dq_sums, Tensor::dq_sums, Tensor::dq_sums}};
  LedgerGroups groups(std::size(kGroups));
  for (const LedgerRow& row : trace_.ledger) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      if (std::count(std::begin(kGroups[group]), std::end(kGroups[group]), row.tensor) > 0) {
        groups[group].push_back(&row);
      }
    }
  }
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

/// Bytes of weights that a pass that keeps them would move: P is read twice, dP and dS are written and read back.
double AttentionBackwardScene::bytes_of_weights() const {
  const double length = trace_.shape.length, pitch = std::ceil(length / 8) * 8;
  return kMatrices * trace_.shape.heads * length * pitch * attention::kElementBytes;
}

/// All bytes that the pass requested and, at the end, in outline, the bytes of stored weights alone.
Box AttentionBackwardScene::passes(const BackwardMoment& now) const {
  const LedgerGroups groups = ledger_groups();
  const auto on_lane = [](Name name, int count, int lane) {
    Spans spans{items(name, count)};
    spans.x = "total";
    spans.lanes = "pass";
    spans.lane.assign(static_cast<std::size_t>(count), lane);
    spans.items.glyph.all = 1;
    return spans;
  };
  const auto add = [](Spans& spans, double bytes) {
    spans.begin.push_back(spans.now);
    spans.now += bytes / 1000;
    spans.end.push_back(spans.now);
    spans.items.names.push_back(bytes_text(bytes));
  };
  Spans again = on_lane("pass_bytes", static_cast<int>(groups.size()), 0),
        kept = on_lane("weight_bytes", now.through ? kMatrices : 0, 1);
  kept.items.flags.all = kWas;
  for (const auto& group : groups) {
    double bytes = 0;
    for (const LedgerRow* row : group) {
      const Bytes so_far = asked_by(now, *row);
      bytes += so_far.loaded + so_far.stored;
    }
    add(again, bytes);
    again.items.ids.push_back(static_cast<int>(group.front()->tensor));
    again.items.tone.each.push_back(tone_of(group.front()->tensor));
  }
  again.items.about = {{"tensor", {-1, again.items.ids}}};
  for (int matrix = 0; matrix < kept.items.count; ++matrix) {
    add(kept, bytes_of_weights() / kMatrices);
  }
  Box lanes = box({"pass_lanes"}, {again, kept}, {},
                  {.least_width = 5, .least_height = 2.2f, .left = kLetters, .right = kTotals});
  for (const Spans* spans : {&again, &kept}) {
    if (spans->items.count == 0) continue;
    lanes.marks.emplace_back(lane_end({"pass_end", spans->lane.front()}, "total", "pass",
                                      spans->now, text(bytes_text(1000 * spans->now)), 0, {},
                                      false));
  }
  return labelled({"passes"}, std::move(lanes),
                  text("bytes: weights recomputed, or kept", "bytes of a pass"),
                  {.rank = 5, .weight = 0.1f});
}

// ---- tooltips ---------------------------------------------------------------------------------------------

std::string AttentionBackwardScene::explain_strip(const BackwardMoment& now, const Key& key) const {
  const bool chunks = trace_.shape.columns != trace_.shape.head_dim;
  const bool across = key.is({"K", "V", "dK", "dV"});
  const int tile = across && chunks && key.j >= 0 ? key.j : key.i;
  std::string said = fmt::format("{} {}: {} {}", key.name.text(), tile, across ? "keys" : "queries",
                                 rows_of(trace_, tile, !across));
  if (across && trace_.shape.kv_heads < trace_.shape.heads) {
    said += fmt::format("\nits head is shared by {} heads of Q",
                        trace_.shape.heads / trace_.shape.kv_heads);
  }
  if (chunks && key.is({"Q", "K", "V"})) said += fmt::format("\n{}", trace_.plan.filled);
  if (key.is({"Q"})) said += "\nclick: follow its last query";
  if (key.is({"dO"})) said += "\ngradient of the loss by each number of O";
  if (key.is({"dQ"})) {
    said += "\nFP32 sums in memory, to which each block of keys adds its part";
  }
  if (key.is({"dK", "dV"})) said += "\nsums in registers of one block, written once";
  const auto tell = [&](const std::vector<int>& wrong) {
    const int count = wrong[static_cast<std::size_t>(key.i)];
    if (judged(now)) said += fmt::format("\n{} wrong", counted(count, "number"));
  };
  if (key.is({"dQ"})) tell(trace_.wrong);
  if (key.is({"dK"})) tell(trace_.wrong_dk);
  if (key.is({"dV"})) tell(trace_.wrong_dv);
  return said;
}

std::string AttentionBackwardScene::explain(const View& view, const Key& key) const {
  const BackwardMoment now = moment(view.cursor);
  if (is_tile(trace_, key)) {
    std::string said = explain_tile(trace_, key.i, key.j);
    const TileVisit& visit = trace_.visit(key.i, key.j);
    const int step = step_of(trace_.steps, visit);
    // The effect of a visit is known when it is complete.
    const bool through =
        step > 0 && (step < now.step || (step == now.step && now.phase == BackwardPhase::sums));
    if (!through) return said;
    if (visit.o_writes > 0) {
      said += fmt::format("\n{} of dQ added to", counted(visit.o_writes, "row"));
    }
    if (visit.begin >= 0 && trace_.clock_unit == "ns") {
      said += fmt::format("\n{}–{} ns", visit.begin, visit.end);
    }
    return said;
  }
  if (key.is({"P", "dS"})) {
    const bool weight = key.is({"P"});
    const std::vector<float>& all = weight ? trace_.row.p : trace_.row.ds;
    if (key.i < 0 || key.i >= std::ssize(all) || !key_known(now, key.i, weight)) return {};
    return fmt::format("key {}: {} = {}", key.i, key.name.text(),
                       number(static_cast<double>(all[static_cast<std::size_t>(key.i)]), 5));
  }
  if (key.is({"Q", "K", "V", "dO", "dQ", "dK", "dV"})) return explain_strip(now, key);
  if (key.is({"kind"})) return explain_kind(key.i);
  if (key.is({"asked_bytes", "formula_bytes"})) {
    return explain_ledger(
        ledger_groups(), [&](const LedgerRow& row) { return asked_by(now, row); }, key,
        now.through);
  }
  return explain_mask(trace_, key);
}

}  // namespace tilestep::scenes

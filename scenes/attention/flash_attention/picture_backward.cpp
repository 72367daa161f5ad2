// The picture of a backward pass: strips that are read and gradients that fill, the chosen query's row, and bytes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using flash_attention::LedgerRow, flash_attention::Step, flash_attention::Tensor,
    flash_attention::TileVisit;
using words::counted, words::number;

namespace {

constexpr Layout kColumn = {.weight = 1, .least_width = 8, .least_height = 1.1f};
constexpr Layout kRow = {.weight = 0.05f, .least_width = 2.3f, .least_height = 6};
constexpr Layout kRight = {.weight = 0.08f, .least_width = 2.3f, .least_height = 6};

/// "+ 0.25", "− 0.25".
std::string signed_text(double value, int digits) {
  return fmt::format("{} {}", value < 0 ? "−" : "+", number(std::abs(value), digits));
}

}  // namespace

// ---- what is known at a moment ------------------------------------------------------------------------

/// The chosen query's step at a tile of keys, from 1; 0: there is none.
int FlashAttentionScene::step_of_tile(int k_tile) const {
  for (int step = 1; step <= steps_in_all(); ++step) {
    if (trace_.steps[static_cast<std::size_t>(step - 1)].k_tile == k_tile) return step;
  }
  return 0;
}

bool FlashAttentionScene::column_begun(const FlashMoment& now, int k_tile) const {
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const TileFate tile = fate(now, q, k_tile);
    if (tile != TileFate::never && tile != TileFate::to_come) return true;
  }
  return false;
}

/// dK and dV are written when their block has been through all heads that share them.
bool FlashAttentionScene::column_through(const FlashMoment& now, int k_tile) const {
  if (now.through) return true;
  const int group = trace_.shape.heads / trace_.shape.kv_heads;
  if (trace_.chosen.head % group != group - 1) return false;
  bool any = false;
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const TileFate tile = fate(now, q, k_tile);
    if (tile == TileFate::never) continue;
    if (tile != TileFate::gone) return false;
    any = true;
  }
  return any;
}

/// Whether the chosen query's number of a key is there by now.
bool FlashAttentionScene::key_known(const FlashMoment& now, int key, bool weight) const {
  const int step = step_of_tile(key / trace_.plan.block_k);
  if (step == 0 || step > now.step) return false;
  return step < now.step || weight || now.phase >= FlashPhase::gradients;
}

/// What the chosen component of dQ comes to before the step, and after it: recorded parts, added up and scaled.
std::pair<double, double> FlashAttentionScene::sums_of_dq(const FlashMoment& now) const {
  const double scale = 1 / std::sqrt(static_cast<double>(trace_.shape.head_dim));
  double before = 0, after = 0;
  for (int step = 0; step < now.step; ++step) {
    before = after;
    after += static_cast<double>(trace_.steps[static_cast<std::size_t>(step)].dq) * scale;
  }
  return {before, after};
}

/// The key of the step's tile whose weight is largest; none where the chosen query sees none of them.
std::optional<int> FlashAttentionScene::heaviest_key(const FlashMoment& now) const {
  if (now.now == nullptr) return std::nullopt;
  const std::vector<float>& p = trace_.backward.p;
  const int first = now.now->k_tile * trace_.plan.block_k;
  const int end = std::min(first + trace_.plan.block_k, trace_.shape.length);
  const auto most = std::max_element(p.begin() + first, p.begin() + end);
  if (!(*most > 0)) return std::nullopt;
  return static_cast<int>(most - p.begin());
}

FlashAttentionScene::Bytes FlashAttentionScene::asked_backward(const FlashMoment& now,
                                                               const LedgerRow& row) const {
  const auto of = [&](double loads, double stores) {
    return Bytes{loads * static_cast<double>(row.loaded), stores * static_cast<double>(row.stored)};
  };
  int begun = 0, written = 0;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    begun += column_begun(now, k) ? 1 : 0;
    written += column_through(now, k) ? 1 : 0;
  }
  const double tiles = trace_.plan.k_tiles;
  switch (row.tensor) {
    case Tensor::o:
    case Tensor::lse:
      return of(1, 0);  // D's kernel comes first
    case Tensor::k:
    case Tensor::v:
      return of(begun / tiles, 0);
    case Tensor::dk:
    case Tensor::dv:
      return of(0, written / tiles);
    case Tensor::dq:
      return {};  // made of its sums at the end
    default:
      return of(share_of_visits(now), share_of_visits(now));
  }
}

// ---- strips -------------------------------------------------------------------------------------------

Box FlashAttentionScene::output_gradients(const FlashMoment& now) const {
  Cells strip{items("dO", trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  strip.items.about = {{Name("tensor"), {static_cast<int>(Tensor::d_o)}}};
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const bool chosen = q == trace_.chosen.q_tile && now.step > 0 && !now.through;
    strip.items.state.each.push_back(chosen              ? State::current
                                     : now.through       ? State::done
                                     : row_begun(now, q) ? State::plain
                                                         : State::to_come);
  }
  return box({"output_gradients"}, {std::move(strip)}, text("dO"), kRow);
}

/// How many blocks have added to each tile of dQ.
Box FlashAttentionScene::query_gradients(const FlashMoment& now) const {
  Cells strip{items("dQ", trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  strip.items.tone.all = tone_of(Tensor::dq);
  strip.items.about = {{Name("tensor"), {static_cast<int>(Tensor::dq)}}};
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    int added = 0;
    for (int k = 0; k < trace_.plan.k_tiles; ++k) {
      const TileFate tile = fate(now, q, k);
      added += tile == TileFate::gone || (tile == TileFate::now && now.phase == FlashPhase::values)
                   ? 1
                   : 0;
    }
    const int wrong = judged(now) ? trace_.wrong[static_cast<std::size_t>(q)] : 0;
    const bool works = q == trace_.chosen.q_tile && !now.through && now.phase == FlashPhase::values;
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
Box FlashAttentionScene::of_keys(const FlashMoment& now, Tensor tensor) const {
  const bool is_sum = tensor == Tensor::dk || tensor == Tensor::dv;
  const Name name = tensor == Tensor::k    ? Name("K")
                    : tensor == Tensor::v  ? Name("V")
                    : tensor == Tensor::dk ? Name("dK")
                                           : Name("dV");
  Cells strip{items(name, trace_.plan.k_tiles)};
  strip.x = "k";
  strip.items.tone.all = tone_of(tensor);
  strip.items.about = {{Name("tensor"), {static_cast<int>(tensor)}}};
  // In which phase it is at work.
  const bool works = is_sum ? now.phase == FlashPhase::values
                     : tensor == Tensor::v
                         ? now.phase == FlashPhase::gradients
                         : now.phase == FlashPhase::scores || now.phase == FlashPhase::values;
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
    strip.items.glyph.each.push_back(ever ? kSolid : kHollow);
    strip.items.names.push_back(bad > 0                       ? std::to_string(bad)
                                : tensor == Tensor::k && ever ? std::to_string(k)
                                                              : "");
  }
  if (!is_sum) hatch_filled(strip, true);
  const Key key = tensor == Tensor::k    ? Key{"keys"}
                  : tensor == Tensor::v  ? Key{"values"}
                  : tensor == Tensor::dk ? Key{"key_gradients"}
                                         : Key{"value_gradients"};
  return box(key, {std::move(strip)}, {}, kColumn);
}

// ---- the chosen query -----------------------------------------------------------------------------------

/// P or dS of each key.
Box FlashAttentionScene::gradient_bars(const FlashMoment& now, bool weights) const {
  std::vector<float> values = weights ? trace_.backward.p : trace_.backward.ds;
  std::vector<State> states;
  const int size = trace_.plan.block_k;
  for (int key = 0; key < static_cast<int>(values.size()); ++key) {
    const bool known = key_known(now, key, weights);
    if (!known) values[static_cast<std::size_t>(key)] = 0;
    const bool fresh = !now.through && now.now != nullptr && key / size == now.now->k_tile;
    states.push_back(!known ? State::to_come : fresh ? State::current : State::plain);
  }
  const Name name = weights ? Name("P") : Name("dS");
  Bars bars{items(name, std::move(values)), "key", weights ? Name("weight") : Name("ds")};
  bars.items.about = {{"key", {0, numbers(bars.items.count)}}};
  bars.items.state.each = std::move(states);
  return box(weights ? Key{"weights_row"} : Key{"gradient_row"}, {std::move(bars)},
             text(weights ? "P" : "dS"),
             {.rank = 4,
              .weight = 0.6f,
              .least_width = 14,
              .least_height = 1.5f,
              .most_height = 5,
              .left = 2.2f});
}

std::vector<std::string> FlashAttentionScene::gradient_formulas(const FlashMoment& now) const {
  const std::string c = std::to_string(trace_.chosen.component);
  const std::optional<int> key = heaviest_key(now);
  if (!key) {
    const bool none = now.now != nullptr;
    return {none ? "P = 0   (masked)" : "P = exp(s − lse)", none ? "dP = …" : "dP = dO · v",
            none ? "dS = 0" : "dS = P (dP − D)", none ? "dQ = as it was" : "dQ = 0"};
  }
  const flash_attention::BackwardRow& row = trace_.backward;
  const auto at = static_cast<std::size_t>(*key);
  const auto text = [](float value, int digits) {
    return number(static_cast<double>(value), digits);
  };
  const std::string p = text(row.p[at], 3), dp = text(row.dp[at], 2), ds = text(row.ds[at], 4);
  const auto [before, after] = sums_of_dq(now);
  std::vector<std::string> rows = {
      fmt::format("P[{}] = exp(s − {}) = {}", *key, text(row.lse, 2), p),
      fmt::format("dP[{}] = dO · V[{}] = {}", *key, *key, dp),
      fmt::format("dS[{}] = {} ({} {}) = {}", *key, p, dp,
                  signed_text(-static_cast<double>(row.d), 2), ds),
      fmt::format("dQ[{}] = {} {} = {}", c, number(before, 4), signed_text(after - before, 4),
                  number(after, 4))};
  // What is to come is named, not given away.
  const std::size_t known = now.phase == FlashPhase::scores      ? 1
                            : now.phase == FlashPhase::gradients ? 3
                                                                 : 4;
  for (std::size_t i = known; i < rows.size(); ++i) {
    rows[i] = rows[i].substr(0, rows[i].find('=') + 1) + " …";
  }
  return rows;
}

Box FlashAttentionScene::gradient_row(const FlashMoment& now) const {
  Lines made = lines("formula", formula_texts(gradient_formulas(now)), Lines::formula);
  made.items.about = {{"d", {-1, {-1, -1, 0, -1}}},
                      {"tensor", {-1, {-1, -1, -1, static_cast<int>(Tensor::dq)}}}};
  const int first = now.phase == FlashPhase::scores      ? 0
                    : now.phase == FlashPhase::gradients ? 1
                                                         : 3;
  const int last = now.phase == FlashPhase::scores ? 0 : std::max(first, 2);
  for (int row = 0; row < made.items.count; ++row) {
    const bool current = !now.through && row >= first && row <= last;
    made.items.state.each.push_back(now.now == nullptr           ? State::to_come
                                    : current                    ? State::current
                                    : row < first || now.through ? State::done
                                                                 : State::to_come);
  }
  Box formulas = box({"formulas"}, {std::move(made)}, {},
                     {.weight = 1, .least_width = 14, .least_height = 4.6f, .most_height = 5.4f});
  Box all =
      column({"chosen"}, {gradient_bars(now, true), gradient_bars(now, false), std::move(formulas)},
             {.rank = 2, .weight = 0.6f});
  std::string label = fmt::format("query {}", trace_.chosen.query);
  if (trace_.shape.heads > 1) label += fmt::format(" of head {}", trace_.chosen.head);
  if (now.now != nullptr) label += fmt::format(", at keys {}", rows_of(now.now->k_tile, false));
  all.label =
      text(label + ": weights P made again", label, fmt::format("query {}", trace_.chosen.query));
  return all;
}

// ---- what the pointer is told -----------------------------------------------------------------------------

std::string FlashAttentionScene::explain_backward(const FlashMoment& now, const Key& key) const {
  if (key.is({"P", "dS"})) {
    const bool weight = key.is({"P"});
    const std::vector<float>& row = weight ? trace_.backward.p : trace_.backward.ds;
    if (key.i < 0 || key.i >= std::ssize(row) || !key_known(now, key.i, weight)) return {};
    return fmt::format("key {}: {} = {}", key.i, key.name.text(),
                       number(static_cast<double>(row[static_cast<std::size_t>(key.i)]), 5));
  }
  std::string said = explain_strip(now, key);
  if (key.is({"dO"})) said += "\nwhat the loss changes by with each number of O";
  if (key.is({"dQ"})) {
    said += "\nFP32 sums in memory, to which each block of keys adds its part";
  }
  if (key.is({"dK", "dV"})) {
    said += "\nsums in registers of one block, written once";
  }
  const auto tell = [&](const std::vector<int>& wrong) {
    const int count = wrong[static_cast<std::size_t>(key.i)];
    if (judged(now)) said += fmt::format("\n{} wrong", counted(count, "number"));
  };
  if (key.is({"dQ"})) tell(trace_.wrong);
  if (key.is({"dK"})) tell(trace_.wrong_dk);
  if (key.is({"dV"})) tell(trace_.wrong_dv);
  return said;
}

}  // namespace tilestep::scenes

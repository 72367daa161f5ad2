// Beside the matrix of scores: the chosen query's numbers, the bytes that were asked of memory, flash-3's lanes, the
// mask of all that was asked for, and what there is to say of the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using flash_attention::Activity, flash_attention::Break, flash_attention::LedgerRow,
    flash_attention::Span, flash_attention::Tensor, flash_attention::TileKind;
using words::counted, words::number;

namespace {

constexpr float kLetter = 3.3f;         ///< margin for a tensor's name, in heights of a line
constexpr float kLetters = 4.8f;        ///< and for several names
constexpr float kBytes = 8.8f;          ///< and for its bytes
constexpr std::size_t kShortNote = 45;  ///< letters of a note that fit on a line
constexpr float kLane = 5.4f;           ///< and for a lane's name
constexpr std::uint8_t kSoftmax = 5;    ///< the tone of exponentials, and of their sum

int lane_of(const Span& span) {
  if (span.lane <= 0) return span.tensor == 'V' ? 1 : 0;
  return 2 * span.lane + (span.what == Activity::softmax ? 1 : 0);
}

}  // namespace

// ---- the chosen query -------------------------------------------------------------------------------

std::vector<std::string> FlashAttentionScene::formula_rows(const FlashMoment& now) const {
  if (now.now == nullptr) {
    return {"m = −∞", "rescale = exp(m before − m)", "ℓ = 0", "O = 0"};
  }
  const flash_attention::Step& step = *now.now;
  const auto m = [](float value) { return number(static_cast<double>(value), 2); };
  const std::string factor = number(static_cast<double>(step.rescale), 2);
  const auto two = [](double value) { return number(value, 2); };
  // What the kernel has, beside what the formula comes to with the numbers that it had.
  std::string rescale = fmt::format("rescale = {}   (no maximum yet)", factor);
  if (!std::isinf(step.m_after)) {
    rescale = words::equation(
        "rescale", fmt::format("exp({} − {})", m(step.m_before), m(step.m_after)),
        std::exp(static_cast<double>(step.m_before) - static_cast<double>(step.m_after)),
        static_cast<double>(step.rescale), two);
  }
  const double l_before = now.before != nullptr ? static_cast<double>(now.before->l) : 0;
  const double o_before = now.before != nullptr ? static_cast<double>(now.before->o) : 0;
  const std::string name = fmt::format("O[{}]", trace_.chosen.component);
  const std::string o = number(static_cast<double>(step.o), 2);
  std::vector<std::string> rows = {
      words::equation("m", fmt::format("max({}, {})", m(step.m_before), m(step.tile_max)),
                      static_cast<double>(std::max(step.m_before, step.tile_max)),
                      static_cast<double>(step.m_after), two),
      std::move(rescale),
      words::equation(
          "ℓ",
          fmt::format("{} × {} + {}", two(l_before), factor,
                      two(static_cast<double>(step.tile_sum))),
          l_before * static_cast<double>(step.rescale) + static_cast<double>(step.tile_sum),
          static_cast<double>(step.l), two),
      !trace_.o_recorded ? name + " = in registers, not recorded"
      : variant() == Variant::flash_1
          ? fmt::format("{} = rescaled, added to, / ℓ = {}", name, o)
          : fmt::format("{} = {} × {} + PV = {}", name, number(o_before, 2), factor, o)};
  // What is to come is named, not given away.
  const std::size_t known = now.phase == FlashPhase::scores    ? 1
                            : now.phase == FlashPhase::rescale ? 2
                                                               : 4;
  for (std::size_t row = known; row < rows.size(); ++row) {
    rows[row] = rows[row].substr(0, rows[row].find('=') + 1) + " …";
  }
  return rows;
}

std::vector<Text> FlashAttentionScene::formula_texts(const std::vector<std::string>& rows) const {
  std::vector<Text> texts;
  for (const std::string& row : rows) {
    const std::size_t first = row.find('='), last = row.rfind('=');
    texts.push_back(text(row, first == last ? row.substr(0, row.find("   "))
                                            : row.substr(0, first) + row.substr(last)));
    texts.back().full = marked(row, symbols({}));
  }
  return texts;
}

Box FlashAttentionScene::chosen_row(const FlashMoment& now) const {
  Lines made = lines("formula", formula_texts(formula_rows(now)), Lines::formula);
  made.items.about = {
      {"m", {-1, {0, -1, -1, -1}}}, {"l", {-1, {-1, -1, 0, -1}}}, {"o", {-1, {-1, -1, -1, 0}}}};
  const int here = now.phase == FlashPhase::scores ? 0 : now.phase == FlashPhase::rescale ? 1 : 2;
  for (int row = 0; row < made.items.count; ++row) {
    const bool done = row < here || now.through;
    const bool current = !now.through && (row == here || (here == 2 && row == 3));
    made.items.state.each.push_back(now.now == nullptr ? State::to_come
                                    : current          ? State::current
                                    : done             ? State::done
                                                       : State::to_come);
  }
  Box formulas = box({"formulas"}, {std::move(made)}, {},
                     {.weight = 1, .least_width = 14, .least_height = 4.1f, .most_height = 5.2f});
  std::string label = fmt::format("query {}", trace_.chosen.query);
  if (trace_.shape.heads > 1) label += fmt::format(" of head {}", trace_.chosen.head);
  if (now.now != nullptr) label += fmt::format(", at keys {}", rows_of(now.now->k_tile, false));
  Box all = column({"chosen"}, {std::move(formulas), sums(now)},
                   {.close = true, .rank = 2, .weight = 0.1f});
  all.label = text(label, fmt::format("query {}", trace_.chosen.query));
  return all;
}

/// What the tiles before left of ℓ and O after the rescale, what this one added, and in outline what they were.
Box FlashAttentionScene::sums(const FlashMoment& now) const {
  using flash_attention::Step;
  struct Names {
    Key box;
    Name axis, kept, added, was;
  };
  const double factor = now.now == nullptr ? 1 : static_cast<double>(now.now->rescale);
  const bool shrunk = now.phase >= FlashPhase::rescale, added = now.phase == FlashPhase::values;
  const auto meter = [&](const Names& names, const char* label, double before, double after) {
    const double kept = shrunk ? before * factor : before;
    const auto part = [&](Name name, double from, double to) {
      Bars bar{items(name, std::vector{static_cast<float>(std::abs(to))}), names.axis, "one"};
      bar.items.base.all = static_cast<float>(std::abs(from));
      bar.items.about = {{names.axis, {0}}};
      return bar;
    };
    Bars left = part(names.kept, 0, added && now.through ? after : kept),
         fresh = part(names.added, kept, after), was = part(names.was, 0, before);
    left.items.state.all = State::done;
    fresh.items.state.all = State::current;
    was.items.flags.all = kWas;
    Box made = box(names.box, {std::move(left)}, {marked(label, symbols({}))},
                   {.least_height = 0.8f, .most_height = 1.2f, .left = 2.2f, .right = 4.2f});
    if (added && after != kept && !now.through) made.marks.emplace_back(std::move(fresh));
    if (shrunk && factor < 1 && before != 0) made.marks.emplace_back(std::move(was));
    made.value = text(number(added ? after : kept, 2));
    return made;
  };
  const auto of = [](const Step* step, float Step::*field) {
    return step == nullptr ? 0.0 : static_cast<double>(step->*field);
  };
  std::vector<Box> meters = {meter({{"bar_l"}, "l", "l_kept", "l_added", "l_was"}, "ℓ",
                                   of(now.before, &Step::l), of(now.now, &Step::l))};
  // flash-1 divides O at every visit: what is left of it is not its product with the factor alone.
  if (trace_.o_recorded && variant() != Variant::flash_1) {
    meters.push_back(meter({{"bar_o"}, "o", "o_kept", "o_added", "o_was"}, "O",
                           of(now.before, &Step::o), of(now.now, &Step::o)));
  }
  return column({"sums"}, std::move(meters), {.close = true, .weight = 0.2f});
}

/// Naive: the chosen query's row of scores, as it lies in memory, and then its weights.
Box FlashAttentionScene::row_bars(const FlashMoment& now) const {
  const bool weights = now.phase >= FlashPhase::weights;
  const int known =
      weights ? trace_.shape.length : std::min(now.step * trace_.plan.block_k, trace_.shape.length);
  std::vector<float> values = weights ? trace_.weights : trace_.scores;
  values.resize(static_cast<std::size_t>(known));
  Bars bars{items(weights ? Name("weight") : Name("score"), std::move(values)), "key",
            weights ? Name("weight") : Name("score")};
  bars.items.about = {{"key", {0, numbers(known)}}};
  const int first = now.now != nullptr && !weights ? now.now->k_tile * trace_.plan.block_k : known;
  for (int key = 0; key < known; ++key) {
    const bool fresh = !now.through && (weights ? now.phase == FlashPhase::weights : key >= first);
    bars.items.state.each.push_back(fresh ? State::current : State::plain);
  }
  const std::string label = fmt::format("query {}: {} in memory", trace_.chosen.query,
                                        weights ? "its row of weights" : "its row of scores");
  return box(
      {"chosen"}, {std::move(bars)}, text(label),
      {.rank = 3, .weight = 0.6f, .least_width = 14, .least_height = 3.6f, .most_height = 7});
}

// ---- bytes --------------------------------------------------------------------------------------------

std::string bytes_text(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  constexpr const char* kUnits[] = {"KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  double shown = bytes / 1e3;
  for (; shown >= 999.5 && unit + 1 < std::size(kUnits); ++unit) shown /= 1e3;
  return fmt::format("{:.{}f} {}", shown, shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0, kUnits[unit]);
}

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

/// "106 / 147 KB": the unit once where it is the same.
std::string of_formula(double bytes, double formula) {
  const std::string now = bytes_text(bytes), all = bytes_text(formula);
  const std::size_t space = now.find(' ');
  const bool same = all.substr(all.find(' ')) == now.substr(space);
  return fmt::format("{} / {}", same ? now.substr(0, space) : now, all);
}

}  // namespace

/// Tensors whose bytes share a bar: forward each has its own, backward there would be too many.
std::vector<std::vector<const LedgerRow*>> FlashAttentionScene::ledger_groups() const {
  constexpr Tensor kGroups[][3] = {{Tensor::q, Tensor::k, Tensor::v},
                                   {Tensor::o, Tensor::d_o, Tensor::d_o},
                                   {Tensor::lse, Tensor::d, Tensor::d},
                                   {Tensor::dq, Tensor::dk, Tensor::dv}};
  std::vector<std::vector<const LedgerRow*>> groups;
  std::map<std::size_t, std::size_t> place;  // of a group
  for (const LedgerRow& row : trace_.ledger) {
    std::size_t group = is_backward() ? 0 : std::size(kGroups);
    for (; group < std::size(kGroups); ++group) {
      if (std::count(std::begin(kGroups[group]), std::end(kGroups[group]), row.tensor) > 0) break;
    }
    const bool alone = group == std::size(kGroups);
    const auto found = place.find(group);
    if (!alone && found != place.end()) {
      groups[found->second].push_back(&row);
      continue;
    }
    if (!alone) place[group] = groups.size();
    groups.push_back({&row});
  }
  return groups;
}

/// A bar a tensor, or a few: filled what was asked for by now, in outline what the formula says of the launch.
Box FlashAttentionScene::ledger(const FlashMoment& now) const {
  std::vector<Box> rows;
  for (const std::vector<const LedgerRow*>& group : ledger_groups()) {
    double bytes = 0, formula = 0;
    for (const LedgerRow* each : group) {
      const Bytes so_far = asked_by(now, *each);
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
    const bool more =
        judged(now) && bytes > 0 && row.tensor == Tensor::s && trace_.broken == Break::materialize;
    filled.items.state.all = more ? State::wrong : State::plain;
    Box made =
        box({"tensor", tensor}, {std::move(outline), std::move(filled)}, text(group_name(group)),
            {.least_height = 0.86f,
             .most_height = 1.5f,
             .left = is_backward() ? kLetters : kLetter,
             .right = kBytes});
    made.value = text(of_formula(bytes, formula), bytes_text(bytes));
    rows.push_back(std::move(made));
  }
  const std::string who = is_flash_3()    ? fmt::format("block {}", trace_.chosen.block)
                          : is_backward() ? "the backward pass"
                                          : "the kernels";
  Box made = column({"ledger"}, std::move(rows), {.close = true, .rank = 3, .weight = 0.6f});
  made.label = text(fmt::format("bytes requested by {}: so far / formula", who),
                    "bytes requested: so far / formula", "bytes requested");
  return made;
}

// ---- lanes --------------------------------------------------------------------------------------------

/// Those that are drawn: the producer's waits would lie over the copies. The tensor cores take one product after the
/// other: what is queued behind another begins when that is done. Two that are done at one clock share their lane.
std::vector<FlashAttentionScene::LaneSpan> FlashAttentionScene::lane_spans() const {
  std::vector<LaneSpan> all;
  for (const Span& span : spans_of(trace_)) {
    if (span.lane < 0 || (span.lane == 0 && span.what == Activity::waits)) continue;
    all.push_back({span, shown_clock(span.begin), shown_clock(span.end)});
  }
  const auto product = [](const LaneSpan& each) {
    return each.span.what == Activity::scores || each.span.what == Activity::values;
  };
  for (LaneSpan& each : all) {
    if (!product(each)) continue;
    for (const LaneSpan& other : all) {
      const bool ahead = product(other) && other.span.lane == each.span.lane &&
                         other.span.begin < each.span.begin && other.end > each.begin &&
                         other.end < each.end;
      if (ahead) each.begin = other.end;
    }
  }
  return all;
}

/// Who is busy when, up to the cursor: copies, and of each warpgroup its products on the tensor cores and its
/// exponentials.
Box FlashAttentionScene::lanes(const FlashMoment& now) const {
  const double at = clock_at(now);
  const std::vector<LaneSpan> all = lane_spans();
  constexpr Name kNames[] = {"waits", "copies", "products_s", "softmax", "products_o", "stores"};
  std::vector<Spans> marks(std::size(kNames));
  for (std::size_t what = 0; what < marks.size(); ++what) {
    marks[what].items = items(kNames[what], 0);
    marks[what].items.about = {{Name("tensor"), {}}, {Name("k_tile"), {}}};
    marks[what].x = "time";
    marks[what].lanes = "lane";
    marks[what].now = at;
  }
  int lanes = 2;
  std::map<int, double> taken;  // until when a lane's numbers are written
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Span& span = all[i].span;
    lanes = std::max(lanes, lane_of(span) + 1);
    if (now.step == 0 || all[i].begin >= at) continue;
    Spans& mark = marks[static_cast<std::size_t>(span.what)];
    ++mark.items.count;
    mark.items.ids.push_back(static_cast<int>(i));
    mark.lane.push_back(lane_of(span));
    mark.begin.push_back(all[i].begin);
    mark.end.push_back(std::min(all[i].end, at));
    const bool of_k = span.what == Activity::scores || span.tensor == 'K';
    const bool of_v = span.what == Activity::values || span.tensor == 'V';
    const bool waits = span.what == Activity::waits, soft = span.what == Activity::softmax;
    const Tensor tensor = of_k ? Tensor::k : of_v ? Tensor::v : Tensor::o;
    mark.items.tone.each.push_back(soft ? kSoftmax : waits ? std::uint8_t{0} : tone_of(tensor));
    mark.items.state.each.push_back(waits ? State::wasted : State::plain);
    double& until = taken.try_emplace(lane_of(span), -1).first->second;
    const bool free = all[i].begin >= until;
    if (!waits) until = std::max(until, all[i].end);
    mark.items.names.push_back(waits || !free    ? ""
                               : span.k_tile < 0 ? "O"
                                                 : std::to_string(span.k_tile));
    mark.items.about[0].second.each.push_back(waits || soft ? -1 : static_cast<int>(tensor));
    const bool mine = span.q_tile == trace_.chosen.q_tile && span.head == trace_.chosen.head;
    mark.items.about[1].second.each.push_back(mine ? span.k_tile : -1);
  }
  std::vector<Mark> drawn(marks.begin(), marks.end());
  if (now.step > 0) drawn.emplace_back(Rule{{"now"}, "time", at, State::current});
  Box inner = box({"lanes"}, std::move(drawn), {},
                  {.weight = 1,
                   .least_width = 12,
                   .least_height = std::clamp(0.82f * static_cast<float>(lanes), 3.0f, 6.8f),
                   .left = kLane});
  Box made = column({"busy"}, {std::move(inner)}, {.weight = 1});
  made.label = text(fmt::format("who is busy in block {}, {}: the number is the tile of keys",
                                trace_.chosen.block, counted(trace_.plan.threads, "thread")),
                    fmt::format("who is busy in block {}", trace_.chosen.block), "who is busy");
  return made;
}

// ---- what there is to say -------------------------------------------------------------------------------

Box FlashAttentionScene::notes(const FlashMoment& now) const {
  std::vector<Text> rows;
  std::vector<State> states;
  if (judged(now)) {
    rows.push_back(text(result_sentence()));
    states.push_back(trace_.result.wrong > 0 ? State::wrong : State::plain);
  }
  for (const std::string& line : note_lines()) {
    rows.push_back(text(line));
    states.push_back(State::plain);
  }
  // Backward there is less room: a line that does not wrap gets no more than it needs.
  float height = 0;
  for (const Text& each : rows) {
    height += !is_backward() ? 1.9f : plain(each.full).size() > kShortNote ? 2.4f : 1.3f;
  }
  Lines made = lines("note", std::move(rows));
  made.items.state.each = std::move(states);
  return box({"notes"}, {std::move(made)}, {},
             {.weight = 0.1f, .least_width = 12, .least_height = height});
}

// ---- what the pointer is told ----------------------------------------------------------------------------

std::string FlashAttentionScene::explain_bytes(const FlashMoment& now, const LedgerRow& row) const {
  const Bytes so_far = asked_by(now, row);
  const auto both = [](double loaded, double stored) {
    return fmt::format("loaded {}, stored {}", bytes_text(loaded), bytes_text(stored));
  };
  std::string said = fmt::format(
      "{}: {} so far{}\nformula {}\nof the whole problem {}; {} of memory held",
      name_of(row.tensor), both(so_far.loaded, so_far.stored),
      now.through ? " (traced)" : " (traced bytes, by the share of tiles that are through)",
      both(static_cast<double>(row.formula_loaded), static_cast<double>(row.formula_stored)),
      both(static_cast<double>(row.whole_loaded), static_cast<double>(row.whole_stored)),
      bytes_text(static_cast<double>(row.held)));
  if (row.kept > 0) said += ", since the forward pass";
  return said;
}

std::string FlashAttentionScene::explain_side(const FlashMoment& now, const Key& key) const {
  if (key.is({"asked_bytes", "formula_bytes"})) {
    std::string said;
    for (const std::vector<const LedgerRow*>& group : ledger_groups()) {
      if (static_cast<int>(group.front()->tensor) != key.i) continue;
      for (const LedgerRow* each : group) {
        if (!said.empty()) said += '\n';
        said += explain_bytes(now, *each);
      }
    }
    return said;
  }
  if (key.is({"waits", "copies", "products_s", "softmax", "products_o", "stores"})) {
    const std::vector<LaneSpan> all = lane_spans();
    if (key.i < 0 || key.i >= std::ssize(all)) return {};
    const Span& span = all[static_cast<std::size_t>(key.i)].span;
    const bool over = all[static_cast<std::size_t>(key.i)].end <= clock_at(now);
    constexpr const char* kWords[] = {"waits",        "copy of ", "S = Q K^T",
                                      "exponentials", "O += P V", "stores O"};
    std::string said = kWords[static_cast<std::size_t>(span.what)];
    if (span.what == Activity::copies) said += span.tensor;
    said += fmt::format(", tile of queries {} of head {}", span.q_tile, span.head);
    if (span.k_tile >= 0) said += fmt::format(", tile of keys {}", span.k_tile);
    said += fmt::format("\nfrom {} {}", trace_.clock_unit, span.begin);
    if (over) said += fmt::format(" to {}", span.end);
    return said;
  }
  if (key.is({"o_error"})) return explain_quantized(now, key);
  if (key.is({"score", "weight"}) && key.i >= 0 && key.i < trace_.shape.length) {
    const bool weights = now.phase >= FlashPhase::weights;
    if (!weights && key.i >= now.step * trace_.plan.block_k) return {};
    const float value = weights ? trace_.weights[static_cast<std::size_t>(key.i)]
                                : trace_.scores[static_cast<std::size_t>(key.i)];
    return fmt::format("key {}: {} {}", key.i, key.name.text(),
                       number(static_cast<double>(value), 4));
  }
  return explain_mask(key);
}

}  // namespace tilestep::scenes

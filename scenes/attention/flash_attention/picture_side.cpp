// Beside the matrix of scores: the chosen query's numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using flash_attention::LedgerRow, flash_attention::Tensor;
using words::number;

namespace {

constexpr float kNames = 3.6f, kEnds = 7;  ///< margins of the kernels' lanes, in line heights
constexpr int kTensors = static_cast<int>(count_of<Tensor>());

}  // namespace

// ---- the chosen query -------------------------------------------------------------------------------

std::vector<std::string> FlashAttentionScene::formula_rows(const FlashMoment& now) const {
  std::vector<std::string> rows = running_rows(now);
  if (now.now == nullptr) {
    rows.emplace_back("O = 0");
    return rows;
  }
  const flash_attention::Step& step = *now.now;
  const auto m = [](float value) { return number(static_cast<double>(value), 2); };
  const std::string factor = number(static_cast<double>(step.rescale), 2);
  const auto two = [](double value) { return number(value, 2); };
  const double o_before = now.before != nullptr ? static_cast<double>(now.before->o) : 0;
  const std::string name = fmt::format("O[{}]", trace_.chosen.component);
  const std::string o = number(static_cast<double>(step.o), 2);
  rows.push_back(!trace_.o_recorded ? name + " = in registers, not recorded"
                 : variant() == Variant::flash_1
                     ? fmt::format("{} = rescaled, added to, / ℓ = {}", name, o)
                     : fmt::format("{} = {} × {} + PV = {}", name, two(o_before), factor, o));
  // Once, at the end.
  if (now.through && variant() == Variant::flash_2 && trace_.o_recorded) {
    const auto answer =
        static_cast<double>(trace_.answer.o[static_cast<std::size_t>(trace_.chosen.component)]);
    const auto l = static_cast<double>(step.l), high = static_cast<double>(step.m_after);
    const auto three = [](double value) { return number(value, 3); };
    rows.push_back(words::equation("O / ℓ", fmt::format("{} / {}", o, two(l)),
                                   static_cast<double>(step.o) / l, answer, three));
    rows.push_back(words::equation("lse", fmt::format("{} + ln {}", m(step.m_after), two(l)),
                                   high + std::log(l), static_cast<double>(trace_.answer.lse),
                                   two));
    return rows;
  }
  // Later values are named, not given away.
  const std::size_t known = now.phase == FlashPhase::scores    ? 1
                            : now.phase == FlashPhase::rescale ? 2
                                                               : 4;
  for (std::size_t row = known; row < rows.size(); ++row) {
    rows[row] = rows[row].substr(0, rows[row].find('=') + 1) + " …";
  }
  return rows;
}

Box FlashAttentionScene::chosen_row(const FlashMoment& now) const {
  Lines made = lines("formula", formula_texts(formula_rows(now), symbols({})), Lines::formula);
  const std::vector<int> m = {0, -1, -1, -1, -1, -1}, l = {-1, -1, 0, -1, -1, -1},
                         o = {-1, -1, -1, 0, 0, -1};
  const auto of = [&](const std::vector<int>& all) {
    return std::vector<int>(all.begin(), all.begin() + made.items.count);
  };
  made.items.about = {{"m", {-1, of(m)}}, {"l", {-1, of(l)}}, {"o", {-1, of(o)}}};
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
                     {.weight = 1, .least_width = 14, .least_height = 6, .most_height = 7.6f});
  std::string label = fmt::format("query {}", trace_.chosen.query);
  if (trace_.shape.heads > 1) label += fmt::format(" of head {}", trace_.chosen.head);
  if (now.now != nullptr)
    label += fmt::format(", at keys {}", rows_of(trace_, now.now->k_tile, false));
  return labelled({"chosen"}, {std::move(formulas), sums(now)},
                  text(label, fmt::format("query {}", trace_.chosen.query)),
                  {.close = true, .rank = 2, .weight = 0.1f});
}

/// The rescaled ℓ and O of earlier tiles, this tile's addition, and in outline their values before the rescale.
Box FlashAttentionScene::sums(const FlashMoment& now) const {
  using flash_attention::Step;
  constexpr std::uint8_t kSum = 5;  // ℓ's, as in words
  struct Names {
    Key box;
    Name axis, kept, added, was;
  };
  const double factor = now.now == nullptr ? 1 : static_cast<double>(now.now->rescale);
  const bool shrunk = now.phase >= FlashPhase::rescale, added = now.phase == FlashPhase::values;
  const auto meter = [&](const Names& names, const char* label, std::uint8_t tone, double before,
                         double after) {
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
    left.items.tone.all = tone;
    fresh.items.state.all = State::current;
    was.items.flags.all = kWas;
    Box made = box(names.box, {std::move(left)}, {marked(label, symbols({}))},
                   {.least_height = 1, .most_height = 1.2f, .left = 2.2f, .right = 4.2f});
    if (added && after != kept && !now.through) made.marks.emplace_back(std::move(fresh));
    if (shrunk && factor < 1 && before != 0) made.marks.emplace_back(std::move(was));
    made.value = text(number(added ? after : kept, 2));
    return made;
  };
  const auto of = [](const Step* step, float Step::*field) {
    return step == nullptr ? 0.0 : static_cast<double>(step->*field);
  };
  std::vector<Box> meters = {meter({{"bar_l"}, "l", "l_kept", "l_added", "l_was"}, "ℓ", kSum,
                                   of(now.before, &Step::l), of(now.now, &Step::l))};
  // flash-1 divides O at every visit: the factor alone does not give the rest of it.
  if (trace_.o_recorded && variant() != Variant::flash_1) {
    meters.push_back(meter({{"bar_o"}, "o", "o_kept", "o_added", "o_was"}, "O", tone_of(Tensor::o),
                           of(now.before, &Step::o), of(now.now, &Step::o)));
  }
  return column({"sums"}, std::move(meters), {.close = true, .weight = 0.2f});
}

// ---- bytes and products -----------------------------------------------------------------------------------

/// Bytes between device memory and the multiprocessors in each kernel, by tensor, on one scale: a formula for the other
/// kernels, the bytes requested so far for the running one, inside the outline of its formula.
Box FlashAttentionScene::traffic(const FlashMoment& now) const {
  SpanList formula("formula_bytes", "bytes", "kernel", "tensor"),
      asked("asked_bytes", "bytes", "kernel", "tensor");
  std::vector<Curve> ends;
  const auto add = [](SpanList& to, int id, int lane, double begin, double end, Tensor tensor,
                      State state) {
    to.add({lane, begin / 1e6, end / 1e6, state, tone_of(tensor), std::string(name_of(tensor)),
            static_cast<int>(tensor), id, 1});
  };
  for (const Variant each : all_of<Variant>()) {
    const Costs& costs = costs_[static_cast<std::size_t>(each)];
    const auto lane = static_cast<int>(each);
    const bool own = each == variant();
    double at = 0, so_far = 0;
    for (const auto& [tensor, bytes] : costs.bytes) {
      add(formula, kTensors * lane + static_cast<int>(tensor), lane, at, at + bytes, tensor,
          State::to_come);
      std::string& outline = formula.spans.items.names.back();
      for (const LedgerRow& row : trace_.ledger) {
        if (!own || row.tensor != tensor) continue;
        const auto due = static_cast<double>(row.formula_loaded + row.formula_stored);
        const Bytes got = asked_by(now, row);
        const double here = due > 0 ? (got.loaded + got.stored) / due * bytes : 0;
        so_far += here;
        if (here > 0) outline.clear();  // the name is on the other bar
        if (here > 0)
          add(asked, static_cast<int>(tensor), lane, at, at + here, tensor, State::plain);
      }
      at += bytes;
    }
    // Bytes that nothing reads come after those that are due.
    for (const LedgerRow& row : trace_.ledger) {
      const bool due = std::any_of(costs.bytes.begin(), costs.bytes.end(),
                                   [&](const auto& one) { return one.first == row.tensor; });
      const Bytes got = asked_by(now, row);
      if (!own || due || got.loaded + got.stored <= 0) continue;
      add(asked, static_cast<int>(row.tensor), lane, at, at + got.loaded + got.stored, row.tensor,
          State::wrong);
      at += got.loaded + got.stored;
      so_far += got.loaded + got.stored;
    }
    const std::string all = bytes_text(costs.total);
    ends.push_back(
        lane_end({"traffic_end", lane}, "bytes", "kernel", at / 1e6,
                 own ? text(fmt::format("{} of {}", bytes_text(so_far), all), all) : text(all), 0,
                 {}, false));
  }
  Box made = box({"traffic"}, {formula.made(), asked.made()}, {},
                 {.least_height = 2.6f, .left = kNames, .right = kEnds});
  for (Curve& end : ends) made.marks.emplace_back(std::move(end));
  return labelled({"ledger"}, std::move(made),
                  text("bytes to and from device memory", "memory traffic", "bytes"),
                  {.rank = 1, .weight = 1.6f, .least_width = 14, .least_height = 4});
}

/// FLOPs of both products, whole tiles, on one scale: known at the end.
Box FlashAttentionScene::products(const FlashMoment& now) const {
  SpanList bars("product", "flops", "multiplier");
  std::vector<Curve> ends;
  for (const Variant each : all_of<Variant>()) {
    if (!now.through) break;
    const double flops = costs_[static_cast<std::size_t>(each)].flops / 1e6;
    const auto lane = static_cast<int>(each);
    bars.add({.lane = lane,
              .end = flops,
              .state = each == variant() ? State::plain : State::to_come,
              .tone = 5,
              .lanes = 1});
    const std::string said = words::significant(flops, 3);
    ends.push_back(lane_end({"product_end", lane}, "flops", "multiplier", flops,
                            text(said + " MFLOP", said), 0, {}, false));
  }
  Box made = box({"product_lanes"}, {bars.made()}, {},
                 {.least_height = 2.4f, .left = kNames, .right = kEnds});
  for (Curve& end : ends) made.marks.emplace_back(std::move(end));
  return labelled({"products"}, std::move(made),
                  text("FLOP of both products, by formula", "FLOP of both products", "FLOP"),
                  {.rank = 4, .weight = 0.7f, .least_width = 14, .least_height = 4});
}

// ---- tooltips --------------------------------------------------------------------------------------------

/// Each tensor has its own bar.
LedgerGroups FlashAttentionScene::ledger_groups() const {
  LedgerGroups groups;
  for (const LedgerRow& row : trace_.ledger) groups.push_back({&row});
  return groups;
}

std::string FlashAttentionScene::explain_side(const FlashMoment& now, const Key& key) const {
  if (key.is({"asked_bytes", "formula_bytes"}) && key.i >= 0) {
    const auto lane = static_cast<std::size_t>(key.i / kTensors);
    const Key tensor{key.name, key.i % kTensors};
    if (key.is({"asked_bytes"}) || static_cast<Variant>(lane) == variant()) {
      return explain_ledger(
          ledger_groups(), [&](const LedgerRow& row) { return asked_by(now, row); }, tensor,
          now.through);
    }
    for (const auto& [of, bytes] : costs_[lane].bytes) {
      if (static_cast<int>(of) != tensor.i) continue;
      return fmt::format("{}: {} of {}, by formula", name_of(static_cast<Variant>(lane)),
                         bytes_text(bytes), name_of(of));
    }
  }
  if (key.is({"o_error"})) return explain_quantized(now, key);
  return explain_mask(trace_, key);
}

}  // namespace tilestep::scenes

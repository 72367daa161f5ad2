#include "scenes/numbers/accumulator_precision/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {

using accumulator_precision::Direction, accumulator_precision::Method, accumulator_precision::Step,
    accumulator_precision::StepView;
using words::significant;

StepAxis AccumulatorPrecisionScene::loaded(const accumulator_precision::Trace&) {
  low_ = *std::min_element(trace_.exact.begin(), trace_.exact.end());
  high_ = *std::max_element(trace_.exact.begin(), trace_.exact.end());
  for (const AccumulatorTrace& a : trace_.accumulators) {
    for (const Step& s : a.steps) {
      if (!std::isfinite(s.sum)) continue;
      low_ = std::min(low_, static_cast<double>(s.sum));
      high_ = std::max(high_, static_cast<double>(s.sum));
    }
  }
  find_events();
  // A long sum does not keep every term, so a step is not "a term" there.
  if (trace_.terms <= accumulator_precision::kAllRows)
    return {points(), 2, "term", {"add", "round"}, "terms"};
  return {points(), 2, "addition", {"add", "round"}};
}

double AccumulatorPrecisionScene::progress(Cursor cursor) const {
  if (cursor.tile <= 0) return 0;
  const int before = cursor.tile > 1 ? terms_added(cursor.tile - 2) : 0;
  const int after = terms_added(std::min(cursor.tile, points()) - 1);
  return before + (after - before) * (cursor.phase + 1) / 2.0;
}

AccumulatorMoment AccumulatorPrecisionScene::moment(Cursor cursor) const {
  if (cursor.tile <= 0) return {};
  return {std::min(cursor.tile, points()) - 1, cursor.phase >= 1};
}

std::vector<Readout> AccumulatorPrecisionScene::readouts(const View& view) const {
  const RunningSum followed = this->followed(view);
  const int point = moment(view.cursor).known();
  const bool any = point >= 0;
  const double sum = any ? static_cast<double>(followed.step(point).sum) : 0;
  const double exact = any ? trace_.exact[point] : 0;
  const AccumulatorTrace& a = followed.a;
  std::vector<Readout> all = {
      {"sum", a.label + " holds", followed.say(sum), "", lab::Provenance::traced,
       "recorded by the kernel while it ran on " + report_.device.name, Readout::accent},
      {"exact", "exact sum", significant(exact, 7), "", lab::Provenance::derived,
       "the same terms added without rounding, in 128-bit integers of 2^-60"}};
  const picture::Ref its{"accumulator", static_cast<int>(a.method)};
  all[0].about = its;
  all[1].about = {"exact", 0};
  if (any && exact != 0) {
    const double percent = 100 * std::abs(sum - exact) / std::abs(exact);
    all.push_back({"error", "error", significant(percent, 3), "%", lab::Provenance::derived,
                   fmt::format("|{} − {}| / |{}|", significant(sum, 9), significant(exact, 9),
                               significant(exact, 9)),
                   percent > 10 ? Readout::wrong : Readout::plain, its});
  }
  if (!any) return all;
  const StepView v = followed.view(point);
  if (v.single_addition && std::isfinite(v.spacing)) {
    all.push_back(
        {"spacing", "spacing here", spacing_text(v.spacing), "", lab::Provenance::derived,
         fmt::format("the spacing (ulp) of a format with {} mantissa bits at {}: the power "
                     "of two at or below it, times 2^-{}",
                     a.format.mantissa_bits, significant(v.unrounded, 6), a.format.mantissa_bits)});
  }
  if (followed.frozen(point)) {
    all.push_back({"frozen", "frozen after", fmt::format("{}", a.frozen_at), "terms",
                   lab::Provenance::traced, a.verdict, Readout::wrong, its});
  }
  return all;
}

std::string AccumulatorPrecisionScene::explain_sum(const AccumulatorTrace& a, int known) const {
  if (known < 0) return a.label;
  std::string text = fmt::format(
      "{} holds {} after {}; the exact sum is {}", a.label, significant(a.steps[known].sum, 8),
      words::counted(terms_added(known), "term"), significant(trace_.exact[known], 8));
  return RunningSum{trace_, a}.frozen(known) ? text + "\n" + a.verdict : text;
}

/// All sums after a term.
std::string AccumulatorPrecisionScene::explain_term(int point) const {
  std::string text =
      fmt::format("{} terms added, the last: {}\nexact  {}", terms_added(point),
                  significant(trace_.term[point], 6), significant(trace_.exact[point], 8));
  for (const AccumulatorTrace& a : trace_.accumulators) {
    text += fmt::format("\n{}  {}", a.label, significant(a.steps[point].sum, 8));
  }
  return text;
}

std::string AccumulatorPrecisionScene::explain(const View& view, const picture::Key& key) const {
  const AccumulatorMoment now = moment(view.cursor);
  const RunningSum sum = followed(view);
  for (const AccumulatorTrace& a : trace_.accumulators) {
    const bool its = key.i == static_cast<int>(a.method);
    if (its && key.is({"chip", "sum", "frozen"})) return explain_sum(a, now.known());
  }
  if (key.is({"fate"}) && key.i >= 0 && key.i <= now.known()) return explain_term(key.i);
  if (key.is({"exact", "exact_to_come"})) return "the same terms added without rounding";
  if (key.is({"block"})) return "a block of terms already summed, waiting for an equal one";
  if (now.point < 0) return {};
  if (key.is({"rug"})) {
    int ups = 0, downs = 0, losses = 0;
    for (int point = 0; point <= now.known(); ++point) {
      const StepView fate = sum.view(point);
      losses += fate.lost ? 1 : 0;
      ups += !fate.lost && fate.direction == Direction::up ? 1 : 0;
      downs += !fate.lost && fate.direction == Direction::down ? 1 : 0;
    }
    return fmt::format("{} up, {} down, {} lost", ups, downs, losses);
  }
  if (key.is({"neighbour", "neighbours", "row_term", "line_exact"})) {
    return sum.term_note(now.point).full;
  }
  const bool after = key.is({"row_after", "line_after", "landed"});
  return after && now.rounded ? sum.fate_note(now.point).full : std::string();
}

int AccumulatorPrecisionScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id == "accumulators" || table_id == "verdicts") {
    return static_cast<int>(&followed(view).a - trace_.accumulators.data());
  }
  const int point = moment(view.cursor).point;
  const lab::Table* terms = report_.table("terms");
  if (table_id != "terms" || terms == nullptr || point < 0) return -1;
  // The last row that is not past the cursor.
  int row = 0;
  while (number_in(*terms, row, "added").value_or(INFINITY) <= terms_added(point)) ++row;
  return row - 1;
}

Cursor AccumulatorPrecisionScene::after_term(int term) const {
  const auto place = std::lower_bound(trace_.points.begin(), trace_.points.end(), term);
  return {static_cast<int>(place - trace_.points.begin()) + 1, 1};
}

Cursor AccumulatorPrecisionScene::known(const lab::Table& table, int row, int column) const {
  const std::string& id = table.columns[column].id;
  if (column == 0 || id == "mantissa_bits" || table.id == "scaling") return {};
  if (table.id == "terms") {
    return after_term(static_cast<int>(number_in(table, row, "added").value_or(0)) - 1);
  }
  const bool sums = table.id == "accumulators" || table.id == "verdicts";
  const int frozen_at = sums ? trace_.accumulators[row].frozen_at : -1;
  if (frozen_at >= 0 && id != "error") return after_term(frozen_at);
  return Scene::known(table, row, column);
}

std::vector<picture::Subject> AccumulatorPrecisionScene::subjects_of_row(std::string_view table_id,
                                                                         int row) const {
  const bool accumulators = table_id == "accumulators" || table_id == "verdicts";
  if (accumulators && row >= 0 && row < std::ssize(trace_.accumulators)) {
    return {{"accumulator", static_cast<int>(trace_.accumulators[row].method)}};
  }
  const lab::Table* terms = report_.table("terms");
  if (table_id != "terms" || terms == nullptr || row < 0) return {};
  return {{"term", static_cast<int>(number_in(*terms, row, "added").value_or(-1))}};
}

std::optional<Cursor> AccumulatorPrecisionScene::leads_to(const View&,
                                                          const picture::Key& item) const {
  const bool of_term = item.is({"fate"}) && item.i >= 0 && item.i < points();
  return of_term ? std::optional(Cursor{item.i + 1, 1}) : std::nullopt;
}

std::optional<picture::Subject> AccumulatorPrecisionScene::subject_of_column(
    std::string_view table_id, std::string_view column_id) const {
  if (table_id != "terms") return std::nullopt;
  if (column_id == "exact") return picture::Subject{"exact", 0};
  for (const AccumulatorTrace& a : trace_.accumulators) {
    if (column_id == name_of(a.method)) {
      return picture::Subject{"accumulator", static_cast<int>(a.method)};
    }
  }
  return std::nullopt;
}

SourceMark AccumulatorPrecisionScene::source(const View& view) const {
  const RunningSum sum = followed(view);
  const AccumulatorMoment now = moment(view.cursor);
  SourceMark mark =
      source_mark(accumulator_precision::kSourcePath, {&sum.a.line, 1}, now.point >= 0 ? 0 : -1);
  if (now.point < 0) return mark;
  const accumulator_precision::Step& step = sum.step(now.point);
  const std::string adds = fmt::format("{} + {}", sum.say(static_cast<double>(step.before)),
                                       significant(static_cast<double>(step.added), 6));
  mark.values[sum.a.line] =
      now.rounded ? fmt::format("{} → {}", adds, sum.say(static_cast<double>(step.after))) : adds;
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(accumulator_precision, AccumulatorPrecisionScene)

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenes/attention/shared/matrix.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/scene_of.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

/// The state on screen at one cursor, where the steps are the chosen query's tiles of keys.
template <class Step, class Phase>
struct TileMoment {
  int step = 0;  ///< under way or complete, from 1; 0: none has begun
  Phase phase = Phase::nothing;
  const Step* now = nullptr;     ///< null: none has begun
  const Step* before = nullptr;  ///< the step before; null: there is none
  bool through = false;          ///< nothing is left to do
};

/// Shared base of the scenes of the matrix of scores: the trace is a Matrix whose `steps` are the chosen query's tiles
/// of keys, and a step ends with `kLast`.
template <class Trace, class Phase, Phase kLast>
class MatrixScene : public SceneOf<Trace> {
 public:
  using Step = typename decltype(Trace::steps)::value_type;
  using Moment = TileMoment<Step, Phase>;

  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override {
    const Trace& trace = this->trace_;
    if (table_id == "steps" && row >= 0 && row < steps_in_all()) {
      return {{"step", row}, {"k_tile", trace.steps[static_cast<std::size_t>(row)].k_tile}};
    }
    if (table_id == "ledger" && row >= 0 && row < std::ssize(trace.ledger)) {
      return {{"tensor", static_cast<int>(trace.ledger[static_cast<std::size_t>(row)].tensor)}};
    }
    return Scene::subjects_of_row(table_id, row);
  }
  std::optional<Cursor> leads_to(const View&, const picture::Key& item) const override {
    if (!item.is({"S"}) || item.i != this->trace_.chosen.q_tile) return std::nullopt;
    const int step = step_of_tile(item.j);
    if (step == 0) return std::nullopt;
    return Cursor{step, this->steps().last_phase(step)};
  }
  /// Clicking a tile of queries follows its last query.
  std::optional<lab::Settings> dropped(const View&, const picture::Key& item,
                                       const picture::Key&) const override {
    const Trace& trace = this->trace_;
    if (!item.is({"Q"}) || item.i < 0 || item.i >= trace.plan.q_tiles) return std::nullopt;
    const int last = std::min((item.i + 1) * trace.plan.block_q, trace.shape.length) - 1;
    return lab::Settings{{"query", std::int64_t{last}}};
  }
  /// In tiles of keys.
  double progress(Cursor cursor) const override {
    return Scene::progress(cursor) * this->trace_.plan.block_k;
  }

  /// The state at `cursor`; public, like the values derived from it, so that tests can hold the picture to the trace.
  Moment moment(Cursor cursor) const {
    Moment now;
    const int all = steps_in_all();
    now.step = std::clamp(cursor.tile, 0, all);
    if (now.step == 0) {
      now.through = all == 0;
      return now;
    }
    const auto at = static_cast<std::size_t>(now.step - 1);
    now.now = &this->trace_.steps[at];
    if (at > 0) now.before = &this->trace_.steps[at - 1];
    now.phase = phase_at({now.step, cursor.phase});
    now.through = now.step == all && now.phase == kLast;
    return now;
  }
  virtual TileFate fate(const Moment& now, int q_tile, int k_tile) const = 0;
  /// Bytes of a tensor requested so far: the trace's total times the share of completed tiles. At the end exactly the
  /// traced bytes.
  Bytes asked_by(const Moment& now, const attention::LedgerRow& row) const {
    const auto [loaded, stored] = now.through     ? Bytes{1, 1}
                                  : now.step == 0 ? Bytes{}
                                                  : shares_by(now, row.tensor);
    return {loaded * static_cast<double>(row.loaded), stored * static_cast<double>(row.stored)};
  }

 protected:
  /// The share of a tensor's bytes requested, between the first step and the end.
  virtual Bytes shares_by(const Moment& now, attention::Tensor tensor) const = 0;
  virtual Phase phase_at(Cursor cursor) const {
    return static_cast<Phase>(1 + std::clamp(cursor.phase, 0, 2));
  }

  int steps_in_all() const { return static_cast<int>(this->trace_.steps.size()); }
  bool broken() const { return this->trace_.broken != attention::Break::none; }
  bool judged(const Moment& now) const { return broken() && now.through; }
  /// The chosen query's step at a tile of keys, from 1; 0: none.
  int step_of_tile(int k_tile) const {
    const auto& steps = this->trace_.steps;
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](const Step& step) { return step.k_tile == k_tile; });
    return found == steps.end() ? 0 : static_cast<int>(found - steps.begin()) + 1;
  }
  /// Blocks run side by side: a visit is known once the chosen query's block has got that far.
  bool seen(const Moment& now, const attention::TileVisit& visit) const {
    const int step = attention::step_of(this->trace_.steps, visit);
    return step > 0 && step <= now.step;
  }
  bool row_begun(const Moment& now, int q_tile) const {
    for (int k = 0; k < this->trace_.plan.k_tiles; ++k) {
      if (seen(now, this->trace_.visit(q_tile, k))) return true;
    }
    return false;
  }
  virtual bool row_through(const Moment& now, int q_tile) const {
    if (now.through) return true;
    bool any = false;
    for (int k = 0; k < this->trace_.plan.k_tiles; ++k) {
      const attention::TileVisit& visit = this->trace_.visit(q_tile, k);
      if (visit.order < 0) continue;
      any = true;
      if (!seen(now, visit)) return false;
      const bool last = attention::step_of(this->trace_.steps, visit) == now.step;
      if (last && now.phase != kLast) return false;
    }
    return any;
  }
  /// The share of visits known so far, of the chosen block alone where one is given.
  double share_of_visits(const Moment& now, int block = -1) const {
    int all = 0, known = 0;
    for (const attention::TileVisit& visit : this->trace_.visits) {
      if (visit.order < 0 || (block >= 0 && visit.block != block)) continue;
      ++all;
      known += seen(now, visit) ? 1 : 0;
    }
    return all == 0 || now.through ? 1.0 : static_cast<double>(known) / all;
  }
  /// The share of the tiles of queries that have begun, or completed.
  double share_of_rows(const Moment& now, bool begun) const {
    const int all = this->trace_.plan.q_tiles;
    int known = 0;
    for (int q = 0; q < all; ++q) {
      known += (begun ? row_begun(now, q) : row_through(now, q)) ? 1 : 0;
    }
    return now.through ? 1.0 : static_cast<double>(known) / all;
  }
  /// The largest sum of weights, rounded up.
  double most_l() const {
    double most = 0;
    for (const Step& step : this->trace_.steps) {
      if (std::isfinite(step.l)) most = std::max(most, static_cast<double>(step.l));
    }
    return picture::rounded(0, most).second;
  }
  /// The first step from `from` up to `end` that raises the maximum; −1: none. Not for a kernel that skips the rescale.
  int first_shrinking(int from, int end) const {
    if (this->trace_.broken == attention::Break::skip_rescale) return -1;
    for (int step = from; step < end; ++step) {
      if (shrinks(this->trace_.steps[static_cast<std::size_t>(step)])) return step;
    }
    return -1;
  }
  /// Whether O and ℓ shrink at a step.
  static bool shrinks(const Step& step) {
    return std::isfinite(step.m_before) && step.m_after > step.m_before;
  }

  /// A step's m, rescale and ℓ: the kernel's values, beside the formulas' results from the same inputs.
  std::vector<std::string> running_rows(const Moment& now) const {
    if (now.now == nullptr) return {"m = −∞", "rescale = exp(m before − m)", "ℓ = 0"};
    const Step& step = *now.now;
    const auto two = [](double value) { return words::number(value, 2); };
    const auto before = static_cast<double>(step.m_before), m = static_cast<double>(step.m_after),
               most = static_cast<double>(step.tile_max),
               factor = static_cast<double>(step.rescale), sum = static_cast<double>(step.tile_sum);
    const double l = now.before != nullptr ? static_cast<double>(now.before->l) : 0;
    std::string rescale = "rescale = " + two(factor) + "   (no maximum yet)";
    if (!std::isinf(m)) {
      rescale = words::equation("rescale", "exp(" + two(before) + " − " + two(m) + ")",
                                std::exp(before - m), factor, two);
    }
    return {words::equation("m", "max(" + two(before) + ", " + two(most) + ")",
                            std::max(before, most), m, two),
            std::move(rescale),
            words::equation("ℓ", two(l) + " × " + two(factor) + " + " + two(sum), l * factor + sum,
                            static_cast<double>(step.l), two)};
  }
  std::string kernel_words() const {
    return "recorded by the kernel while it ran on " + this->report_.device.name;
  }
  Readout tiles_readout(const Moment& now) const {
    const Trace& trace = this->trace_;
    int tiles = 0;
    for (int q = 0; q < trace.plan.q_tiles; ++q) {
      for (int k = 0; k < trace.plan.k_tiles; ++k) {
        const TileFate tile = fate(now, q, k);
        tiles += tile != TileFate::never && tile != TileFate::to_come ? 1 : 0;
      }
    }
    return computed_readout(trace, tiles);
  }
  Readout asked_readout(const Moment& now, const char* label) const {
    double asked = 0;
    for (const attention::LedgerRow& row : this->trace_.ledger) {
      const Bytes bytes = asked_by(now, row);
      asked += bytes.loaded + bytes.stored;
    }
    return bytes_readout(label, asked, now.through ? kernel_words() : "");
  }
  /// How far off the chosen component is at the end; `check` is the report's check of it.
  Readout error_readout(const char* label, const char* check, const std::vector<float>& got,
                        const std::vector<double>& exact) const {
    const auto c = static_cast<std::size_t>(this->trace_.chosen.component);
    return off_readout(this->trace_, label, static_cast<double>(got[c]), exact[c],
                       fails(this->report_, check));
  }
  /// ℓ between its rescale and the weights of the tile.
  Question shrunk_question(int step) const {
    const Step &next = this->trace_.steps[static_cast<std::size_t>(step)],
               &last = this->trace_.steps[static_cast<std::size_t>(step) - 1];
    return shrunk_sum_question(
        this->trace_, next.k_tile,
        {static_cast<double>(next.m_before), static_cast<double>(next.m_after),
         static_cast<double>(last.l), static_cast<double>(next.rescale)},
        most_l());
  }
  /// Whether a question comes before the next step: the view is at the end of one and there is a next.
  bool asks_at(const View& view) const {
    const int next = view.cursor.tile;
    return next < steps_in_all() && view.cursor.phase == this->steps().last_phase(next);
  }
  std::optional<Question> asked(const char* kind, Question question) const {
    return shuffled(of_kind(kind, std::move(question)), this->report_);
  }
  /// Lines of the kernel by phase with the values they have computed so far; `line` indexes the trace's lines.
  struct Said {
    Phase phase;
    int line;
    std::string value;
  };
  SourceMark lines_of(const Moment& now, std::string_view path,
                      const std::vector<Said>& said) const {
    int current = -1;
    for (const Said& each : said) {
      if (now.now != nullptr && each.phase == now.phase) current = each.line;
    }
    SourceMark mark = source_mark(path, this->trace_.lines, current);
    for (const Said& each : said) {
      const int line = this->trace_.lines[static_cast<std::size_t>(each.line)];
      if (now.now != nullptr && now.phase >= each.phase && line > 0) mark.values[line] = each.value;
    }
    return mark;
  }
};

}  // namespace tilestep::scenes

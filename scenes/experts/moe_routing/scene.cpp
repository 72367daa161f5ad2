#include "scenes/experts/moe_routing/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenes/shared/recorded.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using moe_routing::experts_text, moe_routing::ExpertTrace, moe_routing::Routing,
    moe_routing::Scheme, moe_routing::Step, moe_routing::TileTrace, moe_routing::TokenTrace;
using words::counted, words::number, words::percent;

StepAxis MoeRoutingScene::loaded(const moe_routing::Trace&) {
  params_ = moe_routing::knob_table().params(report_.params);
  kept_.assign(trace_.expert.size(), {});
  dropped_.assign(trace_.expert.size(), {});
  for (std::size_t e = 0; all_shown() && e < kept_.size(); ++e) {
    kept_[e].resize(static_cast<std::size_t>(trace_.expert[e].kept));
  }
  for (int t = 0; all_shown() && t < shown_tokens(); ++t) {
    const TokenTrace& each = token(t);
    for (std::size_t c = 0; c < each.expert.size(); ++c) {
      const auto e = static_cast<std::size_t>(each.expert[c]);
      const Assignment here{t, static_cast<int>(c)};
      const int place = each.slot[c] - trace_.expert[e].first_slot;
      if (each.slot[c] < 0) {
        dropped_[e].push_back(here);
      } else if (place >= 0 && place < trace_.expert[e].kept) {
        kept_[e][place] = here;
      }
    }
  }
  tile_at_.clear();
  for (std::size_t i = 0; i < trace_.tiles.size(); ++i) {
    tile_at_[{trace_.tiles[i].expert, trace_.tiles[i].number}] = i;
  }
  schemes_ = trace_.schemes;
  if (schemes_.empty()) {
    moe_routing::SchemeTrace own{trace_.scheme, trace_.blocks, {}, {}, {}, {}};
    for (const auto& [place, i] : tile_at_) {
      const TileTrace& each = trace_.tiles[i];
      own.expert.push_back(each.expert);
      own.kept.push_back(each.kept);
      own.block.push_back(each.block);
      own.mma.push_back(trace_.tile / 8 * (moe_routing::kWidth / 16) * (moe_routing::kHidden / 16));
    }
    schemes_ = {own};
  }
  find_events();
  return {moe_routing::kSteps, 1, "step", {}};
}

const TileTrace* MoeRoutingScene::tile(int expert, int number) const {
  const auto found = tile_at_.find({expert, number});
  return found == tile_at_.end() ? nullptr : &trace_.tiles[found->second];
}

std::string MoeRoutingScene::sentence(Cursor cursor) const {
  const std::int64_t choices = static_cast<std::int64_t>(trace_.tokens) * trace_.top_k;
  const std::string tokens = counted(trace_.tokens, "token");
  if (cursor.tile <= 0) {
    return fmt::format("{} {}; a router will send {} to {} of {} experts.", tokens,
                       words::verb(trace_.tokens, "wait"), trace_.tokens == 1 ? "it" : "each",
                       trace_.top_k, experts());
  }
  switch (static_cast<Step>(cursor.tile - 1)) {
    case Step::score:
      return fmt::format("Score: {} × {} experts = {} logits, one for each pair.", tokens,
                         experts(), static_cast<std::int64_t>(trace_.tokens) * experts());
    case Step::top_k:
      return trace_.top_k == 1
                 ? fmt::format("Top-1: each token keeps its best expert; its gate is 1.")
                 : fmt::format(
                       "Top-{}: each token keeps its {} best experts, {} choices in all; "
                       "its gates add up to 1.",
                       trace_.top_k, trace_.top_k, choices);
    case Step::count: {
      const std::vector<int> most = trace_.with_most(&ExpertTrace::wanted);
      const std::string who = experts_text(most, experts());
      const std::string wanted = words::times(expert(most.front()).wanted);
      const std::string even =
          number(static_cast<double>(choices) / experts(), choices % experts() ? 1 : 0);
      if (static_cast<int>(most.size()) == experts()) {
        return fmt::format("Count: {} are wanted {} each.", who, wanted);
      }
      return most.size() == 1
                 ? fmt::format("Count: {} is wanted {}; an even share would be {}.", who, wanted,
                               even)
                 : fmt::format("Count: {} are wanted {} each; an even share would be {}.", who,
                               wanted, even);
    }
    case Step::offset:
      if (trace_.capacity >= 0) {
        return fmt::format("Offset: a capacity of {} keeps {} of {} and drops {}.",
                           counted(trace_.capacity, "slot"), trace_.kept(), choices,
                           trace_.dropped());
      }
      return fmt::format("Offset: each expert starts where the one before ends; {} of {}.",
                         counted(trace_.tiles_run, "tile"), counted(trace_.tile, "slot"));
    case Step::permute:
      return fmt::format("Permute: {} {} gathered expert by expert; {} {} none.",
                         counted(trace_.kept(), "token row"), trace_.kept() == 1 ? "is" : "are",
                         counted(trace_.slots() - trace_.kept(), "slot"),
                         words::verb(trace_.slots() - trace_.kept(), "hold"));
    case Step::multiply: {
      if (schemes_.size() < 2) {
        return fmt::format("Multiply: tensor cores run {} in {}, {} of them real ({}).",
                           counted(trace_.slots(), "slot"), counted(trace_.tiles_run, "tile"),
                           trace_.kept(), percent(trace_.useful()));
      }
      std::vector<std::string> ends;
      for (const moe_routing::SchemeTrace& each : schemes_) {
        ends.push_back(fmt::format("{} {}{}", name_of(each.scheme),
                                   ends.empty() ? "ends after " : "after ",
                                   counted(end_of(each), "mma", "mma")));
      }
      return fmt::format("Multiply: {}.", fmt::join(ends, ", "));
    }
    case Step::combine:
      break;
  }
  if (trace_.dropped() > 0) {
    return fmt::format("Combine: {} of {} choices were dropped; {}.", trace_.dropped(), choices,
                       busiest_text(trace_));
  }
  return fmt::format("Combine: {} of {} slots were useful ({}); {}.", trace_.kept(), trace_.slots(),
                     percent(trace_.useful()), busiest_text(trace_));
}

/// Whether a gate is not the choice's probability over the sum of those chosen.
bool MoeRoutingScene::gate_is_off(const TokenTrace& of, std::size_t choice) const {
  double sum = 0;
  for (const float one : of.probability) sum += static_cast<double>(one);
  return !words::close(static_cast<double>(of.gate[choice]),
                       static_cast<double>(of.probability[choice]) / sum);
}

/// What the step did with a token, with its numbers: a row per choice, and the result.
std::vector<std::string> MoeRoutingScene::formula(int number_of, Cursor cursor) const {
  const TokenTrace& each = token(number_of);
  if (cursor.tile <= 0) return {fmt::format("{} numbers, not routed yet", moe_routing::kHidden)};
  const auto step = static_cast<Step>(cursor.tile - 1);
  if (step == Step::score && each.logits.empty()) return {fmt::format("{} logits", experts())};
  if (step == Step::score) {
    const auto best = std::max_element(each.logits.begin(), each.logits.end());
    return {fmt::format("highest of {} logits: E{}, {}", experts(), best - each.logits.begin(),
                        number(*best, 2))};
  }
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < each.expert.size(); ++i) {
    const int e = each.expert[i], first = expert(e).first_slot;
    const std::string gate = number(each.gate[i], 2);
    const bool dropped = done(Step::offset, cursor) && each.slot[i] < 0;
    if (step == Step::top_k) {
      const auto probability = static_cast<double>(each.probability[i]);
      rows.push_back(fmt::format("E{}: softmax {}, gate {}", e, number(probability, 2), gate));
      if (gate_is_off(each, i)) rows.back() += ", not its share of the chosen ones";
    } else if (step == Step::count) {
      rows.push_back(fmt::format("E{}: {} before it", e, each.rank[i]));
    } else if (step == Step::combine) {
      rows.push_back(dropped ? fmt::format("0 (E{} dropped it)", e)
                             : fmt::format("{}·E{}(x)", gate, e));
    } else if (dropped) {
      rows.push_back(step == Step::multiply ? fmt::format("E{}: dropped", e)
                                            : fmt::format("E{}: place {} ≥ capacity {}, dropped", e,
                                                          each.rank[i], trace_.capacity));
    } else if (step == Step::multiply) {
      const TileTrace* ran = tile(e, (each.slot[i] - first) / std::max(1, trace_.tile));
      rows.push_back(ran == nullptr
                         ? fmt::format("E{}·x", e)
                         : fmt::format("E{}·x in tile {}, block {}", e, ran->number, ran->block));
    } else {
      rows.push_back(fmt::format("E{}: slot {} + {} = {}", e, first, each.rank[i], each.slot[i]));
    }
  }
  if (step == Step::combine) {
    return {fmt::format("y = {}", fmt::join(rows, " + ")),
            fmt::format("y[0] = {}", number(each.output, 3))};
  }
  constexpr std::size_t kMostRows = 3;
  if (rows.size() > kMostRows) {
    rows.resize(kMostRows);
    rows.back() += " …";
  }
  return rows;
}

std::string MoeRoutingScene::moved(int token, int expert) const {
  // Custom is balanced, changed: what differs from balanced now is a move.
  std::map<int, int> moves;
  for (int t = 0; t < shown_tokens(); ++t) {
    const int balanced = t * trace_.top_k % experts(), now_at = this->token(t).expert.front();
    if (now_at != balanced) moves[t] = now_at;
  }
  moves[token] = expert;
  std::vector<std::string> texts;
  for (const auto& [each, where] : moves) texts.push_back(fmt::format("{}:{}", each, where));
  return fmt::format("{}", fmt::join(texts, ","));
}

int MoeRoutingScene::table_row(std::string_view table_id, const View& view) const {
  if (shown_tokens() == 0 || !done(Step::top_k, view.cursor)) return -1;
  if (table_id == "assignments") return followed(view) * trace_.top_k;
  if (table_id == "experts") return token(followed(view)).expert.front();
  if (table_id == "schemes") return static_cast<int>(trace_.scheme);
  return -1;
}

Cursor MoeRoutingScene::known(const lab::Table& table, int row, int column) const {
  const std::string& id = table.columns[column].id;
  const auto after = [](Step step) { return Cursor{static_cast<int>(step) + 1, 0}; };
  if (table.id == "tiles") return after(Step::multiply);
  if (column == 0 || id == "choice" || id == "what") return {};
  if (table.id == "assignments") return after(id == "slot" ? Step::offset : Step::top_k);
  if (table.id == "experts" || table.id == "schemes") return after(Step::offset);
  return Scene::known(table, row, column);
}

std::vector<picture::Subject> MoeRoutingScene::subjects_of_row(std::string_view table_id,
                                                               int row) const {
  if (row < 0) return {};
  if (table_id == "experts") return {{"expert", row}};
  if (table_id == "assignments") return {{"token", row / trace_.top_k}};
  if (table_id == "tiles" && row < std::ssize(trace_.tiles)) {
    return {{"expert", trace_.tiles[static_cast<std::size_t>(row)].expert}};
  }
  return {};
}

SourceMark MoeRoutingScene::source(const View& view) const {
  SourceMark mark = source_mark(moe_routing::kSourcePath, trace_.lines,
                                std::min(view.cursor.tile, moe_routing::kSteps) - 1);
  if (shown_tokens() == 0) return mark;
  const int number = followed(view);
  const TokenTrace& token = this->token(number);
  const int first = token.expert.front(), slot = token.slot.front();
  const std::string who = fmt::format("token {}: ", number);
  const std::string gone = who + "dropped";
  const auto say = [&](Step step, std::string text) {
    if (done(step, view.cursor)) {
      mark.values[trace_.lines[static_cast<std::size_t>(step)]] = std::move(text);
    }
  };
  if (!token.logits.empty()) {
    say(Step::score, fmt::format("{}row[0] = {}", who, words::number(token.logits.front(), 2)));
  }
  say(Step::top_k, fmt::format("{}best = {}", who, first));
  say(Step::count, fmt::format("counts[{}] = {}", first, expert(first).wanted));
  say(Step::offset, fmt::format("expert {}: first_slot = {}", first, expert(first).first_slot));
  say(Step::permute, slot < 0 ? gone : fmt::format("{}to = {}", who, slot));
  say(Step::multiply,
      fmt::format("expert {}: {}", first, words::counted(expert(first).tiles, "tile")));
  say(Step::combine,
      slot < 0 ? gone
               : fmt::format("{}gate = {}, out[0] = {}", who, words::number(token.gate.front(), 2),
                             words::number(token.output, 3)));
  return mark;
}

// ---- numbers beside the picture -----------------------------------------------------------------

/// This run's, counted by the hardware here or when it was recorded. The large product's number in the
/// Measured tab says nothing about one so small.
MoeRoutingScene::TensorPipe MoeRoutingScene::tensor_pipe() const {
  const NumberOfRun of_run = number_of_run(report_, "tensor_pipe");
  if (const lab::Measurement* m = of_run.number) {
    const bool live = m->recorded_at.empty();
    return {m->value, live ? m->provenance : lab::Provenance::recorded,
            lab::provenance_sentence(*m, report_)};
  }
  TensorPipe none;
  none.how = report_.device.backend == "emulated"
                 ? "The emulator has no tensor pipe. "
                 : "Not counted: hardware counters need permission; tilestep doctor says how. ";
  none.how += of_run.why_not;
  return none;
}

/// The useful share of the tensor cores' time, in three ways, and the counts behind it. A number is
/// shown once its step is done, so that it gives no answer away.
std::vector<Readout> MoeRoutingScene::readouts(const View& view) const {
  std::vector<Readout> all;
  const auto show = [&](const char* id, const char* label, const std::optional<double>& value,
                        std::string unit, lab::Provenance from, std::string how, Step known_after) {
    const bool known = done(known_after, view.cursor), shown = value && known;
    if (!known) how = fmt::format("Shown after step {}.", name_of(known_after));
    const int decimals = value && *value > 0 && *value < 1 ? 2 : 0;
    all.push_back({id, label, shown ? fmt::format("{:.{}f}", *value, decimals) : "—",
                   shown ? std::move(unit) : "", from, std::move(how)});
  };
  const auto of_run = [&](const char* id, const char* label, std::string unit, Step known_after,
                          const char* formula = "") {
    const lab::Measurement* m = report_.measurement(id);
    if (m == nullptr) return;
    show(id, label, m->value, std::move(unit), m->provenance,
         lab::provenance_sentence(*m, report_) + formula, known_after);
  };
  of_run("useful_slots", "useful slots", "%", Step::offset, " Kept choices / (tiles · tile).");
  of_run("busy_share", "busy blocks", "%", Step::multiply,
         " Time in tiles / (blocks · time until the last one ends).");
  const TensorPipe pipe = tensor_pipe();
  // Whether there is a number at all is known as late as the number.
  show("tensor_pipe", "tensor pipe", pipe.percent, "%",
       done(Step::multiply, view.cursor) ? pipe.provenance : lab::Provenance::counted, pipe.how,
       Step::multiply);
  of_run("slots_run", "slots run", fmt::format("{} real", trace_.kept()), Step::offset);
  const std::vector<int> busiest = trace_.with_most(&ExpertTrace::kept);
  const bool tie = done(Step::offset, view.cursor) && busiest.size() > 1;
  of_run("busiest_expert", tie ? "busiest experts" : "busiest expert",
         fmt::format("{}in {}", tie ? "each " : "", experts_text(busiest, experts())),
         Step::offset);
  if (!all.empty() && all.back().id == "busiest_expert" && busiest.size() == 1 &&
      done(Step::offset, view.cursor)) {
    all.back().about = {"expert", busiest.front()};
  }
  of_run("dropped_assignments", "dropped", "", Step::offset);
  if (trace_.dropped() > 0 && done(Step::offset, view.cursor)) all.back().look = Readout::wrong;
  return all;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(moe_routing, MoeRoutingScene)

// What is asked of attention on Hopper: before a step, and about its measurements.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/flash_attention_3/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using flash_attention_3::Rung;
using words::number;

Question FlashAttention3Scene::copier_question() const {
  return ask(fmt::format("A block has {} threads. How many of them ask for the tiles of K and V?",
                         trace_.plan.threads),
             "One", {"A warp of 32", "A warpgroup of 128", "All of them"},
             "TMA takes a whole tile at one thread's word, and a barrier says when its bytes "
             "are there.");
}

Question FlashAttention3Scene::ahead_question() const {
  const int stages =
      flash_attention_3::explained_sizes(trace_.shape.head_dim, trace_.plan.block_k).stages;
  return about(
      {"busy"},
      ask_count("While a tile is multiplied, the copies run ahead. How many tiles of K can "
                "lie in shared memory at a time?",
                stages, {1, 3, 4, trace_.plan.k_tiles},
                "each has a stage, and the warp that copies waits until the consumers "
                "have given one back."));
}

Question FlashAttention3Scene::turns_question() const {
  const bool inside = trace_.runs == Rung::pipelined, turns = trace_.runs == Rung::ping_pong;
  const std::vector<std::string> choices = {
      "Whatever the other warpgroup happens to issue", "The other warpgroup's products, by turns",
      "Its own products of the next tile too", "Nothing: they wait for the weights"};
  return about(
      {"busy"},
      ask("A warpgroup makes exponentials. What do the tensor cores do meanwhile?",
          choices[inside  ? 2
                  : turns ? 1
                          : 0],
          choices,
          inside  ? "the scores of the next tile are issued before the softmax of this one."
          : turns ? "a named barrier passes the turn when one has issued its products."
                  : "nothing orders the two: they may as well want the same unit at once."));
}

/// Which unit takes longer: 4096 operations a cycle, and 16 exponentials.
Question FlashAttention3Scene::roof_question() const {
  const double products = 4.0 * trace_.shape.head_dim / 4096, exponentials = 1.0 / 16;
  return ask_ratio(
      fmt::format("A multiprocessor does 4096 multiplications and additions a cycle on its tensor "
                  "cores, and 16 exponentials. At head dimension {}, how long do the exponentials "
                  "of a tile take, in times of its products?",
                  trace_.shape.head_dim),
      exponentials / products, {0.0625, 0.125, 0.25, 0.5, 1, 2},
      fmt::format("a score takes 4 × {} operations and one exponential.", trace_.shape.head_dim));
}

namespace {

bool shrinks(const flash_attention_3::Step& step) {
  return std::isfinite(step.m_before) && step.m_after > step.m_before;
}

}  // namespace

/// ℓ between its rescale and the weights of the tile.
Question FlashAttention3Scene::shrunk_question(int step) const {
  const auto &next = trace_.steps[static_cast<std::size_t>(step)],
             &last = trace_.steps[static_cast<std::size_t>(step) - 1];
  const auto two = [](float value) { return number(static_cast<double>(value), 2); };
  const double sum = static_cast<double>(last.l), kept = sum * static_cast<double>(next.rescale);
  return ask_to_set(
      fmt::format("Tile {} raises m of query {} from {} to {}; ℓ is {}. To what does ℓ shrink "
                  "before the tile's weights are added?",
                  next.k_tile, trace_.chosen.query, two(next.m_before), two(next.m_after),
                  two(last.l)),
      // Never so much that ℓ as it stands would do.
      {"bar_l"}, "l", kept, std::min(0.06 * most_l(), (sum - kept) / 2),
      fmt::format("ℓ · exp({} − {}) = {}.", two(next.m_before), two(next.m_after),
                  number(kept, 2)));
}

/// The first step after the third that raises the maximum; −1: none does.
int FlashAttention3Scene::first_shrinking() const {
  if (trace_.broken == attention::Break::skip_rescale) return -1;
  for (int step = 3; step + 1 < steps_in_all(); ++step) {
    if (shrinks(trace_.steps[static_cast<std::size_t>(step)])) return step;
  }
  return -1;
}

double FlashAttention3Scene::most_l() const {
  double most = 0;
  for (const auto& step : trace_.steps) {
    if (std::isfinite(step.l)) most = std::max(most, static_cast<double>(step.l));
  }
  return picture::rounded(0, most).second;
}

Question FlashAttention3Scene::outcome_question() const {
  const attention::BrokenResult& what = trace_.result;
  const std::vector<std::string> choices = {"O comes out right", "Some of O is wrong",
                                            "All of O is wrong"};
  const std::size_t is = what.wrong == 0 ? 0 : what.wrong < what.elements ? 1 : 2;
  return about({"outputs"},
               ask(fmt::format("The kernel was broken on purpose: {}. What came of it?",
                               name_of(trace_.broken)),
                   choices[is], choices, outcome()));
}

/// Each kind once, where it comes up first.
std::optional<Question> FlashAttention3Scene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (next >= steps_in_all() || view.cursor.phase != steps().last_phase(next)) return std::nullopt;
  const auto asked = [&](const char* kind, Question question) {
    return std::optional(shuffled(of_kind(kind, std::move(question)), report_));
  };
  const bool last = next + 1 == steps_in_all();
  if (broken() && last && next > 0) return asked("outcome", outcome_question());
  if (next == 0) return asked("copier", copier_question());
  if (last) return asked("roof", roof_question());
  if (next == 1) return asked("ahead", ahead_question());
  if (next == 2) return asked("turns", turns_question());
  if (next == first_shrinking()) return of_kind("shrunk-sum", shrunk_question(next));
  return std::nullopt;
}

// ---- measured -----------------------------------------------------------------------------------------

namespace {

std::optional<double> rate(const lab::Report& bench, std::string_view rung, std::string_view length,
                           std::string_view column = "tflops") {
  return number_with(bench, "ladder_measured",
                     {{"rung", rung}, {"head_dim", "128"}, {"mask", "none"}, {"length", length}},
                     column);
}

/// The same sums, for Hopper's units.
std::optional<Question> hopper_question(const lab::Report& bench) {
  const auto plain = rate(bench, "flash-2", "16384"), hopper = rate(bench, "flash-3-tma", "16384");
  if (!plain || !hopper || *plain <= 0) return std::nullopt;
  return about_view(
      "Ladder", "hopper",
      ask_ratio("flash-3-tma computes what flash-2 does, with TMA and whole warpgroups. How many "
                "times as fast is it, at head dimension 128 and length 16384?",
                *hopper / *plain, {1, 1.3, 1.7, 2.5, 4},
                fmt::format("operands come from shared memory, and one thread copies ({:.0f} "
                            "against {:.0f} TFLOP/s, {}).",
                            *hopper, *plain, measured::where_measured(bench))));
}

std::optional<Question> library_question(const lab::Report& bench) {
  const auto ours = rate(bench, "flash-3", "16384"),
             share = rate(bench, "flash-3", "16384", "fraction");
  if (!ours || !share) return std::nullopt;
  const std::vector<std::string> choices = {"More", "90 to 100 %", "70 to 90 %", "Less than 70 %"};
  const std::size_t is = *share > 1 ? 0 : *share >= 0.9 ? 1 : *share >= 0.7 ? 2 : 3;
  return about_view(
      "Ladder", "library",
      ask("flash-3 at head dimension 128 and length 16384, beside cuDNN: how much of its rate?",
          choices[is], choices,
          fmt::format("it reaches {:.0f} TFLOP/s, {} of cuDNN's ({}).", *ours,
                      words::percent(*share), measured::where_measured(bench))));
}

/// Which unit is busy at which head dimension.
std::optional<Question> exponentials_question(const lab::Report& bench) {
  const auto of = [&](const char* head_dim, const char* column) {
    return number_with(bench, "pipes", {{"rung", "flash-3"}, {"head_dim", head_dim}}, column);
  };
  const auto small = of("64", "exp_pipe"), large = of("128", "exp_pipe");
  if (!small || !large) return std::nullopt;
  const auto say = [](double percent) { return fmt::format("{:.0f} %", percent); };
  return about_view(
      "Units", "exponentials",
      ask_number("At head dimension 128 the unit that computes exponentials is busy in " +
                     say(*large) + " of flash-3's cycles. And at 64?",
                 *small, {std::round(*large), 15, 30, 50, 70, 90}, say,
                 fmt::format("a score needs one exponential whatever the head dimension, but only "
                             "half of the products ({:.0f} %, counted, {}).",
                             *small, measured::where_measured(bench)),
                 0));
}

/// What keeps an old rung apart from those for Hopper.
Role rung_role(std::string_view rung) {
  if (rung == "flash-2") return Role::purple;
  return rung.starts_with("flash") ? Role::sky : Role::muted;
}

}  // namespace

std::vector<Question> FlashAttention3Scene::measured_questions(const lab::Report& bench) const {
  std::vector<Question> all;
  for (const auto& each :
       {hopper_question(bench), exponentials_question(bench), library_question(bench)}) {
    if (each) all.push_back(shuffled(*each, bench));
  }
  return all;
}

measured::Spec FlashAttention3Scene::measured_spec() const {
  measured::Spec spec{"ladder_measured", attention_rates(rung_role)};
  const auto units = attention_units(rung_role);
  spec.views.insert(spec.views.end(), units.begin(), units.end());
  return spec;
}

}  // namespace tilestep::scenes

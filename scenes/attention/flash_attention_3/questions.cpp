// Questions on attention on Hopper: before a step, and about its measurements.
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
  return ask(
      fmt::format("A block has {} threads. How many of them request tiles of K and V?",
                  trace_.plan.threads),
      "One", {"A warp of 32", "A warpgroup of 128", "All of them"},
      "TMA copies a whole tile for one thread, and a barrier tells when its bytes are there.");
}

Question FlashAttention3Scene::ahead_question() const {
  const int stages =
      flash_attention_3::explained_sizes(trace_.shape.head_dim, trace_.plan.block_k).stages;
  return about({"busy"},
               ask_count("While a tile is multiplied, the copies run ahead. How many tiles of K "
                         "can be in shared memory at a time?",
                         stages, {1, 3, 4, trace_.plan.k_tiles},
                         "each has a stage, and the warp that copies waits until the consumers "
                         "have released one."));
}

Question FlashAttention3Scene::turns_question() const {
  const bool inside = trace_.runs == Rung::pipelined, turns = trace_.runs == Rung::ping_pong;
  const std::vector<std::string> choices = {
      "Whatever the other warpgroup issues", "The other one's products, in turn",
      "Its own products of the next tile", "Nothing: they wait for weights"};
  return about({"busy"},
               ask("A warpgroup computes exponentials. What do the tensor cores do?",
                   choices[inside  ? 2
                           : turns ? 1
                                   : 0],
                   choices,
                   inside ? "the scores of the next tile are issued before the softmax of this one."
                   : turns ? "a named barrier passes the turn when one has issued its products."
                           : "nothing orders the two: they may both want the same unit at once."));
}

/// Which unit takes longer: 4096 operations per cycle, or 16 exponentials.
Question FlashAttention3Scene::roof_question() const {
  const double products = 4.0 * trace_.shape.head_dim / 4096, exponentials = 1.0 / 16;
  return ask_ratio(
      fmt::format("A multiprocessor does 4096 FLOP per cycle on its tensor cores, and 16 "
                  "exponentials. At head dimension {}, how many times as long do a tile's "
                  "exponentials take as its products?",
                  trace_.shape.head_dim),
      exponentials / products, {0.0625, 0.125, 0.25, 0.5, 1, 2},
      fmt::format("a score takes 4 × {} operations and one exponential.", trace_.shape.head_dim));
}

/// Each kind once, where it comes up first.
std::optional<Question> FlashAttention3Scene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (!asks_at(view)) return std::nullopt;
  const bool last = next + 1 == steps_in_all();
  if (broken() && last && next > 0)
    return asked("outcome", outcome_question(trace_, "kernel was", "O", false));
  if (next == 0) return asked("copier", copier_question());
  if (last) return asked("roof", roof_question());
  if (next == 1) return asked("ahead", ahead_question());
  if (next == 2) return asked("turns", turns_question());
  if (next == first_shrinking(3, steps_in_all() - 1))
    return of_kind("shrunk-sum", shrunk_question(next));
  return std::nullopt;
}

// ---- measured -----------------------------------------------------------------------------------------

namespace {

/// The same computation, for Hopper's units.
std::optional<Question> hopper_question(const lab::Report& bench) {
  const auto plain = rate_of(bench, "ladder_measured", "flash-2", "16384"),
             hopper = rate_of(bench, "ladder_measured", "flash-3-tma", "16384");
  return ask_faster(
      bench, {"Ladder"}, "hopper", {hopper, plain, "TFLOP/s"},
      "flash-3-tma computes what flash-2 does, with TMA and whole warpgroups. How many "
      "times as fast is it, at head dimension 128 and length 16384?",
      {1, 1.3, 1.7, 2.5, 4}, "operands come from shared memory, and one thread copies");
}

/// How busy a unit is at each head dimension.
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

/// Sets an old rung apart from those for Hopper.
Role rung_role(std::string_view rung) {
  if (rung == "flash-2") return Role::purple;
  return rung.starts_with("flash") ? Role::sky : Role::muted;
}

}  // namespace

std::vector<Question> FlashAttention3Scene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {hopper_question(bench), exponentials_question(bench),
                          library_question(bench, "Ladder", "ladder_measured", "flash-3")});
}

measured::Spec FlashAttention3Scene::measured_spec() const {
  measured::Spec spec{"ladder_measured", attention_rates(rung_role)};
  const auto units = attention_units(rung_role);
  spec.views.insert(spec.views.end(), units.begin(), units.end());
  return spec;
}

}  // namespace tilestep::scenes

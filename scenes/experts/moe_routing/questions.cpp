// The MoE lesson's questions before a step and about measurements, and the events of its trace; every answer
// comes from the trace or the bench.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using moe_routing::ExpertTrace, moe_routing::Scheme, moe_routing::Step;

/// Before the count: which expert is wanted most often?
std::optional<Question> MoeRoutingScene::busiest_question() const {
  std::vector<int> order(trace_.expert.size());
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int>(e);
  std::stable_sort(order.begin(), order.end(),
                   [this](int a, int b) { return expert(a).wanted > expert(b).wanted; });
  const int most = expert(order.front()).wanted;
  const int least = expert(order.back()).wanted;
  // With a tie there is no single answer.
  if (expert(order[1]).wanted == most && least != most) return std::nullopt;
  const bool alike = most == least;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 3); ++i) {
    names.push_back(fmt::format("E{}", order[i]));
  }
  const std::string none = "None: all are wanted equally";
  names.push_back(none);
  Question question =
      ask("Look at the tokens' colours. Which expert is wanted most often?",
          alike ? none : names.front(), names,
          alike ? fmt::format("each of {} experts is wanted {}.", experts(), words::times(most))
                : fmt::format("E{} is wanted {}, E{} {}.", order.front(), words::times(most),
                              order.back(), least == 0 ? "never" : "only " + words::times(least)));
  for (const std::string& choice : question.choices) {
    question.where.push_back(choice == none ? picture::Key{"columns"}
                                            : picture::Key{"name", std::stoi(choice.substr(1))});
  }
  return question;
}

/// Before the slots are laid out, with a limit on them.
Question MoeRoutingScene::dropped_question() const {
  int over = 0;
  int most = 0;
  for (const ExpertTrace& each : trace_.expert) {
    over += each.wanted > trace_.capacity ? 1 : 0;
    most = std::max(most, each.wanted);
  }
  const std::int64_t all = static_cast<std::int64_t>(trace_.tokens) * trace_.top_k;
  return about(
      {"columns"},
      ask_count(
          fmt::format("An expert takes at most {}. How many of {} choices will be dropped?",
                      trace_.capacity, all),
          trace_.dropped(),
          {0, std::max(0, most - trace_.capacity), trace_.dropped() * 2, all / 2,
           trace_.dropped() + 1},
          trace_.dropped() == 0
              ? fmt::format("even the busiest expert is wanted only {}.", words::times(most))
              : fmt::format(
                    "{} of {} experts {} wanted more often than that, and the excess is dropped.",
                    over, experts(), over == 1 ? "is" : "are")));
}

/// Before the slots are laid out, without a limit: whole tiles, however full.
Question MoeRoutingScene::slots_question() const {
  const std::int64_t kept = trace_.kept();
  const std::int64_t tile = trace_.tile;
  const std::int64_t dense = (kept + tile - 1) / tile * tile;
  int most_tiles = 0;
  for (const ExpertTrace& each : trace_.expert) most_tiles = std::max(most_tiles, each.tiles);
  std::string because = fmt::format("{} of {} are {}, of which {} hold no token",
                                    words::counted(trace_.tiles_run, "tile"), tile,
                                    words::counted(trace_.slots(), "slot"), trace_.slots() - kept);
  if (trace_.scheme == Scheme::padded_to_capacity) {
    because += ": in this scheme every expert gets as many tiles as the fullest may need";
  }
  return about(
      {"columns"},
      ask_count(
          fmt::format(
              "{} tokens go to their experts, which multiply whole tiles of {}. How many slots "
              "will the tensor cores run?",
              kept, tile),
          trace_.slots(),
          {kept, dense, most_tiles * tile * experts(), tile * experts(), trace_.slots() + tile,
           trace_.slots() * 2},
          because + "."));
}

/// Before the top-k: which gate does a token's best logit give?
std::optional<Question> MoeRoutingScene::gate_question(int number_of) const {
  const moe_routing::TokenTrace& each = token(number_of);
  if (each.gate.empty()) return std::nullopt;
  const auto say = [](double value) { return words::number(value, 2); };
  const auto gate = static_cast<double>(each.gate.front()),
             probability = static_cast<double>(each.probability.front());
  std::vector<std::string> others;
  for (const double other : {probability, 1.0 / trace_.top_k, 1.0, 1.0 / experts(), 0.5, 0.25}) {
    if (std::abs(other - gate) > 0.03) others.push_back(say(other));
  }
  const std::string keeps =
      trace_.top_k == 1 ? "best expert" : fmt::format("{} best experts", trace_.top_k);
  return about(
      {"gates"},
      ask(fmt::format("Token {} keeps its {}. What gate weight does the best one get?", number_of,
                      keeps),
          say(gate), others,
          trace_.top_k == 1
              ? fmt::format("a gate is a share among the chosen experts; here there is one, though "
                            "softmax gives it {}.",
                            say(probability))
              : fmt::format(
                    "a gate is a share among the {} chosen, though softmax gave it {} among all.",
                    trace_.top_k, say(probability))));
}

/// Before the count, where the routing's name gives the favourite away: count the colour.
Question MoeRoutingScene::wanted_question(int expert_of) const {
  const int wanted = expert(expert_of).wanted;
  const double even =
      static_cast<double>(trace_.tokens) * trace_.top_k / static_cast<double>(experts());
  return ask_to_set(
      fmt::format("Count the tokens' choices in E{}'s colour. How high will its bar be?",
                  expert_of),
      {"columns"}, "wanted", wanted, std::max(0.5, 0.06 * wanted),
      fmt::format("it is wanted {}; an even share of {} choices among {} experts would be {}.",
                  words::times(wanted), static_cast<std::int64_t>(trace_.tokens) * trace_.top_k,
                  experts(), words::significant(even, 3)));
}

/// Before the product: the cost of padding, on the same number of multiprocessors.
std::optional<Question> MoeRoutingScene::schemes_question() const {
  if (schemes_.size() < 2) return std::nullopt;
  const moe_routing::SchemeTrace &padded = schemes_.front(), &packed = schemes_.back();
  const double ours = std::max(1, end_of(packed)), theirs = std::max(1, end_of(padded));
  const double tiles = static_cast<double>(padded.tiles()) /
                       static_cast<double>(std::max<std::size_t>(packed.tiles(), 1));
  return ask_ratio(
      fmt::format(
          "{} multiprocessors, one tile at a time each: packed has {}; padded-to-capacity pads "
          "every expert to the fullest and has {}. How many times as long does it take?",
          moe_routing::kProcessors, words::counted(packed.tiles(), "tile"), padded.tiles()),
      theirs / ours, {tiles, 1, 4, 2, 3},
      fmt::format("packed ends after {} mma, padded-to-capacity after {}; a partial last round "
                  "takes as long as a full one.",
                  ours, theirs));
}

std::optional<Question> MoeRoutingScene::question(const View& view) const {
  if (shown_tokens() == 0) return std::nullopt;
  const auto before = [&](Step step) { return view.cursor.tile == static_cast<int>(step); };
  const auto asked = [&](const char* kind, std::optional<Question> question) {
    if (question) question = shuffled(of_kind(kind, std::move(*question)), report_);
    return question;
  };
  if (before(Step::top_k)) return asked("gate", gate_question(followed(view)));
  if (before(Step::count)) {
    // These routings' names say which expert is wanted most.
    const bool known = trace_.routing != moe_routing::Routing::random &&
                       trace_.routing != moe_routing::Routing::one_hot;
    // Few choices are not worth a scale, and where only some tokens are shown not every choice can be counted.
    const bool few = trace_.tokens * trace_.top_k < 4 * experts();
    if (!known || few || !all_shown()) return asked("busiest", busiest_question());
    return of_kind("wanted", wanted_question(token(followed(view)).expert.front()));
  }
  const bool limited = trace_.capacity >= 0;
  if (before(Step::offset)) {
    return limited ? asked("dropped", dropped_question()) : asked("slots", slots_question());
  }
  return before(Step::multiply) ? asked("schemes", schemes_question()) : std::nullopt;
}

// ---- events ---------------------------------------------------------------------------------------

void MoeRoutingScene::find_events() {
  const auto at = [&](Step step, std::string text) {
    events_.push_back({{static_cast<int>(step) + 1, 0}, std::move(text)});
  };
  const std::vector<int> most = trace_.with_most(&ExpertTrace::wanted);
  if (!most.empty()) {
    at(Step::count, fmt::format("{} {} wanted most: {}", moe_routing::experts_text(most, experts()),
                                most.size() == 1 ? "is" : "are", expert(most.front()).wanted));
  }
  const auto full = std::count_if(
      trace_.expert.begin(), trace_.expert.end(),
      [&](const auto& each) { return trace_.capacity >= 0 && each.kept >= trace_.capacity; });
  if (full > 0) {
    at(Step::offset,
       fmt::format("{} of {} experts {} full", full, experts(), full == 1 ? "is" : "are"));
  }
  if (trace_.dropped() > 0) {
    at(Step::offset, fmt::format("{} {} dropped", words::counted(trace_.dropped(), "choice"),
                                 trace_.dropped() == 1 ? "is" : "are"));
  } else if (trace_.slots() > trace_.kept()) {
    at(Step::offset,
       fmt::format("{} of {} slots stay empty", trace_.slots() - trace_.kept(), trace_.slots()));
  } else {
    at(Step::offset, "no slot stays empty");
  }
  if (schemes_.size() < 2) return;
  const int padded = end_of(schemes_.front()), packed = end_of(schemes_.back());
  if (padded > packed) {
    at(Step::multiply, fmt::format("padded to capacity {} mma, packed {}", padded, packed));
  }
}

// ---- about measurements ---------------------------------------------------------------------------

namespace {

std::optional<double> rate(const lab::Report& bench, const char* scheme, const char* routing,
                           const char* experts, const char* column = "tflops") {
  return number_with(bench, "moe_rate",
                     {{"scheme", scheme}, {"routing", routing}, {"experts", experts}}, column);
}
/// At skew 1, as the table writes it.
std::optional<double> skewed_rate(const lab::Report& bench, const char* scheme) {
  return number_with(bench, "moe_rate",
                     {{"scheme", scheme}, {"routing", "skewed"}, {"skew", "1.0"}, {"experts", "8"}},
                     "tflops");
}

/// All tokens to one expert of many: one large product instead of many small ones.
std::optional<Question> one_hot_question(const lab::Report& bench) {
  const auto even = rate(bench, "packed", "balanced", "64"),
             one = rate(bench, "packed", "one-hot", "64");
  if (!even || !one || *even <= 0 || *one <= 0) return std::nullopt;
  const double ratio = *one / *even;
  const std::vector<std::string> choices = {"Faster", "As fast, within 5 %", "Slower"};
  const std::size_t is = ratio > 1.05 ? 0 : ratio < 0.95 ? 2 : 1;
  return about_view(
      {"By skew", "By experts"}, "one-hot",
      ask("64 experts, packed. All 8192 tokens go to one of them. Is that faster or slower than "
          "even routing?",
          choices[is], choices,
          fmt::format("one expert is one large product that reads one weight matrix, but 64 with "
                      "128 tokens each read 64 ({:.0f} against {:.0f} TFLOP/s, {}).",
                      *one, *even, measured::where_measured(bench))));
}

/// The cost of padding to the fullest expert.
std::optional<Question> padding_question(const lab::Report& bench) {
  const auto slow = skewed_rate(bench, "padded-to-capacity"), fast = skewed_rate(bench, "packed");
  return ask_faster(
      bench, {"By skew", "By experts"}, "padding", {fast, slow, "useful TFLOP/s"},
      "8 experts at skew 1: padded-to-capacity gives each as many slots as the fullest needs. "
      "How many times as fast is packed, in useful work?",
      {1.2, 4, 8, 2}, "empty slots are multiplied all the same");
}

/// Busy is not useful.
std::optional<Question> busy_question(const lab::Report& bench) {
  const auto busy = [&](const char* scheme) {
    return number_with(bench, "moe_counters", {{"scheme", scheme}, {"routing", "skewed 1"}},
                       "tensor_pipe");
  };
  const auto padded = busy("padded-to-capacity"), packed = busy("packed");
  if (!padded || !packed) return std::nullopt;
  const std::vector<std::string> choices = {"padded-to-capacity's", "packed's",
                                            "Both alike, within 3 points"};
  const std::size_t is = *padded > *packed + 3 ? 0 : *packed > *padded + 3 ? 1 : 2;
  return about_view("Counters", "busy-with-nothing",
                    ask("packed and padded-to-capacity at skew 1: whose tensor pipe is busier by "
                        "hardware counters?",
                        choices[is], choices,
                        fmt::format("the counter cannot tell that most slots of the padded one are "
                                    "empty ({:.0f} % and {:.0f} %, {}).",
                                    *padded, *packed, measured::where_measured(bench))));
}

/// Many small products: one launch, or one call each.
std::optional<Question> loop_question(const lab::Report& bench) {
  const auto ours = rate(bench, "packed", "balanced", "64"),
             loop = rate(bench, "packed", "balanced", "64", "cublas_tflops");
  return ask_faster(
      bench, {"By skew", "By experts"}, "library-loop", {ours, loop, "TFLOP/s"},
      "64 experts, balanced: one cuBLAS call per expert, or packed in one launch. How many times "
      "as fast as the loop is packed?",
      {0.7, 1, 3, 2},
      "a product of 128 tokens does not fill the GPU, and one launch runs many of them side by "
      "side");
}

}  // namespace

std::vector<Question> MoeRoutingScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {one_hot_question(bench), padding_question(bench), busy_question(bench),
                          loop_question(bench)});
}

std::vector<std::string> MoeRoutingScene::stage_knobs() const {
  return {"routing", "scheme", "capacity"};
}

}  // namespace tilestep::scenes

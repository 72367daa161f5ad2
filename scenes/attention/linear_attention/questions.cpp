// The questions of the lesson on linear attention before a step, and the events of its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/linear_attention/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using linear_attention::Break, linear_attention::Phase, linear_attention::Rule;
using words::number, words::significant;

namespace {

Question who_approximates() {
  return of_kind(
      "who-approximates",
      ask("Softmax's answer and the features' will differ. What is approximate?",
          "The model's weights",
          {"The kernel: keys left out", "The arithmetic: fewer bits", "The order of products"},
          "(QK^T)V and Q(K^TV) are the same number; what differs is the weight of each "
          "key, and that is a choice of the model's."));
}

Question chunk_size() {
  return of_kind(
      "chunk-size",
      ask("The same tokens, now by chunks. What does the size of a chunk change?",
          "The time, but not the result",
          {"The result, but not the time", "The result and the time", "The size of the state"},
          "the masked product and the state share the sum between them, wherever it is "
          "cut; only rounding differs."));
}

}  // namespace

/// Before a token. The first asks about the state's size, the first that brings a key again about its value.
std::optional<Question> LinearAttentionScene::token_question(int token) const {
  const int dim = trace_.dim;
  if (token == 0) {
    return of_kind(
        "does-grow",
        ask_count(
            fmt::format("How many numbers will the state have when all {} tokens are in it?",
                        trace_.tokens),
            std::int64_t{dim} * dim,
            {std::int64_t{2} * dim * trace_.tokens, std::int64_t{dim} * trace_.tokens,
             std::int64_t{dim} * dim * trace_.tokens},
            fmt::format("a key has {0} numbers and a value too: k v^T is {0} × {0}, and every "
                        "token is added to the same matrix.",
                        dim)));
  }
  if (token == trace_.repeats + 1 && trace_.repeats > 1) {
    const int key = trace_.key_of(token);
    const double before = trace_.strength_before(token), after = trace_.strength(token, key);
    if (!std::isfinite(after) || !std::isfinite(before)) return std::nullopt;
    const auto axes = extent().axes;
    const auto axis = std::find_if(axes.begin(), axes.end(), [](const picture::Axis& one) {
      return one.name == picture::Name("strength");
    });
    return of_kind(
        "held-again",
        ask_to_set(fmt::format("S holds {} of key {}'s value. A new one comes: how much of that "
                               "will S hold?",
                               number(before, 2), key),
                   {"recall_plot"}, "strength", after, 0.06 * (axis->high - axis->low),
                   trace_.rule == Rule::delta || trace_.rule == Rule::gated_delta
                       ? fmt::format("the rule writes what is missing: {}.", number(after, 2))
                       : fmt::format("the new value is added to what S holds for keys that "
                                     "resemble this one: {}.",
                                     number(after, 2))));
  }
  if (token != trace_.repeats) return std::nullopt;
  const double off = trace_.off(token, trace_.key_of(token));
  if (!std::isfinite(off)) return std::nullopt;
  const std::vector<std::string> answers = {"The new value alone", "Old and new, added up",
                                            "The new one, the old one faded",
                                            "Part of the way to the new"};
  const std::size_t right = off < 0.05                  ? 0
                            : trace_.rule == Rule::sum  ? 1
                            : trace_.rule == Rule::gate ? (trace_.gate < 1 ? 2 : 1)
                                                        : 3;
  const char* because =
      right == 0   ? "what S held for the key was taken out before the value was added."
      : right == 1 ? "nothing was taken out: the new value is added to the old one."
      : right == 2 ? "the gate shrinks all of S, whatever the key; then the value is added."
                   : "only a part of the difference is written.";
  return of_kind(
      "comes-again",
      ask(fmt::format("Key 0 comes again, with a new value. What will S then hold for it "
                      "by the rule {}?",
                      name_of(trace_.rule)),
          answers[right], answers, because));
}

std::optional<Question> LinearAttentionScene::chunk_question(int chunk) const {
  if (chunk == 0) return chunk_size();
  if (chunk != 1 || trace_.broken != Break::none) return std::nullopt;
  const int token = first_of(1);
  return of_kind(
      "from-state",
      ask_count(fmt::format("Token {} begins a chunk. How many tokens does it look at one by one, "
                            "not through the state?",
                            token),
                1, {token + 1, token, 0},
                fmt::format("itself alone: all {} before it are in the state.", token)));
}

std::optional<Question> LinearAttentionScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  std::optional<Question> question;
  const Cursor there{next, 0};
  switch (part_of(there)) {
    case Part::weights:
      if (next == 1) question = who_approximates();
      break;
    case Part::tokens:
      question = token_question(token_of(there));
      break;
    case Part::chunks:
      question = chunk_question(chunk_of(there));
      break;
    case Part::lengths:
      question = of_kind(
          "flops",
          ask_ratio("From token 1,024 to token 65,536: how many times as many FLOPs does a token "
                    "take with a state?",
                    1.0, {64.0, 8.0, 4096.0},
                    fmt::format("S is written and read as a whole for each token, {} FLOPs; with "
                                "softmax it would be 64 times as many.",
                                significant(linear_attention::state_flops(trace_.dim), 4))));
      break;
  }
  return placed(std::move(question), report_, picture::Key{"gap"});
}

void LinearAttentionScene::find_events() {
  events_.clear();
  const int second = static_cast<int>(Phase::after);
  events_.push_back({{1, second}, "both orders, one answer"});
  if (trace_.repeats < trace_.tokens)
    events_.push_back({{trace_.step_of_token(trace_.repeats), second}, "a key comes again"});
  for (int chunk = 0; chunk < trace_.chunks(); ++chunk) {
    if (wrong_in(chunk) == 0) continue;
    events_.push_back({{trace_.step_of_chunk(chunk), second}, "outputs are wrong"});
    break;
  }
  events_.push_back({{trace_.step_of_chunk(trace_.chunks() - 1), second}, "all chunks are done"});
  events_.push_back({{trace_.length(), second}, "the state does not grow"});
}

}  // namespace tilestep::scenes

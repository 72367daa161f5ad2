// The questions of the lesson on many GPUs before a step, and the events of its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/words.hpp"
#include "scenes/systems/parallelism/scene.hpp"

namespace tilestep::scenes {

using parallelism::Algorithm, parallelism::Break, parallelism::Cut, parallelism::Kind;
using words::percent, words::significant;

std::optional<Question> ParallelismScene::beat_question(int next) const {
  if (trace_.broken == Break::wrong_order && next == trace_.beats()) {
    return of_kind("who-waits",
                   ask("Rank 0 makes its two all-reduces in another order than the rest. What "
                       "happens?",
                       "All wait for each other",
                       {"The sums are swapped", "Rank 0 is skipped", "It is slower and right"},
                       "each waits in a call that its neighbour has not begun."));
  }
  if (trace_.broken != Break::none) return std::nullopt;
  const double message = trace_.message;
  if (next == 1) {
    const std::string why =
        trace_.algorithm == Algorithm::ring
            ? "n − 1 chunks go out to be summed and n − 1 as sums, a chunk being 1/n of the "
              "message."
        : trace_.algorithm == Algorithm::tree
            ? "a rank sends its sum up once, and the total down to each below it."
            : "its whole message goes to each of the others.";
    return of_kind(
        "bytes-sent",
        ask_to_set(fmt::format("{} ranks add up {} bytes each. What is the most bytes that one "
                               "sends?",
                               trace_.ranks, trace_.message),
                   {"byte_bars"}, "sent", sent_in_all(), 0.1 * message, why));
  }
  if (trace_.algorithm == Algorithm::ring && next == trace_.ranks) {
    return of_kind(
        "beats-left",
        ask_count(fmt::format("After {} beats each rank has one chunk of the total. How "
                              "many more beats until all have all?",
                              trace_.ranks - 1),
                  trace_.ranks - 1, {1, 2 * (trace_.ranks - 1), trace_.ranks, trace_.ranks - 2},
                  "each chunk has to pass n − 1 links again."));
  }
  return std::nullopt;
}

std::optional<Question> ParallelismScene::cut_question() const {
  if (trace_.cut == Cut::fsdp) {
    return of_kind("fsdp-bytes",
                   ask("Data parallelism all-reduces gradients. FSDP gathers weights twice and "
                       "scatters gradients. How many times the bytes?",
                       "1.5×", {"1×", "2×", "3×"},
                       "an all-reduce is a scatter and a gather: two passes against three."));
  }
  return of_kind(
      "parameters-held",
      ask(fmt::format("The model is cut by {}. How much of its parameters does a rank hold?",
                      name_of(trace_.cut)),
          part_words(Kind::parameters),
          {"all", percent(1.0 / trace_.ranks), percent(2.0 / trace_.ranks),
           percent(0.5 / trace_.ranks), "none"},
          trace_.cut == Cut::data || trace_.cut == Cut::context
              ? "tokens are divided, and each rank needs every weight for its own."
              : "weights are divided, and what they make is put together by collectives."));
}

Question ParallelismScene::bubble_question() const {
  const double bubble = parallelism::bubble_of(trace_.slots, trace_.ranks);
  const double plain = (trace_.ranks - 1.0) / (trace_.microbatches + trace_.ranks - 1.0);
  return of_kind(
      "bubble",
      ask_number(
          fmt::format("{} ranks, {}, {}. For what share of the time does a rank do nothing?",
                      trace_.ranks,
                      words::counted(trace_.microbatches, "microbatch", "microbatches"),
                      name_of(trace_.schedule)),
          100 * bubble, {100 * plain, 0.0, 50 * bubble, 100.0 / trace_.ranks, 90.0},
          [](double share) { return significant(share, 3) + " %"; },
          trace_.schedule == parallelism::Schedule::interleaved
              ? "with two stages a rank, pieces are half as long, and so is each wait."
              : "p − 1 of m + p − 1 turns pass while the pipeline fills and drains."));
}

Question ParallelismScene::plan_question() const {
  std::string best;
  double least = 1e300;
  std::vector<std::string> others;
  for (const Cut cut : all_of<Cut>()) {
    const double bytes = parallelism::planned(cut, trace_.ranks, trace_.tokens, trace_.schedule,
                                              trace_.microbatches, trace_.link)
                             .memory();
    others.emplace_back(name_of(cut));
    if (bytes >= least) continue;
    least = bytes;
    best = name_of(cut);
  }
  return of_kind("least-memory",
                 ask(fmt::format("32 layers, {} ranks, {} tokens. Which cut needs the least memory "
                                 "of a rank?",
                                 trace_.ranks, trace_.tokens),
                     best, others,
                     fmt::format("it needs {} GB; what is copied to every rank decides, weights "
                                 "with their optimizer, or activations.",
                                 significant(least * 1e-9, 3))));
}

std::optional<Question> ParallelismScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  std::optional<Question> question = next <= trace_.beats()           ? beat_question(next)
                                     : next == trace_.cut_step()      ? cut_question()
                                     : next == trace_.pipeline_step() ? bubble_question()
                                                                      : plan_question();
  return placed(std::move(question), report_, picture::Key{"gap"});
}

void ParallelismScene::find_events() {
  events_.clear();
  const int arrive = static_cast<int>(parallelism::Phase::arrive);
  if (trace_.algorithm == Algorithm::ring && trace_.ranks > 2 && trace_.broken == Break::none)
    events_.push_back({{trace_.ranks - 1, arrive}, "each rank has a chunk of the total"});
  events_.push_back({{trace_.beats(), arrive},
                     trace_.broken == Break::none ? "all have the sum" : "something is wrong"});
  events_.push_back({{trace_.pipeline_step(), arrive}, "a pipeline's bubble"});
}

}  // namespace tilestep::scenes

// Texts and questions shared by the lessons on the matrix of scores.
#include <fmt/format.h>

#include <cmath>

#include "scenes/attention/shared/matrix.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using attention::BrokenResult, attention::Matrix;
using words::number;

Readout computed_readout(const Matrix& trace, int tiles) {
  return {
      "tiles",
      "tiles of scores",
      std::to_string(tiles),
      fmt::format("of {}", trace.visits.size()),
      lab::Provenance::traced,
      fmt::format("computed so far for head {}; {} by the end", trace.chosen.head, visited(trace))};
}

Readout bytes_readout(const char* label, double bytes, const std::string& kernel) {
  return {"asked",
          label,
          bytes_text(bytes),
          "",
          kernel.empty() ? lab::Provenance::derived : lab::Provenance::traced,
          kernel.empty() ? "traced bytes of each tensor, times the share of its tiles that are done"
                         : kernel};
}

Readout off_readout(const Matrix& trace, const char* label, double got, double exact, bool failed) {
  const bool wrong = (trace.broken != attention::Break::none && trace.result.wrong > 0) ||
                     (failed && !words::close(got, exact, 1e-2));
  return {
      "error",
      label,
      number(std::abs(got - exact), 4),
      "",
      lab::Provenance::derived,
      fmt::format("|{} − {}|: component {} of the query, against double on the same rounded inputs",
                  number(got, 5), number(exact, 5), trace.chosen.component),
      wrong ? Readout::wrong : Readout::good};
}

// ---- result of a break --------------------------------------------------------------------------------

std::string outcome_of(const Matrix& trace, std::string_view of, bool several) {
  const BrokenResult& what = trace.result;
  if (what.wrong > 0) {
    return fmt::format("{} of {} numbers of {} {} wrong.", what.wrong, what.elements, of,
                       what.wrong == 1 ? "is" : "are");
  }
  if (trace.broken == attention::Break::materialize && what.more_bytes > 0) {
    return fmt::format("{} {} right, and {} were written for nothing.", of, several ? "are" : "is",
                       bytes_text(static_cast<double>(what.more_bytes)));
  }
  return fmt::format("{} {} right this time, which proves nothing.", of, several ? "are" : "is");
}

Question outcome_question(const Matrix& trace, std::string_view broken, std::string_view of,
                          bool several) {
  const BrokenResult& what = trace.result;
  const std::vector<std::string> choices = {
      fmt::format("{} {} out right", of, several ? "come" : "comes"),
      fmt::format("Some of {} is wrong", of), fmt::format("All of {} is wrong", of)};
  const std::size_t is = what.wrong == 0 ? 0 : what.wrong < what.elements ? 1 : 2;
  return about({"outputs"}, ask(fmt::format("The {} broken on purpose: {}. What happened?", broken,
                                            name_of(trace.broken)),
                                choices[is], choices, outcome_of(trace, of, several)));
}

picture::Text result_sentence_of(const Matrix& trace, bool names_tensor) {
  const BrokenResult& what = trace.result;
  if (what.wrong == 0) {
    return trace.broken == attention::Break::materialize
               ? picture::text("no number is wrong: only the bytes tell", "no number is wrong")
               : picture::text("no number is wrong");
  }
  const bool of_key = what.tensor == attention::Tensor::dk || what.tensor == attention::Tensor::dv;
  const std::string tensor = names_tensor ? fmt::format("{}, ", name_of(what.tensor)) : "";
  const std::string row = fmt::format("{} {}", of_key ? "key" : "query", what.query);
  const std::string numbers =
      fmt::format("{} instead of {}", number(what.got, 4), number(what.want, 4));
  return picture::text(
      fmt::format("first wrong: {}head {}, {}, component {}: {}; worst by {}", tensor, what.head,
                  row, what.component, numbers, number(what.largest, 4)),
      fmt::format("{}{}: {}", tensor, row, numbers), numbers);
}

std::vector<std::string> dispatch_notes(const Matrix& trace) {
  std::vector<std::string> lines;
  for (const std::string* line : {&trace.plan.filled, &trace.plan.resized, &trace.plan.cut}) {
    if (!line->empty()) lines.push_back(*line);
  }
  return lines;
}

std::string chosen_words(const Matrix& trace, int k_tile) {
  std::string said = fmt::format("query {}", trace.chosen.query);
  if (trace.shape.heads > 1) said += fmt::format(" of head {}", trace.chosen.head);
  if (k_tile >= 0) said += fmt::format(", at keys {}", rows_of(trace, k_tile, false));
  return said;
}

// ---- questions ----------------------------------------------------------------------------------------

Question visited_question(const Matrix& trace, const char* verb, std::vector<std::int64_t> others,
                          std::string because) {
  const auto all = std::ssize(trace.visits);
  const auto diagonal = static_cast<std::int64_t>(trace.plan.q_tiles);
  for (const std::int64_t other :
       {all, all / 2, (all - diagonal) / 2, all / 2 + diagonal / 2, diagonal}) {
    others.push_back(other);
  }
  return about(
      {"scores"},
      ask_count(fmt::format("{} × {} tiles of scores, mask {}. How many of them {} per head?",
                            trace.plan.q_tiles, trace.plan.k_tiles, name_of(trace.mask), verb),
                visited(trace), others, std::move(because)));
}

Question shrunk_sum_question(const Matrix& trace, int k_tile, const Shrinking& by, double most_l) {
  const double kept = by.l * by.rescale;
  const std::string before = number(by.m_before, 2), after = number(by.m_after, 2);
  return ask_to_set(fmt::format("Tile {} raises m of query {} from {} to {}; ℓ is {}. What does ℓ "
                                "shrink to before the tile's weights are added?",
                                k_tile, trace.chosen.query, before, after, number(by.l, 2)),
                    // Never so wide that the unchanged ℓ would pass.
                    {"bar_l"}, "l", kept, std::min(0.06 * most_l, (by.l - kept) / 2),
                    fmt::format("ℓ · exp({} − {}) = {}.", before, after, number(kept, 2)));
}

std::optional<double> rate_of(const lab::Report& bench, const char* table, std::string_view rung,
                              std::string_view length, std::string_view column) {
  return number_with(bench, table,
                     {{"rung", rung}, {"head_dim", "128"}, {"mask", "none"}, {"length", length}},
                     column);
}

std::optional<Question> library_question(const lab::Report& bench, const char* view,
                                         const char* table, const char* rung) {
  const auto ours = rate_of(bench, table, rung, "16384"),
             share = rate_of(bench, table, rung, "16384", "fraction");
  if (!ours || !share) return std::nullopt;
  const std::vector<std::string> choices = {"More", "90 to 100 %", "70 to 90 %", "Less than 70 %"};
  const std::size_t is = *share > 1 ? 0 : *share >= 0.9 ? 1 : *share >= 0.7 ? 2 : 3;
  return about_view(
      view, "library",
      ask(fmt::format("{} at head dimension 128, length 16384: what fraction of cuDNN's rate?",
                      rung),
          choices[is], choices,
          fmt::format("it reaches {:.0f} TFLOP/s, {} of cuDNN's ({}).", *ours,
                      words::percent(*share), measured::where_measured(bench))));
}

}  // namespace tilestep::scenes

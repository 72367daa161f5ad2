// The trace as JSON.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/attention/positions/lesson.hpp"
#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::positions {
namespace {

lab::Fields<Moved> moved_fields() {
  return lab::Fields<Moved>()
      .name("stage", &Moved::stage)
      .from(lab::kAhead)
      .real(TILESTEP_MEMBERS(Moved, read, written));
}
lab::Fields<Far> far_fields() {
  return lab::Fields<Far>().reals(TILESTEP_MEMBERS(Far, score, slow), kSamples);
}
lab::Fields<BrokenResult> result_fields() {
  return lab::Fields<BrokenResult>()
      .text("outcome", &BrokenResult::outcome)
      .whole(TILESTEP_MEMBERS(BrokenResult, wrong, elements), 0, lab::kMostCount);
}

/// The step of the pair that a number of a head belongs to.
lab::When when_turned(const Trace& trace, std::size_t at) {
  const int number = static_cast<int>(at) % trace.dim;
  return {pair_with(trace.pairs, trace.dim, number) + 1, static_cast<int>(Phase::rotate)};
}
lab::When when_scored(const Trace& trace, std::size_t at) {
  return {static_cast<int>(at) % trace.pairs_of_head() + 1, static_cast<int>(Phase::score)};
}
lab::When when_summed(const Trace& trace) {
  return {trace.pairs_of_head(), static_cast<int>(Phase::score)};
}
lab::When when_extended(const Trace& trace) {
  return {trace.extension(), static_cast<int>(Phase::score)};
}
nlohmann::json other_far(const Trace&, const lab::Change&) {
  const std::vector<float> some(kSamples, 0.25f);
  return far_fields().to_json(Far{some, some});
}
int of_head(const Trace& trace) {
  return trace.dim;
}
int of_keys(const Trace& trace) {
  return kTokens * trace.dim;
}
int of_terms(const Trace& trace) {
  return kTokens * trace.pairs_of_head();
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name(TILESTEP_MEMBERS(Trace, method, pairs, broken))
      .flag("fused", &Trace::fused)
      .whole("dim", &Trace::dim, 2, 256)
      .whole("trained_length", &Trace::trained_length, 1, kMostPosition)
      .real(TILESTEP_MEMBERS(Trace, base, scale))
      .wholes("positions", &Trace::positions, kTokens, 0, kMostPosition)
      .reals(TILESTEP_MEMBERS(Trace, q, k), of_head)
      .reals("q_turned", &Trace::q_turned, of_head)
      .known_each(when_turned)
      .reals("k_turned", &Trace::k_turned, of_keys)
      .known_each(when_turned)
      .reals("terms", &Trace::terms, of_terms)
      .known_each(when_scored)
      .reals(TILESTEP_MEMBERS(Trace, scores, sound), kTokens)
      .known_each([](const Trace& trace, std::size_t) { return when_summed(trace); })
      .whole("reach", &Trace::reach, 1, kMostPosition)
      .object("far", &Trace::far, far_fields())
      .known(when_extended, other_far)
      .object("untouched", &Trace::untouched, far_fields())
      .known(when_extended, other_far)
      .list("together", &Trace::together, moved_fields(), lab::kAnyCount)
      .known_each([](const Trace& trace, std::size_t) {
        return lab::When{trace.length(), static_cast<int>(Phase::score)};
      })
      .list("apart", &Trace::apart, moved_fields(), lab::kAnyCount)
      .known_each([](const Trace& trace, std::size_t) {
        return lab::When{trace.length(), static_cast<int>(Phase::rotate)};
      })
      .object("result", &Trace::result, result_fields())
      .known(when_summed, [](const Trace&, const lab::Change&) {
        return result_fields().to_json(BrokenResult{"something else", 1, 2});
      });
}

}  // namespace

int Trace::distance(int sample) const {
  return static_cast<int>(std::int64_t{sample} * reach / (kSamples - 1));
}

int Trace::first_slow() const {
  Turning trained = turning();
  trained.method = Method::rope;
  const std::vector<double> each = turns_of(trained);
  const auto slow = std::find_if(each.begin(), each.end() - 1,
                                 [this](double turns) { return turns * trained_length < 1; });
  return static_cast<int>(slow - each.begin());
}

bool Trace::operator==(const Trace& other) const {
  return to_json(*this) == to_json(other);
}

std::array<int, 3> step_lines() {
  return lab::source_marks(kSourcePath).lines({"norm", "pair", "store"});
}
std::array<int, 2> score_lines() {
  return lab::source_marks(kScoresPath).lines({"score", "bias"});
}

TILESTEP_TRACE_JSON("positions trace", trace_fields())

}  // namespace tilestep::positions

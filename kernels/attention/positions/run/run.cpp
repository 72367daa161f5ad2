// Runs the lesson's kernels: the word's tokens in two launches, as after a cache hit, fused and apart; the last token's
// query against all keys; and keys as far away as positions shall reach.

#include "kernels/attention/positions/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::positions {
namespace {

/// Tokens that are all the same word, and the memory of their launches: a query head and a K/V head.
class Memory {
 public:
  Memory(simt::Device& device, const Inputs& inputs, Pairs pairs, const Turning& turning,
         const std::vector<int>& positions)
      : device_(device),
        shape_{.tokens = static_cast<int>(positions.size()),
               .dim = turning.dim,
               .page_size = kPageSize,
               .pairs = pairs,
               .size = size_of(turning)},
        slots_(slots_of(shape_.tokens)),
        qkv_(lab::uploaded(device, rows_of_word(inputs, shape_.tokens))),
        q_gain_(lab::uploaded(device, inputs.q_gain)),
        k_gain_(lab::uploaded(device, inputs.k_gain)),
        q_(lab::unwritten<std::uint16_t>(device, count(shape_.tokens))),
        keys_(lab::unwritten<std::uint16_t>(device, count(shape_.tokens))),
        k_cache_(lab::unwritten<std::uint16_t>(device, count(room()))),
        v_cache_(lab::unwritten<std::uint16_t>(device, count(room()))),
        positions_(lab::uploaded(device, positions)),
        slots_there_(lab::uploaded(device, slots_)),
        rates_(lab::uploaded(device, rates_of(turning))),
        slope_(turning.method == Method::alibi ? kSlope : 0.0f) {}

  HeadsShape shape(int tokens) const {
    HeadsShape some = shape_;
    some.tokens = tokens;
    return some;
  }
  /// Of `tokens` tokens from `first` on.
  HeadsArrays arrays(int first, int tokens) {
    const auto part = [&](auto span, int each) {
      span.data += static_cast<std::size_t>(first) * static_cast<std::size_t>(each);
      span.count = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(each);
      return span;
    };
    HeadsArrays all;
    all.qkv = part(std::as_const(qkv_).span(), 3 * shape_.dim);
    all.q = part(q_.span(), shape_.dim);
    all.keys = part(keys_.span(), shape_.dim);
    all.k_cache = k_cache_.span();
    all.v_cache = v_cache_.span();
    all.q_gain = std::as_const(q_gain_).span();
    all.k_gain = std::as_const(k_gain_).span();
    all.positions = part(std::as_const(positions_).span(), 1);
    all.slots = part(std::as_const(slots_there_).span(), 1);
    all.rates = std::as_const(rates_).span();
    return all;
  }

  /// The last token's query against all keys; an empty tape records nothing.
  std::vector<float> scores(const simt::Tape& tape) {
    auto scores = lab::unwritten<float>(device_, slots_.size());
    const std::vector<int> positions = positions_.download();
    const std::size_t last = count(shape_.tokens - 1);
    const ScoresShape shape{.keys = shape_.tokens,
                            .dim = shape_.dim,
                            .page_size = kPageSize,
                            .pairs = shape_.pairs,
                            .scale = 1 / std::sqrt(static_cast<float>(shape_.dim)),
                            .slope = slope_,
                            .position = positions.back()};
    kernels_of(device_).scores(device_, shape,
                               {{std::as_const(q_).span().data + last, count(1)},
                                std::as_const(k_cache_).span(),
                                std::as_const(positions_).span(),
                                std::as_const(slots_there_).span(),
                                scores.span()},
                               tape);
    device_.synchronize();
    return scores.download();
  }
  Results results(std::vector<float> scores) const {
    return {q_.download(), by_token(k_cache_.download()), by_token(v_cache_.download()),
            std::move(scores)};
  }

 private:
  std::size_t count(int rows) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(shape_.dim);
  }
  int room() const { return (shape_.tokens + kPageSize - 1) / kPageSize * kPageSize; }
  /// The last page of the pool first: where a page lies says nothing.
  static std::vector<int> slots_of(int tokens) {
    const int pages = (tokens + kPageSize - 1) / kPageSize;
    std::vector<int> slots;
    for (int t = 0; t < tokens; ++t)
      slots.push_back((pages - 1 - t / kPageSize) * kPageSize + t % kPageSize);
    return slots;
  }
  static Words rows_of_word(const Inputs& inputs, int tokens) {
    Words rows;
    for (int t = 0; t < tokens; ++t) {
      for (const Words* head : {&inputs.q, &inputs.k, &inputs.v})
        rows.insert(rows.end(), head->begin(), head->end());
    }
    return rows;
  }
  Words by_token(const Words& cache) const {
    Words all;
    for (const int slot : slots_) {
      const auto at = cache.begin() + static_cast<std::ptrdiff_t>(count(slot));
      all.insert(all.end(), at, at + shape_.dim);
    }
    return all;
  }

  simt::Device& device_;
  HeadsShape shape_;
  std::vector<int> slots_;
  simt::Buffer<std::uint16_t> qkv_, q_gain_, k_gain_, q_, keys_, k_cache_, v_cache_;
  simt::Buffer<int> positions_, slots_there_;
  simt::Buffer<std::uint64_t> rates_;
  float slope_;
};

std::vector<Stage> stages_of(bool fused) {
  return fused ? std::vector{Stage::fused} : std::vector(std::begin(kApart), std::end(kApart));
}

/// What the explained launches left and noted.
struct Explained {
  Results results;
  std::vector<float> normed;  ///< a query, a key
  std::size_t noted = 0;
  std::vector<float> terms;
  std::vector<Moved> moved;  ///< of the stages
};

/// The numbers that a launch has noted: of a query, a key or both. `noted` counts those of all launches.
void take_normed(const simt::Trace::Log& log, Explained& to) {
  const std::size_t count = to.normed.size();
  // What differs by what stands for a missing one is missing.
  const auto low = log.notes<float>(kNormed, count, 0), high = log.notes<float>(kNormed, count, 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (low[i] == 0 && high[i] == 1) continue;
    to.normed[i] = low[i];
    ++to.noted;
  }
}

/// The tokens' launches, those of the cache hit first, and the scores.
Explained explained(simt::Device& device, const Run& run, const std::vector<int>& positions,
                    bool fused, Break broken) {
  const Params& params = run.params;
  const int dim = params.dim();
  Memory memory(device, run.inputs, params.pairs, params.turning(), positions);
  Explained all;
  all.normed.assign(2 * static_cast<std::size_t>(dim), 0.0f);
  for (const Stage stage : stages_of(fused)) {
    Moved& moved = all.moved.emplace_back();
    moved.stage = stage;
  }
  for (const auto& [first, tokens] : {std::pair{0, kHit}, {kHit, kTokens - kHit}}) {
    std::size_t at = 0;
    for (const Stage stage : stages_of(fused)) {
      simt::Trace recording(
          device, static_cast<std::size_t>(kTokens) * 16 * static_cast<std::size_t>(dim) / 8 +
                      4 * static_cast<std::size_t>(dim));
      kernels_of(device).explained_heads(device, stage, memory.shape(tokens),
                                         memory.arrays(first, tokens), broken, recording.tape());
      device.synchronize();
      const simt::Trace::Log log = recording.download();
      for (const simt::TraceRecord& one : log.records) {
        double& bytes =
            one.kind == simt::AccessKind::store ? all.moved[at].written : all.moved[at].read;
        bytes += static_cast<double>(one.bytes) / kTokens;
      }
      take_normed(log, all);
      ++at;
    }
  }
  // Once for each of the two launches' last tokens.
  if (all.noted != 2 * all.normed.size())
    simt::refuse_unrecorded("the normed query and key", all.noted, 2 * all.normed.size());
  const std::size_t terms = static_cast<std::size_t>(kTokens) * static_cast<std::size_t>(dim / 2);
  simt::Trace recording(device, terms);
  all.results = memory.results(memory.scores(recording.tape()));
  all.terms = recording.download().all_notes<float>(kTerm, terms, "the terms of the scores");
  return all;
}

/// The same by the timed kernels, all tokens at once.
Results timed(simt::Device& device, const Run& run, const std::vector<int>& positions, bool fused) {
  Memory memory(device, run.inputs, run.params.pairs, run.params.turning(), positions);
  for (const Stage stage : stages_of(fused))
    kernels_of(device).heads(device, stage, memory.shape(kTokens), memory.arrays(0, kTokens));
  device.synchronize();
  return memory.results(memory.scores({}));
}

/// Keys at the samples' distances from a query as far away as positions shall reach.
Far far_scores(simt::Device& device, const Run& run, const Turning& turning) {
  std::vector<int> positions;
  for (int sample = 0; sample < kSamples; ++sample)
    positions.push_back(run.trace.reach - run.trace.distance(sample));
  positions.push_back(run.trace.reach);
  const auto tokens = static_cast<int>(positions.size());
  const auto pairs = static_cast<std::size_t>(turning.pairs());
  Memory memory(device, run.inputs, run.params.pairs, turning, positions);
  kernels_of(device).heads(device, Stage::fused, memory.shape(tokens), memory.arrays(0, tokens));
  simt::Trace recording(device, static_cast<std::size_t>(tokens) * pairs);
  Far far{.score = memory.scores(recording.tape()), .slow = {}};
  const std::vector<float> terms = recording.download().all_notes<float>(
      kTerm, static_cast<std::size_t>(tokens) * pairs, "the terms of far scores");
  far.score.resize(kSamples);
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    // All but the fast pairs' terms: a bias stays in.
    float fast = 0;
    for (int pair = 0; pair < run.trace.first_slow(); ++pair)
      fast += terms[sample * pairs + static_cast<std::size_t>(pair)];
    far.slow.push_back(far.score[sample] - fast);
  }
  return far;
}

std::vector<float> some(const std::vector<float>& values, std::size_t first, int count) {
  const auto from = values.begin() + static_cast<std::ptrdiff_t>(first);
  return {from, from + count};
}

void fill(Trace& trace, const Explained& shown, const std::vector<int>& positions) {
  const auto dim = static_cast<std::size_t>(trace.dim);
  trace.positions = positions;
  trace.q = some(shown.normed, 0, trace.dim);
  trace.k = some(shown.normed, dim, trace.dim);
  trace.q_turned = some(values_of(shown.results.q), (kTokens - 1) * dim, trace.dim);
  trace.k_turned = values_of(shown.results.k);
  trace.terms = shown.terms;
  trace.scores = shown.results.scores;
}

void break_it(Run& run, simt::Device& device) {
  const Params& params = run.params;
  std::vector<int> positions = run.positions;
  if (params.broken == Break::position_off_by_one) {
    for (std::size_t t = kHit; t < positions.size(); ++t) --positions[t];
  }
  const Explained shown = explained(device, run, positions, params.fused, params.broken);
  fill(run.trace, shown, positions);
  const Compared found = compared(run, shown.results, run.positions, !params.fused);
  BrokenResult& result = run.trace.result;
  result.wrong = found.wrong;
  result.elements = 3 * kTokens * params.dim();
  result.outcome = result.wrong == 0
                       ? "no number is wrong all the same"
                       : fmt::format("{} of {} numbers are wrong", result.wrong, result.elements);
}

}  // namespace

Compared compared(const Run& run, const Results& results, const std::vector<int>& positions,
                  bool apart) {
  const Turning turning = run.params.turning();
  const auto dim = static_cast<std::size_t>(turning.dim);
  Compared all;
  const auto look = [&](lab::Closest& closest, const numeric::AllBounded& exact, const Words& got,
                        std::size_t token) {
    for (std::size_t i = 0; i < dim; ++i) {
      const float value = numeric::Bf16::value(got[token * dim + i]);
      closest.add(value, exact.value[i], exact.bound[i],
                  [&] { return fmt::format("token {}, number {}", token, i); });
      const double error = std::abs(static_cast<double>(value) - exact.value[i]);
      all.wrong += error <= exact.bound[i] ? 0 : 1;
    }
  };
  const auto head = [&](const Words& words, const Words& gain, int position) {
    return reference_head(words, gain, turning, run.params.pairs, position, apart);
  };
  const numeric::AllBounded last = head(run.inputs.q, run.inputs.q_gain, positions.back());
  for (std::size_t token = 0; token < positions.size(); ++token) {
    const int position = positions[token];
    look(all.queries, head(run.inputs.q, run.inputs.q_gain, position), results.q, token);
    const numeric::AllBounded key = head(run.inputs.k, run.inputs.k_gain, position);
    look(all.keys, key, results.k, token);
    for (std::size_t i = 0; i < dim; ++i) {
      all.values_wrong += results.v[token * dim + i] != run.inputs.v[i] ? 1 : 0;
    }
    const double slope = turning.method == Method::alibi ? static_cast<double>(kSlope) : 0;
    const numeric::Bounded score =
        reference_score(last, key, -slope * (positions.back() - position));
    all.scores.add(results.scores[token], score.value, score.bound,
                   [&] { return fmt::format("token {}", token); });
  }
  all.wrong += all.values_wrong;
  return all;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0.05, "making a word");
  run.inputs = make_inputs(params.dim(), params.pairs, params.seed);
  run.positions.resize(kTokens);
  std::iota(run.positions.begin(), run.positions.end(), params.shift);
  Trace& trace = run.trace;
  trace.method = params.method;
  trace.pairs = params.pairs;
  trace.broken = params.broken;
  trace.fused = params.fused;
  trace.dim = params.dim();
  trace.trained_length = params.trained_length;
  trace.base = params.base;
  trace.scale = params.scale;
  const double times = stretches(params.method) ? std::max(4.0, params.scale) : 4.0;
  trace.reach = static_cast<int>(times * params.trained_length);
  progress.check();

  progress.report(0.2, "turning all tokens");
  run.together = timed(device, run, run.positions, true);
  run.apart = timed(device, run, run.positions, false);
  std::vector<int> start(kTokens);
  std::iota(start.begin(), start.end(), 0);
  run.at_start = timed(device, run, start, true);
  progress.check();

  progress.report(0.4, "recording them");
  const Explained together = explained(device, run, run.positions, true, Break::none);
  const Explained apart = explained(device, run, run.positions, false, Break::none);
  trace.together = together.moved;
  trace.apart = apart.moved;
  fill(trace, params.fused ? together : apart, run.positions);
  trace.sound = trace.scores;
  progress.check();
  if (params.broken != Break::none) break_it(run, device);

  progress.report(0.7, "keys far away");
  trace.far = far_scores(device, run, params.turning());
  Turning untouched = params.turning();
  untouched.method = Method::rope;
  trace.untouched = far_scores(device, run, untouched);
  return run;
}

}  // namespace tilestep::positions

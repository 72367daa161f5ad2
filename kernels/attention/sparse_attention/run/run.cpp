// Runs the lesson's kernels: every method's rule, its tiles, attention through them; the indexer and attention over what
// it chose.

#include "kernels/attention/sparse_attention/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/base/lab/result.hpp"

namespace tilestep::sparse_attention {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

std::size_t count(int a, int b = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

/// The device's memory of a run, and its launches.
class Memory {
 public:
  Memory(simt::Device& device, const Params& params, const Inputs& inputs)
      : device_(device),
        params_(params),
        length_(inputs.length),
        q_(lab::uploaded(device, inputs.q)),
        k_(lab::uploaded(device, inputs.k)),
        v_(lab::uploaded(device, inputs.v)),
        cache_(lab::uploaded(device, inputs.cache)),
        weights_(lab::uploaded(device, inputs.index_weights)),
        scales_(lab::uploaded(device, inputs.index_scales)),
        index_q_(lab::uploaded(device, inputs.index_q)),
        keys_(lab::uploaded(device, inputs.index_keys)),
        documents_(lab::uploaded(device, inputs.documents)),
        table_(lab::uploaded(device, inputs.table)),
        pairs_(device, count(length_, length_)),
        kinds_(device, count(tiles_of(length_, kTileSizes[0]), tiles_of(length_, kTileSizes[0]))),
        o_(device, count(length_, kValue)),
        lse_(device, count(length_)) {}

  std::vector<int> pairs(Method method) {
    return lab::result_of(device_, pairs_, [&] {
      kernels_of(device_).pairs(device_, shape(method, params_.tile()), arrays());
    });
  }
  std::vector<int> kinds(Method method, int tile, Finding finding) {
    std::vector<int> all = lab::result_of(device_, kinds_, [&] {
      kernels_of(device_).tiles(device_, shape(method, tile), finding, arrays());
    });
    all.resize(count(tiles_of(length_, tile), tiles_of(length_, tile)));
    return all;
  }
  /// Attention through the block mask that is found so; recorded unless `plain`.
  Masked masked(Method method, Finding finding, bool plain) {
    const int tile = params_.tile();
    Masked all;
    all.pairs = pairs(method);
    all.kinds = kinds(method, tile, finding);
    lse_.fill(0xFF);
    const std::size_t tiles = all.kinds.size();
    simt::Trace trace(device_, plain ? 1 : tiles + count(length_ + tile, length_ + tile));
    all.o = lab::result_of(device_, o_, [&] {
      kernels_of(device_).attend(device_, shape(method, tile), arrays(),
                                 plain ? simt::Tape{} : trace.tape());
    });
    all.lse = lse_.download();
    if (plain) return all;
    const auto log = trace.download();
    all.visited = log.notes<int>(kVisit, tiles, 0);
    all.scores = log.notes<float>(kScore, count(length_, length_), NAN);
    return all;
  }

  Indexed indexed(Break broken, bool plain) {
    const int k = params_.top_k, tile = params_.tile(), tiles = tiles_of(length_, tile);
    auto chosen = lab::unwritten<int>(device_, count(length_, k));
    const IndexShape choice{length_, params_.indexer_heads, k, tile, k + tile};
    const IndexArrays with{std::as_const(index_q_).span(), std::as_const(weights_).span(),
                           std::as_const(keys_).span(), std::as_const(scales_).span(),
                           chosen.span()};
    simt::Trace trace(device_, count(length_) + count(tiles, k + 1) + 2 * count(k) + 1);
    const simt::Tape tape = plain ? simt::Tape{} : trace.tape();
    kernels_of(device_).choose(device_, choice, with, broken, tape);
    device_.synchronize();
    Indexed all;
    all.chosen = chosen.download();
    all.o = attended(chosen, k, broken, tape);
    if (plain) return all;
    const auto log = trace.download();
    const std::size_t last = count(length_);
    all.index = log.notes<float>(kIndex, last, kNone);
    all.passed = log.notes<int>(kPassed, count(tiles), 0);
    all.best = log.notes<int>(kKept, count(tiles, k), -1);
    for (int t = 0; t < tiles; ++t) {
      const auto first = all.best.begin() + t * k;
      // In order, and the empty places behind.
      std::sort(first, first + k,
                [](int a, int b) { return static_cast<unsigned>(a) < static_cast<unsigned>(b); });
    }
    all.rows = log.notes<int>(kRow, count(k), -1);
    all.scores = log.notes<float>(kReached, last, kNone);
    return all;
  }
  /// The last query's scores of all tokens, by the same kernel.
  std::vector<float> dense_scores() {
    std::vector<int> all(count(length_, length_), -1);
    for (int q = 0; q < length_; ++q)
      std::iota(all.begin() + q * length_, all.begin() + q * length_ + q + 1, 0);
    const auto chosen = lab::uploaded(device_, all);
    simt::Trace trace(device_, 2 * count(length_) + 1);
    attended(chosen, length_, Break::none, trace.tape());
    return trace.download().notes<float>(kReached, count(length_), kNone);
  }

 private:
  MaskShape shape(Method method, int tile) const { return {method, length_, params_.window, tile}; }
  MaskArrays arrays() {
    return {std::as_const(q_).span(),
            std::as_const(k_).span(),
            std::as_const(v_).span(),
            std::as_const(documents_).span(),
            pairs_.span(),
            kinds_.span(),
            o_.span(),
            lse_.span()};
  }
  std::vector<float> attended(const simt::Buffer<int>& chosen, int k, Break broken,
                              const simt::Tape& tape) {
    const GatherShape shape{length_, 1, k, kPageSize, 1 / std::sqrt(static_cast<float>(kKey))};
    return lab::result_of(device_, o_, [&] {
      kernels_of(device_).gather(device_, shape,
                                 {std::as_const(q_).span(), std::as_const(cache_).span(),
                                  std::as_const(table_).span(), chosen.span(), o_.span()},
                                 broken, tape);
    });
  }

  simt::Device& device_;
  const Params& params_;
  int length_;
  simt::Buffer<float> q_, k_, v_, cache_, weights_, scales_;
  simt::Buffer<std::uint8_t> index_q_, keys_;
  simt::Buffer<int> documents_, table_, pairs_, kinds_;
  simt::Buffer<float> o_, lse_;
};

/// e^(score) / Σ, of scores that are not −∞.
std::vector<float> softmax_of(const std::vector<float>& scores) {
  double largest = static_cast<double>(kNone), sum = 0;
  for (const float one : scores) largest = std::max(largest, static_cast<double>(one));
  std::vector<float> weights;
  for (const float one : scores) sum += std::exp(static_cast<double>(one) - largest);
  for (const float one : scores)
    weights.push_back(static_cast<float>(std::exp(static_cast<double>(one) - largest) / sum));
  return weights;
}

int ones_of(const std::vector<int>& pairs) {
  return std::accumulate(pairs.begin(), pairs.end(), 0);
}

Tiling tiling_of(int length, int tile, const std::vector<int>& kinds) {
  Tiling all{.tile = tile};
  const int tiles = tiles_of(length, tile);
  for (int at = 0; at < tiles * tiles; ++at) {
    const auto kind = static_cast<TileKind>(kinds[static_cast<std::size_t>(at)]);
    (kind == TileKind::full ? all.full : kind == TileKind::partial ? all.partial : all.skipped)++;
    const auto cut = [&](int first) { return std::min(tile, length - first * tile); };
    if (kind != TileKind::skipped) all.computed += cut(at / tiles) * cut(at % tiles);
  }
  return all;
}

/// What each method keeps of causal attention, whose scores a launch has noted.
void keep(Run& run, Memory& memory, const Masked& causal) {
  const int length = run.inputs.length;
  std::vector<std::vector<float>> weights;
  for (int q = 0; q < length; ++q) {
    std::vector<float> scores(count(length), kNone);
    for (int k = 0; k <= q; ++k) scores[count(k)] = causal.scores[count(q, length) + count(k)];
    weights.push_back(softmax_of(scores));
  }
  const auto mass = [&](const auto& keeps) {
    double sum = 0;
    for (int q = 0; q < length; ++q) {
      for (int k = 0; k <= q; ++k)
        sum += keeps(q, k) ? static_cast<double>(weights[count(q)][count(k)]) : 0.0;
    }
    return sum / length;
  };
  for (const Method method : all_of<Method>()) {
    Kept one{.method = method};
    if (method == Method::dsa) {
      std::vector<int> taken(count(length, length));
      const int top_k = run.params.top_k;
      for (std::size_t i = 0; i < run.indexed.chosen.size(); ++i) {
        const int token = run.indexed.chosen[i];
        if (token >= 0) taken[i / count(top_k) * count(length) + count(token)] = 1;
      }
      one.pairs = one.computed = ones_of(taken);
      one.mass = mass([&](int q, int k) { return taken[count(q, length) + count(k)] != 0; });
    } else {
      const std::vector<int> pairs = memory.pairs(method);
      const int tile = run.params.tile();
      one.pairs = ones_of(pairs);
      one.computed = tiling_of(length, tile, memory.kinds(method, tile, Finding::pairs)).computed;
      one.mass = mass([&](int q, int k) { return pairs[count(q, length) + count(k)] != 0; });
    }
    run.trace.methods.push_back(one);
  }
}

std::string wrong_words(const Result& result) {
  return fmt::format("{} of {} numbers of O are wrong", result.wrong, result.elements);
}

void run_masks(Run& run, Memory& memory) {
  const Params& params = run.params;
  const int length = run.inputs.length;
  Trace& trace = run.trace;
  run.masked = memory.masked(params.method, params.finding, false);
  trace.pairs = run.masked.pairs;
  trace.kinds = run.masked.kinds;
  trace.visited = run.masked.visited;
  for (const int tile : kTileSizes) {
    trace.sizes.push_back(
        tiling_of(length, tile, memory.kinds(params.method, tile, Finding::pairs)));
  }
  for (int at = 0; at < length * length && params.method != Method::own; ++at) {
    const bool right =
        sees(params.method, length, params.window, run.inputs.documents, at / length, at % length);
    run.wrong_rules += run.sound.pairs[count(at)] != (right ? 1 : 0) ? 1 : 0;
  }
  const int tiles = trace.tiles();
  for (int at = 0; at < tiles * tiles; ++at) {
    const TileKind kind = kind_of(run.sound.pairs, length, params.tile(), at / tiles, at % tiles);
    run.wrong_tiles += run.sound.kinds[count(at)] != static_cast<int>(kind) ? 1 : 0;
  }
  if (params.finding == Finding::pairs) return;
  Result& result = trace.result;
  result.wrong = compared(run, run.masked).wrong;
  result.elements = length * kValue;
  const auto computed = [](const std::vector<int>& kinds) {
    return kinds.size() - static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), 0));
  };
  result.outcome = result.wrong > 0
                       ? wrong_words(result)
                       : fmt::format("{} tiles are computed where {} would do",
                                     computed(trace.visited), computed(run.sound.kinds));
}

void run_index(Run& run, Memory& memory) {
  const Params& params = run.params;
  Trace& trace = run.trace;
  const bool broken = params.broken != Break::none;
  const Indexed shown = broken ? memory.indexed(params.broken, false) : run.indexed;
  const auto k = static_cast<std::ptrdiff_t>(params.top_k);
  trace.table = run.inputs.table;
  trace.index = shown.index;
  trace.passed = shown.passed;
  trace.best = shown.best;
  trace.rows = shown.rows;
  const bool stale = params.broken == Break::stale_top_k && run.inputs.length > 1;
  const auto end = shown.chosen.end() - (stale ? k : 0);
  trace.chosen.assign(end - k, end);
  trace.dense = softmax_of(memory.dense_scores());
  trace.sparse = softmax_of(shown.scores);
  if (!broken) return;
  Result& result = trace.result;
  const ComparedIndex found = compared(run, shown);
  result.wrong = found.wrong;
  result.elements = run.inputs.length * kValue;
  result.outcome =
      result.wrong > 0 ? wrong_words(result) : "every number of O is right all the same";
}

void add_row(lab::Closest& o, int& wrong, const numeric::AllBounded& exact, const float* got,
             int query) {
  for (std::size_t n = 0; n < kValue; ++n) {
    o.add(got[n], exact.value[n], exact.bound[n],
          [&] { return fmt::format("query {}, number {}", query, n); });
    const double error = std::abs(static_cast<double>(got[n]) - exact.value[n]);
    wrong += error <= exact.bound[n] ? 0 : 1;
  }
}

}  // namespace

Compared compared(const Run& run, const Masked& masked) {
  const Inputs& inputs = run.inputs;
  const int length = inputs.length;
  // Of the rule itself, however its tiles were found. Of one's own, scores are as its line has made them.
  const bool own = run.params.method == Method::own;
  Compared all;
  for (int q = 0; q < length; ++q) {
    std::vector<Scored> scored;
    for (int k = 0; k < length; ++k) {
      const std::size_t at = count(q, length) + count(k);
      if (run.sound.pairs[at] == 0) continue;
      const float* key = inputs.k.data() + count(k, kKey);
      scored.push_back({k, own ? numeric::Bounded{static_cast<double>(run.sound.scores[at]), 0}
                               : reference_score(inputs.q.data() + count(q, kKey), key)});
    }
    const numeric::AllBounded exact =
        reference_attention(scored, inputs.v.data(), kValue, run.trace.tiles());
    add_row(all.o, all.wrong, exact, masked.o.data() + count(q, kValue), q);
    all.lse.add(masked.lse[count(q)], exact.value[kValue], exact.bound[kValue],
                [&] { return fmt::format("query {}", q); });
  }
  return all;
}

ComparedIndex compared(const Run& run, const Indexed& indexed) {
  const Inputs& inputs = run.inputs;
  const int top_k = run.params.top_k;
  ComparedIndex all;
  for (int q = 0; q < inputs.length; ++q) {
    const std::vector<double> scores = reference_index(inputs, q);
    std::vector<int> right = reference_top_k(scores, top_k);
    std::vector<Scored> scored;
    for (const int token : right) {
      scored.push_back({token, reference_score(inputs.q.data() + count(q, kKey),
                                               inputs.k.data() + count(token, kKey))});
    }
    const numeric::AllBounded exact =
        reference_attention(scored, inputs.v.data(), kValue, top_k / 32 + 1);
    add_row(all.o, all.wrong, exact, indexed.o.data() + count(q, kValue), q);
    right.resize(count(top_k), -1);
    for (int i = 0; i < top_k; ++i) {
      all.wrong_choices += indexed.chosen[count(q, top_k) + count(i)] != right[count(i)] ? 1 : 0;
    }
    if (q + 1 < inputs.length || indexed.index.empty()) continue;
    for (std::size_t t = 0; t < scores.size(); ++t)
      all.scores.add(indexed.index[t], scores[t], 0.0, [t] { return fmt::format("token {}", t); });
  }
  return all;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0.05, "writing a text");
  run.inputs = make_inputs(params.context, params.indexer_heads, kPageSize, params.seed);
  Trace& trace = run.trace;
  trace.method = params.method;
  trace.finding = params.finding;
  trace.broken = params.broken;
  trace.length = params.context;
  trace.window = params.window;
  trace.tile = params.tile();
  trace.top_k = params.top_k;
  trace.heads = params.indexer_heads;
  Memory memory(device, run.params, run.inputs);
  progress.check();

  progress.report(0.2, "attention to all tokens");
  const Masked causal = memory.masked(Method::causal, Finding::pairs, false);
  const bool indexes = params.method == Method::dsa;
  run.sound = indexes || params.method == Method::causal
                  ? causal
                  : memory.masked(params.method, Finding::pairs, false);
  progress.check();

  progress.report(0.4, "choosing tokens");
  run.indexed = memory.indexed(Break::none, false);
  progress.check();
  progress.report(0.6, "all methods");
  keep(run, memory, causal);
  progress.check();
  progress.report(0.8, "recording it");
  if (indexes) {
    run_index(run, memory);
  } else {
    run_masks(run, memory);
  }
  return run;
}

}  // namespace tilestep::sparse_attention

#include "kernels/experts/moe_routing/reference.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/experts/moe_routing/run/report.hpp"

namespace tilestep::moe_routing {
namespace {

using numeric::elements_of, numeric::index_of;

constexpr double kUnitRoundoff = numeric::Fp32::kUnitRoundoff;

void fill_logits(const Params& params, std::mt19937& generator, std::vector<float>& logits) {
  const auto set = [&](int token, int expert, double value) {
    logits[index_of(token, expert, params.experts)] = static_cast<float>(value);
  };
  const bool drawn = params.routing == Routing::skewed || params.routing == Routing::random;
  const double skew = params.routing == Routing::skewed ? params.skew : 0;
  for (int token = 0; token < params.tokens; ++token) {
    for (int e = 0; e < params.experts; ++e) {
      if (drawn) {
        set(token, e, -skew * std::log(e + 1.0) - std::log(-std::log(lab::uniform(generator))));
      } else if (params.routing == Routing::one_hot) {
        set(token, e, 4 - 0.5 * e + 0.2 * (lab::uniform(generator) - 0.5));
      } else {
        set(token, e, 2 * lab::uniform(generator) - 2);
      }
    }
    if (drawn || params.routing == Routing::one_hot) continue;
    for (int choice = 0; choice < params.top_k; ++choice) {
      const auto preferred =
          (static_cast<std::int64_t>(token) * params.top_k + choice) % params.experts;
      set(token, static_cast<int>(preferred),
          4 - 0.4 * choice + 0.2 * (lab::uniform(generator) - 0.5));
    }
  }
  std::map<int, int> moved;  // of two moves of a token the later one counts
  for (const Move& move : moves_of(params)) moved[move.token] = move.expert;
  for (const auto& [token, expert] : moved) set(token, expert, 6);
}

double value_of(std::uint16_t bits) {
  return static_cast<double>(numeric::Bf16::value(bits));
}

double dot(const Inputs& inputs, int token, int expert, int row, double& weight) {
  double sum = 0, magnitude = 0;
  for (int k = 0; k < kHidden; ++k) {
    const double product = value_of(inputs.tokens[index_of(token, k, kHidden)]) *
                           value_of(inputs.weights[index_of(expert * kWidth + row, k, kHidden)]);
    sum += product;
    magnitude += std::abs(product);
  }
  weight = magnitude;
  return sum;
}

}  // namespace

Inputs make_inputs(const Params& params) {
  std::mt19937 generator = lab::generator_of(params.seed);
  Inputs inputs;
  inputs.tokens = lab::uniform_bf16(generator, elements_of(params.tokens, kHidden));
  inputs.weights = lab::uniform_bf16(generator, elements_of(params.experts * kWidth, kHidden));
  inputs.logits.resize(elements_of(params.tokens, params.experts));
  fill_logits(params, generator, inputs.logits);
  return inputs;
}

void lay_out_reference(const Params& params, Scheme scheme, Placement& placement) {
  const int capacity = capacity_of(params);
  const int tile = params.tile();
  int room = 0;
  for (const int kept : placement.kept) room = std::max(room, kept);
  if (capacity >= 0) room = capacity;
  placement.first_slot.assign(1, 0);
  placement.first_tile.assign(1, 0);
  for (const int kept : placement.kept) {
    const int covered = scheme == Scheme::padded_to_capacity ? room : kept;
    const int tiles = (covered + tile - 1) / tile;
    placement.first_slot.push_back(placement.first_slot.back() +
                                   (scheme == Scheme::packed ? kept : tiles * tile));
    placement.first_tile.push_back(placement.first_tile.back() + tiles);
  }
}

Placement reference_placement(const Params& params, const std::vector<float>& logits) {
  Placement placement;
  placement.wanted.assign(static_cast<std::size_t>(params.experts), 0);
  std::vector<int> order(static_cast<std::size_t>(params.experts));
  std::vector<double> softmax(order.size());
  for (int token = 0; token < params.tokens; ++token) {
    const float* row = &logits[index_of(token, 0, params.experts)];
    std::iota(order.begin(), order.end(), 0);
    // Stable: on a tie the lower number stays in front.
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
    double sum = 0;
    for (std::size_t e = 0; e < softmax.size(); ++e) {
      softmax[e] = std::exp(static_cast<double>(row[e]) - static_cast<double>(row[order[0]]));
      sum += softmax[e];
    }
    double chosen = 0;
    for (int k = 0; k < params.top_k; ++k) {
      chosen += softmax[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])];
    }
    for (int k = 0; k < params.top_k; ++k) {
      const int e = order[static_cast<std::size_t>(k)];
      placement.expert.push_back(e);
      placement.probability.push_back(softmax[static_cast<std::size_t>(e)] / sum);
      placement.gate.push_back(softmax[static_cast<std::size_t>(e)] / chosen);
      placement.rank.push_back(placement.wanted[static_cast<std::size_t>(e)]++);
    }
  }
  const int capacity = capacity_of(params);
  for (const int wanted : placement.wanted) {
    placement.kept.push_back(capacity >= 0 ? std::min(wanted, capacity) : wanted);
  }
  lay_out_reference(params, params.scheme, placement);
  for (std::size_t i = 0; i < placement.expert.size(); ++i) {
    const auto e = static_cast<std::size_t>(placement.expert[i]);
    const bool stays = placement.rank[i] < placement.kept[e];
    placement.slot.push_back(stays ? placement.first_slot[e] + placement.rank[i] : -1);
  }
  return placement;
}

double gate_bound(const Params& params, const std::vector<float>& logits) {
  double widest = 0;
  for (int token = 0; token < params.tokens; ++token) {
    const auto first =
        logits.begin() + static_cast<std::ptrdiff_t>(index_of(token, 0, params.experts));
    const auto [low, high] = std::minmax_element(first, first + params.experts);
    widest = std::max(widest, static_cast<double>(*high) - static_cast<double>(*low));
  }
  // 2 ulp are 4u; numerator and denominator both carry the error of exp.
  return (2 * (4 + widest) + params.experts + params.top_k + 4) * kUnitRoundoff;
}

numeric::AllBounded reference_output(const Params& params, const Inputs& inputs,
                                     const Placement& placement) {
  constexpr double kSlack = 1.01;
  constexpr double kMma = 17 * 2 * kUnitRoundoff;
  const double gates = gate_bound(params, inputs.logits);
  numeric::AllBounded output;
  for (int token = 0; token < params.tokens; ++token) {
    for (int row = 0; row < kWidth; ++row) {
      double sum = 0, bound = 0, magnitude = 0;
      for (int choice = 0; choice < params.top_k; ++choice) {
        const std::size_t i = index_of(token, choice, params.top_k);
        if (placement.slot[i] < 0) continue;
        double weight = 0;
        const double y = dot(inputs, token, placement.expert[i], row, weight);
        const double gate = placement.gate[i];
        sum += gate * y;
        magnitude += std::abs(gate * y);
        // A product is rounded once, and each of top_k sums at most once more.
        bound += gate * (kMma * weight + gates * std::abs(y)) +
                 (params.top_k + 1) * kUnitRoundoff * (std::abs(gate * y) + magnitude);
      }
      output.push_back({sum, kSlack * bound});
    }
  }
  return output;
}

}  // namespace tilestep::moe_routing

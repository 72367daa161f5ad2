#pragma once

// The backward pass for Hopper on small problems, and what it must give: in double, with how far rounding may take it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/attention/attention_backward/hopper/launch.hpp"
#include "kernels/attention/attention_backward/hopper/launches.hpp"
#include "kernels/attention/shared/reference.hpp"
#include "tests/kernels/attention/flash_attention_3/testing.hpp"

namespace tilestep::attention_backward::hopper {

inline attention::Task task_of(const Problem& p) {
  return {p.rule, p.heads, p.kv_heads, p.head_dim, ScoreMod::none};
}

/// Of a problem, as bits and as what they stand for; O and log-sum-exp in double, then rounded as the forward pass
/// would.
struct Given {
  explicit Given(const Problem& p) : p_(p) {
    using flash_3::some_numbers;
    q = some_numbers(p.heads * p.rule.length, p.head_dim, 1);
    k = some_numbers(p.kv_heads * p.rule.length, p.head_dim, 2);
    v = some_numbers(p.kv_heads * p.rule.length, p.head_dim, 3);
    d_o = some_numbers(p.heads * p.rule.length, p.head_dim, 4);
    numbers = {values(q), values(k), values(v), std::vector<int>(begins_count(), 0)};
    d_output = values(d_o);
  }
  /// A number of the format, rounded to nearest, and its bits.
  std::uint16_t bits_of(double value) const {
    return static_cast<std::uint16_t>(
        numeric::encode(numeric::kBf16, numeric::round_to(numeric::kBf16, value)));
  }

  std::vector<std::uint16_t> q, k, v, d_o;
  Numbers numbers;
  std::vector<double> d_output;

 private:
  std::size_t begins_count() const { return static_cast<std::size_t>(p_.rule.length); }
  std::vector<double> values(const std::vector<std::uint16_t>& bits) const {
    std::vector<double> all;
    all.reserve(bits.size());
    for (const std::uint16_t one : bits) {
      all.push_back(numeric::decode(numeric::kBf16, one));
    }
    return all;
  }
  Problem p_;
};

/// Gradients with bounds, and what the forward pass gives the backward one.
struct Exact {
  Gradients value, bound;
  std::vector<double> o, lse;
};

/// The sums of one query and what its row of scores adds to those of keys.
class RowGradients {
 public:
  RowGradients(const Problem& p, const Given& in, Exact& exact, int head, int query)
      : p_(p),
        q_(&in.numbers.q[at(head, query)]),
        d_o_(&in.d_output[at(head, query)]),
        keys_(at(head / (p.heads / p.kv_heads), 0)),
        mine_(at(head, query)),
        in_(in),
        exact_(exact),
        row_(head * p.rule.length + query) {
    unit_ = 0x1p-8;
    tiny_ = 0x1p-120;
    for (int key = 0; key < p.rule.length; ++key) {
      if (p.rule.allows(query, key, NoDocuments{})) seen_.push_back({key});
    }
    if (seen_.empty()) return;
    weigh();
    derive();
  }

 private:
  struct Seen {
    int key;
    double weight = 0, weight_off = 0;  ///< relative
    double slope = 0, slope_off = 0;    ///< of dS
  };
  std::size_t at(int matrix, int row) const {
    return numeric::index_of(matrix * p_.rule.length + row, 0, p_.head_dim);
  }
  double sums() const { return (p_.rule.length * p_.heads + 16) * 0x1p-22; }

  /// Whether the timed kernel has dS from rounded weights.
  bool rounded_weights() const {
    return p_.head_dim == 64 ? SIMT_BACKEND::TimedTile<64>::kRoundedWeights
                             : SIMT_BACKEND::TimedTile<128>::kRoundedWeights;
  }

  void weigh() {
    const double scale = 1 / std::sqrt(static_cast<double>(p_.head_dim));
    double highest = -std::numeric_limits<double>::infinity();
    for (Seen& s : seen_) {
      const double* k = &in_.numbers.k[keys_ + numeric::index_of(s.key, 0, p_.head_dim)];
      double magnitude = 0;
      for (int c = 0; c < p_.head_dim; ++c) {
        s.weight += q_[c] * k[c] * scale;
        magnitude += std::abs(q_[c] * k[c]) * scale;
      }
      // Tensor cores cut off: 2u a product, u = 2^-24. Then scale · s − lse in FP32.
      s.weight_off = p_.head_dim * 0x1p-23 * magnitude + 0x1p-22 * std::abs(s.weight);
      highest = std::max(highest, s.weight);
    }
    double sum = 0;
    for (const Seen& s : seen_) sum += std::exp(s.weight - highest);
    const double lse = highest + std::log(sum);
    exact_.lse[static_cast<std::size_t>(row_)] = lse;
    for (Seen& s : seen_) {
      s.weight = std::exp(s.weight - lse);
      s.weight_off += 0x1p-22 * std::abs(lse) + 0x1p-20;
    }
  }

  void derive() {
    const double scale = 1 / std::sqrt(static_cast<double>(p_.head_dim));
    double d = 0;
    double d_off = 0;
    for (int c = 0; c < p_.head_dim; ++c) {
      double o = 0;
      for (const Seen& s : seen_) {
        o += s.weight * in_.numbers.v[keys_ + numeric::index_of(s.key, c, p_.head_dim)];
      }
      exact_.o[mine_ + static_cast<std::size_t>(c)] = o;
      d += d_o_[c] * o;
      d_off += std::abs(d_o_[c] * o) * (unit_ + 0x1p-20) + std::abs(d_o_[c]) * tiny_;
    }
    for (Seen& s : seen_) {
      const std::size_t first = keys_ + numeric::index_of(s.key, 0, p_.head_dim);
      double dp = 0;
      double magnitude = 0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(p_.head_dim); ++c) {
        dp += d_o_[c] * in_.numbers.v[first + c];
        magnitude += std::abs(d_o_[c] * in_.numbers.v[first + c]);
      }
      s.slope = s.weight * (dp - d);
      const double off = d_off + 0x1p-22 * (p_.head_dim * magnitude + std::abs(dp) + std::abs(d));
      s.slope_off = s.weight * off + std::abs(s.slope) * (s.weight_off + 0x1p-21);
      if (rounded_weights()) {
        s.slope_off += unit_ * std::abs(s.slope) + tiny_ * std::abs(dp - d);
      }
      s.slope_off += unit_ * (std::abs(s.slope) + s.slope_off) + tiny_;
      add(s, first, scale);
    }
  }
  void add(const Seen& s, std::size_t key, double scale) {
    const double off_weight = s.weight * (s.weight_off + unit_ + sums()) + tiny_;
    const double slope = s.slope * scale;
    const double off_slope = (s.slope_off + std::abs(s.slope) * sums()) * scale;
    for (std::size_t c = 0; c < static_cast<std::size_t>(p_.head_dim); ++c) {
      exact_.value.dv[key + c] += s.weight * d_o_[c];
      exact_.bound.dv[key + c] += off_weight * std::abs(d_o_[c]);
      exact_.value.dk[key + c] += slope * q_[c];
      exact_.bound.dk[key + c] += off_slope * std::abs(q_[c]);
      exact_.value.dq[mine_ + c] += slope * in_.numbers.k[key + c];
      exact_.bound.dq[mine_ + c] += off_slope * std::abs(in_.numbers.k[key + c]);
    }
  }

  const Problem& p_;
  const double* q_;
  const double* d_o_;
  std::size_t keys_, mine_;
  const Given& in_;
  Exact& exact_;
  int row_;
  double unit_ = 0, tiny_ = 0;
  std::vector<Seen> seen_;
};

inline Exact exact_answer(const Problem& p, const Given& in) {
  Exact exact;
  for (Gradients* g : {&exact.value, &exact.bound}) {
    g->dq.assign(in.q.size(), 0);
    g->dk.assign(in.k.size(), 0);
    g->dv.assign(in.k.size(), 0);
  }
  exact.o.assign(in.q.size(), 0);
  exact.lse.assign(numeric::elements_of(p.heads, p.rule.length),
                   -std::numeric_limits<double>::infinity());
  for (int head = 0; head < p.heads; ++head) {
    for (int query = 0; query < p.rule.length; ++query) RowGradients(p, in, exact, head, query);
  }
  const double unit = 0x1p-8;
  const auto round = [&](const std::vector<double>& values, std::vector<double>& bounds) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      bounds[i] = 1.01 * (bounds[i] + unit * (std::abs(values[i]) + bounds[i])) + 0x1p-25;
    }
  };
  round(exact.value.dq, exact.bound.dq);
  round(exact.value.dk, exact.bound.dk);
  round(exact.value.dv, exact.bound.dv);
  return exact;
}

/// What the kernels gave.
struct Outcome {
  Gradients gradients;
  std::vector<long long> clocks;
  int numbers = 0;

  long long clock(int site, int number) const {
    return clocks[numeric::index_of(site, number, numbers)];
  }
  /// Empty, or what is furthest from what it should be.
  std::string compared(const Exact& exact) const {
    using flash_3::difference;
    const Gradients& g = gradients;
    std::string off = difference(g.dq, exact.value.dq, exact.bound.dq, "dQ");
    if (off.empty()) off = difference(g.dk, exact.value.dk, exact.bound.dk, "dK");
    if (off.empty()) off = difference(g.dv, exact.value.dv, exact.bound.dv, "dV");
    return off;
  }
};

/// Of kernels that `start(arrays)` starts, with scratch memory as their tiles want it.
template <class Start>
Outcome outcome_of(simt::Device& device, const Problem& p, const Given& in, const Exact& exact,
                   const TileSizes& sizes, const Start& start) {
  std::vector<std::uint16_t> o_bits;
  for (const double one : exact.o) o_bits.push_back(in.bits_of(one));
  const std::vector<float> lse_values(exact.lse.begin(), exact.lse.end());
  const Scratch scratch = scratch_of(p, sizes);
  const simt::Buffer<std::uint16_t> q(device, in.q), k(device, in.k), v(device, in.v),
      d_o(device, in.d_o), o(device, o_bits);
  const simt::Buffer<float> lse(device, lse_values);
  simt::Buffer<std::uint16_t> dq(device, in.q.size()), dk(device, in.k.size()),
      dv(device, in.k.size());
  simt::Buffer<float> rows(device, scratch.rows), sums(device, scratch.sums);
  for (auto* gradient : {&dq, &dk, &dv}) gradient->fill(0xFF);
  rows.fill(0xFF);
  sums.fill(0xFF);
  start(Arrays{q.span(), k.span(), v.span(), o.span(), d_o.span(), lse.span(), dq.span(), dk.span(),
               dv.span(), rows.span(), sums.span()});
  const auto values = [&](const simt::Buffer<std::uint16_t>& buffer) {
    std::vector<double> all;
    for (const std::uint16_t bits : buffer.download()) {
      all.push_back(numeric::decode(numeric::kBf16, bits));
    }
    return all;
  };
  return {{values(dq), values(dk), values(dv)}, {}, 0};
}

inline Outcome timed_outcome(simt::Device& device, const Problem& p, const Given& in,
                             const Exact& exact) {
  return outcome_of(device, p, in, exact, timed_sizes(p.head_dim),
                    [&](const Arrays& arrays) { SIMT_BACKEND::run(device, p, arrays); });
}

/// With tiles T, and what else the timed kernels have fixed.
template <class T>
Outcome tiled_outcome(simt::Device& device, const Problem& p, const Given& in, const Exact& exact,
                      int together, int stagger) {
  return outcome_of(device, p, in, exact, T::kSizes, [&](const Arrays& arrays) {
    SIMT_BACKEND::start<T>(device, p, arrays, SIMT_BACKEND::Timed{}, together, stagger);
  });
}

inline Outcome explained_outcome(simt::Device& device, const Problem& p, const Given& in,
                                 const Exact& exact, Fault fault = Fault::none, int block = 0) {
  const TileSizes sizes = timed_sizes(p.head_dim);
  const int numbers = query_tiles_of(p, sizes.queries) * (p.heads / p.kv_heads);
  simt::Buffer<long long> clocks(device, numeric::elements_of(kSites, numbers));
  clocks.fill(0xFF);
  Outcome out = outcome_of(device, p, in, exact, sizes, [&](const Arrays& arrays) {
    SIMT_BACKEND::backward_explained(device, p, arrays, {block, fault, numbers, clocks.span()});
  });
  out.clocks = clocks.download();
  out.numbers = numbers;
  return out;
}

}  // namespace tilestep::attention_backward::hopper

#pragma once

// FlashAttention 3's kernels on small problems, and what they must give: in double, by two passes.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/flash_attention_3/launch/launches.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/random.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::flash_attention_3 {

/// Numbers −2 … 2 in BF16, as bits.
inline std::vector<std::uint16_t> some_numbers(int rows, int columns, std::uint64_t seed) {
  std::vector<std::uint16_t> bits(numeric::elements_of(rows, columns));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto random = static_cast<double>(numeric::mixed(seed << 32 ^ i) >> 11) * 0x1p-53;
    bits[i] = static_cast<std::uint16_t>(
        numeric::encode(numeric::kBf16, numeric::round_to(numeric::kBf16, 4 * random - 2)));
  }
  return bits;
}

/// Of a problem, rounded to BF16; as bits, and as what they stand for.
struct Inputs {
  explicit Inputs(const Problem& p)
      : q(some_numbers(p.heads * p.rule.length, p.head_dim, 1)),
        k(some_numbers(p.kv_heads * p.rule.length, p.head_dim, 2)),
        v(some_numbers(p.kv_heads * p.rule.length, p.head_dim, 3)),
        q_values(values(q)),
        k_values(values(k)),
        v_values(values(v)) {}
  std::vector<std::uint16_t> q, k, v;
  std::vector<double> q_values, k_values, v_values;

 private:
  static std::vector<double> values(const std::vector<std::uint16_t>& bits) {
    std::vector<double> all;
    all.reserve(bits.size());
    for (const std::uint16_t one : bits) all.push_back(numeric::decode(numeric::kBf16, one));
    return all;
  }
};

/// An answer, and how far a kernel's may be from it.
struct Exact {
  std::vector<double> o, o_bound, lse, lse_bound;
};

/// Of a row of queries.
class RowReference {
 public:
  RowReference(const Problem& p, const Inputs& in, int head, int query)
      : p_(p), values_(row(in.v_values, group_of(head), 0)) {
    const double* q = row(in.q_values, head, query);
    const double scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
    double off = 0;
    for (int key = 0; key < p.rule.length; ++key) {
      if (!p.rule.allows(query, key, NoDocuments{})) continue;
      const double* k = row(in.k_values, group_of(head), key);
      double score = 0;
      double magnitude = 0;
      for (int c = 0; c < p.head_dim; ++c) {
        const double product = q[c] * k[c];
        score += product;
        magnitude += std::abs(product);
      }
      keys_.push_back({key, score * scale});
      // Tensor cores cut off: 2u a product, u = 2^-24.
      off_ = std::max(off_, p.head_dim * 0x1p-23 * magnitude * scale);
      highest_ = std::max(highest_, score * scale);
    }
    for (auto& [key, score] : keys_) {
      // scale · s − scale · m in FP32, the scale itself rounded twice, and exp2 (2^-22).
      off = std::max(off, 0x1p-22 * (std::abs(score) + std::abs(highest_)));
      score = std::exp(score - highest_);
      sum_ += score;
    }
    off_weight_ = off + off_ + 0x1p-21;
  }

  double lse() const {
    return keys_.empty() ? -std::numeric_limits<double>::infinity() : highest_ + std::log(sum_);
  }
  double lse_bound() const {
    return keys_.empty() ? 0 : off_weight_ + off_ + sums() + 0x1p-21 * (1 + std::abs(highest_));
  }
  /// Value and bound of column `c` of O, before it is rounded.
  std::pair<double, double> output(int c) const {
    double value = 0;
    double magnitude = 0;
    double values = 0;
    for (const auto& [key, weight] : keys_) {
      const double v = values_[numeric::index_of(key, c, p_.head_dim)];
      value += weight * v;
      magnitude += weight * std::abs(v);
      values += std::abs(v);
    }
    if (keys_.empty()) return {0, 0};
    const double rounded = 0x1p-8;                         // of a weight
    const double tiny = 0x1p-120;                          // below BF16's smallest steps
    const double relative = 2 * off_weight_ + 2 * sums();  // of the weights, and of their sum
    return {value / sum_, magnitude / sum_ * (rounded + relative) * 1.01 + tiny * values};
  }

 private:
  const double* row(const std::vector<double>& matrices, int matrix, int number) const {
    return &matrices[numeric::index_of(matrix * p_.rule.length + number, 0, p_.head_dim)];
  }
  int group_of(int head) const { return head / (p_.heads / p_.kv_heads); }
  /// Sums of weights and of their products with V, and what they are rescaled with.
  double sums() const { return (static_cast<double>(keys_.size()) + 16) * 0x1p-22; }

  const Problem& p_;
  const double* values_;                      ///< V of the head
  std::vector<std::pair<int, double>> keys_;  ///< with their weights
  double highest_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0, off_ = 0, off_weight_ = 0;
};

/// `rounded`: O is in the format of Q.
inline Exact exact_answer(const Problem& p, const Inputs& in, bool rounded) {
  Exact exact;
  for (int head = 0; head < p.heads; ++head) {
    for (int query = 0; query < p.rule.length; ++query) {
      const RowReference row(p, in, head, query);
      exact.lse.push_back(row.lse());
      exact.lse_bound.push_back(row.lse_bound());
      for (int c = 0; c < p.head_dim; ++c) {
        auto [value, bound] = row.output(c);
        if (rounded) {
          const double unit = 0x1p-8;
          bound += unit * (std::abs(value) + bound) + 0x1p-25;
        }
        exact.o.push_back(value);
        exact.o_bound.push_back(bound);
      }
    }
  }
  return exact;
}

/// Empty, or what is furthest from what it should be, in bounds.
inline std::string difference(const std::vector<double>& got, const std::vector<double>& exact,
                              const std::vector<double>& bound, const char* what) {
  double worst = 1;
  std::string said;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double off = got[i] == exact[i] ? 0 : std::abs(got[i] - exact[i]) / bound[i];
    if (off <= worst) continue;  // NaN goes on
    worst = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
    said = std::string(what) + "[" + std::to_string(i) + "] is " + std::to_string(got[i]) +
           " and should be " + std::to_string(exact[i]) + ", " + std::to_string(off) +
           " bounds away";
  }
  return said;
}

/// What a kernel gave.
struct Attended {
  std::vector<double> o, lse;
  std::vector<long long> clocks;
  std::vector<float> rows;
  int numbers = 0;

  long long clock(int site, int number) const {
    return clocks[numeric::index_of(site, number, numbers)];
  }
  float row(int number, RowField field) const {
    return rows[numeric::index_of(number, field, kRowFields)];
  }
  std::string compared(const Exact& exact) const {
    const std::string off = difference(o, exact.o, exact.o_bound, "O");
    return off.empty() ? difference(lse, exact.lse, exact.lse_bound, "log-sum-exp") : off;
  }
};

/// Of a timed kernel that `start(arrays)` starts.
template <class Start>
Attended timed_outcome(simt::Device& device, const Problem& p, const Inputs& in,
                       const Start& start) {
  const simt::Buffer<std::uint16_t> q(device, in.q), k(device, in.k), v(device, in.v);
  simt::Buffer<std::uint16_t> o(device, in.q.size());
  simt::Buffer<float> lse(device, numeric::elements_of(p.heads, p.rule.length));
  o.fill(0xFF);
  lse.fill(0xFF);
  start(Arrays<std::uint16_t>{q.span(), k.span(), v.span(), o.span(), lse.span()});
  Attended out;
  for (const std::uint16_t bits : o.download()) {
    out.o.push_back(numeric::decode(numeric::kBf16, bits));
  }
  for (const float one : lse.download()) out.lse.push_back(static_cast<double>(one));
  return out;
}

inline Attended timed_outcome(simt::Device& device, const Problem& p, const Inputs& in) {
  return timed_outcome(device, p, in, [&](const Arrays<std::uint16_t>& arrays) {
    SIMT_BACKEND::run_here(device, p, arrays);
  });
}

struct Watch {
  int keys = 64, block = 0, row = 0;
  Fault fault = Fault::none;
};
/// Of a kernel that `start(arrays, explanation)` starts.
template <class Start>
Attended outcome_of(simt::Device& device, const Problem& p, const Inputs& in, const Watch& watch,
                    const Start& start) {
  Attended out;
  out.numbers = most_numbers(p, explained_sizes(p.head_dim, watch.keys),
                             std::max(device.info().multiprocessors, 1));
  const simt::Buffer<std::uint16_t> q(device, in.q), k(device, in.k), v(device, in.v);
  simt::Buffer<float> o(device, in.q.size());
  simt::Buffer<float> lse(device, numeric::elements_of(p.heads, p.rule.length));
  simt::Buffer<long long> clocks(device, numeric::elements_of(kSites, out.numbers));
  simt::Buffer<float> rows(device, numeric::elements_of(out.numbers, kRowFields));
  o.fill(0xFF);
  lse.fill(0xFF);
  clocks.fill(0xFF);
  rows.fill(0xFF);
  const Arrays<float> arrays{q.span(), k.span(), v.span(), o.span(), lse.span()};
  start(arrays, Explanation{watch.keys, watch.block, watch.row, watch.fault, out.numbers,
                            clocks.span(), rows.span()});
  for (const float one : o.download()) out.o.push_back(static_cast<double>(one));
  for (const float one : lse.download()) out.lse.push_back(static_cast<double>(one));
  out.clocks = clocks.download();
  out.rows = rows.download();
  return out;
}

inline Attended explained_outcome(simt::Device& device, const Problem& p, const Inputs& in,
                                  const Watch& watch = {}) {
  return outcome_of(device, p, in, watch,
                    [&](const Arrays<float>& arrays, const Explanation& what) {
                      SIMT_BACKEND::explain_here(device, p, arrays, what);
                    });
}

}  // namespace tilestep::flash_attention_3

#pragma once

// The backward pass for Hopper on small problems. What it must give is the lesson's own reference, in double.

#include <string>
#include <vector>

#include "kernels/attention/attention_backward/bench/problem.hpp"
#include "kernels/attention/attention_backward/hopper/launch.hpp"
#include "kernels/attention/attention_backward/hopper/launches.hpp"
#include "kernels/attention/attention_backward/run/explained.hpp"
#include "tests/kernels/attention/flash_attention_3/testing.hpp"

namespace tilestep::attention_backward::hopper {

using lab::unwritten;

/// Of a problem.
struct Given {
  explicit Given(const Problem& p)
      : task(p), values(make_inputs(p, Data::random, 1)), d_output(make_d_output(p, 2)) {}
  Task task;
  Inputs values;
  std::vector<float> d_output;
};

/// What the forward pass gives the backward one, in double and then rounded, and the gradients that follow.
struct Exact {
  std::vector<float> o, lse;
  BackwardReference gradients;
};
inline Exact exact_answer(const Problem& p, const Given& in) {
  lab::NoProgress nobody;
  const Reference forward = reference_forward(in.task, in.values, {}, nobody);
  Exact exact;
  exact.o = values_of(words_of({forward.o.value.begin(), forward.o.value.end()}));
  exact.lse.assign(forward.lse.value.begin(), forward.lse.value.end());
  Reference given;
  for (const float o : exact.o) given.o.push_back({static_cast<double>(o), 0});
  for (const float lse : exact.lse) given.lse.push_back({static_cast<double>(lse), 0});
  exact.gradients = reference_backward(in.task, in.values, in.d_output, given,
                                       roundings_of(BackwardRung::hopper, p.head_dim), nobody);
  return exact;
}

/// What the kernels gave.
struct HopperOutcome {
  std::vector<float> dq, dk, dv;
  std::vector<long long> clocks;
  int numbers = 0;

  long long clock(int site, int number) const {
    return clocks[numeric::index_of(site, number, numbers)];
  }
  /// Empty, or what is furthest from what it should be.
  std::string compared(const Exact& exact) const {
    using flash_attention_3::difference;
    std::string off = difference(dq, exact.gradients.dq, "dQ");
    if (off.empty()) off = difference(dk, exact.gradients.dk, "dK");
    if (off.empty()) off = difference(dv, exact.gradients.dv, "dV");
    return off;
  }
};

/// Of kernels that `start(arrays)` starts, with scratch memory as their tiles want it.
template <class Start>
HopperOutcome outcome_of(simt::Device& device, const Problem& p, const Given& in,
                         const Exact& exact, const TileSizes& sizes, const Start& start) {
  PassBuffers pass(device, scratch_of(p, sizes.queries, p.head_dim), in.values, in.d_output,
                   exact.o, exact.lse);
  start(pass.arrays());
  return {values_of(pass.dq.download()),
          values_of(pass.dk.download()),
          values_of(pass.dv.download()),
          {},
          0};
}

inline HopperOutcome timed_outcome(simt::Device& device, const Problem& p, const Given& in,
                                   const Exact& exact) {
  return outcome_of(device, p, in, exact, timed_sizes(p.head_dim),
                    [&](const Arrays& arrays) { SIMT_BACKEND::run(device, p, arrays); });
}

/// With tiles T.
template <class T>
HopperOutcome tiled_outcome(simt::Device& device, const Problem& p, const Given& in,
                            const Exact& exact) {
  return outcome_of(device, p, in, exact, T::kSizes, [&](const Arrays& arrays) {
    SIMT_BACKEND::start<T>(device, p, arrays, simt::NoTape{});
  });
}

inline HopperOutcome explained_outcome(simt::Device& device, const Problem& p, const Given& in,
                                       const Exact& exact, Fault fault = Fault::none,
                                       int block = 0) {
  const TileSizes sizes = timed_sizes(p.head_dim);
  const int numbers = query_tiles_of(p, sizes.queries) * (p.heads / p.kv_heads);
  auto clocks = unwritten<long long>(device, numeric::elements_of(kSites, numbers));
  HopperOutcome out = outcome_of(device, p, in, exact, sizes, [&](const Arrays& arrays) {
    SIMT_BACKEND::start(device, p, arrays,
                        simt::Tape{.clocks = clocks.span(),
                                   .numbers = numbers,
                                   .chosen_block = block,
                                   .fault = static_cast<int>(fault)});
  });
  out.clocks = clocks.download();
  out.numbers = numbers;
  return out;
}

}  // namespace tilestep::attention_backward::hopper

#pragma once

// FlashAttention 3's kernels on small problems. What they must give is the lesson's own reference, in double.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/attention/flash_attention_3/launch/launches.hpp"
#include "kernels/attention/flash_attention_3/run/run.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"

namespace tilestep::flash_attention_3 {

/// Of a problem, rounded to BF16; as bits, and as what they stand for.
struct Given {
  explicit Given(const attention::Task& p)
      : task(p),
        values(make_inputs(task, Data::random, 1)),
        q(words_of(values.q)),
        k(words_of(values.k)),
        v(words_of(values.v)) {}
  attention::Task task;
  attention::Inputs values;
  std::vector<std::uint16_t> q, k, v;
};

/// `rounded`: O is in the format of Q.
inline Reference exact_answer(const Given& in, bool rounded) {
  lab::NoProgress nobody;
  return reference_forward(in.task, in.values,
                           roundings_of(rounded ? OutputOf::timed : OutputOf::explained), nobody);
}

// ---- over what is swept -------------------------------------------------------------------------------

struct Heads {
  int heads, kv_heads;
};
inline constexpr Heads kHeads[] = {{1, 1}, {2, 1}, {4, 2}, {2, 2}};
inline constexpr Mask kMasks[] = {Mask::none, Mask::causal, Mask::sliding_window};

struct Order {
  simt::Completion completion;
  simt::ThreadOrder threads;  ///< descending: consumers before the producer
};
inline constexpr Order kOrders[] = {{simt::Completion::latest, simt::ThreadOrder::ascending},
                                    {simt::Completion::early_copies, simt::ThreadOrder::ascending},
                                    {simt::Completion::early_copies, simt::ThreadOrder::descending},
                                    {simt::Completion::earliest, simt::ThreadOrder::descending},
                                    {simt::Completion::seeded, simt::ThreadOrder::shuffled}};
inline std::unique_ptr<simt::Device> device_of(const Order& order = kOrders[0],
                                               int multiprocessors = 1) {
  return simt::make_emulated_device(
      {}, {.order = order.threads, .os_threads = multiprocessors, .completion = order.completion});
}
template <class Problem>
std::string said_of(const Problem& p) {
  return fmt::format("head_dim {}, mask {} window {}, length {}, heads {}/{}", p.head_dim,
                     static_cast<int>(p.rule.mask), p.rule.window, p.rule.length, p.heads,
                     p.kv_heads);
}

/// What a kernel for Hopper says of problems that it does not take; `run(problem)` runs it.
template <class Problem, class Run>
void check_refusals(const Problem& good, const Run& run) {
  const auto with = [&](auto change) {
    Problem bad = good;
    change(bad);
    return tests::error_of([&] { run(bad); });
  };
  CHECK_NOTHROW(run(good));
  CHECK_THAT(with([](Problem& p) { p.head_dim = 96; }),
             Catch::Contains("head_dim is 96; allowed: 64, 128"));
  CHECK_THAT(with([](Problem& p) { p.heads = 3, p.kv_heads = 2; }),
             Catch::Contains("heads is 3; allowed: multiples of 2"));
  CHECK_THAT(with([](Problem& p) { p.rule.mask = Mask::prefix; }),
             Catch::Contains("masks are none, causal and sliding-window"));
  CHECK_THAT(with([](Problem& p) { p.rule.mask = Mask::sliding_window, p.rule.sinks = 1; }),
             Catch::Contains("without sinks"));
}

// ---- answers -------------------------------------------------------------------------------------------

/// Empty, or how far the worst number is from what it should be.
inline std::string difference(const std::vector<float>& got, const numeric::AllBounded& exact,
                              const char* what) {
  const lab::Closest closest = lab::compared(got, exact.value, exact.bound);
  if (closest.ok() && got.size() == exact.value.size()) return "";
  return fmt::format("{} is off by {}, of {}", what, closest.error(), closest.bound());
}

using lab::unwritten;

/// What a kernel gave.
struct Attended {
  std::vector<float> o, lse;
  std::vector<long long> clocks;
  std::vector<Step> steps;

  long long clock(int site, int number) const {
    return clocks[numeric::index_of(site, number, static_cast<int>(steps.size()))];
  }
  std::string compared(const Reference& exact) const {
    const std::string off = difference(o, exact.o, "O");
    return off.empty() ? difference(lse, exact.lse, "log-sum-exp") : off;
  }
};

inline Attended timed_outcome(simt::Device& device, const Problem& p, const Given& in) {
  const simt::Buffer<std::uint16_t> q(device, in.q), k(device, in.k), v(device, in.v);
  auto o = unwritten<std::uint16_t>(device, in.q.size());
  auto lse = unwritten<float>(device, numeric::elements_of(p.heads, p.rule.length));
  SIMT_BACKEND::run_here(device, p, {q.span(), k.span(), v.span(), o.span(), lse.span()});
  return {values_of(o.download()), lse.download(), {}, {}};
}

struct Watch {
  int keys = 64, block = 0, row = 0;
  Fault fault = Fault::none;
};
inline Attended explained_outcome(simt::Device& device, const Problem& p, const Given& in,
                                  const Watch& watch = {}) {
  const int numbers = most_numbers(p, explained_sizes(p.head_dim, watch.keys),
                                   std::max(device.info().multiprocessors, 1));
  const simt::Buffer<std::uint16_t> q(device, in.q), k(device, in.k), v(device, in.v);
  auto o = unwritten<float>(device, in.q.size());
  auto lse = unwritten<float>(device, numeric::elements_of(p.heads, p.rule.length));
  auto clocks = unwritten<long long>(device, numeric::elements_of(kSites, numbers));
  auto steps = unwritten<Step>(device, static_cast<std::size_t>(numbers));
  simt::Tape tape{.chosen_thread = watch.row,
                  .clocks = clocks.span(),
                  .numbers = numbers,
                  .chosen_block = watch.block,
                  .fault = static_cast<int>(watch.fault)};
  SIMT_BACKEND::explain_here(device, p, {q.span(), k.span(), v.span(), o.span(), lse.span()},
                             watch.keys, tape.keep(kSteps, steps.span()));
  return {o.download(), lse.download(), clocks.download(), steps.download()};
}

}  // namespace tilestep::flash_attention_3

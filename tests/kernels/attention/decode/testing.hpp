#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/attention/decode/run/run.hpp"
#include "kernels/attention/kv_cache/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/lessons.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"

/// Devices and comparisons of the lesson's tests.
namespace tilestep::decode {

inline std::unique_ptr<simt::Device> device_under_test(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1,
    simt::Completion completion = simt::Completion::latest) {
  static const simt::KernelEntry kTable[] = {{"decode", kernels_emulated}};
  return tests::device_under_test(kTable, {.order = order, .seed = seed, .completion = completion});
}

inline std::string words(const Case& of) {
  return fmt::format("{} heads={} kv_heads={} splits={} page_size={} {} {} prefix={}",
                     name_of(of.scheme), of.heads, of.kv_heads, of.splits, of.page_size,
                     name_of(of.kv_dtype), name_of(of.scales), of.prefix);
}

struct Answer {
  std::vector<float> o, lse;
  bool operator==(const Answer&) const = default;
};

/// A cache of requests of these lengths, and what attending to it comes to.
struct Given {
  Given(const Case& p, const std::vector<int>& contexts)
      : params(p),
        inputs(make_inputs(p, contexts)),
        cache(cache_of(inputs, p.kv_dtype, p.scales)),
        exact(reference_attention(as_cached(inputs, cache), roundings_of(p.kv_dtype, p.scales))) {}
  lab::Closest o(const Answer& got) const { return lab::compared(got.o, exact.o, exact.o_bound); }
  lab::Closest lse(const Answer& got) const {
    return lab::compared(got.lse, exact.lse, exact.lse_bound);
  }
  void check(const Answer& got) const {
    INFO(words(params));
    INFO("O " << o(got).error() << " of " << o(got).bound() << ", log-sum-exp " << lse(got).error()
              << " of " << lse(got).bound());
    CHECK(o(got).ok());
    CHECK(lse(got).ok());
  }

  Case params;
  Inputs inputs;
  Cache cache;
  Reference exact;
};

/// A run of the explained kernel beside what is right.
struct Compared : Given {
  Outcome outcome;

  Answer answer() const { return {outcome.o, outcome.lse}; }
  bool ok() const { return o(answer()).ok() && lse(answer()).ok(); }
};
inline Compared compared_run(simt::Device& device, const Case& params,
                             const std::vector<int>& contexts,
                             const paged::Followed& followed = {}) {
  const Given given(params, contexts);
  return {given, run_explained(device, params, given.inputs, given.cache, followed)};
}

}  // namespace tilestep::decode

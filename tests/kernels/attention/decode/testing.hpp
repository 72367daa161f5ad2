#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/attention/decode/run/run.hpp"
#include "kernels/attention/kv_cache/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/lessons.hpp"
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

/// A run of the explained kernel on requests of these lengths, beside what is right.
struct Compared {
  Inputs inputs;
  Outcome outcome;
  Reference exact;
  lab::Closest o, lse;

  bool ok() const { return o.ok() && lse.ok(); }
};
inline Compared compared_run(simt::Device& device, const Case& params,
                             const std::vector<int>& contexts,
                             const paged::Followed& followed = {}) {
  Compared c;
  c.inputs = make_inputs(params, contexts);
  const Cache cache = cache_of(c.inputs, params.kv_dtype, params.scales);
  c.outcome = run_explained(device, params, c.inputs, cache, followed);
  c.exact =
      reference_attention(as_cached(c.inputs, cache), roundings_of(params.kv_dtype, params.scales));
  c.o = lab::compared(c.outcome.o, c.exact.o, c.exact.o_bound);
  c.lse = lab::compared(c.outcome.lse, c.exact.lse, c.exact.lse_bound);
  return c;
}

}  // namespace tilestep::decode

#include "kernels/matmul/tiling/bench_parts.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::tiling {

Spread spread_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  // Linear between the two nearest samples.
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - std::floor(at)) * (samples[above] - samples[below]);
  };
  return {quantile(0.5), quantile(0.1), quantile(0.9), static_cast<int>(samples.size())};
}

Spread rate_of(const Spread& time_ms, double work, double scale) {
  const auto rate = [&](double ms) { return work / ms * scale; };
  return {rate(time_ms.median), rate(time_ms.p90), rate(time_ms.p10), time_ms.samples};
}
Spread tflops_of(const Spread& time_ms, const GemmShape& shape) {
  return rate_of(time_ms, flops_of(shape), 1e-9);
}

lab::Measurement measured(std::string id, std::string_view variant, const Spread& spread,
                          const char* unit, std::string detail) {
  lab::Measurement m;
  m.id = std::move(id);
  m.variant = variant;
  m.provenance = lab::Provenance::measured;
  m.value = spread.median;
  m.unit = unit;
  m.p10 = spread.p10;
  m.p90 = spread.p90;
  m.samples = spread.samples;
  m.detail = std::move(detail);
  return m;
}

namespace {

Matrices rounded(const Matrices& from) {
  Matrices to = from;
  for (auto* matrix : {&to.a, &to.b}) {
    for (float& value : *matrix) value = numeric::Bf16::round(value);
  }
  return to;
}

}  // namespace

Problem::Problem(simt::Device& device, const GemmShape& wanted)
    : shape(wanted),
      fp32(make_matrices(wanted, 17, false)),
      bf16(rounded(fp32)),
      a(device, std::span<const float>(fp32.a)),
      b(device, std::span<const float>(fp32.b)),
      a_bits(device, std::span<const std::uint16_t>(bf16_bits(bf16.a))),
      b_bits(device, std::span<const std::uint16_t>(bf16_bits(bf16.b))),
      c(device, static_cast<std::size_t>(wanted.m) * static_cast<std::size_t>(wanted.n)) {}

Runner rung_runner(simt::Device& device, const Kernels& kernels, Variant variant,
                   int configuration) {
  Runner runner;
  runner.label = to_text(variant);
  runner.id = to_text(variant);
  runner.tensor_core = variant == Variant::tensor_core;
  runner.adding = runner.tensor_core ? Adding::tensor_core : Adding::in_order;
  runner.configuration =
      configuration == kBestConfiguration
          ? "chosen by size"
          : std::string(
                kernels.configurations(variant)[static_cast<std::size_t>(configuration)].name);
  runner.launch = [&device, &kernels, variant, configuration](Problem& p) {
    if (variant == Variant::tensor_core) {
      kernels.gemm_bf16(device, configuration, p.shape,
                        {p.a_bits.span(), p.b_bits.span(), p.c.span(), {}});
    } else {
      kernels.gemm(device, variant, configuration, p.shape,
                   {p.a.span(), p.b.span(), p.c.span(), {}});
    }
  };
  return runner;
}

Runner library_runner(simt::Device& device, const Kernels& kernels, Precision precision) {
  Runner runner;
  runner.tensor_core = precision == Precision::bf16;
  runner.id = runner.tensor_core ? "library_bf16" : "library_fp32";
  runner.adding = runner.tensor_core ? Adding::any_order_tensor_core : Adding::any_order;
  runner.label = kernels.library(device).name + (runner.tensor_core ? " BF16" : " FP32");
  runner.configuration = precision == Precision::fp32_pedantic ? "pedantic" : "default";
  runner.launch = [&device, &kernels, precision](Problem& p) {
    const bool bf16 = precision == Precision::bf16;
    const void* a = bf16 ? static_cast<const void*>(p.a_bits.span().data) : p.a.span().data;
    const void* b = bf16 ? static_cast<const void*>(p.b_bits.span().data) : p.b.span().data;
    kernels.library_gemm(device, precision, p.shape, a, b, p.c.span().data);
  };
  return runner;
}

// ---- correctness comes before any timing --------------------------------------------------------

void Worst::add(double got, double want, double allowed) {
  const double off = std::abs(got - want);
  const bool good = off <= allowed;  // NaN is not
  if (!good || (ok && off - allowed > error - bound) || bound == 0) {
    error = std::isnan(off) ? INFINITY : off;
    bound = allowed;
  }
  ok = ok && good;
}

void Worst::add(const Worst& other) {
  if (other.bound > 0) add(other.error, 0, other.bound);
}

Worst error_of(simt::Device& device, const Runner& runner, Problem& problem) {
  problem.c.fill(0xFF);
  runner.launch(problem);
  device.synchronize();
  const std::vector<float> got = problem.c.download();
  const GemmShape& s = problem.shape;
  const Matrices& matrices = runner.tensor_core ? problem.bf16 : problem.fp32;
  Worst worst;
  if (flops_of(s) <= 4e8) {
    const Product exact = reference_product(s, matrices, runner.adding);
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst.add(static_cast<double>(got[i]), exact.c[i], exact.bound[i]);
    }
    return worst;
  }
  for (const float value : got) {
    if (!std::isfinite(value)) worst.add(static_cast<double>(value), 0, 1);
  }
  std::mt19937 generator(23);
  for (int probe = 0; probe < kProbes; ++probe) {
    int row = static_cast<int>(generator() % static_cast<unsigned>(s.m));
    int column = static_cast<int>(generator() % static_cast<unsigned>(s.n));
    if (probe < 4) {
      row = probe % 2 == 0 ? 0 : s.m - 1;
      column = probe / 2 == 0 ? 0 : s.n - 1;
    }
    const Element exact = reference_element(s, matrices, row, column, runner.adding);
    const auto at = static_cast<std::size_t>(row) * static_cast<std::size_t>(s.n) +
                    static_cast<std::size_t>(column);
    worst.add(static_cast<double>(got[at]), exact.value, exact.bound);
  }
  return worst;
}

}  // namespace tilestep::tiling

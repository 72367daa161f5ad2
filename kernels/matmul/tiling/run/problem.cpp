#include "kernels/matmul/tiling/run/problem.hpp"

#include <cmath>
#include <random>

#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::tiling {
namespace {

/// Up to so many FLOPs all of C is compared.
constexpr double kCheapFlops = 4e8;

Matrices rounded(const Matrices& from) {
  Matrices to = from;
  for (auto* matrix : {&to.a, &to.b}) {
    for (float& value : *matrix) value = numeric::Bf16::round(value);
  }
  return to;
}

lab::Closest compare(const Problem& problem, bool bf16, Adding adding) {
  const std::vector<float> got = problem.c.download();
  const GemmShape& s = problem.shape;
  const Matrices& matrices = bf16 ? problem.bf16 : problem.fp32;
  if (flops_of(s) <= kCheapFlops) {
    const numeric::AllBounded exact = reference_product(s, matrices, adding);
    return lab::compared(got, exact.value, exact.bound);
  }
  lab::Closest closest;
  for (const float value : got) {
    if (!std::isfinite(value)) closest.add(value, 0, 1);
  }
  std::mt19937 generator(23);
  for (int probe = 0; probe < kProbes; ++probe) {
    int row = static_cast<int>(generator() % static_cast<unsigned>(s.m));
    int column = static_cast<int>(generator() % static_cast<unsigned>(s.n));
    if (probe < 4) {
      row = probe % 2 == 0 ? 0 : s.m - 1;
      column = probe / 2 == 0 ? 0 : s.n - 1;
    }
    const numeric::Bounded exact = reference_element(s, matrices, row, column, adding);
    closest.add(got[numeric::index_of(row, column, s.n)], exact.value, exact.bound);
  }
  return closest;
}

lab::Runnable runnable(Problem& problem, simt::Device& device, std::function<void()> launch,
                       bool bf16, Adding adding) {
  return lab::judged(device, problem.c, std::move(launch),
                     [&problem, bf16, adding] { return compare(problem, bf16, adding); });
}

}  // namespace

Problem::Problem(simt::Device& device, const GemmShape& wanted)
    : shape(wanted),
      fp32(make_matrices(wanted, 17, false)),
      bf16(rounded(fp32)),
      a(device, fp32.a),
      b(device, fp32.b),
      a_bits(device, bf16_bits(bf16.a)),
      b_bits(device, bf16_bits(bf16.b)),
      c(device, numeric::elements_of(wanted.m, wanted.n)) {}

lab::Runnable rung_on(Problem& p, simt::Device& device, Variant variant, int configuration) {
  const bool bf16 = variant == Variant::tensor_core;
  const auto launch = [&p, &device, variant, configuration, bf16] {
    const Kernels& kernels = kernels_of(device);
    if (bf16) {
      kernels.gemm_bf16(device, configuration, p.shape,
                        {p.a_bits.span(), p.b_bits.span(), p.c.span(), {}});
    } else {
      kernels.gemm(device, variant, configuration, p.shape,
                   {p.a.span(), p.b.span(), p.c.span(), {}});
    }
  };
  return runnable(p, device, launch, bf16, bf16 ? Adding::tensor_core : Adding::in_order);
}

lab::Runnable library_on(Problem& p, simt::Device& device, Precision precision) {
  const bool bf16 = precision == Precision::bf16;
  const auto launch = [&p, &device, precision, bf16] {
    const void* a = bf16 ? static_cast<const void*>(p.a_bits.span().data) : p.a.span().data;
    const void* b = bf16 ? static_cast<const void*>(p.b_bits.span().data) : p.b.span().data;
    kernels_of(device).library_gemm(device, precision, p.shape, a, b, p.c.span().data);
  };
  return runnable(p, device, launch, bf16,
                  bf16 ? Adding::any_order_tensor_core : Adding::any_order);
}

}  // namespace tilestep::tiling

#include "kernels/systems/fusion/gemm/problem.hpp"

#include <cmath>
#include <set>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/matmul/hopper_gemm/bench/parts.hpp"
#include "kernels/systems/fusion/reference.hpp"

namespace tilestep::fusion {
namespace {

using numeric::elements_of;

constexpr std::size_t kMostPeriod = 1000003;  // a prime

std::vector<std::uint16_t> second_words(std::size_t count) {
  std::mt19937 generator = lab::generator_of(33);
  std::vector<std::uint16_t> words;
  for (const float one : lab::uniform_floats(generator, std::min(count, kMostPeriod)))
    words.push_back(numeric::Bf16::bits(8 * one));
  return words;
}
std::size_t second_count(const EpilogueLayer& layer, int m) {
  return elements_of(layer.epilogue == Epilogue::residual ? m : 1, layer.n);
}

numeric::Bounded rounded(double value, double bound) {
  return {value, bound + half_spacing(Dtype::bf16, std::abs(value) + bound)};
}
/// silu changes by at most 1.1 times what its argument does; the argument of 2^x is rounded, the rest takes a few ulp.
numeric::Bounded swiglu_of(const numeric::Bounded& gate, const numeric::Bounded& value) {
  const double silu = gate.value / (1 + std::exp(-gate.value)), exact = silu * value.value;
  return rounded(exact, 1.1 * gate.bound * (std::abs(value.value) + value.bound) +
                            std::abs(silu) * value.bound +
                            std::abs(exact) * (2 * std::abs(gate.value) + 16) * 0x1p-24 + 0x1p-140);
}

std::vector<float> row_of(const lab::Repeated<std::uint16_t>& array, int row, int width) {
  std::vector<float> numbers;
  for (const std::uint16_t bits :
       array.values(numeric::index_of(row, 0, width), static_cast<std::size_t>(width)))
    numbers.push_back(numeric::Bf16::value(bits));
  return numbers;
}

}  // namespace

Product::Product(simt::Device& device, const EpilogueLayer& of, int m)
    : layer(of),
      gemm(device, {m, of.n, of.k}, hopper_gemm::DataType::bf16, hopper_gemm::Data::random, false),
      out(device, elements_of(m, output_columns(of.epilogue, of.n))),
      second_(device, second_count(of, m), second_words(second_count(of, m))) {}

lab::Runnable Product::plain(TileSize size) {
  if (size == TileSize::small) {  // hopper-gemm has no such tile, but the same kernel
    return lab::judged(
        gemm.device, gemm.c, [this, size] { multiply(size, gemm); },
        [this] { return compare(gemm, 1); });
  }
  using hopper_gemm::Configuration;
  return kernel_on(gemm,
                   hopper_gemm::configuration_where(
                       hopper_gemm::kernels_of(gemm.device), [&](const Configuration& one) {
                         return one.variant == hopper_gemm::Variant::persistent &&
                                one.dtype == hopper_gemm::DataType::bf16 &&
                                (size == TileSize::large ? one.cluster == 2 : one.columns == 64);
                       }));
}

void Product::multiply(TileSize size, const hopper_gemm::Problem& with_x) {
  kernels_of(gemm.device)
      .multiply(gemm.device, Epilogue::none, size, {gemm.shape.m, layer.n, layer.k},
                {with_x.a.span(), gemm.b.span(), {}, gemm.c.span()});
}

void Product::fuse(TileSize size) {
  kernels_of(gemm.device)
      .multiply(gemm.device, layer.epilogue, size, {gemm.shape.m, layer.n, layer.k},
                {gemm.a.span(), gemm.b.span(), second_.span(), out.span()});
}

void Product::follow(int packs) {
  const int m = gemm.shape.m;
  const simt::Span<const std::uint16_t> c{gemm.c.span().data, gemm.c.count()};
  if (layer.epilogue == Epilogue::bias) {
    kernels_of(gemm.device)
        .add_bias(gemm.device, {m, layer.n, layer.k}, {c, {}, second_.span(), out.span()});
    return;
  }
  const auto bytes = [](simt::Span<const std::uint16_t> words) {
    return simt::Span<const unsigned char>{reinterpret_cast<const unsigned char*>(words.data),
                                           2 * words.count};
  };
  const bool gates = layer.epilogue == Epilogue::swiglu;
  RowShape shape{Dtype::bf16, m, output_columns(layer.epilogue, layer.n), 32, packs};
  while (shape.threads < kMostThreads && cluster_of(shape) != 1) shape.threads *= 2;
  RowArrays arrays;
  arrays.first = bytes(c);
  if (!gates) arrays.second = bytes(second_.span());
  simt::Span<unsigned char>& results = gates ? arrays.out : arrays.sum;
  results = {reinterpret_cast<unsigned char*>(out.span().data), 2 * out.count()};
  kernels_of(gemm.device).rows(gemm.device, shape, gates ? kSwiglu : kAdd, arrays);
}

lab::Closest Product::compared(bool of_one_launch) const {
  const int m = gemm.shape.m, columns = output_columns(layer.epilogue, layer.n);
  lab::Closest closest;
  for (const int row : std::set{0, m / 2, m - 1}) {
    const std::vector<float> x = row_of(gemm.a, row, layer.k);
    const std::vector<std::uint16_t> got =
        out.download(numeric::index_of(row, 0, columns), static_cast<std::size_t>(columns));
    const std::vector<float> added =
        row_of(second_, layer.epilogue == Epilogue::residual ? row : 0, layer.n);
    for (int column = 0; column < columns; column += 1 + columns / 31) {
      const auto dot = [&](int of_w) {
        const numeric::Bounded sum = hopper_gemm::reference_dot(x, row_of(gemm.b, of_w, layer.k),
                                                                hopper_gemm::DataType::bf16);
        return rounded(sum.value, sum.bound);
      };
      const auto at = static_cast<std::size_t>(column);
      numeric::Bounded want;
      if (layer.epilogue == Epilogue::swiglu) {
        const int gate = of_one_launch ? column / 8 * 16 + column % 8 : column;
        want = swiglu_of(dot(gate), dot(gate + (of_one_launch ? 8 : columns)));
      } else {
        const numeric::Bounded sum = dot(column);
        want = rounded(sum.value + static_cast<double>(added[at]), 1.001 * sum.bound + 0x1p-20);
      }
      closest.add(numeric::Bf16::value(got[at]), want.value, want.bound);
    }
  }
  return closest;
}

}  // namespace tilestep::fusion

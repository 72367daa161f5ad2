#include "kernels/matmul/hopper_gemm/run/problem.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::hopper_gemm {
namespace {

/// The longest period: a prime, so that no two rows of the timed sizes are alike.
constexpr std::size_t kLongestPeriod = 4194301;

/// For an array of `count` words.
std::vector<std::uint16_t> period_of(std::size_t count, DataType type, Data data,
                                     std::int64_t seed) {
  const std::size_t period = std::min(count, kLongestPeriod);
  if (data == Data::zeros) return std::vector<std::uint16_t>(period);
  std::mt19937 generator = lab::generator_of(seed);
  const std::vector<float> values =
      lab::uniform_floats(generator, period * (type == DataType::fp8_e4m3 ? 2 : 1));
  std::vector<std::uint16_t> words = packed(values, 1, static_cast<int>(values.size()), type);
  words.resize(period);
  return words;
}

std::vector<float> scales_of(std::size_t count, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<float> scales = lab::uniform_floats(generator, count);
  for (float& scale : scales) scale = 1 + 0.5f * scale;
  return scales;
}

std::size_t words_of(int rows, int k, DataType type) {
  return numeric::elements_of(rows, pitch_bytes(k, element_bytes(type)) / 2);
}

std::vector<float> row_of(const lab::Repeated<std::uint16_t>& matrix, int row, int k,
                          DataType type) {
  const std::size_t pitch = words_of(1, k, type);
  const std::vector<std::uint16_t> words =
      matrix.values(static_cast<std::size_t>(row) * pitch, pitch);
  std::vector<float> values(static_cast<std::size_t>(k));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = number_of(words, i, type);
  return values;
}

numeric::Bounded exact_element(const Problem& p, int row, int column) {
  const std::vector<float> a = row_of(p.a, row, p.shape.k, p.type);
  const std::vector<float> b = row_of(p.b, column, p.shape.k, p.type);
  if (p.a_scales.empty()) return reference_dot(a, b, p.type);
  const auto blocks = static_cast<std::size_t>(p.shape.k / 128);
  std::vector<float> a_scales(blocks), b_scales(blocks);
  for (std::size_t block = 0; block < blocks; ++block) {
    a_scales[block] =
        p.a_scales[block * static_cast<std::size_t>(p.shape.m) + static_cast<std::size_t>(row)];
    b_scales[block] = p.b_scales[static_cast<std::size_t>(column / 128) * blocks + block];
  }
  return reference_scaled_dot(a, b, a_scales, b_scales);
}

}  // namespace

/// C against double at its corners and at random elements; none of the others NaN. `slack`: a library may
/// add in a different order.
lab::Closest compare(const Problem& p, double slack) {
  const std::vector<std::uint16_t> got = p.c.download();
  const int pitch = pitch_of<std::uint16_t>(p.shape.n);
  lab::Closest closest;
  std::mt19937 generator(23);
  for (int probe = 0; probe < kProbes; ++probe) {
    int row = static_cast<int>(generator() % static_cast<unsigned>(p.shape.m));
    int column = static_cast<int>(generator() % static_cast<unsigned>(p.shape.n));
    if (probe < 4) {
      row = probe % 2 == 0 ? 0 : p.shape.m - 1;
      column = probe / 2 == 0 ? 0 : p.shape.n - 1;
    }
    const numeric::Bounded exact = exact_element(p, row, column);
    // C is rounded to BF16.
    const double bound = slack * exact.bound + numeric::Bf16::kUnitRoundoff *
                                                   (std::abs(exact.value) + slack * exact.bound);
    closest.add(numeric::Bf16::value(got[numeric::index_of(row, column, pitch)]), exact.value,
                bound);
  }
  for (int row = 0; row < p.shape.m; ++row) {
    for (int column = 0; column < p.shape.n; ++column) {
      const float value = numeric::Bf16::value(got[numeric::index_of(row, column, pitch)]);
      if (!std::isfinite(value)) closest.add(value, 0, 1);
    }
  }
  return closest;
}

Problem::Problem(simt::Device& on, const GemmShape& wanted, DataType of, Data data, bool scaled)
    : device(on),
      shape(wanted),
      type(of),
      a(on, words_of(wanted.m, wanted.k, of),
        period_of(words_of(wanted.m, wanted.k, of), of, data, 17)),
      b(on, words_of(wanted.n, wanted.k, of),
        period_of(words_of(wanted.n, wanted.k, of), of, data, 18)),
      a_scales(scaled ? scales_of(numeric::elements_of(wanted.k / 128, wanted.m), 19)
                      : std::vector<float>()),
      b_scales(scaled ? scales_of(numeric::elements_of((wanted.n + 127) / 128, wanted.k / 128), 20)
                      : std::vector<float>()),
      a_scales_there(on, a_scales.empty() ? std::vector<float>(1) : a_scales),
      b_scales_there(on, b_scales.empty() ? std::vector<float>(1) : b_scales),
      c(on, numeric::elements_of(wanted.m, pitch_of<std::uint16_t>(wanted.n))) {}

simt::LibraryArrays Problem::library_arrays() {
  return {a.span().data, b.span().data, c.span().data, a_scales_there.span().data,
          b_scales_there.span().data};
}

simt::LibraryProduct Problem::library_product(bool fast_accumulation) const {
  using simt::LibraryProduct;
  return {shape.m,
          shape.n,
          shape.k,
          type == DataType::bf16 ? LibraryProduct::Type::bf16 : LibraryProduct::Type::e4m3,
          a_scales.empty() ? LibraryProduct::Scaling::none : LibraryProduct::Scaling::blocks,
          fast_accumulation};
}

double Problem::flops() const {
  return 2.0 * shape.m * shape.n * shape.k;
}

double Problem::bytes() const {
  const double inputs = static_cast<double>(shape.m + shape.n) * shape.k;
  return inputs * element_bytes(type) + 2.0 * shape.m * shape.n;
}

lab::Runnable kernel_on(Problem& p, int configuration, int stages, Raster raster) {
  const auto launch = [&p, configuration, stages, raster] {
    kernels_of(p.device).multiply(p.device, configuration, p.shape, raster, p.operands(),
                                  p.c.span(), p.scales(), stages);
  };
  return lab::judged(p.device, p.c, launch, [&p] { return compare(p, 1); });
}

lab::Runnable library_on(Problem& p, int algorithm, bool fast_accumulation) {
  const auto launch = [&p, algorithm, fast_accumulation] {
    kernels_of(p.device).library_multiply(p.device, p.library_product(fast_accumulation), algorithm,
                                          p.library_arrays());
  };
  return lab::judged(p.device, p.c, launch, [&p] { return compare(p, 4); });
}

}  // namespace tilestep::hopper_gemm

// W8A8: INT8 and FP8 beside cuBLASLt, and the layers that are timed over the batch in linear.cpp.
#include "kernels/numbers/low_bit/bench/w8a8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/random.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/low_bit/reference.hpp"

namespace tilestep::low_bit {
namespace {

using Scaling = simt::LibraryProduct::Scaling;
using Type = simt::LibraryProduct::Type;

bool has_w8a8(const simt::DeviceInfo& device) {
  return device.compute_capability == 0 || device.compute_capability / 10 == 9;
}

/// Plans for a batch: tiles about as high as it, in as many blocks as occupy the GPU once or twice.
std::vector<LinearPlan> eight_plans(const simt::DeviceInfo& device, const Matrix& matrix,
                                    int batch) {
  std::vector<LinearPlan> plans;
  if (!has_w8a8(device)) return plans;
  const int multiprocessors = std::max(device.multiprocessors, 1);
  for (const int tile : {16, 32, 64, 128}) {
    if ((tile > 16 && tile >= 2 * batch) || (tile < 128 && 2 * tile < batch)) continue;
    const int tiles = matrix.rows / 128 * ((batch + tile - 1) / tile);
    if (tiles > 8 * multiprocessors) continue;
    for (const int splits : {1, 2, 4, 8}) {
      const bool few = 2 * tiles * splits < multiprocessors && splits < 8;
      const bool many = tiles * splits > 4 * multiprocessors && splits > 1;
      if (matrix.columns / 128 % splits == 0 && !few && !many) plans.push_back({tile, splits});
    }
  }
  if (batch >= 128) plans.push_back({256, 1});
  return plans;
}

std::string said(const LinearPlan& plan) {
  return plan.tile == 256
             ? std::string("tiles of 128 × 256, persistent, clusters of 2")
             : fmt::format("tiles of 128 × {}, {} blocks each", plan.tile, plan.splits);
}

/// A library's product that may stand beside ours, the most alike first.
struct EightPeer {
  simt::LibraryProduct product;
  const char* name;
};
std::vector<EightPeer> peers_of(const EightBitLayers& layer) {
  if (layer.format().format == Format::int8) {
    return {{layer.product(Scaling::none), "INT8, C in INT32, no scales"}};
  }
  return {{layer.product(Scaling::rows), "FP8, a scale a row, fast accumulation"},
          {layer.product(Scaling::none), "FP8, one scale, fast accumulation"}};
}

}  // namespace

std::vector<std::uint16_t> normal_bf16(std::uint64_t seed, double deviation) {
  constexpr int kPrime = 65537;
  std::vector<std::uint16_t> bits;
  for (int i = 0; i < kPrime; ++i) {
    std::uint64_t random = numeric::mixed(seed ^ static_cast<std::uint64_t>(i));
    double sum = -2;  // of four uniform numbers
    for (int j = 0; j < 4; ++j, random >>= 16) {
      sum += static_cast<double>(random & 0xFFFF) / 65536;
    }
    const double value = numeric::round_to(numeric::kBf16, sum * deviation * std::sqrt(3.0));
    bits.push_back(static_cast<std::uint16_t>(numeric::encode(numeric::kBf16, value)));
  }
  return bits;
}

EightBitLayers::EightBitLayers(simt::Device& device, const EightFormat& format,
                               const Matrix& matrix, int layers,
                               const lab::Repeated<std::uint16_t>& weights,
                               const lab::Repeated<std::uint16_t>& x, int most)
    : device_(device),
      format_(format),
      matrix_(matrix),
      layers_(layers),
      most_(most),
      w_codes_(device, count() * static_cast<std::size_t>(layers)),
      w_scales_(device,
                static_cast<std::size_t>(layers * matrix.rows * scale_bytes(format.format))),
      x_codes_(device, numeric::elements_of(most, matrix.columns)),
      x_scales_(device, static_cast<std::size_t>(most * scale_bytes(format.format))),
      y_(device, numeric::elements_of(most, matrix.rows)) {
  // All layers are one matrix here.
  const auto quantize = [&](int rows, const lab::Repeated<std::uint16_t>& from,
                            simt::Buffer<std::uint8_t>& codes, simt::Buffer<std::uint8_t>& scales) {
    const Matrix all{rows, matrix.columns};
    const simt::Span<const std::uint16_t> numbers{from.span().data,
                                                  numeric::elements_of(rows, matrix.columns)};
    simt::Buffer<Range> ranges(device, static_cast<std::size_t>(rows) + 1);
    const Kernels& kernels = kernels_of(device);
    kernels.ranges(device, all, numbers, ranges.span());
    kernels.quantize(device, all, numbers,
                     {format.format, Group::row, codes.span(), scales.span(), {}, ranges.span()});
    device.synchronize();
  };
  quantize(layers * matrix.rows, weights, w_codes_, w_scales_);
  quantize(most, x, x_codes_, x_scales_);
}

std::size_t EightBitLayers::count() const {
  return numeric::elements_of(matrix_.rows, matrix_.columns);
}
EightBits EightBitLayers::w(int layer) {
  const std::size_t scales = w_scales_.span().count / static_cast<std::size_t>(layers_);
  const auto at = static_cast<std::size_t>(layer);
  return {format_.format,
          {w_codes_.span().data + at * count(), count()},
          {w_scales_.span().data + at * scales, scales}};
}
EightBits EightBitLayers::x(int batch) {
  return {format_.format,
          {x_codes_.span().data, numeric::elements_of(batch, matrix_.columns)},
          {x_scales_.span().data, static_cast<std::size_t>(batch * scale_bytes(format_.format))}};
}
double EightBitLayers::bytes(int batch) const {
  return static_cast<double>(count()) + static_cast<double>(batch) * matrix_.columns +
         static_cast<double>(scale_bytes(format_.format)) * (matrix_.rows + batch) +
         2.0 * batch * matrix_.rows;
}

lab::Rung EightBitLayers::rung(int batch) {
  lab::Rung rung;
  rung.name = fmt::format("W8A8 {}", format_.name);
  rung.variant = format_.name;
  rung.check = fmt::format("w8a8_{}", format_.id);
  rung.check_detail =
      "128 elements of Y against sums of codes in double: within BF16's half spacing, and of FP8 "
      "what the tensor cores cut off (2^-13 of a step's magnitudes).";
  for (const LinearPlan& plan : eight_plans(device_.info(), matrix_, batch)) {
    const auto launch = [this, plan, batch] {
      const simt::Span<std::uint16_t> y{y_.span().data, numeric::elements_of(batch, matrix_.rows)};
      for (int layer = layers_ - 1; layer >= 0; --layer) {
        kernels_of(device_).linear_eight(device_, matrix_, w(layer), plan, batch, x(batch), y);
      }
    };
    rung.configurations.push_back(
        {.name = said(plan), .make = [this, launch, batch] {
           return lab::judged(device_, y_, device_.graph_of(launch), [this, batch] {
             return compared(batch, true, 1, [this](std::size_t at) {
               return numeric::decode(numeric::kBf16, y_.download(at, 1)[0]);
             });
           });
         }});
  }
  return rung;
}

simt::LibraryProduct EightBitLayers::product(Scaling scaling) const {
  simt::LibraryProduct product{.m = most_, .n = matrix_.rows, .k = matrix_.columns};
  if (format_.format == Format::int8) {
    product.type = Type::s8;
    product.c = Type::s32;
  } else {
    product.type = Type::e4m3;
    product.scaling = scaling;
    product.fast_accumulation = true;  // as ours: sums along k stay in the tensor cores
  }
  return product;
}

std::vector<lab::Configuration> EightBitLayers::library(const simt::LibraryProduct& product) {
  const auto arrays = [this](void* c) {
    return simt::LibraryArrays{.a = x_codes_.span().data,
                               .b = w_codes_.span().data,
                               .c = c,
                               .a_scales = reinterpret_cast<const float*>(x_scales_.span().data),
                               .b_scales = reinterpret_cast<const float*>(w_scales_.span().data)};
  };
  std::vector<lab::Configuration> all;
  const int count = kernels_of(device_).library_algorithms(product, arrays(y_.span().data));
  for (int i = 0; i < count; ++i) {
    const auto with = [this, product, arrays, i](auto c, auto number_of) {
      const auto launch = [this, product, arrays, i, c] {
        kernels_of(device_).library_multiply(product, i, arrays(c->span().data));
      };
      return lab::judged(device_, *c, device_.graph_of(launch), [this, product, c, number_of] {
        const bool scaled = product.scaling == Scaling::rows;
        return compared(most_, scaled, format_.format == Format::int8 ? 0 : 4,
                        [&](std::size_t at) { return number_of(c->download(at, 1)[0]); });
      });
    };
    all.push_back({.name = fmt::format("algorithm {} of {}", i + 1, count), .make = [this, with] {
                     if (format_.format == Format::int8) {
                       using Sums = simt::Buffer<std::int32_t>;
                       return with(std::make_shared<Sums>(device_, y_.span().count),
                                   [](std::int32_t sum) { return static_cast<double>(sum); });
                     }
                     return with(&y_, [](std::uint16_t bits) {
                       return numeric::decode(numeric::kBf16, bits);
                     });
                   }});
  }
  return all;
}

/// 128 elements of the first layer's, all over it.
lab::Closest EightBitLayers::compared(int batch, bool scaled, double slack,
                                      const std::function<double(std::size_t at)>& element) {
  const auto columns = static_cast<std::size_t>(matrix_.columns);
  const double unit = std::ldexp(1, device_.info().compute_capability == 0 ? -23 : -13);
  const std::vector<std::uint8_t> w_scales = w_scales_.download(0, w(0).scales.count);
  const std::vector<std::uint8_t> x_scales = x_scales_.download();
  lab::Closest closest;
  for (int i = 0; i < 128; ++i) {
    const std::uint64_t random = numeric::mixed(static_cast<std::uint64_t>(i));
    const std::size_t row = random % static_cast<std::size_t>(matrix_.rows);
    const std::size_t n = (random >> 32) % static_cast<std::size_t>(batch);
    const double scale =
        scaled ? row_scale(format_.format, w_scales, row) * row_scale(format_.format, x_scales, n)
               : 1;
    const numeric::Bounded want =
        expected_product(format_.format, w_codes_.download(row * columns, columns),
                         x_codes_.download(n * columns, columns), scale, unit);
    closest.add(element(n * static_cast<std::size_t>(matrix_.rows) + row), want.value,
                slack * want.bound);
  }
  return closest;
}

/// Beside what of cuBLASLt is most alike, if there is anything.
static lab::LadderPlan square_plan(EightBitLayers& layer, int edge,
                                   const simt::LibraryStatus& library) {
  const std::string name(layer.format().name);
  lab::LadderPlan plan;
  plan.rate = lab::Rate::tflop_per_s;
  plan.work = {.bytes_read = layer.bytes(edge), .flops = 2 * std::pow(edge, 3)};
  plan.shape = fmt::format("{}³", edge);
  plan.note = "a product and its addition counted as 2, in INT8 too";
  plan.flush_l2 = false;  // products take longer than the bytes, and the load must not pause
  plan.rate_id = "w8a8_rate";
  plan.fraction_id = "w8a8_of_cublas";
  plan.cells = {{"format", name}};
  lab::Rung& rung = plan.rungs.emplace_back(layer.rung(edge));
  rung.cells = {{"beside", fmt::format("none: {}", library.reason)}};
  if (!library.available) return plan;
  rung.cells["beside"] = fmt::format("none: {} proposes no algorithm for {}", library.name, name);
  for (const EightPeer& one : peers_of(layer)) {
    std::vector<lab::Configuration> algorithms = layer.library(one.product);
    if (algorithms.empty()) continue;
    rung.cells["beside"] = one.name;
    plan.peers.push_back({.name = fmt::format("{} {}", library.name, one.name),
                          .why = "the peer",
                          .configurations = std::move(algorithms),
                          .check = rung.check + "_library",
                          .check_detail = "As ours, within four times the bound; INT8 exactly.",
                          .variant = name,
                          .rate_id = "w8a8_library_rate"});
    break;
  }
  return plan;
}

EightRates add_w8a8(lab::Bench& bench, const BenchSizes& sizes) {
  EightRates rates{};
  simt::Device& device = bench.device;
  if (!has_w8a8(device.info())) return rates;
  const Matrix matrix{sizes.square, sizes.square};
  const std::size_t count = numeric::elements_of(matrix.rows, matrix.columns);
  const lab::Repeated<std::uint16_t> weights(device, count, normal_bf16(3, kDeviation));
  const lab::Repeated<std::uint16_t> x(device, count, normal_bf16(4, 1));
  std::vector<lab::Timed> rows;
  for (std::size_t f = 0; f < kEightFormats.size(); ++f) {
    EightBitLayers layer(device, kEightFormats[f], matrix, 1, weights, x, matrix.rows);
    const lab::LadderPlan plan = square_plan(layer, matrix.rows, kernels_of(device).library());
    const lab::Climb climb =
        bench.climb(sizes.quick ? lab::quick(plan) : plan, 0.05 / kEightFormats.size());
    if (climb.rungs[0].timed()) rates[f] = climb.rungs[0].rate.median;
    for (const auto* some : {&climb.rungs, &climb.peers}) {
      for (const lab::Timed& timed : *some) {
        if (timed.timed()) rows.push_back(timed);
      }
    }
  }
  bench.add_table(
      "w8a8", fmt::format("W8A8 at {}³, Y in BF16", matrix.rows),
      {"format", "rung", lab::Column{"tflops", "rate"}, lab::real("p10", "", "TFLOP/s", 2),
       lab::real("p90", "", "TFLOP/s", 2), lab::Column{"fraction", "of cuBLAS"},
       lab::column("beside", "beside cuBLASLt's"), "configuration"},
      rows);
  return rates;
}

std::string summary_of_w8a8(const lab::Bench& bench) {
  if (!has_w8a8(bench.device.info())) {
    return fmt::format("W8A8 is left out: it needs compute capability 9.0 (Hopper), not {}'s. ",
                       bench.device.info().name);
  }
  return fmt::format("W8A8 runs at {} in INT8 and {} in FP8. ",
                     bench.headline("w8a8_rate", "INT8", 0), bench.headline("w8a8_rate", "FP8", 0));
}

}  // namespace tilestep::low_bit

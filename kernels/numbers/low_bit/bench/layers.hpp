#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/random.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/low_bit/bench/w8a8.hpp"
#include "kernels/numbers/low_bit/reference.hpp"

namespace tilestep::low_bit {

using RowOfW = std::function<std::vector<double>(std::size_t row)>;

inline std::vector<double> decoded(const std::vector<std::uint16_t>& bf16) {
  std::vector<double> values;
  for (const std::uint16_t bits : bf16) values.push_back(numeric::decode(numeric::kBf16, bits));
  return values;
}

/// W of one layer in one format, in groups of 128 where it has none of its own.
struct StoredLayer {
  Matrix matrix;
  Format format;
  Group group = group_of(format, Group::g128);
  int size = group_size(group, matrix.rows, matrix.columns);
  std::size_t count = numeric::elements_of(matrix.rows, matrix.columns);
  simt::Buffer<std::uint8_t> codes, scales;
  simt::Buffer<Range> ranges;
  simt::Buffer<std::uint32_t> words, pairs;  ///< of INT4, arranged

  StoredLayer(simt::Device& device, const Matrix& of, Format in)
      : matrix(of),
        format(in),
        codes(device, code_bytes(in, of.rows, of.columns)),
        scales(device,
               count / static_cast<std::size_t>(size) * static_cast<std::size_t>(scale_bytes(in))),
        ranges(device, static_cast<std::size_t>(of.rows) + 1),
        words(device, in == Format::int4 ? count / 8 : 0),
        pairs(device, in == Format::int4 ? count / 256 : 0) {}

  Quantized quantized() { return {format, group, codes.span(), scales.span(), {}, ranges.span()}; }
  Arranged arranged() { return {words.span(), pairs.span()}; }
  /// What a row stands for.
  std::vector<double> row(std::size_t row) const {
    const std::size_t bytes = code_bytes(format, 1, matrix.columns);
    const std::size_t columns = static_cast<std::size_t>(matrix.columns);
    const auto of_group = static_cast<std::size_t>(size);
    const auto width = static_cast<std::size_t>(scale_bytes(format));
    const Range all = ranges.download(ranges.count() - 1, 1)[0];
    return stored_values(format, size, codes.download(row * bytes, bytes),
                         scales.download(row * columns / of_group * width,
                                         (columns + of_group - 1) / of_group * width),
                         std::max(-all.low, all.high) / (448.0f * 6.0f));
  }
};

/// Layers of a model, alike, one after the other: what one reads is in no cache any more when its turn comes again.
class Layers {
 public:
  /// Weights in BF16 for `alike` layers; the others repeat them, but for codes in memory of their own.
  Layers(simt::Device& device, const Matrix& matrix, int layers, int alike, int most,
         std::initializer_list<Format> formats)
      : device_(device),
        matrix_(matrix),
        layers_(layers),
        alike_(alike),
        weights_(device, count() * static_cast<std::size_t>(alike), normal_bf16(3, kDeviation)),
        x_(device, numeric::elements_of(most, matrix.columns), normal_bf16(4, 1)),
        y_(device, numeric::elements_of(most, matrix.rows)) {
    for (const Format format : formats) {
      for (int i = 0; i < layers; ++i) {
        StoredLayer& layer = stored_[format].emplace_back(device, matrix, format);
        kernels().ranges(device, matrix, weights(i), layer.ranges.span());
        kernels().quantize(device, matrix, weights(i), layer.quantized());
        if (format != Format::int4) continue;
        kernels().arrange(device, matrix, layer.quantized(), layer.arranged());
      }
    }
    device.synchronize();
  }

  lab::Runnable gemv(Format format, const GemvPlan& plan) {
    return each(1, row_of(format, false), [this, format, plan](int i) {
      kernels().gemv(device_, matrix_, layer(format, i).quantized(), plan, x(1), y(1));
    });
  }
  lab::Runnable linear(const LinearPlan& plan, int batch) {
    return each(batch, row_of(Format::int4, false), [this, plan, batch](int i) {
      kernels().linear(device_, matrix_, layer(Format::int4, i).arranged(), plan, batch, x(batch),
                       y(batch));
    });
  }
  lab::Runnable library(int algorithm, int batch) {
    const auto row = [this](std::size_t at) {
      const auto columns = static_cast<std::size_t>(matrix_.columns);
      return decoded(weights_.values(at * columns, columns));
    };
    return each(batch, row, [this, algorithm, batch](int i) {
      kernels().library_multiply(product(batch), algorithm, arrays(weights(i).data));
    });
  }
  /// Numbers to memory, where all layers have the same place, and their product by the library.
  lab::Runnable unfused(Format format, int algorithm, int batch, simt::Buffer<std::uint16_t>& to) {
    return each(batch, row_of(format, true), [this, format, algorithm, batch, &to](int i) {
      kernels().dequantize_bf16(device_, matrix_, layer(format, i).quantized(), to.span());
      kernels().library_multiply(product(batch), algorithm, arrays(to.span().data));
    });
  }
  lab::Runnable dequantize(Format format, simt::Buffer<std::uint16_t>& to) {
    const auto launch = device_.graph_of([this, format, &to] {
      for (int i = layers_ - 1; i >= 0; --i) {
        kernels().dequantize_bf16(device_, matrix_, layer(format, i).quantized(), to.span());
      }
    });
    return lab::judged(device_, to, launch, [this, format, &to] {
      const auto columns = static_cast<std::size_t>(matrix_.columns);
      lab::Closest closest;
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t row = numeric::mixed(i) % static_cast<std::size_t>(matrix_.rows);
        const std::vector<double> want = row_of(format, true)(row);
        const std::vector<double> got = decoded(to.download(row * columns, columns));
        for (std::size_t k = 0; k < columns; ++k) closest.add(got[k], want[k], 0);
      }
      return closest;
    });
  }

  int algorithms(int batch) {
    if (!kernels().library().available) return 0;
    return kernels().library_algorithms(product(batch), arrays(weights(0).data));
  }
  std::size_t count() const { return numeric::elements_of(matrix_.rows, matrix_.columns); }
  /// Bytes that a product moves: W at so many bits a weight, X and Y.
  double bytes(int batch, double bits) const {
    return static_cast<double>(count()) * bits / 8 + 2.0 * batch * (matrix_.rows + matrix_.columns);
  }
  double bits(Format format) const {
    return bits_per_weight(format, Group::g128, matrix_.rows, matrix_.columns);
  }
  double flops(int batch) const { return 2.0 * batch * static_cast<double>(count()); }
  std::string name() const { return fmt::format("{} × {}", matrix_.rows, matrix_.columns); }
  const Matrix& matrix() const { return matrix_; }
  int layers() const { return layers_; }
  EightBitLayers in_eight_bits(const EightFormat& format, int most) const {
    return {device_, format, matrix_, layers_, weights_, x_, most};
  }

 private:
  const Kernels& kernels() const { return kernels_of(device_); }
  StoredLayer& layer(Format format, int i) {
    return stored_.at(format)[static_cast<std::size_t>(i)];
  }
  simt::Span<const std::uint16_t> weights(int i) const {
    return {weights_.span().data + static_cast<std::size_t>(i % alike_) * count(), count()};
  }
  simt::Span<const std::uint16_t> x(int batch) const {
    return {x_.span().data, numeric::elements_of(batch, matrix_.columns)};
  }
  simt::Span<std::uint16_t> y(int batch) {
    return {y_.span().data, numeric::elements_of(batch, matrix_.rows)};
  }
  simt::LibraryProduct product(int batch) const {
    return {.m = batch, .n = matrix_.rows, .k = matrix_.columns};
  }
  simt::LibraryArrays arrays(const std::uint16_t* w) {
    return {.a = x_.span().data, .b = w, .c = y_.span().data};
  }
  RowOfW row_of(Format format, bool in_bf16) {
    return [this, format, in_bf16](std::size_t row) {
      std::vector<double> values = layer(format, 0).row(row);
      for (double& value : values) {
        if (!in_bf16) break;
        value = numeric::round_to(numeric::kBf16, static_cast<double>(static_cast<float>(value)));
      }
      return values;
    };
  }
  /// All layers into the same y, the first one's last: 128 of its elements are compared with sums in double. As a graph,
  /// for a launch takes the host longer than a small layer the GPU.
  lab::Runnable each(int batch, RowOfW row, std::function<void(int layer)> one) {
    const auto launch = device_.graph_of([this, one = std::move(one)] {
      for (int i = layers_ - 1; i >= 0; --i) one(i);
    });
    return lab::judged(device_, y_, launch, [this, batch, row = std::move(row)] {
      const auto columns = static_cast<std::size_t>(matrix_.columns);
      const auto rows = static_cast<std::size_t>(matrix_.rows);
      lab::Closest closest;
      for (std::size_t i = 0; i < 128; ++i) {
        const std::uint64_t random = numeric::mixed(i);
        const std::size_t at = random % rows, n = (random >> 32) % static_cast<std::size_t>(batch);
        const std::vector<double> w = row(at), inputs = decoded(x_.values(n * columns, columns));
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < columns; ++k) {
          sum += w[k] * inputs[k];
          magnitude += std::abs(w[k] * inputs[k]);
        }
        closest.add(decoded(y_.download(n * rows + at, 1))[0], sum,
                    std::ldexp(std::abs(sum), -8) + std::ldexp(magnitude, -18));
      }
      return closest;
    });
  }

  simt::Device& device_;
  const Matrix matrix_;
  const int layers_, alike_;
  lab::Repeated<std::uint16_t> weights_, x_;
  simt::Buffer<std::uint16_t> y_;
  std::map<Format, std::vector<StoredLayer>> stored_;
};

}  // namespace tilestep::low_bit

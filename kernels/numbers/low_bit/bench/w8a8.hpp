#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/numbers/low_bit/bench/bench.hpp"

namespace tilestep::low_bit {

/// W8A8's formats, and how the bench calls them: variants and columns.
struct EightFormat {
  Format format;
  std::string_view name, id;
};
inline constexpr std::array<EightFormat, 2> kEightFormats{
    {{Format::int8, "INT8", "int8"}, {Format::fp8_e4m3, "FP8", "fp8"}}};

/// Layers of W in 8 bits, alike, and the first rows of `x`, one scale a row.
class EightBitLayers {
 public:
  /// `weights` has so many layers one after the other, `x` has `most` rows. Done when it returns.
  EightBitLayers(simt::Device& device, const EightFormat& format, const Matrix& matrix, int layers,
                 const lab::Repeated<std::uint16_t>& weights, const lab::Repeated<std::uint16_t>& x,
                 int most);

  const EightFormat& format() const { return format_; }
  /// All layers, each with the same X, into the same Y, by every plan that may be the best for `batch` rows of X: none on a
  /// GPU that is not Hopper. Checked as "w8a8_int8", "w8a8_fp8".
  lab::Rung rung(int batch);
  /// One layer and all rows of X by all algorithms of cuBLASLt. C is BF16, or of S8 int.
  std::vector<lab::Configuration> library(const simt::LibraryProduct& product);
  simt::LibraryProduct product(simt::LibraryProduct::Scaling scaling) const;
  /// Bytes that a product reads and writes at least.
  double bytes(int batch) const;

 private:
  std::size_t count() const;
  EightBits w(int layer);
  EightBits x(int batch);
  lab::Closest compared(int batch, bool scaled, double slack,
                        const std::function<double(std::size_t at)>& element);

  simt::Device& device_;
  const EightFormat format_;
  const Matrix matrix_;
  const int layers_, most_;
  simt::Buffer<std::uint8_t> w_codes_, w_scales_, x_codes_, x_scales_;
  simt::Buffer<std::uint16_t> y_;
};

/// The best rates in TFLOP/s, by format; 0: not timed.
using EightRates = std::array<double, kEightFormats.size()>;

/// The table `w8a8`: a square product beside cuBLASLt's. Nothing on a GPU that is not Hopper.
EightRates add_w8a8(lab::Bench& bench, const BenchSizes& sizes);
/// A sentence about it; where there is none, why.
std::string summary_of_w8a8(const lab::Bench& bench);

}  // namespace tilestep::low_bit

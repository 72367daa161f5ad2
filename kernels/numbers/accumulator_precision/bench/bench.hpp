#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/report.hpp"

/// Shared by the bench's parts.
namespace tilestep::accumulator_precision {

struct BenchSizes {
  int error_edge = 512;  ///< M and N of the error sweep
  std::vector<int> depths = {256, 512, 1024, 2048, 4096, 8192, 16384};  ///< its K
  int judged_depth = 4096;            ///< one of them, and K of the timed products
  int rate_edge = 4096;               ///< M and N of the timed products
  GemmShape trial = {128, 128, 256};  ///< M · N dot products for each software model
  int long_depth = 4096;              ///< for the default model only
  bool quick = false;                 ///< only the rates on uniform data

  static BenchSizes of_quick() {
    BenchSizes sizes;
    sizes.quick = true;
    return sizes;
  }
};

/// A bench's device, and its report.
struct Bench : lab::Bench {
  const BenchSizes& sizes;
  const Kernels& kernels = kernels_of(device);
};

/// Operands of a GEMM in device memory, in all three formats: random E4M3 numbers, uniform in
/// 0.5–1.5, normal, or normal with one in a hundred 16 times larger.
class GemmProblem {
 public:
  GemmProblem(const Bench& bench, const GemmShape& shape, GemmData data, unsigned seed);

  /// Starts `variant` on them.
  void launch(const Bench& bench, GemmVariant variant);
  /// Runs `variant` and returns C.
  std::vector<float> result(const Bench& bench, GemmVariant variant);
  /// The exact C; with `absolute` that of the absolute values of A and B.
  std::vector<double> exact(const Bench& bench, bool absolute);

  GemmShape shape;
  std::vector<std::uint8_t> a_bits, b_bits;

 private:
  simt::Buffer<std::uint8_t> a_, b_;
  simt::Buffer<std::uint16_t> a_fp16_, b_fp16_, a_bf16_, b_bf16_;
  simt::Buffer<float> c_;
};

/// The E4M3 numbers of a `GemmProblem`; a longer list begins with the same numbers.
std::vector<std::uint8_t> random_e4m3(GemmData data, std::size_t count, unsigned seed);
/// The seeds of A and B on which the model is tried.
inline constexpr unsigned kTrialSeeds[] = {4242, 4243};

/// Errors against k, and how each variant keeps to its bound.
void bench_errors(Bench& bench);
/// Throughput of each variant, and its error on the same data.
void bench_rates(Bench& bench);
/// The software model of the FP8 path against the hardware, bit for bit. Needs Hopper.
void bench_model(Bench& bench);

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::accumulator_precision

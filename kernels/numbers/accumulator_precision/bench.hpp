#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"

/// What the two halves of the bench share.
namespace tilestep::accumulator_precision {

/// Where a bench runs, and where its answers go.
struct Bench {
  simt::Device& device;
  const Kernels& kernels;
  lab::Progress& progress;
  lab::Report& report;
};

/// `count` random E4M3 numbers: uniform in 0.5–1.5, normal, or normal with one in a hundred 16
/// times larger.
std::vector<std::uint8_t> random_e4m3(GemmData data, std::size_t count, unsigned seed);

/// Operands of a GEMM in device memory, in all three formats.
class GemmProblem {
 public:
  GemmProblem(const Bench& bench, const GemmShape& shape, GemmData data, unsigned seed);

  /// Starts `variant` on them.
  void launch(const Bench& bench, GemmVariant variant);
  /// Runs `variant` and gives C.
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

/// Errors against k, and how each variant keeps to its bound. Tables and checks.
void bench_errors(const Bench& bench);
/// Throughput of each variant.
void bench_rates(const Bench& bench);
/// The software model of the FP8 path against the hardware, bit for bit. Needs Hopper.
void bench_model(const Bench& bench);

/// Depths along k of the error sweep, and the one that is judged.
inline constexpr int kDepths[] = {256, 512, 1024, 2048, 4096, 8192, 16384};
inline constexpr int kJudgedDepth = 4096;

}  // namespace tilestep::accumulator_precision

#pragma once

#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"

namespace tilestep::low_bit {

/// The timed work: W [rows × columns] in BF16, 512 MiB and so far more than any L2 holds, is read once, and codes and
/// scales are written. What a row or all of W spans is known before, for the formats that need it.
struct BenchSizes {
  Matrix matrix{16384, 16384};
  bool quick = false;
  /// The layers of W4A16 and W8A8, and how many rows of X they are timed with.
  std::vector<Matrix> layers{{4096, 4096}, {14336, 4096}};
  int alike = 16;  ///< copies of each, far more than any L2 holds
  std::vector<int> batches{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  int square = 4096;  ///< rows of X and W, and columns, of W8A8's product beside cuBLASLt's
  std::vector<int> unfused{1, 16, 128};  ///< of the last layer, fused beside unfused
};

/// Normal numbers in BF16. A prime number of them: no two rows are alike.
std::vector<std::uint16_t> normal_bf16(std::uint64_t seed, double deviation);
/// W4A16's plans that fit a batch: none that computes four times the rows that there are, or takes more than four turns.
std::vector<LinearPlan> plans_for(const simt::DeviceInfo& device, const Matrix& matrix, int batch);

/// The tables `w8a8`, `linear` (W4A16 and W8A8 beside cuBLAS in BF16) and `crossing`; answers sentences about them. `data` is
/// what reading is timed with.
std::string add_linear(lab::Bench& bench, const BenchSizes& sizes,
                       const lab::Repeated<std::uint16_t>& data);
/// The tables `gemv`, `unfused` and `dequantize`, for the rest of the bench, after the others; answers a sentence.
std::string add_gemv(lab::Bench& bench, const BenchSizes& sizes);
/// The bench with these sizes: `quantize`, then the others. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::low_bit

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
  /// The layers of W4A16, and how many rows of X they are timed with.
  std::vector<Matrix> layers{{4096, 4096}, {14336, 4096}};
  int alike = 16;  ///< copies of each, far more than any L2 holds
  std::vector<int> batches{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
};

/// The bench with these sizes: tables `quantize`, and of W4A16 beside cuBLAS in BF16 `linear` and `crossing`. The device
/// can time.
/// The tables of W4A16; answers a sentence about the last layer, empty without cuBLAS. `data` is what reading is timed with.
std::string add_linear(lab::Bench& bench, const BenchSizes& sizes,
                       const lab::Repeated<std::uint16_t>& data);
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::low_bit

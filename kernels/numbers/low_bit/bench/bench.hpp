#pragma once

#include "kernels/numbers/low_bit/lesson.hpp"

namespace tilestep::low_bit {

/// The timed work: W [rows × columns] in BF16, 512 MiB and so far more than any L2 holds, is read once, and codes and
/// scales are written. What a row or all of W spans is known before, for the formats that need it.
struct BenchSizes {
  Matrix matrix{16384, 16384};
  bool quick = false;
};

/// The bench with these sizes: table `quantize`. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::low_bit

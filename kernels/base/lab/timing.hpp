#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {

/// How all benches measure; stored in recordings.
inline constexpr const char* kProtocol =
    "CUDA events round each sample; before a timing each kernel runs for 0.6 s or more, until its "
    "times have settled (points of a sweep that follow others: 0.15 s); rungs and peers in turn, "
    "in three rounds; at least 20 samples, median with 10th and 90th percentile; the L2 cache "
    "flushed or buffers larger than it; random data; results compared with the reference before.";

/// How long a kernel runs before its times count, and how many samples to take.
struct Pace {
  double settle_ms = 600;    ///< warm-up: at least this long, and until its times have settled
  int samples = 40;          ///< if they take no more than a few seconds
  int least = 20;            ///< otherwise
  double most_seconds = 60;  ///< if even `least` samples would take longer, it is not timed
};
/// For a number that is shown. Under load the clock drops until power and heat have settled (on an
/// H200 cuBLAS in BF16 falls from about 770 to 676 TFLOP/s), so timing starts after that. Kernels
/// that move much through L1 and L2 hit the power limit too: under `three-pass` of the softmax
/// ladder an H200 of 700 W lowers its SM clock from 1980 MHz to between 1450 and 1700 within the
/// 0.6 s (nvidia-smi: SW power cap). At 4096 columns it reaches 0.91 of a copy after 5 ms of warm-up
/// and 0.80 after 0.6 s, the padded transpose 0.96 and 0.91 to 0.94. What DRAM bounds, the copy and
/// `online-one-read`, stays as it was.
inline constexpr Pace kShown{};
/// For choosing among configurations; the clock need not have settled.
inline constexpr Pace kChoosing{50, 20, 20, 60};
/// For a point of a sweep that follows similar points without a pause.
inline constexpr Pace kNextPoint{150, 25, 20, 60};

/// Milliseconds of each sample of `launch`, taken once its times have settled: two consecutive batches
/// differ by at most 1 %, or three times the settling time has passed. With `flush_l2`, L2 is flushed
/// before each sample. Empty if it is too slow for the pace. Throws Cancelled.
std::vector<double> settled_times(simt::Device& device, const Progress& progress,
                                  const std::function<void()>& launch, const Pace& pace,
                                  bool flush_l2);

/// Whether a launch over `bytes` leaves too much in L2 to be timed again without a flush.
inline bool fits_l2(const simt::DeviceInfo& device, double bytes) {
  return bytes < 2.0 * static_cast<double>(device.l2_bytes);
}

/// Fills `buffer` with repetitions of `period`: large random arrays whose every number the host
/// knows. The device copies them, doubling the filled part each time.
template <class T>
void fill_with(simt::Device& device, simt::Buffer<T>& buffer, std::span<const T> period) {
  T* to = buffer.span().data;
  const std::size_t first = std::min(period.size(), buffer.count());
  device.copy_in(to, period.data(), first * sizeof(T));
  for (std::size_t done = first; done < buffer.count(); done *= 2) {
    device.copy_on_device(to + done, to, std::min(done, buffer.count() - done) * sizeof(T));
  }
  device.synchronize();
}

/// Median and spread of samples, in the samples' unit.
struct Spread {
  double median = 0, p10 = 0, p90 = 0;
  int samples = 0;

  /// A spread (p90 − p10)/median over 10 % withholds the headline number.
  bool stable() const;
};

/// Quantiles are interpolated between the two nearest samples. Throws Error for no samples.
Spread spread_of(std::vector<double> samples);

/// `amount` over a time in ms, in 10^9 per second: bytes give GB/s, FLOPs give GFLOP/s. The slow end
/// of the times is the low end of the rates.
Spread rate_of(const Spread& time_ms, double amount);

/// A timed number (provenance `measured`).
Measurement measured(std::string id, std::string_view variant, const Spread& spread,
                     std::string_view unit, std::string detail);

/// A number from a hardware counter (provenance `counted`); `detail` names counter and launch.
Measurement counted(std::string id, std::string_view variant, AnyNumber value,
                    std::string_view unit, std::string detail);

/// A number that the kernel itself recorded (provenance `traced`).
Measurement traced(std::string id, std::string_view variant, AnyNumber value, std::string_view unit,
                   std::string detail);

/// A number from a formula (provenance `derived`); `detail` is the formula.
Measurement derived(std::string id, std::string_view variant, AnyNumber value,
                    std::string_view unit, std::string detail);

}  // namespace tilestep::lab

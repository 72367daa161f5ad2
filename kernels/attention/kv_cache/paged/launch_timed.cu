// How the timed paged kernels are launched.

#include "kernels/attention/kv_cache/paged/launch.hpp"
#include "kernels/attention/kv_cache/paged/paged.cu"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {
namespace {

/// Tiles and rings of timed kernels. Up to 16 rows of queries they are made for bytes on their way that keep an H200's
/// memory busy; kWide ones, for more rows, for products that do not wait for each other.
template <class F, int kEights, bool kWide>
struct TimedSizes {
  static constexpr int kTokens = F::kBits == 16 && !kWide ? 16 : 32;
  static constexpr int kStages = 2;
  static constexpr int kWarps = F::kBits == 4 && kEights == 1 ? 12 : 8;
};
template <class F, int kDim, int kEights, bool kWide, class S = TimedSizes<F, kEights, kWide>>
using TimedShape = Shape<F, kDim, kEights, S::kTokens, S::kStages, S::kWarps>;

template <class T>
void start(simt::Device& device, const Problem& problem, const Arrays& arrays,
           simt::Resources* resources) {
  launch<T>(device, paged<T, simt::NoTape>, problem, arrays, simt::NoTape{}, resources);
}

void attend_timed(simt::Device& device, const Problem& problem, const Arrays& arrays,
                  simt::Resources* resources) {
  check(device.info(), problem);
  simt::require_within("timed paged decode: head_dim", problem.head_dim, kTimedDim, kTimedDim);
  with_format(problem, [&](auto format) {
    using F = typename decltype(format)::type;
    if (rows_of(problem) <= 8) {
      start<TimedShape<F, kTimedDim, 1, false>>(device, problem, arrays, resources);
    } else if (rows_of(problem) <= 16) {
      start<TimedShape<F, kTimedDim, 2, false>>(device, problem, arrays, resources);
    } else {
      start<TimedShape<F, kTimedDim, 2, true>>(device, problem, arrays, resources);
    }
  });
}

}  // namespace

void attend(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  attend_timed(device, problem, arrays, nullptr);
}

simt::Resources resources(simt::Device& device, const Problem& problem) {
  simt::Resources found;
  Arrays none;
  none.first_item.count = 2;
  attend_timed(device, problem, none, &found);
  return found;
}

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND

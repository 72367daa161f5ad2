// Fusion: the timed launches of rows.cu. For a GPU each combination of steps is a kernel of its own; under emulation
// one kernel has them all.

#include "kernels/systems/fusion/launch.hpp"

namespace tilestep::fusion::SIMT_BACKEND {
namespace {

/// Throws Error for a combination that is not compiled.
void check_parts(const Parts& parts) {
  constexpr Parts kAllowed[] = {
      kAdd, kNorm, kQuantize, kAddNorm, kNormQuantize, kAddNormQuantize, kSwiglu, kSwigluQuantize};
  bool found = false;
  for (const Parts& one : kAllowed) found = found || one == parts;
  if (!found) throw Error("fusion: this combination of steps is not compiled");
}

/// Whether h · gain is used twice, of a combination that the compiler knows.
template <class Steps>
constexpr bool kUsesTwice = true;
template <First kFirst, bool kNorm, bool kQuantize>
constexpr bool kUsesTwice<Compiled<kFirst, kNorm, kQuantize>> = kNorm&& kQuantize;

template <class Run>
void with_held(int values, Run run) {
  simt::with_constant<16, 32, 64, 128, 256, 512>("fusion: values of a thread", values, run);
}

simt::Launch holding_launch(int values, int width) {
  simt::require_multiple("fusion: width", width, values * 32);
  simt::require_within("fusion: threads of a row", width / values, 32, kMostThreads);
  return simt::row_of_blocks("holding", 1, width / values, kStashAt);
}

}  // namespace

void start_rows(simt::Device& device, const RowShape& shape, const Parts& parts,
                const RowArrays& arrays) {
  check_threads(shape.threads);
  check_parts(parts);
  if (is_streamed(shape, parts)) return start_stream(device, shape, parts, arrays);
  const int cluster = checked_cluster(shape);
  const simt::Launch launch = launch_of("rows", shape, cluster);
  with_packs(shape, cluster, [&](auto pack, auto held) {
    using Pack = decltype(pack);
    using Held = decltype(held);
    if constexpr (Held::kPacks == kManyPacks && !Held::kShared && Pack::kNumbers > 1) {
      throw Error("fusion: 8 packs in registers of a thread, not in a stream; allowed: 1, 2, 4");
    } else {
      const bool few = shape.packs == 4 && shape.threads <= kFewThreads;
      const auto start = [&](auto chosen) {
        if constexpr (Pack::kNumbers > 1 && Held::kPacks == 4 && !Held::kShared &&
                      kUsesTwice<decltype(chosen)>) {
          if (few && parts.norm && parts.quantize)
            return simt::launch(device, launch, few_kernel<Pack, decltype(chosen)>,
                                arrays_of<Pack>(arrays), rows_of(shape, cluster), chosen);
        }
        simt::launch(device, launch,
                     rows_kernel<Pack, Held::kPacks, Held::kShared, decltype(chosen)>,
                     arrays_of<Pack>(arrays), rows_of(shape, cluster), chosen);
      };
      // Rows that are read one by one are the rare case: one kernel has all steps.
      if constexpr (Pack::kNumbers == 1) {
        start(parts);
      } else {
        with_parts(parts, start);
      }
    }
  });
}

void start_rows_holding(simt::Device& device, int values, const RowShape& shape,
                        const RowArrays& arrays) {
  simt::Launch launch = holding_launch(values, shape.width);
  launch.grid = dim3(static_cast<unsigned>(shape.rows));
  with_held(values, [&](auto held) {
    simt::launch(device, launch, holding_kernel<held>, arrays_of<Wide<Dtype::bf16>>(arrays),
                 rows_of(shape, 1));
  });
}

simt::Resources holding(int values, int width) {
  simt::Resources resources;
  with_held(values, [&](auto held) {
    resources = simt::resources_of(holding_launch(values, width), holding_kernel<held>);
  });
  return resources;
}

}  // namespace tilestep::fusion::SIMT_BACKEND

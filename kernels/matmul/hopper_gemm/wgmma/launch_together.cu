// How the kernels without a producer are launched: mma_sync.cu and together.cu.

#include <cassert>

#include "kernels/matmul/hopper_gemm/mma_sync.cu"
#include "kernels/matmul/hopper_gemm/together.cu"
#include "kernels/matmul/hopper_gemm/wgmma/launches.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {
namespace {

/// For the variants without specialization.
template <class T, class R, class Out, class Tape>
void start_as(const Call& call, Variant variant, const Task& task, const R& ring,
              const Arrays<Out>& arrays, const Tape& tape) {
  if (variant == Variant::wgmma) {
    return call.start(plain_loads<T, R, Out, Tape>, arrays.a(), arrays.b(), arrays.out(), task,
                      ring, tape);
  }
  const TensorMaps maps = maps_of<T>(ring, 1, task.shape, arrays.operands, arrays.c);
  if (variant == Variant::tma) {
    call.start(fetched<T, R, Out, true, Tape>, maps, arrays.out(), task, ring, tape);
  } else {
    call.start(fetched<T, R, Out, false, Tape>, maps, arrays.out(), task, ring, tape);
  }
}

}  // namespace

void explain_together(const Call& call, const Explanation& what, const Task& task,
                      const Arrays<float>& arrays, const simt::Tape& tape) {
  const AnyRing ring = ring_of(what);
  with_tile(what, [&](auto tile) {
    using T = typename decltype(tile)::type;
    if (what.variant != Variant::mma_sync) {
      return start_as<T>(call, what.variant, task, ring, arrays, tape);
    }
    if constexpr (T::kFormat == Format::bf16) {
      call.start(mma_sync<T, AnyRing, float, simt::Tape>, arrays.a(), arrays.b(), arrays.out(),
                 task, ring, tape);
    } else {
      throw Error("hopper-gemm: mma-sync supports only bf16; allowed: bf16");
    }
  });
}

void start_together(const Call& call, int configuration, const Task& task,
                    const Arrays<std::uint16_t>& arrays) {
  using T = Bf16Tile<256>;
  using Out = std::uint16_t;
  const simt::NoTape none;
  const auto maps = [&](const auto& ring) {
    return maps_of<T>(ring, 1, task.shape, arrays.operands, arrays.c);
  };
  switch (configuration) {
    case 0:
      return call.start(mma_sync<T, TimedRing, Out, simt::NoTape>, arrays.a(), arrays.b(),
                        arrays.out(), task, TimedRing{}, none);
    case 1:
      return call.start(plain_loads<T, OneStage, Out, simt::NoTape>, arrays.a(), arrays.b(),
                        arrays.out(), task, OneStage{}, none);
    case 2:
      return call.start(fetched<T, OneStage, Out, true, simt::NoTape>, maps(OneStage{}),
                        arrays.out(), task, OneStage{}, none);
    case 3:
      return call.start(fetched<T, TimedRing, Out, false, simt::NoTape>, maps(TimedRing{}),
                        arrays.out(), task, TimedRing{}, none);
    default:
      assert(false);
  }
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

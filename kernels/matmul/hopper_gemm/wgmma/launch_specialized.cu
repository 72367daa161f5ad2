// How the kernels of specialized.cu, which have a producer, are launched.

#include <cassert>

#include "kernels/matmul/hopper_gemm/specialized.cu"
#include "kernels/matmul/hopper_gemm/wgmma/launches.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {
namespace {

template <class T, class R, class Out, int kCluster, class Tape>
void start_as(const Call& call, const Task& task, const R& ring, const Arrays<Out>& arrays,
              const Tape& tape) {
  call.start(specialized<T, R, Out, kCluster, Tape>,
             maps_of<T>(ring, kCluster, task.shape, arrays.operands, arrays.c), arrays.out(), task,
             ring, tape);
}

}  // namespace

void explain_specialized(const Call& call, const Explanation& what, const Task& task,
                         const Arrays<float>& arrays, const simt::Tape& tape) {
  const AnyRing ring = ring_of(what);
  with_tile(what, [&](auto tile) {
    using T = typename decltype(tile)::type;
    if (what.cluster == 1) {
      start_as<T, AnyRing, float, 1>(call, task, ring, arrays, tape);
    } else {
      start_as<T, AnyRing, float, 2>(call, task, ring, arrays, tape);
    }
  });
}

void start_specialized(const Call& call, int configuration, const Task& task,
                       const Arrays<std::uint16_t>& arrays, int stages) {
  using Out = std::uint16_t;
  const simt::NoTape none;
  switch (configuration) {
    case 4:
    case 7:
      return start_as<Bf16Tile<256>, TimedRing, Out, 1>(call, task, {}, arrays, none);
    case 5:
    case 6:
      return start_as<Bf16Tile<256>, TimedRing, Out, 2>(call, task, {}, arrays, none);
    case 8:
      return start_as<Bf16Tile<64>, FixedRing<8, 1>, Out, 1>(call, task, {}, arrays, none);
    case 9:
      return start_as<Bf16Tile<256>, SweptRing, Out, 1>(call, task, {stages}, arrays, none);
    case 10:
      return start_as<Bf16Tile<256>, PlainStores, Out, 1>(call, task, {}, arrays, none);
    case 11:
      return start_as<Tile<256, Format::e4m3>, TimedRing, Out, 2>(call, task, {}, arrays, none);
    case 12:
      return start_as<Bf16Tile<256>, TakenInTurn, Out, 2>(call, task, {}, arrays, none);
    default:
      assert(false);
  }
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

#pragma once

/// \file
/// How a launch is put together: shared by the files that launch kernels.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/tensor_map.hpp"
#include "kernels/matmul/hopper_gemm/kernels.hpp"
#include "kernels/matmul/hopper_gemm/task.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

// ---- tensor maps --------------------------------------------------------------------------------

/// Boxes of `box_rows` rows by a panel of k.
template <class T>
TensorMap map_of(simt::Span<const std::uint16_t> array, int rows, int k, int box_rows,
                 int swizzle) {
  const int pitch = pitch_bytes(k, T::kElementBytes);
  const simt::BoxedMatrix matrix{.rows = rows,
                                 .columns = k,
                                 .box_rows = box_rows,
                                 .box_columns = (swizzle == 0 ? 16 : swizzle) / T::kElementBytes,
                                 .swizzle = swizzle,
                                 .pitch_bytes = pitch};
  if constexpr (T::kElementBytes == 1) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(array.data);
    return simt::tensor_map(simt::Span<const std::uint8_t>{bytes, array.count * 2}, matrix);
  } else {
    return simt::tensor_map(array, matrix);
  }
}

template <class Out>
TensorMap map_of_c(simt::Span<Out> c, const GemmShape& shape, bool swizzled) {
  return simt::tensor_map(c, {.rows = shape.m,
                              .columns = shape.n,
                              .box_rows = kWgmmaRows,
                              .box_columns = kStoredBytes / static_cast<int>(sizeof(Out)),
                              .swizzle = swizzled ? kStoredBytes : 0,
                              .pitch_bytes = pitch_bytes(shape.n, sizeof(Out))});
}

template <class T, class R, class Out>
TensorMaps maps_of(const R& ring, int cluster, const GemmShape& shape, const Operands& operands,
                   simt::Span<Out> c) {
  return {map_of<T>(operands.a, shape.m, shape.k, ring.sharing * T::kRows, ring.swizzle),
          map_of<T>(operands.b, shape.n, shape.k, T::kColumns / cluster, ring.swizzle),
          map_of_c(c, shape, R::kSwizzledStores)};
}

// ---- starting one -------------------------------------------------------------------------------

/// A launch, or with `resources` the resources it would need.
struct Call {
  simt::Device& device;
  simt::Launch launch;
  simt::Resources* resources = nullptr;

  template <class... Params, class... Args>
  void start(void (*kernel)(Params...), Args&&... args) const {
    if (resources != nullptr) {
      *resources = simt::resources_of(launch, kernel);
    } else {
      simt::launch(device, launch, kernel, static_cast<Args&&>(args)...);
    }
  }
};

/// A launch's arrays with T's elements and C in Out.
template <class Out>
struct Arrays {
  const Operands& operands;
  simt::Span<Out> c;

  auto a() const { return simt::global(operands.a, "A"); }
  auto b() const { return simt::global(operands.b, "B"); }
  auto out() const { return simt::global(c, "C"); }
};

/// The ring of an explained run: any size.
inline AnyRing ring_of(const Plan& plan) {
  return {plan.stages, plan.swizzle, plan.consumers, plan.rows / kWgmmaRows};
}

/// Calls run(tile), a std::type_identity<Tile<…>>, for the columns and elements of the explained launch.
template <class Run>
void with_tile(const Explanation& what, Run run) {
  simt::with_constant<64, 128, 256>("hopper-gemm: columns", what.columns, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    switch (what.dtype) {
      case DataType::bf16:
        return run(std::type_identity<Tile<kColumns, Format::bf16>>{});
      case DataType::fp16:
        return run(std::type_identity<Tile<kColumns, Format::fp16>>{});
      case DataType::fp8_e4m3:
        return run(std::type_identity<Tile<kColumns, Format::e4m3>>{});
    }
  });
}

// ---- rings and tiles of timed kernels -------------------------------------------------------------

using TimedRing = FixedRing<4, 2>;
using OneStage = FixedRing<1, 2>;
/// With the requested number of stages.
struct SweptRing {
  int stages;
  static constexpr int swizzle = 128, consumers = 2, sharing = 2;
  static constexpr bool kSwizzledStores = true;

  __device__ __forceinline__ int count() const { return stages; }
};
/// To count what the swizzle of C's tiles saves.
struct PlainStores : TimedRing {
  static constexpr bool kSwizzledStores = false;
};
using TakenInTurn = FixedRing<4, 2, 128, 1>;
template <int kColumns>
using Bf16Tile = Tile<kColumns, Format::bf16>;

// ---- for launch.cu ---------------------------------------------------------------------------------

/// launch_together.cu: the kernels without specialization, and the one on mma.sync.
void explain_together(const Call& call, const Explanation& what, const Task& task,
                      const Arrays<float>& arrays, const simt::Tape& tape);
void start_together(const Call& call, int configuration, const Task& task,
                    const Arrays<std::uint16_t>& arrays);

/// launch_specialized.cu: the kernels with a producer.
void explain_specialized(const Call& call, const Explanation& what, const Task& task,
                         const Arrays<float>& arrays, const simt::Tape& tape);
void start_specialized(const Call& call, int configuration, const Task& task,
                       const Arrays<std::uint16_t>& arrays, int stages);

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

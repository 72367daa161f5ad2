// C = A·B^T on Hopper: which plans the kernels take, and how they are launched.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/tensor_map.hpp"
#include "kernels/matmul/hopper_gemm/block_scaled.cu"
#include "kernels/matmul/hopper_gemm/kernels.hpp"
#include "kernels/matmul/hopper_gemm/mma_sync.cu"
#include "kernels/matmul/hopper_gemm/resident.cu"
#include "kernels/matmul/hopper_gemm/together.cu"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

// ---- what the kernels take ----------------------------------------------------------------------

void check_device(const simt::DeviceInfo& device) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, "hopper-gemm", "compute capability 9.0 (Hopper)");
  }
}

/// Throws Error naming the size that is not allowed: rows are numbered with an int.
void check_shape(const GemmShape& shape) {
  simt::require_within("hopper-gemm: m", shape.m, 1, 1 << 20);
  simt::require_within("hopper-gemm: n", shape.n, 1, 1 << 20);
  simt::require_within("hopper-gemm: k", shape.k, 1, 1 << 20);
}

template <Format kFormat>
constexpr int kBytesOf = kFormat == Format::e4m3 ? 1 : 2;

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
                   simt::Span<Out> c, bool swizzled_stores = true) {
  return {map_of<T>(operands.a, shape.m, shape.k, ring.consumers * T::kRows, ring.swizzle),
          map_of<T>(operands.b, shape.n, shape.k, T::kColumns / cluster, ring.swizzle),
          map_of_c(c, shape, swizzled_stores)};
}

// ---- starting one -------------------------------------------------------------------------------

/// A launch, or with `resources` what the launch would take.
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

/// Arrays of a launch with T's elements and C in Out.
template <class Out>
struct Arrays {
  const Operands& operands;
  simt::Span<Out> c;

  auto a() const { return simt::global(operands.a, "A"); }
  auto b() const { return simt::global(operands.b, "B"); }
  auto out() const { return simt::global(c, "C"); }
};

/// Of the variants in which all threads do everything.
template <class T, class R, class Out, class Tape>
void start_together(const Call& call, Variant variant, const Task& task, const R& ring,
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

template <class T, class R, class Out, int kCluster, class Tape>
void start_specialized(const Call& call, const Task& task, const R& ring, const Arrays<Out>& arrays,
                       const Tape& tape) {
  call.start(
      specialized<T, R, Out, kCluster, Tape>,
      maps_of<T>(ring, kCluster, task.shape, arrays.operands, arrays.c, Tape::kSwizzledStores),
      arrays.out(), task, ring, tape);
}

static_assert(kStoreBytes == kStoredTiles * kStoredTile);

// ---- explained ----------------------------------------------------------------------------------

template <int kColumns, Format kFormat>
void explain_as(const Call& call, const Explanation& what, const Task& task,
                const Arrays<float>& arrays, simt::Span<long long> clocks) {
  using T = Tile<kColumns, kFormat>;
  const Plan& plan = what.plan;
  const AnyRing ring{plan.stages, plan.swizzle, plan.consumers};
  const Explained witness{simt::global(clocks, "clocks"), what.numbers, what.block, what.fault};
  if (what.variant == Variant::mma_sync) {
    if constexpr (kFormat == Format::bf16) {
      call.start(mma_sync<T, AnyRing, float, Explained>, arrays.a(), arrays.b(), arrays.out(), task,
                 ring, witness);
    } else {
      throw Error("hopper-gemm: mma-sync multiplies bf16 alone; allowed: bf16");
    }
  } else if (!has_producer(what.variant)) {
    start_together<T>(call, what.variant, task, ring, arrays, witness);
  } else if (plan.cluster == 1) {
    start_specialized<T, AnyRing, float, 1>(call, task, ring, arrays, witness);
  } else {
    start_specialized<T, AnyRing, float, 2>(call, task, ring, arrays, witness);
  }
}

// ---- timed --------------------------------------------------------------------------------------

constexpr Configuration kConfigurations[] = {
    {Variant::mma_sync, "128x256x64, 8 warps of 64x64, 4 stages", DataType::bf16, 128, 256, 4, 2, 1,
     false, false},
    {Variant::wgmma, "128x256x64, 2 warpgroups, 1 stage", DataType::bf16, 128, 256, 1, 2, 1, false,
     false},
    {Variant::tma, "128x256x64, 2 warpgroups, 1 stage", DataType::bf16, 128, 256, 1, 2, 1, false,
     false},
    {Variant::pipelined, "128x256x64, 2 warpgroups, 4 stages", DataType::bf16, 128, 256, 4, 2, 1,
     false, false},
    {Variant::warp_specialized, "128x256x64, 2 consumers, 4 stages", DataType::bf16, 128, 256, 4, 2,
     1, false, false},
    {Variant::multicast, "128x256x64, 2 consumers, 4 stages, cluster of 2", DataType::bf16, 128,
     256, 4, 2, 2, false, false},
    {Variant::persistent, "128x256x64, 2 consumers, 4 stages, cluster of 2", DataType::bf16, 128,
     256, 4, 2, 2, true, true},
    {Variant::persistent, "128x256x64, 2 consumers, 4 stages", DataType::bf16, 128, 256, 4, 2, 1,
     true, true},
    {Variant::persistent, "64x64x64, 1 consumer, 8 stages", DataType::bf16, 64, 64, 8, 1, 1, true,
     true},
    {Variant::warp_specialized, "128x256x64, 2 consumers, 1-4 stages", DataType::bf16, 128, 256, 4,
     2, 1, false, false, false, true},
    {Variant::persistent, "128x256x64, 2 consumers, 4 stages, stored without a swizzle",
     DataType::bf16, 128, 256, 4, 2, 1, true, true, false, false, true},
    {Variant::persistent, "128x256x128, 2 consumers, 4 stages, cluster of 2", DataType::fp8_e4m3,
     128, 256, 4, 2, 2, true, true},
    {Variant::persistent, "128x192x128, 2 consumers, 4 stages, scales of 1x128 and 128x128",
     DataType::fp8_e4m3, 128, 192, 4, 2, 1, true, true, true},
};

using TimedRing = FixedRing<4, 2>;
using OneStage = FixedRing<1, 2>;
template <int kColumns>
using Bf16Tile = Tile<kColumns, Format::bf16>;

constexpr int kBlockScaled = static_cast<int>(std::size(kConfigurations)) - 1;
static_assert(kConfigurations[kBlockScaled].block_scaled);

template <class Out>
void start_scaled(const Call& call, const Task& task, const Arrays<Out>& arrays,
                  const ScaleArrays& scales) {
  using T = Tile<kScaledColumns, Format::e4m3>;
  call.start(block_scaled<T, TimedRing, Out, 1>,
             maps_of<T>(TimedRing{}, 1, task.shape, arrays.operands, arrays.c), arrays.out(),
             Scales{simt::global(scales.a, "scales of A"), simt::global(scales.b, "scales of B")},
             task, TimedRing{});
}

/// Calls `start` with the kernel of configuration `number`.
void start_timed(const Call& call, int number, const Task& task,
                 const Arrays<std::uint16_t>& arrays, const ScaleArrays& scales, int stages) {
  using Out = std::uint16_t;
  const Timed none;
  switch (number) {
    case 0:
      return call.start(mma_sync<Bf16Tile<256>, TimedRing, Out, Timed>, arrays.a(), arrays.b(),
                        arrays.out(), task, TimedRing{}, none);
    case 1:
      return call.start(plain_loads<Bf16Tile<256>, OneStage, Out, Timed>, arrays.a(), arrays.b(),
                        arrays.out(), task, OneStage{}, none);
    case 2:
      return call.start(
          fetched<Bf16Tile<256>, OneStage, Out, true, Timed>,
          maps_of<Bf16Tile<256>>(OneStage{}, 1, task.shape, arrays.operands, arrays.c),
          arrays.out(), task, OneStage{}, none);
    case 3:
      return call.start(
          fetched<Bf16Tile<256>, TimedRing, Out, false, Timed>,
          maps_of<Bf16Tile<256>>(TimedRing{}, 1, task.shape, arrays.operands, arrays.c),
          arrays.out(), task, TimedRing{}, none);
    case 4:
    case 7:
      return start_specialized<Bf16Tile<256>, TimedRing, Out, 1>(call, task, {}, arrays, none);
    case 5:
    case 6:
      return start_specialized<Bf16Tile<256>, TimedRing, Out, 2>(call, task, {}, arrays, none);
    case 8:
      return start_specialized<Bf16Tile<64>, FixedRing<8, 1>, Out, 1>(call, task, {}, arrays, none);
    case 9:
      return start_specialized<Bf16Tile<256>, AnyRing, Out, 1>(call, task, {stages, 128, 2}, arrays,
                                                               none);
    case 10:
      return start_specialized<Bf16Tile<256>, TimedRing, Out, 1>(call, task, {}, arrays,
                                                                 PlainStores{});
    case 11:
      return start_specialized<Tile<256, Format::e4m3>, TimedRing, Out, 2>(call, task, {}, arrays,
                                                                           none);
    case kBlockScaled:
      return start_scaled(call, task, arrays, scales);
    default:
      assert(false);
  }
}

/// What configuration `one` launches for a shape.
simt::Launch timed_launch(const simt::DeviceInfo& device, const Configuration& one,
                          const GemmShape& shape, int stages) {
  const int stage_bytes = (one.rows + one.columns) * kDepthBytes;
  int blocks = tiles_of(shape, one.rows * one.cluster, one.columns, Raster::rows).count();
  if (one.persistent) blocks = std::min(blocks, device.multiprocessors / one.cluster);
  const int groups = one.consumers + (has_producer(one.variant) ? 1 : 0);
  return {
      .name = "hopper_gemm",
      .grid = dim3(static_cast<unsigned>(std::max(blocks, 1) * one.cluster)),
      .block = dim3(static_cast<unsigned>(groups * kWarpgroup)),
      .shared_bytes = static_cast<std::size_t>(shared_bytes_of(stage_bytes, stages, one.consumers)),
      .cluster = static_cast<unsigned>(one.cluster)};
}

// ---- the kernel set -----------------------------------------------------------------------------

class KernelsHere final : public Kernels {
 public:
  void explain(simt::Device& device, const Explanation& what, const Operands& operands,
               simt::Span<float> c, simt::Span<long long> clocks) const override {
    check_device(device.info());
    check_shape(what.shape);
    assert(c.count == numeric::elements_of(what.shape.m, pitch_of<float>(what.shape.n)));
    assert(what.numbers >= kSites &&
           clocks.count == numeric::elements_of(kSites + 1, what.numbers));
    const Plan& plan = what.plan;
    const int groups = plan.consumers + (has_producer(what.variant) ? 1 : 0);
    const Call call{device,
                    {.name = "hopper_gemm",
                     .grid = dim3(static_cast<unsigned>(plan.blocks)),
                     .block = dim3(static_cast<unsigned>(groups * kWarpgroup)),
                     .shared_bytes = static_cast<std::size_t>(plan.shared_bytes),
                     .cluster = static_cast<unsigned>(plan.cluster)}};
    const Task task{what.shape, what.raster, plan.shared_bytes,
                    what.variant == Variant::persistent};
    const Arrays<float> arrays{operands, c};
    simt::with_constant<64, 128, 256>("hopper-gemm: columns", plan.columns, [&](auto columns) {
      constexpr int kColumns = decltype(columns)::value;
      switch (what.dtype) {
        case DataType::bf16:
          return explain_as<kColumns, Format::bf16>(call, what, task, arrays, clocks);
        case DataType::fp16:
          return explain_as<kColumns, Format::fp16>(call, what, task, arrays, clocks);
        case DataType::fp8_e4m3:
          return explain_as<kColumns, Format::e4m3>(call, what, task, arrays, clocks);
      }
    });
  }

  std::span<const Configuration> configurations() const override { return kConfigurations; }

  void multiply(simt::Device& device, int configuration, const GemmShape& shape, Raster raster,
                const Operands& operands, simt::Span<std::uint16_t> c, const ScaleArrays& scales,
                int stages) const override {
    check_device(device.info());
    check_shape(shape);
    start(device, configuration, shape, raster, operands, c, scales, stages, nullptr);
  }

  void multiply_scaled(simt::Device& device, const GemmShape& shape, const Operands& operands,
                       const ScaleArrays& scales, simt::Span<float> c) const override {
    check_device(device.info());
    check_shape(shape);
    simt::require_multiple("hopper-gemm: k", shape.k, kScaleBlock);
    const Configuration& one = kConfigurations[kBlockScaled];
    const Call call{device, timed_launch(device.info(), one, shape, one.stages)};
    const Task task{shape, Raster::grouped, static_cast<int>(call.launch.shared_bytes), true};
    start_scaled<float>(call, task, {operands, c}, scales);
  }

  simt::Resources resources(simt::Device& device, int configuration) const override {
    simt::Resources r;
    // The maps are made of arrays; what a kernel takes does not depend on them.
    const simt::Buffer<std::uint16_t> operand(device, std::size_t{256} * 256);
    simt::Buffer<std::uint16_t> c(device, std::size_t{256} * 256);
    const simt::Buffer<float> scales(device, std::size_t{256} * 2);
    start(device, configuration, {256, 256, 256}, Raster::rows, {operand.span(), operand.span()},
          c.span(), {scales.span(), scales.span()}, 0, &r);
    return r;
  }

  void resident(simt::Device& device, int columns, int products,
                simt::Span<const std::uint16_t> stage, simt::Span<long long> out) const override {
    check_device(device.info());
    simt::with_constant<64, 128, 256>("hopper-gemm: columns", columns, [&](auto constant) {
      using T = Bf16Tile<decltype(constant)::value>;
      const int stage_bytes = (2 * T::kRows + T::kColumns) * kDepthBytes;
      assert(stage.count * 2 >= static_cast<std::size_t>(stage_bytes));
      simt::Launch launch{
          .name = "resident",
          .grid = dim3(static_cast<unsigned>(out.count)),
          .block = dim3(2 * kWarpgroup),
          .shared_bytes = static_cast<std::size_t>(shared_bytes_of(stage_bytes, 1, 2))};
      simt::launch(device, launch, SIMT_BACKEND::resident<T>, simt::global(stage, "stage"),
                   products, static_cast<int>(launch.shared_bytes), simt::global(out, "cycles"));
    });
  }

  void fed(simt::Device& device, int columns, int products, simt::Span<const std::uint16_t> a,
           simt::Span<const std::uint16_t> b, simt::Span<long long> out) const override {
    check_device(device.info());
    simt::with_constant<64, 128, 256>("hopper-gemm: columns", columns, [&](auto constant) {
      using T = Bf16Tile<decltype(constant)::value>;
      constexpr int kDepth = kFedTiles * T::kDepth;
      const auto blocks = static_cast<int>(out.count);
      const int stage_bytes = (2 * T::kRows + T::kColumns) * kDepthBytes;
      assert(a.count == numeric::elements_of(blocks * 2 * T::kRows, kDepth));
      assert(b.count == numeric::elements_of(blocks * T::kColumns, kDepth));
      const simt::Launch launch{.name = "fed",
                                .grid = dim3(static_cast<unsigned>(blocks)),
                                .block = dim3(3 * kWarpgroup),
                                .shared_bytes = static_cast<std::size_t>(
                                    shared_bytes_of(stage_bytes, FedRing::stages, 2))};
      const TensorMaps maps{map_of<T>(a, blocks * 2 * T::kRows, kDepth, 2 * T::kRows, 128),
                            map_of<T>(b, blocks * T::kColumns, kDepth, T::kColumns, 128),
                            {}};
      simt::launch(device, launch, SIMT_BACKEND::fed<T>, maps, products,
                   static_cast<int>(launch.shared_bytes), simt::global(out, "cycles"));
    });
  }

  void access_matrices(simt::Device& device, bool stores, int row_bytes, bool swizzled, int repeats,
                       simt::Span<int> places) const override {
    check_device(device.info());
    assert(places.count == 32 && (row_bytes == 32 || row_bytes == 64 || row_bytes == 128));
    const simt::Launch launch{
        .name = "access_matrices", .grid = dim3(1), .block = dim3(32), .shared_bytes = 4096};
    simt::launch(device, launch, SIMT_BACKEND::access_matrices, stores, row_bytes, swizzled,
                 repeats, simt::global(places, "places"));
  }

  void probe_clock(simt::Device& device, simt::Span<long long> out) const override {
    assert(out.count == 2);
    const simt::Launch launch{.name = "probe_clock", .grid = dim3(1), .block = dim3(1)};
    simt::launch(device, launch, SIMT_BACKEND::probe_clock, simt::global(out, "cycles"));
  }

  LibraryStatus library(simt::Device&) const override { return simt::library_status(); }

  int library_algorithms(simt::Device&, [[maybe_unused]] const simt::LibraryProduct& product,
                         [[maybe_unused]] const simt::LibraryArrays& arrays) const override {
#if defined(__CUDACC__)
    return simt::cuda::CublasLt::loaded().algorithms(product, arrays);
#else
    throw Error(simt::library_status().reason, ExitCode::unavailable);
#endif
  }
  void library_multiply(simt::Device&, [[maybe_unused]] const simt::LibraryProduct& product,
                        [[maybe_unused]] int algorithm,
                        [[maybe_unused]] const simt::LibraryArrays& arrays) const override {
#if defined(__CUDACC__)
    simt::cuda::CublasLt::loaded().multiply(product, algorithm, arrays);
#else
    throw Error(simt::library_status().reason, ExitCode::unavailable);
#endif
  }

 private:
  static void start(simt::Device& device, int configuration, const GemmShape& shape, Raster raster,
                    const Operands& operands, simt::Span<std::uint16_t> c,
                    const ScaleArrays& scales, int stages, simt::Resources* resources) {
    assert(configuration >= 0 && configuration < static_cast<int>(std::size(kConfigurations)));
    const Configuration& one = kConfigurations[configuration];
    const int used = stages == 0 ? one.stages : stages;
    simt::require_within("hopper-gemm: stages", used, one.any_stages ? 1 : one.stages, one.stages);
    if (one.block_scaled) simt::require_multiple("hopper-gemm: k", shape.k, kScaleBlock);
    const Call call{device, timed_launch(device.info(), one, shape, used), resources};
    const Task task{shape, raster, static_cast<int>(call.launch.shared_bytes), one.stored_by_tma};
    start_timed(call, configuration, task, {operands, c}, scales, used);
  }
};

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND
SIMT_KERNEL_SET(hopper_gemm, KernelsHere)

// C = A·B^T on Hopper: the allowed shapes, the timed configurations, and the launches of the kernels that no other
// file launches.

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
#include "kernels/matmul/hopper_gemm/resident.cu"
#include "kernels/matmul/hopper_gemm/wgmma/launches.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

// ---- supported shapes ---------------------------------------------------------------------------

void check_device(const simt::DeviceInfo& device) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, "hopper-gemm", "compute capability 9.0 (Hopper)");
  }
}

/// Throws Error naming the size that is not allowed: rows are indexed with an int.
void check_shape(const GemmShape& shape) {
  simt::require_within("hopper-gemm: m", shape.m, 1, 1 << 20);
  simt::require_within("hopper-gemm: n", shape.n, 1, 1 << 20);
  simt::require_within("hopper-gemm: k", shape.k, 1, 1 << 20);
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
    {Variant::ping_pong, "64x256x64, 2 consumers in turn, 4 stages, cluster of 2", DataType::bf16,
     64, 256, 4, 2, 2, true, true},
    {Variant::persistent, "128x192x128, 2 consumers, 4 stages, scales of 1x128 and 128x128",
     DataType::fp8_e4m3, 128, 192, 4, 2, 1, true, true, true},
};

static_assert(kStoreBytes == kStoredTiles * kStoredTile);
constexpr int kFirstSpecialized = 4;
static_assert(has_producer(kConfigurations[kFirstSpecialized].variant) &&
              !has_producer(kConfigurations[kFirstSpecialized - 1].variant));
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

/// Starts the kernel of configuration `number`.
void start_timed(const Call& call, int number, const Task& task,
                 const Arrays<std::uint16_t>& arrays, const ScaleArrays& scales, int stages) {
  if (number == kBlockScaled) return start_scaled(call, task, arrays, scales);
  if (number < kFirstSpecialized) return start_together(call, number, task, arrays);
  start_specialized(call, number, task, arrays, stages);
}

/// The launch of configuration `one` for a shape.
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
    check_shape(what);
    assert(c.count == numeric::elements_of(what.m, pitch_of<float>(what.n)));
    assert(what.numbers >= kSites &&
           clocks.count == numeric::elements_of(kSites + 1, what.numbers));
    const int groups = what.consumers + (has_producer(what.variant) ? 1 : 0);
    const Call call{device,
                    {.name = "hopper_gemm",
                     .grid = dim3(static_cast<unsigned>(what.blocks)),
                     .block = dim3(static_cast<unsigned>(groups * kWarpgroup)),
                     .shared_bytes = static_cast<std::size_t>(what.shared_bytes),
                     .cluster = static_cast<unsigned>(what.cluster)}};
    const Task task{what, what.raster, what.shared_bytes, what.variant >= Variant::persistent};
    const Arrays<float> arrays{operands, c};
    simt::Tape tape;
    tape.clocks = clocks;
    tape.numbers = what.numbers;
    tape.chosen_block = what.block;
    tape.fault = static_cast<int>(what.fault);
    if (has_producer(what.variant)) {
      explain_specialized(call, what, task, arrays, tape);
    } else {
      explain_together(call, what, task, arrays, tape);
    }
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
    // The maps need arrays; a kernel's resources do not depend on them.
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

  int library_algorithms(simt::Device&, const simt::LibraryProduct& product,
                         const simt::LibraryArrays& arrays) const override {
    return simt::library_algorithms(product, arrays);
  }
  void library_multiply(simt::Device&, const simt::LibraryProduct& product, int algorithm,
                        const simt::LibraryArrays& arrays) const override {
    simt::library_multiply(product, algorithm, arrays);
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

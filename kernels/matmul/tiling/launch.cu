// C = A·B: which shapes the kernels of the ladder take, and how they are launched.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/matmul/tiling/double_buffered.cu"
#include "kernels/matmul/tiling/kernels.hpp"
#include "kernels/matmul/tiling/register_tile.cu"
#include "kernels/matmul/tiling/shared_tile.cu"
#include "kernels/matmul/tiling/tensor_core.cu"
#include "kernels/matmul/tiling/warp_tile.cu"

namespace tilestep::tiling::SIMT_BACKEND {

// ---- what the kernels take ----------------------------------------------------------------------

/// Throws Error naming the size that is not allowed. Each matrix must have fewer than 2^31
/// elements, because the kernels number them with an int.
void check_gemm(const GemmShape& shape) {
  simt::require_within("tiling: m", shape.m, 1);
  simt::require_within("tiling: n", shape.n, 1);
  simt::require_within("tiling: k", shape.k, 1);
  const auto fits = [](const char* matrix, std::int64_t rows, std::int64_t columns) {
    if (rows * columns < (std::int64_t{1} << 31)) return;
    throw Error("tiling: " + std::string(matrix) + " of " + std::to_string(rows) + " x " +
                std::to_string(columns) + " has more than 2147483647 elements");
  };
  fits("A", shape.m, shape.k);
  fits("B", shape.k, shape.n);
  fits("C", shape.m, shape.n);
}

/// Asserts that the arrays have the shape's sizes.
template <class Ops>
void check_operands(const GemmShape& shape, const Ops& operands) {
  check_gemm(shape);
  assert(operands.a.count == numeric::elements_of(shape.m, shape.k));
  assert(operands.b.count == numeric::elements_of(shape.k, shape.n));
  assert(operands.c.count == numeric::elements_of(shape.m, shape.n));
  (void)operands;
}

// ---- starting one -------------------------------------------------------------------------------

/// What a rung is asked for: a launch, or with `resources` what the launch would take.
struct Call {
  simt::Device& device;
  GemmShape shape;
  Resources* resources = nullptr;
};

template <class... Params, class... Args>
void start(const Call& call, const simt::Launch& launch, void (*kernel)(Params...),
           Args&&... args) {
  if (call.resources != nullptr) {
    *call.resources = simt::resources_of(launch, kernel);
    return;
  }
  simt::launch(call.device, launch, kernel, static_cast<Args&&>(args)...);
}

/// Calls `run(whole, a, b, c, tape)` with the accessors that the run wants, and NoTape. `whole` is a
/// type whose `value` says whether the shape is a multiple of the kernel's tiles, so that no element
/// needs a bounds check; counting runs check always, and load the same elements.
template <class Ops, class Run>
void with_accessors(const Ops& operands, bool whole, Run run) {
  using T = std::remove_const_t<std::remove_pointer_t<decltype(operands.a.data)>>;
  const auto a = simt::global(operands.a, "A");
  const auto b = simt::global(operands.b, "B");
  const auto c = simt::global(operands.c, "C");
  if (operands.loads.data != nullptr) {
    const auto loads = simt::global(operands.loads, "loads");
    run(std::false_type{}, Counted<T>(a, loads), Counted<T>(b, loads), c, simt::NoTape{});
  } else if (whole) {
    run(std::true_type{}, a, b, c, simt::NoTape{});
  } else {
    run(std::false_type{}, a, b, c, simt::NoTape{});
  }
}
/// The same, or with a tape the kernel as it is timed, which the shape is a multiple of.
template <class Ops, class Run>
void with_accessors(const Ops& operands, bool whole, const simt::Tape& tape, Run run) {
  if (!tape) return with_accessors(operands, whole, run);
  assert(whole && operands.loads.data == nullptr);
  run(std::true_type{}, simt::global(operands.a, "A"), simt::global(operands.b, "B"),
      simt::global(operands.c, "C"), tape);
}

/// Which configuration runs: the one asked for, or the first whose tiles the shape is a multiple of
/// and that gives work to a good part of a large GPU; `any_size` where none fits, and for counting.
/// Throws Error if the one asked for does not fit.
int chosen_configuration(std::span<const Configuration> all, int asked, const GemmShape& shape,
                         bool counted, int any_size) {
  const auto fits = [&](const Configuration& one) {
    return shape.m % one.tile_m == 0 && shape.n % one.tile_n == 0 && shape.k % one.tile_k == 0;
  };
  if (counted) return any_size;
  if (asked >= 0) {
    assert(static_cast<std::size_t>(asked) < all.size());
    const Configuration& one = all[static_cast<std::size_t>(asked)];
    if (one.any_size || fits(one)) return asked;
    throw Error("tiling: " + std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
                std::to_string(shape.k) + " is not a multiple of the tile of configuration " +
                std::string(one.name));
  }
  constexpr int kManyTiles = 64;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const Configuration& one = all[static_cast<std::size_t>(i)];
    const int tiles = tiles_of(shape.m, one.tile_m) * tiles_of(shape.n, one.tile_n);
    if (fits(one) && tiles >= kManyTiles) return i;
  }
  return any_size;
}

// ---- shared_tile.cu -----------------------------------------------------------------------------

/// All blocks, with the tile of the timed kernels.
PictureRun timed_run(Variant variant, const GemmShape& shape) {
  return {.variant = variant,
          .tile = kTimedTile,
          .blocks_down = tiles_of(shape.m, kTimedTile),
          .blocks_across = tiles_of(shape.n, kTimedTile)};
}

simt::Launch picture_launch(const char* name, const PictureRun& run) {
  const auto edge = static_cast<unsigned>(run.tile);
  return {.name = name,
          .grid = dim3(static_cast<unsigned>(run.blocks_across),
                       static_cast<unsigned>(run.blocks_down)),
          .block = dim3(edge, edge)};
}

template <class In, class Tape>
void start_untiled(const Call& call, const PictureRun& run, In a, In b, Out c, Tape tape) {
  const bool down = run.variant == Variant::naive;
  start(call, picture_launch(down ? "naive" : "coalesced", run),
        down ? naive<In, Tape> : coalesced<In, Tape>, a, b, c, call.shape,
        FirstBlock{run.block_row, run.block_col}, tape);
}

template <RemovedBarrier kRemoved, class Size, class In, class Tape>
void start_shared_tile(const Call& call, const PictureRun& run, Size size, In a, In b, Out c,
                       Tape tape) {
  simt::Launch launch = picture_launch("shared_tile", run);
  launch.shared_bytes = static_cast<std::size_t>(size.edge * (size.pitch + size.edge)) * 4;
  start(call, launch, shared_tile<kRemoved, Size, In, Tape>, a, b, c, call.shape, size,
        FirstBlock{run.block_row, run.block_col}, tape);
}

template <class In, class Tape>
void start_picture(const Call& call, const PictureRun& run, In a, In b, Out c, Tape tape) {
  if (run.variant != Variant::shared_tile) return start_untiled(call, run, a, b, c, tape);
  const TileSize size{run.tile, run.tile + run.padding};
  if (run.removed == RemovedBarrier::after_load) {
    start_shared_tile<RemovedBarrier::after_load>(call, run, size, a, b, c, tape);
  } else if (run.removed == RemovedBarrier::after_multiply) {
    start_shared_tile<RemovedBarrier::after_multiply>(call, run, size, a, b, c, tape);
  } else {
    start_shared_tile<RemovedBarrier::none>(call, run, size, a, b, c, tape);
  }
}

template <Variant kVariant>
void launch_untiled(const Call& call, int, const Operands& operands, const simt::Tape&) {
  with_accessors(operands, false, [&](auto, auto a, auto b, auto c, auto tape) {
    start_untiled(call, timed_run(kVariant, call.shape), a, b, c, tape);
  });
}

void launch_shared_tile(const Call& call, int configuration, const Operands& operands,
                        const simt::Tape&) {
  const PictureRun run = timed_run(Variant::shared_tile, call.shape);
  with_accessors(operands, false, [&](auto, auto a, auto b, auto c, auto tape) {
    const auto start_with = [&](auto size) {
      start_shared_tile<RemovedBarrier::none>(call, run, size, a, b, c, tape);
    };
    if (configuration == 1) return start_with(FixedTileSize<kTimedTile, kTimedTile>{});
    start_with(FixedTileSize<kTimedTile, kTimedTile + 1>{});
  });
}

// ---- register_tile.cu, double_buffered.cu -------------------------------------------------------

bool whole_tiles(const GemmShape& shape, int tile, int depth) {
  return shape.m % tile == 0 && shape.n % tile == 0 && shape.k % depth == 0;
}

/// Starts a kernel whose blocks have square tiles; `kernel_of` gives it for `whole`, an accessor and a tape.
template <class KernelOf>
void launch_squares(const Call& call, simt::Launch launch, int tile, const Operands& operands,
                    const simt::Tape& on, KernelOf kernel_of) {
  launch.grid = dim3(static_cast<unsigned>(tiles_of(call.shape.n, tile)),
                     static_cast<unsigned>(tiles_of(call.shape.m, tile)));
  const bool divides = whole_tiles(call.shape, tile, kDepth);
  with_accessors(operands, divides, on, [&](auto whole, auto a, auto b, auto c, auto tape) {
    start(call, launch, kernel_of(whole, a, tape), a, b, c, call.shape, tape);
  });
}

void launch_register_tile_1d(const Call& call, int, const Operands& operands,
                             const simt::Tape& on) {
  const simt::Launch launch{.name = "register_tile_1d",
                            .block = 512,
                            .static_shared_bytes = std::size_t{2} * 64 * kDepth * sizeof(float)};
  launch_squares(call, launch, 64, operands, on, [](auto whole, auto a, auto tape) {
    return register_tile_1d<decltype(whole)::value, decltype(a), decltype(tape)>;
  });
}

void launch_register_tile_2d(const Call& call, int, const Operands& operands,
                             const simt::Tape& on) {
  const simt::Launch launch{.name = "register_tile_2d",
                            .block = kThreads,
                            .static_shared_bytes = std::size_t{2} * kEdge * kDepth * sizeof(float)};
  launch_squares(call, launch, kEdge, operands, on, [](auto whole, auto a, auto tape) {
    return register_tile_2d<decltype(whole)::value, decltype(a), decltype(tape)>;
  });
}

void launch_vectorized(const Call& call, int, const Operands& operands, const simt::Tape& on) {
  const simt::Launch launch{.name = "vectorized",
                            .block = kThreads,
                            .shared_bytes = kDepth * (kPitch + kEdge) * sizeof(float)};
  launch_squares(call, launch, kEdge, operands, on, [](auto whole, auto a, auto tape) {
    return vectorized<decltype(whole)::value, decltype(a), decltype(tape)>;
  });
}

void launch_double_buffered(const Call& call, int, const Operands& operands, const simt::Tape& on) {
  const simt::Launch launch{.name = "double_buffered",
                            .block = kThreads,
                            .shared_bytes = kBuffers * kDepth * (kPitch + kEdge) * sizeof(float)};
  launch_squares(call, launch, kEdge, operands, on, [](auto whole, auto a, auto tape) {
    return double_buffered<decltype(whole)::value, decltype(a), decltype(tape)>;
  });
}

// ---- warp_tile.cu, tensor_core.cu ---------------------------------------------------------------

using WarpSquare = WarpTiling<128, 128, 16, 64, 32, 8, 8, 3, 2>;
using WarpAcross = WarpTiling<128, 256, 8, 64, 64, 8, 16, 4, 1>;
using WarpDown = WarpTiling<256, 128, 16, 64, 64, 8, 16, 3, 1>;
using WarpSmall = WarpTiling<64, 64, 8, 64, 32, 8, 8, 3, 4>;
using MmaAcross = MmaTiling<128, 256, 64, 64, 64, 3, 1>;
using MmaDown = MmaTiling<256, 128, 64, 64, 64, 3, 1>;
using MmaSquare = MmaTiling<128, 128, 64, 64, 64, 3, 2>;
using MmaSmall = MmaTiling<64, 64, 32, 32, 32, 3, 2>;

constexpr Configuration kWarpTile[] = {
    {"128x128x16, 8x8 a thread, 256 threads, 3 stages", 128, 128, 16, false},
    {"128x256x8, 8x16 a thread, 256 threads, 4 stages", 128, 256, 8, false},
    {"256x128x16, 8x16 a thread, 256 threads, 3 stages", 256, 128, 16, false},
    {"64x64x8, 8x8 a thread, 64 threads, 3 stages", 64, 64, 8, true},
};
constexpr Configuration kTensorCore[] = {
    {"128x256x64, 8 warps of 64x64, 3 stages", 128, 256, 64, false},
    {"256x128x64, 8 warps of 64x64, 3 stages", 256, 128, 64, false},
    {"128x128x64, 4 warps of 64x64, 3 stages", 128, 128, 64, false},
    {"64x64x32, 4 warps of 32x32, 3 stages", 64, 64, 32, true},
};

/// Starts a kernel of tiling T on accessors.
template <class T, class Kernel, class In, class Tape>
void start_tiling(const Call& call, const char* name, Kernel kernel, In a, In b, Out c, Tape tape) {
  const int tiles = tiles_of(call.shape.m, T::kTileM) * tiles_of(call.shape.n, T::kTileN);
  start(call, simt::row_of_blocks(name, tiles, T::kThreads, T::kSharedBytes), kernel, a, b, c,
        call.shape, tape);
}

/// Starts the chosen one of four tilings. The first three take shapes that are multiples of their
/// tile, Small takes any, and counts; Shown, one of them, is the one that records. `kernel_of` gives
/// the kernel of a tiling, its accessor and its tape.
template <class First, class Second, class Third, class Small, class Shown, class Ops,
          class KernelOf>
void launch_tiling(const Call& call, const char* name, std::span<const Configuration> all,
                   int configuration, const Ops& operands, const simt::Tape& on,
                   KernelOf kernel_of) {
  const bool counted = operands.loads.data != nullptr;
  const auto whole_tiles_of = [&]<class T>(T, auto tape) {
    const auto a = simt::global(operands.a, "A");
    start_tiling<T>(call, name, kernel_of(T{}, std::true_type{}, a, tape), a,
                    simt::global(operands.b, "B"), simt::global(operands.c, "C"), tape);
  };
  if (on) return whole_tiles_of(Shown{}, on);
  const int chosen = chosen_configuration(all, configuration, call.shape, counted, 3);
  if (chosen == 0) return whole_tiles_of(First{}, simt::NoTape{});
  if (chosen == 1) return whole_tiles_of(Second{}, simt::NoTape{});
  if (chosen == 2) return whole_tiles_of(Third{}, simt::NoTape{});
  const bool divides = whole_tiles(call.shape, Small::kTileM, Small::kDepth);
  with_accessors(operands, divides, [&](auto whole, auto a, auto b, auto c, auto tape) {
    start_tiling<Small>(call, name, kernel_of(Small{}, whole, a, tape), a, b, c, tape);
  });
}

void launch_warp_tile(const Call& call, int configuration, const Operands& operands,
                      const simt::Tape& on) {
  launch_tiling<WarpSquare, WarpAcross, WarpDown, WarpSmall, WarpSquare>(
      call, "warp_tile", kWarpTile, configuration, operands, on,
      [](auto tiling, auto whole, auto a, auto tape) {
        return warp_tile<decltype(tiling), decltype(whole)::value, decltype(a), decltype(tape)>;
      });
}

void launch_tensor_core(const Call& call, int configuration, const OperandsBf16& operands,
                        const simt::Tape& on) {
  launch_tiling<MmaAcross, MmaDown, MmaSquare, MmaSmall, MmaSquare>(
      call, "tensor_core", kTensorCore, configuration, operands, on,
      [](auto tiling, auto whole, auto a, auto tape) {
        return tensor_core<decltype(tiling), decltype(whole)::value, decltype(a), decltype(tape)>;
      });
}

// ---- the kernel set -----------------------------------------------------------------------------

constexpr Configuration kPlain[] = {{"32x32 threads a block", kTimedTile, kTimedTile, 1, true}};
constexpr Configuration kSharedTile[] = {
    {"32x32 tiles, padded", kTimedTile, kTimedTile, kTimedTile, true},
    {"32x32 tiles, not padded", kTimedTile, kTimedTile, kTimedTile, true}};
constexpr Configuration kRegisterTile1d[] = {{"64x64x8, 8x1 a thread", 64, 64, 8, true}};
constexpr Configuration kRegisterTile2d[] = {{"128x128x8, 8x8 a thread", 128, 128, 8, true}};
constexpr Configuration kDoubleBuffered[] = {
    {"128x128x8, 8x8 a thread, 2 stages", 128, 128, 8, true}};

/// What a rung is compiled for, and how it starts: with a configuration of these, on FP32, or with a
/// tape the one that is shown.
struct CompiledRung {
  std::span<const Configuration> configurations;
  void (*launch)(const Call& call, int configuration, const Operands& operands,
                 const simt::Tape& on);
  int shown = 0;
};
/// In the order of the variants.
constexpr CompiledRung kRungs[] = {
    {kPlain, launch_untiled<Variant::naive>},
    {kPlain, launch_untiled<Variant::coalesced>},
    {kSharedTile, launch_shared_tile},
    {kRegisterTile1d, launch_register_tile_1d},
    {kRegisterTile2d, launch_register_tile_2d},
    {kRegisterTile2d, launch_vectorized},
    {kDoubleBuffered, launch_double_buffered},
    {kWarpTile, launch_warp_tile},
    {kTensorCore, nullptr, 2},  // takes BF16
};
static_assert(std::size(kRungs) == kVariants);

const CompiledRung& rung_of(Variant variant) {
  return kRungs[static_cast<std::size_t>(variant)];
}

class KernelsHere final : public Kernels {
 public:
  std::span<const Configuration> configurations(Variant variant) const override {
    return rung_of(variant).configurations;
  }

  const Configuration& shown(Variant variant) const override {
    const CompiledRung& rung = rung_of(variant);
    return rung.configurations[static_cast<std::size_t>(rung.shown)];
  }

  void gemm(simt::Device& device, Variant variant, int configuration, const GemmShape& shape,
            const Operands& operands, const simt::Tape& tape) const override {
    check_operands(shape, operands);
    run({device, shape}, variant, configuration, operands, tape);
  }

  void gemm_bf16(simt::Device& device, int configuration, const GemmShape& shape,
                 const OperandsBf16& operands, const simt::Tape& tape) const override {
    check_operands(shape, operands);
    simt::require_capability(device.info(), "tensor-core: mma.sync with BF16",
                             simt::kMmaCapability);
    launch_tensor_core({device, shape}, configuration, operands, tape);
  }

  Resources resources(simt::Device& device, Variant variant, int configuration) const override {
    const auto all = configurations(variant);
    const auto& one = all[static_cast<std::size_t>(configuration < 0 ? 0 : configuration)];
    const GemmShape shape{one.tile_m, one.tile_n, one.tile_k};
    Resources found;
    const Call call{device, shape, &found};
    if (variant == Variant::tensor_core) {
      launch_tensor_core(call, configuration, {}, {});
    } else {
      run(call, variant, configuration, {}, {});
    }
    return found;
  }

  void picture(simt::Device& device, const PictureRun& run, const GemmShape& shape,
               const Operands& operands, const simt::Tape& tape) const override {
    check_operands(shape, operands);
    simt::require_within("tiling: the picture's tile", run.tile, 1, 32);
    assert(has_picture(run.variant));
    const Call call{device, shape};
    if (tape) {
      assert(run.blocks_down == 1 && run.blocks_across == 1);
      return start_picture(call, run, simt::traced(operands.a, "A", tape, kSiteA),
                           simt::traced(operands.b, "B", tape, kSiteB),
                           simt::global(operands.c, "C"), tape);
    }
    with_accessors(operands, false, [&](auto, auto a, auto b, auto c, auto none) {
      start_picture(call, run, a, b, c, none);
    });
  }

  LibraryStatus library(simt::Device&) const override { return simt::library_status(); }

  void library_gemm(simt::Device& device, [[maybe_unused]] Precision precision,
                    [[maybe_unused]] const GemmShape& shape, [[maybe_unused]] const void* a,
                    [[maybe_unused]] const void* b, [[maybe_unused]] float* c) const override {
    const LibraryStatus status = library(device);
    if (!status.available) throw Error(status.reason, ExitCode::unavailable);
#if defined(__CUDACC__)
    const simt::cuda::Cublas& cublas = simt::cuda::Cublas::loaded();
    if (precision == Precision::bf16) {
      cublas.gemm_bf16(shape.m, shape.n, shape.k, a, b, c);
    } else {
      cublas.gemm_fp32(shape.m, shape.n, shape.k, static_cast<const float*>(a),
                       static_cast<const float*>(b), c, precision == Precision::fp32_pedantic);
    }
#endif
  }

 private:
  static void run(const Call& call, Variant variant, int configuration, const Operands& operands,
                  const simt::Tape& tape) {
    const auto launch = rung_of(variant).launch;
    if (launch == nullptr) throw Error("tensor-core takes BF16 matrices, not FP32");
    launch(call, configuration, operands, tape);
  }
};

}  // namespace tilestep::tiling::SIMT_BACKEND
SIMT_KERNEL_SET(tiling, KernelsHere)

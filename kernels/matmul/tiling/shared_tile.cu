// C = A·B, the first three rungs of the ladder: the kernels that the picture shows. A [m × k],
// B [k × n], C [m × n], all FP32 and row-major; a block has tile × tile threads, each computes one
// element of C.
//
//   naive        a thread walks along its row of A and down its column of B; neighbours in a warp
//                have neighbouring rows, so that their loads lie k elements apart
//   coalesced    neighbours have neighbouring columns: the warp's loads of B, and its stores to C,
//                are next to each other
//   shared_tile  the block loads a tile of A and one of B once, into shared memory, where every
//                element is read `tile` times
//
// The rungs above are in register_tile.cu, double_buffered.cu, warp_tile.cu
// and tensor_core.cu. What lies between kernel and accessors is in simt/simt.hpp: compiled
// by nvcc, an accessor is a plain pointer.

#include <cassert>

#include "kernels/matmul/tiling/rungs.hpp"
#include "kernels/matmul/tiling/shapes.hpp"
#if defined(__CUDACC__)
#include "kernels/base/simt/cublas.hpp"
#endif

namespace tilestep::tiling::SIMT_BACKEND {

// ---- recording ----------------------------------------------------------------------------------

/// The timed kernel's recorder: nothing, and the compiler leaves nothing of it.
struct NoRecorder {
  __device__ void line(Phase, int) const {}
  __device__ void product(int, float) const {}
  __device__ void k_tile(int, float) const {}
  __device__ simt::Shared<float> shared(simt::Shared<float> array, Site) const { return array; }
};

/// Writes down source lines and partial sums, and gives accessors to shared memory that are traced.
struct BlockRecorder {
  simt::TraceBuffer buffer;
  simt::Global<float> sums;
  simt::Global<int> lines;
  int tile;
  int k;

  __device__ int thread() const { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }
  __device__ void line(Phase phase, int number) const {
    if (thread() == 0) lines[static_cast<int>(phase)] = number;
  }
  __device__ void k_tile(int number, float sum) const {
    sums[number * tile * tile + thread()] = sum;
  }
  __device__ void product(int kk, float sum) const {
    if ((kk + 1) % tile == 0 || kk + 1 == k) k_tile(kk / tile, sum);
  }
  __device__ simt::Traced<float> shared(simt::Shared<float> array, Site site) const {
    return {array, buffer, site};
  }
};

/// Number of the launch's first block in C: the picture runs one block alone.
struct FirstBlock {
  int row = 0, column = 0;
};

// ---- the kernels --------------------------------------------------------------------------------

template <class Recorder, class In>
__global__ void __launch_bounds__(1024)
    naive(In a, In b, Out c, GemmShape shape, FirstBlock first, Recorder recorder) {
  const int block_row = first.row + static_cast<int>(blockIdx.y);
  const int block_column = first.column + static_cast<int>(blockIdx.x);
  // threadIdx.x runs down the rows: this is what makes it slow.
  const int row = block_row * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  const int column = block_column * static_cast<int>(blockDim.y) + static_cast<int>(threadIdx.y);
  if (row >= shape.m || column >= shape.n) return;
  float sum = 0.0f;
  recorder.line(Phase::multiply, __LINE__ + 2);
  for (int kk = 0; kk < shape.k; ++kk) {
    sum += a[row * shape.k + kk] * b[kk * shape.n + column];
    recorder.product(kk, sum);
  }
  c[row * shape.n + column] = sum;
}

template <class Recorder, class In>
__global__ void __launch_bounds__(1024)
    coalesced(In a, In b, Out c, GemmShape shape, FirstBlock first, Recorder recorder) {
  const int block_row = first.row + static_cast<int>(blockIdx.y);
  const int block_column = first.column + static_cast<int>(blockIdx.x);
  const int row = block_row * static_cast<int>(blockDim.y) + static_cast<int>(threadIdx.y);
  // threadIdx.x runs across the columns: a warp's loads of B fall into few memory sectors.
  const int column = block_column * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  if (row >= shape.m || column >= shape.n) return;
  float sum = 0.0f;
  recorder.line(Phase::multiply, __LINE__ + 2);
  for (int kk = 0; kk < shape.k; ++kk) {
    sum += a[row * shape.k + kk] * b[kk * shape.n + column];
    recorder.product(kk, sum);
  }
  c[row * shape.n + column] = sum;
}

/// The tile's edge and the pitch of the A tile (floats from one of its rows to the next), known to
/// the compiler when the kernel is timed and given at run time for the picture.
struct TileSize {
  int edge = 0, pitch = 0;
};
template <int kEdge, int kPitch>
struct FixedTileSize {
  static constexpr int edge = kEdge;
  static constexpr int pitch = kPitch;
};

/// A thread loads one element of each tile; A's tile is turned on its way into shared memory (k
/// down, rows across), as all rungs above keep it. Turned, a warp's stores go down a column:
/// without padding they meet in few banks.
template <RemovedBarrier kRemoved, class Size, class Recorder, class In>
__global__ void __launch_bounds__(1024) shared_tile(In a, In b, Out c, GemmShape shape, Size size,
                                                    FirstBlock first, Recorder recorder) {
  const auto a_tile = recorder.shared(
      simt::dynamic_shared<float>(static_cast<std::size_t>(size.edge * size.pitch), 0, "A tile"),
      kSiteTileA);
  const auto b_tile = recorder.shared(
      simt::dynamic_shared<float>(static_cast<std::size_t>(size.edge * size.edge),
                                  static_cast<std::size_t>(size.edge * size.pitch) * sizeof(float),
                                  "B tile"),
      kSiteTileB);
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = (first.row + static_cast<int>(blockIdx.y)) * size.edge + y;
  const int column = (first.column + static_cast<int>(blockIdx.x)) * size.edge + x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < shape.k; k0 += size.edge) {
    // Beyond the edges of A and B the tiles hold zeros, which add nothing.
    recorder.line(Phase::load, __LINE__ + 1);
    a_tile[x * size.pitch + y] =
        row < shape.m && k0 + x < shape.k ? a[row * shape.k + k0 + x] : 0.0f;
    b_tile[y * size.edge + x] =
        column < shape.n && k0 + y < shape.k ? b[(k0 + y) * shape.n + column] : 0.0f;

    recorder.line(Phase::barrier_after_load, __LINE__ + 2);
    if constexpr (kRemoved != RemovedBarrier::after_load) {
      __syncthreads();  // every element must be stored before any thread reads it
    }
    recorder.line(Phase::multiply, __LINE__ + 2);
    for (int kk = 0; kk < size.edge; ++kk) {
      sum += a_tile[kk * size.pitch + y] * b_tile[kk * size.edge + x];
    }
    recorder.k_tile(k0 / size.edge, sum);

    recorder.line(Phase::barrier_after_multiply, __LINE__ + 2);
    if constexpr (kRemoved != RemovedBarrier::after_multiply) {
      __syncthreads();  // every thread must have read before the next tile overwrites this one
    }
  }
  if (row < shape.m && column < shape.n) c[row * shape.n + column] = sum;
}

// ---- launches -----------------------------------------------------------------------------------

constexpr int kTimedTile = 32;

simt::Launch picture_launch(const char* name, int tile, int blocks_down, int blocks_across) {
  const auto edge = static_cast<unsigned>(tile);
  return {.name = name,
          .grid = dim3(static_cast<unsigned>(blocks_across), static_cast<unsigned>(blocks_down)),
          .block = dim3(edge, edge)};
}

simt::Launch timed_launch(const char* name, const GemmShape& shape) {
  return picture_launch(name, kTimedTile, tiles_of(shape.m, kTimedTile),
                        tiles_of(shape.n, kTimedTile));
}

void launch_naive(const Call& call, const Operands& operands) {
  with_accessors(operands, false, [&](auto, auto a, auto b, auto c) {
    start(call, timed_launch("naive", call.shape), naive<NoRecorder, decltype(a)>, a, b, c,
          call.shape, FirstBlock{}, NoRecorder{});
  });
}

void launch_coalesced(const Call& call, const Operands& operands) {
  with_accessors(operands, false, [&](auto, auto a, auto b, auto c) {
    start(call, timed_launch("coalesced", call.shape), coalesced<NoRecorder, decltype(a)>, a, b, c,
          call.shape, FirstBlock{}, NoRecorder{});
  });
}

template <int kPadding>
void launch_timed_shared_tile(const Call& call, const Operands& operands) {
  using Size = FixedTileSize<kTimedTile, kTimedTile + kPadding>;
  simt::Launch launch = timed_launch("shared_tile", call.shape);
  launch.shared_bytes = static_cast<std::size_t>(Size::edge * (Size::pitch + Size::edge)) * 4;
  with_accessors(operands, false, [&](auto, auto a, auto b, auto c) {
    start(call, launch, shared_tile<RemovedBarrier::none, Size, NoRecorder, decltype(a)>, a, b, c,
          call.shape, Size{}, FirstBlock{}, NoRecorder{});
  });
}

void launch_shared_tile(const Call& call, int configuration, const Operands& operands) {
  if (configuration == 1) return launch_timed_shared_tile<0>(call, operands);
  launch_timed_shared_tile<1>(call, operands);
}

/// A picture's launch with these accessors and this recorder.
template <class In, class Recorder>
struct Picture {
  const Call& call;
  const PictureRun& run;
  In a, b;
  Out c;
  Recorder recorder;

  FirstBlock first() const { return {run.block_row, run.block_col}; }

  template <RemovedBarrier kRemoved>
  void launch_shared() const {
    const TileSize size{run.tile, run.tile + run.padding};
    simt::Launch launch =
        picture_launch("shared_tile", run.tile, run.blocks_down, run.blocks_across);
    launch.shared_bytes = static_cast<std::size_t>(size.edge * (size.pitch + size.edge)) * 4;
    start(call, launch, shared_tile<kRemoved, TileSize, Recorder, In>, a, b, c, call.shape, size,
          first(), recorder);
  }

  void launch() const {
    if (run.variant == Variant::naive) {
      start(call, picture_launch("naive", run.tile, run.blocks_down, run.blocks_across),
            naive<Recorder, In>, a, b, c, call.shape, first(), recorder);
    } else if (run.variant == Variant::coalesced) {
      start(call, picture_launch("coalesced", run.tile, run.blocks_down, run.blocks_across),
            coalesced<Recorder, In>, a, b, c, call.shape, first(), recorder);
    } else if (run.removed == RemovedBarrier::after_load) {
      launch_shared<RemovedBarrier::after_load>();
    } else if (run.removed == RemovedBarrier::after_multiply) {
      launch_shared<RemovedBarrier::after_multiply>();
    } else {
      launch_shared<RemovedBarrier::none>();
    }
  }
};

constexpr Configuration kPlain[] = {{"32x32 threads a block", kTimedTile, kTimedTile, 1, true}};
constexpr Configuration kSharedTile[] = {
    {"32x32 tiles, padded", kTimedTile, kTimedTile, kTimedTile, true},
    {"32x32 tiles, not padded", kTimedTile, kTimedTile, kTimedTile, true}};
constexpr Configuration kRegisterTile1d[] = {{"64x64x8, 8x1 a thread", 64, 64, 8, true}};
constexpr Configuration kRegisterTile2d[] = {{"128x128x8, 8x8 a thread", 128, 128, 8, true}};
constexpr Configuration kDoubleBuffered[] = {
    {"128x128x8, 8x8 a thread, 2 stages", 128, 128, 8, true}};

class KernelsHere final : public Kernels {
 public:
  std::span<const Configuration> configurations(Variant variant) const override {
    switch (variant) {
      case Variant::naive:
      case Variant::coalesced:
        return kPlain;
      case Variant::shared_tile:
        return kSharedTile;
      case Variant::register_tile_1d:
        return kRegisterTile1d;
      case Variant::register_tile_2d:
      case Variant::vectorized:
        return kRegisterTile2d;
      case Variant::double_buffered:
        return kDoubleBuffered;
      case Variant::warp_tile:
        return warp_tile_configurations();
      case Variant::tensor_core:
        break;
    }
    return tensor_core_configurations();
  }

  void gemm(simt::Device& device, Variant variant, int configuration, const GemmShape& shape,
            const Operands& operands) const override {
    check_operands(shape, operands);
    run({device, shape}, variant, configuration, operands);
  }

  void gemm_bf16(simt::Device& device, int configuration, const GemmShape& shape,
                 const OperandsBf16& operands) const override {
    check_operands(shape, operands);
    const int capability = device.info().compute_capability;
    if (capability != 0 && capability < simt::kMmaCapability) {
      throw Error("tensor-core: mma.sync with BF16 needs compute capability 8.0 or newer, and " +
                      device.info().name + " has " + std::to_string(capability / 10) + "." +
                      std::to_string(capability % 10),
                  ExitCode::unavailable);
    }
    launch_tensor_core({device, shape}, configuration, operands);
  }

  Resources resources(simt::Device& device, Variant variant, int configuration) const override {
    const auto all = configurations(variant);
    const auto& one = all[static_cast<std::size_t>(configuration < 0 ? 0 : configuration)];
    const GemmShape shape{one.tile_m, one.tile_n, one.tile_k};
    Resources found;
    const Call call{device, shape, &found};
    if (variant == Variant::tensor_core) {
      launch_tensor_core(call, configuration, {});
    } else {
      run(call, variant, configuration, {});
    }
    return found;
  }

  void picture(simt::Device& device, const PictureRun& run, const GemmShape& shape,
               const Operands& operands, const BlockRecording* recording) const override {
    check_operands(shape, operands);
    check_picture(run);
    const Call call{device, shape};
    if (recording == nullptr) {
      with_accessors(operands, false, [&](auto, auto a, auto b, auto c) {
        Picture<decltype(a), NoRecorder>{call, run, a, b, c, {}}.launch();
      });
      return;
    }
    assert(run.blocks_down == 1 && run.blocks_across == 1);
    const BlockRecorder recorder{*recording->buffer, simt::global(recording->sums, "sums"),
                                 simt::global(recording->lines, "lines"), run.tile, shape.k};
    using In = simt::Traced<const float>;
    Picture<In, BlockRecorder>{call,
                               run,
                               simt::traced(operands.a, "A", *recording->buffer, kSiteA),
                               simt::traced(operands.b, "B", *recording->buffer, kSiteB),
                               simt::global(operands.c, "C"),
                               recorder}
        .launch();
  }

  LibraryStatus library([[maybe_unused]] simt::Device& device) const override {
#if defined(__CUDACC__)
    const simt::cuda::Cublas& cublas = simt::cuda::Cublas::loaded();
    return {cublas.available(), cublas.name(), cublas.reason()};
#else
    return {false, "", "cuBLAS runs on an NVIDIA GPU alone; here the kernels run under emulation"};
#endif
  }

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
  static void run(const Call& call, Variant variant, int configuration, const Operands& operands) {
    switch (variant) {
      case Variant::naive:
        return launch_naive(call, operands);
      case Variant::coalesced:
        return launch_coalesced(call, operands);
      case Variant::shared_tile:
        return launch_shared_tile(call, configuration, operands);
      case Variant::register_tile_1d:
        return launch_register_tile_1d(call, operands);
      case Variant::register_tile_2d:
        return launch_register_tile_2d(call, operands);
      case Variant::vectorized:
        return launch_vectorized(call, operands);
      case Variant::double_buffered:
        return launch_double_buffered(call, operands);
      case Variant::warp_tile:
        return launch_warp_tile(call, configuration, operands);
      case Variant::tensor_core:
        break;
    }
    throw Error("tensor-core takes BF16 matrices, not FP32");
  }
};

}  // namespace tilestep::tiling::SIMT_BACKEND

namespace tilestep::tiling {

const simt::KernelSet& SIMT_KERNELS(kernels)() {
  static const SIMT_BACKEND::KernelsHere kernels;
  return kernels;
}

}  // namespace tilestep::tiling

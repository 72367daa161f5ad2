#include <algorithm>
#include <chrono>
#include <functional>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/bench.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::simt {
namespace {
namespace SIMT_BACKEND {

constexpr int kTile = 16;

__global__ void twice(Global<const float> in, Global<float> out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i] * 2;
}

// c = a·b for square row-major matrices whose size is a multiple of the tile. What bounds it, by
// sampling: a little over half of the time goes into the 16 additions of a tile, each of which waits
// for the one before, the rest into the two barriers, where a thread finds the next one and changes
// to its stack; all stacks of a block together are larger than the first cache.
__global__ void gemm(Global<const float> a, Global<const float> b, Global<float> c, int size) {
  __shared__ Array<float, kTile, kTile> a_tile;
  __shared__ Array<float, kTile, kTile> b_tile;
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + y;
  const int column = static_cast<int>(blockIdx.x) * kTile + x;
  float sum = 0;
  for (int begin = 0; begin < size; begin += kTile) {
    a_tile[y][x] = a[row * size + begin + x];
    b_tile[y][x] = b[(begin + y) * size + column];
    __syncthreads();  // the tiles are complete before anyone reads them
    for (int k = 0; k < kTile; ++k) sum += a_tile[y][k] * b_tile[k][x];
    __syncthreads();  // everyone has read them before the next ones overwrite them
  }
  c[row * size + column] = sum;
}

}  // namespace SIMT_BACKEND

// Seconds of the fastest of a few runs: the emulator's own speed, not what else the machine does.
double best_seconds(const std::function<void()>& work) {
  constexpr int kRuns = 5;
  double best = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i == 0 || took.count() < best) best = took.count();
  }
  return best;
}

void require_all(const std::vector<float>& values, float expected, const char* what) {
  if (!std::all_of(values.begin(), values.end(), [=](float v) { return v == expected; })) {
    throw Error(std::string("the emulator computed a wrong ") + what, ExitCode::check_failed);
  }
}

EmulatorRate measure_threads(Device& device) {
  constexpr int kCount = 4 << 20;
  constexpr int kBlock = 256;
  Buffer<float> in(device, std::vector<float>(kCount, 1.5f));
  Buffer<float> out(device, kCount);
  const Span<const float> in_span = in.span();
  const double seconds = best_seconds([&] {
    launch(device, {.name = "twice", .grid = {kCount / kBlock}, .block = {kBlock}},
           SIMT_BACKEND::twice, global(in_span, "in"), global(out.span(), "out"), kCount);
  });
  require_all(out.download(), 3.0f, "copy");
  return {"threads", "out[i] = in[i] * 2 in blocks of 256 threads, no barrier",
          kCount / seconds / 1e6, "million threads/s"};
}

EmulatorRate measure_gemm(Device& device) {
  constexpr int kSize = 512;
  constexpr unsigned kTiles = kSize / SIMT_BACKEND::kTile;
  Buffer<float> a(device, std::vector<float>(kSize * kSize, 0.5f));
  Buffer<float> b(device, std::vector<float>(kSize * kSize, 2.0f));
  Buffer<float> c(device, kSize * kSize);
  const double seconds = best_seconds([&] {
    launch(device,
           {.name = "gemm",
            .grid = {kTiles, kTiles},
            .block = {SIMT_BACKEND::kTile, SIMT_BACKEND::kTile}},
           SIMT_BACKEND::gemm, global(a.span(), "a"), global(b.span(), "b"), global(c.span(), "c"),
           kSize);
  });
  require_all(c.download(), static_cast<float>(kSize), "matrix product");
  return {"gemm", "512×512 FP32 matrix product in 16×16 shared-memory tiles, 2 barriers per tile",
          2.0 * kSize * kSize * kSize / seconds / 1e9, "GFLOP/s"};
}

}  // namespace

std::vector<EmulatorRate> measure_emulator() {
  const std::unique_ptr<Device> device = make_emulated_device({});
  return {measure_threads(*device), measure_gemm(*device)};
}

}  // namespace tilestep::simt

// The limits of a multiprocessor, one part at a time.
//
// resident: the tensor cores' rate without any copies. Two consumers multiply the same stage over and over. A wgmma
// of 64 × n × 16 reads 64 + n rows of 32 bytes from shared memory, which serves 128 bytes per cycle, while the
// tensor cores take n / 2 cycles for it. So the fewer columns, the larger the share of cycles spent on reads.
//
// fed: the same products from a ring that TMA fills, from L2 only.

#include "kernels/matmul/hopper_gemm/specialized.cu"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

template <class T>
__device__ __forceinline__ float sum_of(const typename T::Sums& sums) {
  float sum = 0;
#pragma unroll
  for (const float one : sums) sum += one;
  return sum;
}

template <class T>
__global__ void __launch_bounds__(2 * kWarpgroup, 1)
    resident(simt::Global<const std::uint16_t> stage, int products, int shared_bytes,
             simt::Global<long long> out) {
  const auto stages = lay_out<T>(FixedRing<1, 2>{}, shared_bytes);
  const int chunks = stages.bytes() / 16;
  const auto to = staged<uint4>(stages.a(0), static_cast<std::size_t>(chunks), "the stage");
  const auto from = simt::as<const uint4>(stage);
  for (int i = static_cast<int>(threadIdx.x); i < chunks; i += static_cast<int>(blockDim.x)) {
    to[i] = from[i];
  }
  publish_to_async_proxy();
  __syncthreads();  // all must have written before any products read
  typename T::Sums sums = {};
  const int consumer = static_cast<int>(threadIdx.x) / kWarpgroup;
  const long long start = cycles();
  for (int i = 0; i < products; ++i) {
    multiply_stage<T>(sums, stages, 0, consumer, i == 0);
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  settle(sums);
  const float sum = sum_of<T>(sums);
  __syncthreads();  // the measured time includes both consumers' products
  // The sum is used, so that the compiler cannot eliminate the products.
  if (threadIdx.x == 0) out[blockIdx.x] = sum == 12345.0f ? 0 : cycles() - start;
}

/// K-tiles that are fetched over and over, and the stages they are copied to.
constexpr int kFedTiles = 4;
using FedRing = FixedRing<4, 2>;

/// `maps`: of A [blocks · 128 × 256], of B [blocks · kColumns × 256].
template <class T>
__global__ void __launch_bounds__(3 * kWarpgroup, 1)
    fed(const __grid_constant__ TensorMaps maps, int products, int shared_bytes,
        simt::Global<long long> out) {
  const auto stages = lay_out<T>(FedRing{}, shared_bytes);
  begin<1>(stages, simt::NoTape{});
  const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
  const auto block = static_cast<int>(blockIdx.x);
  const long long start = cycles();
  float sum = 0;
  if (group == 0) {
    keep_registers<kProducerRegisters>();
    const auto ring = stages.ring();
    for (int i = 0; threadIdx.x == 0 && i < products; ++i) {
      const int stage = ring.stage({i});
      ring.producer_acquire({i});
      arrive_expecting(ring.full(stage), stages.bytes());
      fetch_stage<T, 1>(maps, stages, stage, i % kFedTiles * T::kDepth,
                        {block * stages.rows(), block * T::kColumns}, 0);
    }
  } else {
    take_registers<kConsumerRegisters>();
    typename T::Sums sums = {};
    Turn turn;
    multiply_tile<T, FedRing, 1>(sums, stages, turn, products * T::kDepth, group - 1, false,
                                 simt::NoTape{}, 0);
    sum = sum_of<T>(sums);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = sum == 12345.0f ? 0 : cycles() - start;
}

/// Four matrices of 8 × 8 16-bit numbers, in rows of `row_bytes`, one 16-byte chunk after the other; after a
/// row's last chunk, from row 8 on.
__global__ void access_matrices(bool stores, int row_bytes, bool swizzled, int repeats,
                                simt::Global<int> places) {
  const unsigned raw = simt::shared_address(
      simt::dynamic_shared<std::uint8_t>(static_cast<std::size_t>(4 * kAlignment), 0, "matrices"));
  const unsigned tile = (raw + kAlignment - 1) / kAlignment * kAlignment;
  const int lane = static_cast<int>(threadIdx.x);
  const auto all = staged<unsigned>(tile, 2 * kAlignment / 4, "matrices");
  for (int i = lane; i < 2 * kAlignment / 4; i += 32) all[i] = static_cast<unsigned>(i);
  __syncwarp();
  const int chunks = row_bytes / 16;
  const int matrix = lane / 8;
  const int row = matrix / chunks * 8 + lane % 8;
  const unsigned plain = tile + static_cast<unsigned>(row * row_bytes + matrix % chunks * 16);
  const unsigned place = swizzled ? swizzled_address(plain, row_bytes) : plain;
  unsigned four[4] = {1, 2, 3, 4};
  for (int i = 0; i < repeats; ++i) {
    if (stores) {
      stmatrix_x4(place, four);
    } else {
      ldmatrix_x4(four, place);
    }
  }
  places[lane] = four[0] == 0xFFFFFFFFu ? -1 : static_cast<int>(place - tile);
}

/// The number of cycles in 0.2 ms.
__global__ void probe_clock(simt::Global<long long> out) {
  const long long begin = nanoseconds();
  const long long first = cycles();
  long long now = begin;
  while (now - begin < 200'000) now = nanoseconds();
  out[0] = cycles() - first;
  out[1] = now - begin;
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

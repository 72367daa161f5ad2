#pragma once

// What both launch files share: arrays as packs, and the shape of a launch.

#include <string>

#include "kernels/systems/fusion/rows.cu"

namespace tilestep::fusion::SIMT_BACKEND {

template <class Pack>
Arrays<Pack> arrays_of(const RowArrays& from) {
  using Memory = typename Pack::Memory;
  return {simt::as<const Memory>(simt::global(from.first, "first")),
          simt::as<const Memory>(simt::global(from.second, "second")),
          simt::as<const Memory>(simt::global(from.gain, "gain")),
          simt::as<Memory>(simt::global(from.sum, "sum")),
          simt::as<Memory>(simt::global(from.out, "out")),
          simt::as<typename Pack::Codes>(simt::global(from.codes, "codes")),
          simt::global(from.scale, "scale")};
}

/// A block of few threads per row has several rows.
inline constexpr int kLeastThreads = 128;

/// The bytes that a block holds in shared memory: whole batches of all of its threads.
inline std::size_t held_bytes(const RowShape& shape, int cluster) {
  if (shape.packs > 0) return 0;
  const int numbers = pack_of(shape.type, shape.width);
  const int batch = shape.threads * (numbers == 1 ? 8 : 4) * numbers;
  const std::int64_t batches = simt::blocks_for(shape.width, batch * cluster);
  return static_cast<std::size_t>(batches) * static_cast<std::size_t>(batch * bytes_of(shape.type));
}

/// The launch of `cluster` blocks per row, or of several rows per block.
inline simt::Launch launch_of(const char* name, const RowShape& shape, int cluster) {
  const bool several = cluster == 1 && shape.packs > 0 && shape.threads < kLeastThreads;
  const int rows_of_block = several ? kLeastThreads / shape.threads : 1;
  const std::int64_t blocks = simt::blocks_for(shape.rows, rows_of_block);
  simt::Launch launch = simt::row_of_blocks(name, blocks * cluster, shape.threads,
                                            kStashAt + held_bytes(shape, cluster));
  launch.block.y = static_cast<unsigned>(rows_of_block);
  launch.cluster = static_cast<unsigned>(cluster);
  return launch;
}
/// The blocks of a cluster. Throws Error naming the size that is not allowed.
inline int checked_cluster(const RowShape& shape) {
  simt::require_within("fusion: rows", shape.rows, 1, 1 << 24);
  simt::require_within("fusion: width", shape.width, 1, kMostWidth);
  const int cluster = cluster_of(shape);
  if (cluster > 0) return cluster;
  throw Error("fusion: a row of " + std::to_string(shape.width) +
              " numbers does not fit into 8 blocks of " + std::to_string(shape.threads) +
              " threads with " + std::to_string(shape.packs) + " packs in registers");
}

inline Rows rows_of(const RowShape& shape, int cluster) {
  return {shape.rows, shape.width, 1.0f / static_cast<float>(shape.width), cluster};
}

/// With more than four packs a thread needs more registers than each of a large block's has.
inline constexpr int kManyPacks = 8, kMostWithMany = 512;
/// How many packs a thread takes at a time, and whether they stay in shared memory.
template <int kTaken, bool kInShared>
struct Holding {
  static constexpr int kPacks = kTaken;
  static constexpr bool kShared = kInShared;
};
/// Calls `run` with the packs of these rows and how a thread holds them.
template <Dtype kType, class Run>
void with_packs_of(const RowShape& shape, int cluster, Run run) {
  const int numbers = pack_of(shape.type, shape.width);
  if (numbers == 1) {
    return shape.packs == 0 ? run(Narrow<kType>{}, Holding<8, true>{})
                            : run(Narrow<kType>{}, Holding<8, false>{});
  }
  using Pack = Wide<kType>;
  if (shape.packs == 0) return run(Pack{}, Holding<4, true>{});
  const std::int64_t each = simt::blocks_for(shape.width / numbers, cluster * shape.threads);
  if (each <= 1) return run(Pack{}, Holding<1, false>{});
  if (each <= 2) return run(Pack{}, Holding<2, false>{});
  if (each <= 4) return run(Pack{}, Holding<4, false>{});
  run(Pack{}, Holding<8, false>{});
}
template <class Run>
void with_packs(const RowShape& shape, int cluster, Run run) {
  if (shape.type == Dtype::bf16) return with_packs_of<Dtype::bf16>(shape, cluster, run);
  if (shape.type == Dtype::fp16) return with_packs_of<Dtype::fp16>(shape, cluster, run);
  return with_packs_of<Dtype::fp32>(shape, cluster, run);
}

inline void check_threads(int threads) {
  if (threads >= 32 && threads <= kMostThreads && (threads & (threads - 1)) == 0) return;
  throw Error("fusion: " + std::to_string(threads) +
              " threads per row; allowed: 32, 64, 128, 256, 512, 1024");
}

/// Calls `run` with the parts as the kernel has them.
template <class Run>
void with_parts(const Parts& parts, Run run) {
#if defined(__CUDACC__)
  const auto is = [&](auto chosen) {
    using Chosen = decltype(chosen);
    if (parts == Parts{Chosen::first, Chosen::norm, Chosen::quantize}) run(chosen);
  };
  is(Compiled<First::add, false, false>{});
  is(Compiled<First::load, true, false>{});
  is(Compiled<First::load, false, true>{});
  is(Compiled<First::add, true, false>{});
  is(Compiled<First::load, true, true>{});
  is(Compiled<First::add, true, true>{});
  is(Compiled<First::swiglu, false, false>{});
  is(Compiled<First::swiglu, false, true>{});
#else
  run(parts);
#endif
}

// What launch.cu calls of the other launch files.
void start_product(simt::Device& device, Epilogue epilogue, TileSize size,
                   const ProductShape& shape, const ProductArrays& arrays);
void start_bias(simt::Device& device, const ProductShape& shape, const ProductArrays& arrays);
void start_rows(simt::Device& device, const RowShape& shape, const Parts& parts,
                const RowArrays& arrays);
void start_stream(simt::Device& device, const RowShape& shape, const Parts& parts,
                  const RowArrays& arrays);
void start_rows_holding(simt::Device& device, int values, const RowShape& shape,
                        const RowArrays& arrays);
void start_sample(simt::Device& device, Dtype type, const SampleShape& shape,
                  const SampleRule& rule, simt::Span<const unsigned char> logits,
                  simt::Span<int> tokens);
void start_sample_apart(simt::Device& device, Dtype type, const SampleShape& shape,
                        const SampleRule& rule, simt::Span<const unsigned char> logits,
                        simt::Span<float> scratch, simt::Span<int> tokens);
simt::Resources holding(int values, int width);

}  // namespace tilestep::fusion::SIMT_BACKEND

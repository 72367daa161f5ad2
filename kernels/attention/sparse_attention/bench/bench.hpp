#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/shared/mask.hpp"
#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::sparse_attention {

/// Lists of tiles of keys, on the host: timed::ListArrays.
struct TileLists {
  std::vector<int> first, whole, tiles;
  /// Listed tiles.
  double count() const { return static_cast<double>(tiles.size()); }
};
/// Of a rule without documents: in each tile of queries the partial ones, then the full ones, from the last down.
TileLists lists_of(const attention::MaskRule& rule);
/// Of each tile of queries a share of all tiles of keys, its own among them, the others by lot.
TileLists lists_by_lot(int length, double share, std::int64_t seed);

/// What the bench times.
struct BenchSizes {
  int length = 65536, heads = 2;  ///< of the window and its dense kernel, causal
  int window = 4096;
  int block_length = 16384, block_heads = 16;
  std::vector<double> shares = {0.5, 0.25, 0.1, 0.05};  ///< of the tiles, drawn by lot
  std::vector<int> contexts = {16384, 65536};           ///< of the indexer
  int queries = 528, top_k = 2048, room = 8192, slack = 512;
  int batch = 264, decode_context = 16384, page_size = 64;
  bool quick = false;

  static BenchSizes of_quick() {
    return {.shares = {0.5, 0.05}, .contexts = {65536}, .quick = true};
  }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    return {.length = 400,
            .heads = 1,
            .window = 130,
            .block_length = 300,
            .block_heads = 1,
            .shares = {0.5},
            .contexts = {300},
            .queries = 2,
            .top_k = 24,
            .room = 24 + 16 + 2048,
            .slack = 16,
            .batch = 2,
            .decode_context = 90,
            .page_size = 16};
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::sparse_attention

// Attention in two kernels: scores to memory as in naive.cu, then softmax and the product with V in one. A
// block has a tile of queries and reads each of their scores once, tile by tile, from left to right: the
// maximum, the sum and O are what they are for the scores so far, and are rescaled when the maximum rises
// (the lesson online-softmax). Weights stay in registers.
//
// S [heads × length × score_pitch(length)], the rest as in flash_2.cu.

#include "kernels/attention/flash_attention/stages.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

template <class N, class T, class W>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    softmax_times_values(Operands<N, W> arrays, Setting set, T tiles, W witness) {
  if (!kRuns<N>) return;
  const ScoreStages<N, T> stages(tiles);
  const QueryTile mine = query_tile(set, tiles.block_q, static_cast<int>(blockIdx.x));
  const int k_tiles = (set.length() + tiles.block_k - 1) / tiles.block_k;
  Outputs<T> o = {};
  RowStats<T::strips> stats;
  stages.copy(0, arrays.s, arrays.v, set, mine, 0);
  simt::cp_async_commit();
  for (int tile = 0; tile < k_tiles; ++tile) {
    simt::cp_async_wait<0>();
    // Everybody's part of this tile must have arrived, and everybody must be done with the other stage.
    __syncthreads();
    if (tile + 1 < k_tiles) stages.copy((tile + 1) % 2, arrays.s, arrays.v, set, mine, tile + 1);
    simt::cp_async_commit();
    witness.resume(mine, tile);
    Scores<T> s;
    read_strips<N>(s, stages.scores(tile % 2), tiles);  // [step: scores]
    if ((tile + 1) * tiles.block_k > set.length()) {
      // The tile is wider than the row: beyond its end lie zeros, which are no scores.
      const MaskRule all{Mask::none, set.length(), 0, 0};
      mask<T::kUnroll>(s, all, arrays.begins, mine.first, tile * tiles.block_k, tiles.block_k, 0);
    }
    online_softmax(s, o, stats, kLog2e, tiles, witness);  // [step: softmax]
    multiply_values<N>(o, s, stages.values(tile % 2), 0, tiles.block_k, stages.scores(tile % 2),
                       tiles);  // [step: values]
    witness.output(o);
  }
  finish<N>(o, stats, 1, stages.output, mine, set, arrays, tiles);  // [step: output]
  witness.end(0, mine.last - mine.first + 1);
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND

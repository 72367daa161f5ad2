#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "kernels/attention/decode/params.hpp"
#include "kernels/attention/kv_cache/bench/paged_problem.hpp"

namespace tilestep::decode {

/// What is timed against memory's own bandwidth.
enum class Rung {
  repeat_kv,
  one_block,
  even_splits,
  balanced,
};
constexpr auto names_of(Rung) {
  return std::to_array<std::string_view>(
      {"paged-repeat-kv", "paged-one-block", "paged-even-splits", "paged-balanced"});
}
constexpr auto reasons_of(Rung) {
  return std::to_array<std::string_view>(
      {"Each query head reads keys and values of its own, as if no others shared them.",
       "The query heads that share a K/V head are done together: a block for each request and K/V "
       "head.",
       "Each request is split over several blocks, whose parts are merged.",
       "The pages of all requests are cut into equal pieces, whoever they belong to."});
}

/// What the bench times. BF16 and 32 query heads of 128 unless a table says otherwise.
struct BenchSizes {
  Step step;                                                      ///< of the ladder and of formats
  std::vector<int> batches = {1, 2, 4, 8, 16, 32, 64, 128, 256};  ///< at the ladder's context
  std::vector<int> contexts = {128, 512, 2048, 8192, 32768};      ///< of one request alone
  std::vector<int> shared_by = {1, 8, 32};  ///< query heads that share a K/V head
  int splits = 8;                           ///< of paged-even-splits
  int latent_heads = 128;
  std::vector<int> latent_page_sizes = {64, 16, 256};
  int rounds = 3, side_rounds = 1;
  double settle_ms = 600, side_settle_ms = 150;
  bool quick = false;  ///< the ladder alone

  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    return {.step = {.heads = 4, .kv_heads = 2, .batch = 3, .context = 40},
            .batches = {1, 3},
            .contexts = {17},
            .shared_by = {1, 2, 4},
            .splits = 2,
            .latent_page_sizes = {16},
            .rounds = 1};
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::decode

#pragma once

#include <cstddef>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/fusion/gemm/problem.hpp"

namespace tilestep::fusion {

/// What the bench times.
struct BenchSizes {
  std::size_t numbers = std::size_t{1}
                        << 27;  ///< of the rows at each width, BF16; a multiple of all widths
  std::vector<int> widths = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144};
  int width = 4096;  ///< of the chain
  std::vector<int> rows = {1, 16, 64, 256, 8192};
  int held_width = 16384;  ///< rows that ever fewer threads hold
  std::size_t held_numbers = std::size_t{1} << 27;
  std::vector<int> vocabularies = {32768, 131072, 262144};
  std::size_t logits = std::size_t{1} << 27;
  int launches = 64;                                           ///< in a graph
  std::vector<int> sampled = {32000, 128256, 151936, 262144};  ///< vocabularies
  int sampled_rows = 512;                                      ///< the most
  std::vector<EpilogueLayer> layers = {{Epilogue::bias, 14336, 4096},
                                       {Epilogue::residual, 4096, 14336},
                                       {Epilogue::swiglu, 28672, 4096}};
  std::vector<int> batches = {1, 16, 64, 512, 4096};
  ProductShape packed{.n = 4096, .k = 4096};  ///< n: rows of Q's weights
  std::vector<int> authored_rows = {16, 8192};
  bool peers = true;  ///< PyTorch and Triton, where they are
  bool quick = false;

  static BenchSizes of_quick() {
    return {.widths = {4096, 32768},
            .rows = {16, 8192},
            .vocabularies = {131072},
            .layers = {{Epilogue::swiglu, 28672, 4096}},
            .batches = {16, 4096},
            .quick = true};
  }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    return {.numbers = 4096,
            .widths = {256, 2048},
            .width = 256,
            .rows = {1, 3},
            .held_width = 16384,
            .held_numbers = 16384,
            .vocabularies = {1024},
            .logits = 2048,
            .launches = 2,
            .sampled = {64, 256},
            .sampled_rows = 2,
            .layers = {{Epilogue::bias, 80, 64},
                       {Epilogue::residual, 48, 80},
                       {Epilogue::swiglu, 144, 64}},
            .batches = {1, 3},
            .packed = {.n = 64, .k = 48},
            .authored_rows = {3},
            .peers = false};
  }
};

/// The pace of a point of a curve.
inline constexpr lab::Pace kPoint{150, 14, 7, 20};

/// The bench's part on sampling.
void time_sampling(lab::Bench& bench, const BenchSizes& sizes, double share);

/// The bench with these sizes. The device can time. Throws Error (unavailable) below compute capability 9.0.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

/// epilogues.cpp: products with epilogues, as a share of the bench. Adds nothing on other GPUs than Hopper's.
void add_epilogues(lab::Bench& bench, const BenchSizes& sizes, double share);

/// authoring.cpp: the chain as PyTorch, torch.compile, Triton and this lesson write it. Of the bench: our rung, over so
/// many rows so many times, and a copy of so many bytes.
struct OurRung {
  std::function<lab::Rung(int rows, int slices)> chain;
  std::function<lab::Rung(const char* name, std::size_t bytes)> copy;
};
void add_authoring(lab::Bench& bench, const BenchSizes& sizes, const OurRung& ours, double share);

}  // namespace tilestep::fusion

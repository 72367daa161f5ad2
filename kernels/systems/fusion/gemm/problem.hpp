#pragma once

#include "kernels/matmul/hopper_gemm/run/problem.hpp"
#include "kernels/systems/fusion/kernels.hpp"

namespace tilestep::fusion {

/// A product with W [n × k], k a multiple of 16, and what follows it.
struct EpilogueLayer {
  Epilogue epilogue;
  int n, k;
};

/// A layer's arrays for m rows of X, its launches, and their results against double. For SwiGLU the same W stands for rows
/// in another order in one launch than in two.
class Product {
 public:
  Product(simt::Device& device, const EpilogueLayer& layer, int m);

  /// The plain product to gemm.c, by hopper-gemm's persistent kernel with such tiles.
  lab::Runnable plain(TileSize size);
  /// The same from another's X, of the same numbers.
  void multiply(TileSize size, const hopper_gemm::Problem& with_x);
  /// What follows it, from gemm.c to `out`. `packs`: of a thread at most.
  void follow(int packs);
  /// Both in one launch.
  void fuse(TileSize size);
  /// Some numbers of `out`. The bound: a sum as the tensor cores add it, rounded to BF16, and what follows rounded again.
  lab::Closest compared(bool of_one_launch) const;

  const EpilogueLayer layer;
  hopper_gemm::Problem gemm;
  simt::Buffer<std::uint16_t> out;

 private:
  lab::Repeated<std::uint16_t> second_;
};

}  // namespace tilestep::fusion

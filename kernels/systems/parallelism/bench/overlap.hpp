#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/systems/parallelism/bench/timed.hpp"

namespace tilestep::parallelism {

/// The ways to gather tokens and multiply them.
class Overlap {
 public:
  /// Sizes are rounded down to what the ranks can share. `in_one_kernel`: that way too, where the GPU has it.
  Overlap(simt::Device& device, int ranks, const OverlapShape& shape, const BenchSizes& sizes,
          NcclRanks& nccl, bool in_one_kernel = true);

  /// A way, and what it is made of.
  struct Way {
    std::string name;
    int chunks = 1;
    bool in_turn = true;        ///< the product waits for all of the gather
    bool as_they_come = false;  ///< rows lie in the order in which they come: a rank's own first
    std::function<void(int rank)> enqueue = {};
    std::function<void()> enqueue_all = {};  ///< instead, where the ranks must be called together
    int wire = 0;                            ///< its gather, among `gathers`
    std::vector<double> ms = {};
  };
  const OverlapShape& shape() const { return shape_; }
  int columns() const { return columns_; }  ///< of a rank
  bool apart() { return team_.ranks().apart(); }
  std::vector<Way>& ways() { return ways_; }
  std::vector<Way>& gathers() { return gathers_; }
  Way& product() { return product_; }
  /// Loads all kernels, so that none must be while ranks wait for each other.
  void warm();
  /// Runs a way on an output that holds no numbers and compares some of each rank and chunk.
  lab::Closest compared(const Way& way);
  std::vector<double> times(const Way& way, int samples);

 private:
  using Bf16s = simt::Span<std::uint16_t>;
  void multiply(int rank, int first, int rows);
  void meet(int rank) { team_.make(meeting_, rank); }
  void copy_chunk(int rank, int from, int first, int rows);
  void copy_all(int rank);
  void beside(int rank, int pieces);
  void beside_in_one(int rank);
  void call_nccl();
  double of_x(int row, int i) const;

  Team team_;
  OverlapShape shape_;
  int columns_ = 0, own_rows_ = 0;
  std::vector<std::uint16_t> weights_;  ///< a period, of all ranks
  std::vector<std::vector<std::uint16_t>> tokens_;
  std::vector<Bf16s> own_, all_, matrix_, product_of_;
  std::vector<simt::Span<unsigned>> zeros_, ones_, flags_;
  int meeting_ = 0, gather_ = 0;
  NcclRanks& nccl_;
  bool connected_ = false;
  std::vector<Way> ways_, gathers_;
  Way product_;
};

}  // namespace tilestep::parallelism

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/lessons.hpp"
#include "kernels/systems/fusion/kernels.hpp"
#include "kernels/systems/fusion/ledger.hpp"

/// The lesson on kernel fusion: the same arithmetic in fewer trips to memory. A residual addition, an RMSNorm and a
/// quantization to FP8 on rows, in three kernels beside the kernels that the user's fusions make of them; and the
/// ledger of a decoder block. Zhang & Sennrich, "Root mean square layer normalization", 2019 (arXiv:1910.07467).
namespace tilestep::fusion {

/// The kernel source that the picture shows.
inline constexpr std::string_view kSourcePath = "kernels/systems/fusion/rows.cu";

struct Params {
  int rows = 4;
  int width = 4096;
  Dtype dtype = Dtype::bf16;
  int block_choice = 3;  ///< 32 << block_choice threads per row
  std::string fuse = "8,9";
  int batch = 16;  ///< tokens of the ledger
  Break broken = Break::none;
  std::int64_t seed = 1;

  int block() const { return 32 << block_choice; }
};
inline constexpr int kBlocks = 6;
const lab::KnobTable<Params>& knob_table();

/// The chain's steps, in order, and their phases.
enum class Step { add, norm, quantize };
constexpr auto names_of(Step) {
  return std::to_array<std::string_view>({"add", "norm", "quantize"});
}
inline constexpr int kChain = static_cast<int>(count_of<Step>());
/// The place of the chain in the block.
inline constexpr int kChainOp = static_cast<int>(Op::residual_1);
enum class Phase { read, compute, write };
constexpr auto names_of(Phase) {
  return std::to_array<std::string_view>({"read", "compute", "write"});
}
inline constexpr int kPhases = static_cast<int>(count_of<Phase>());
/// 1-based line of kSourcePath in this build, for each step of the chain: whatever a recording says.
std::array<int, kChain> step_lines();

/// The chain's tensors in memory.
enum class Tensor { x, residual, gain, sum, normed, codes, scale };
constexpr auto names_of(Tensor) {
  return std::to_array<std::string_view>({"x", "residual", "gain", "h", "n", "codes", "scale"});
}
inline constexpr int kTensors = static_cast<int>(count_of<Tensor>());
/// Whether its bytes are the row's: all rows share the gain, which stays in the cache, and a scale is one number.
constexpr bool is_counted(Tensor tensor) {
  return tensor != Tensor::gain && tensor != Tensor::scale;
}

/// Bytes of a tensor that a launch moved for the recorded row, by its own accesses.
struct Move {
  int step = 0;  ///< of the chain
  Tensor tensor = Tensor::x;
  bool stored = false;
  std::int64_t bytes = 0;
  bool operator==(const Move&) const = default;
};
/// One way to run the chain: in three launches, or in those that the fusions leave.
struct Lane {
  std::array<int, kChain> launch{};  ///< of each step
  std::vector<Move> moves;           ///< by step, reads before writes
  // The first numbers of the recorded row.
  std::vector<float> held, normed, codes;
  RowStats stats{};
  int launches() const { return launch.back() + 1; }
  /// Of the tensors that are counted.
  std::int64_t bytes() const;
};

/// An operation of the block, with its part of the ledger.
struct OpTrace {
  int kernel = 0;
  std::vector<Traffic> traffic;
  bool operator==(const OpTrace&) const = default;
};
struct SeamTrace {
  bool fused = false;
  std::string refused;  ///< why not, if it was asked for
  bool operator==(const SeamTrace&) const = default;
};

/// What went wrong in a broken run.
struct BrokenResult {
  std::string outcome;  ///< empty: nothing was broken
  int wrong = 0, elements = 0;
  bool operator==(const BrokenResult&) const = default;
};

struct Trace {
  int width = 0, rows = 0, batch = 0;
  Dtype dtype = Dtype::bf16;
  Break broken = Break::none;
  int threads = 0, cluster = 1;
  bool in_shared = false;  ///< the row is held in shared memory
  // The first numbers of the recorded row.
  std::vector<float> x, residual;
  Lane unfused, fused;
  // The block.
  std::vector<SeamTrace> seams;  ///< kSeams
  std::vector<OpTrace> ops;      ///< kOps
  Score none, own, best;
  std::vector<int> best_list;  ///< seams of the best, from 1
  BrokenResult result;
  std::array<int, kChain> lines = step_lines();

  int shown() const { return width < kShownNumbers ? width : kShownNumbers; }
  int kernels() const { return ops.empty() ? 0 : ops.back().kernel + 1; }
  /// The picture's steps: the chain's, and one per kernel of the block.
  int length() const { return kChain + kernels(); }
  double bytes_per_number(const Lane& lane) const { return double(lane.bytes()) / width; }
  bool operator==(const Trace& other) const;
};

std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::fusion

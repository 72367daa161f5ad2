#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/shared/step.hpp"
#include "kernels/attention/shared/task.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/numeric/running_sum.hpp"

/// \file
/// Common to the traces of all lessons on attention: the matrix of scores in tiles, which block computed which tile
/// when, and the requested bytes. The data was written by the explained kernels, unless noted otherwise; reference
/// values are in double.

namespace tilestep::attention {

/// The requested problem, and the part of it that ran.
///
/// One run explains a limited number of scores: a larger problem runs with its first head, or its first positions; the
/// rest that is shown (its mask, its formula of bytes) follows from these numbers.
struct Shape {
  int length = 0;               ///< queries and keys that ran
  int heads = 0, kv_heads = 0;  ///< those that ran
  int asked_length = 0;
  int asked_heads = 0, asked_kv_heads = 0;
  int head_dim = 0;  ///< columns of Q, K, V and O in memory
  int columns = 0;   ///< of their tiles in shared memory: the rest is zero-padded
  bool operator==(const Shape&) const = default;
};

/// The dispatcher's choices. Sentences have no capital and no full stop; empty: nothing to say.
struct Dispatch {
  std::string filled;   ///< why tiles have more columns than memory
  std::string resized;  ///< why tiles are others than were asked for
  std::string cut;      ///< why a part of the problem ran
  int block_q = 0, block_k = 0;
  int q_tiles = 0, k_tiles = 0;  ///< of what ran
  int threads = 0;               ///< of a block
  int shared_bytes = 0;          ///< of a block
  int blocks = 0;                ///< of the launch (naive: of the one that computes scores)
  bool operator==(const Dispatch&) const = default;
};

/// A launch before it runs: the dispatcher's choice.
struct TilePlan {
  int head_dim = 64;   ///< columns in memory
  int columns = 64;    ///< of tiles in shared memory
  std::string filled;  ///< why they are more; empty: they are not
  int block_q = 64, block_k = 64;
  std::string resized;  ///< why tiles differ from the request; empty: they do not
  int q_tiles = 0, k_tiles = 0;
  int threads = 0;               ///< of a block
  std::size_t shared_bytes = 0;  ///< of a block, the largest of several kernels
  MaskRule rule;

  /// Sets the columns, and says where zeros pad some.
  void fill(int dim);
  /// Sets the numbers of tiles from their sizes.
  void cut(int length);
};

/// The answer of the chosen query.
struct Answer {
  std::vector<float> o;       ///< [head_dim], as the kernel writes it
  std::vector<double> exact;  ///< [head_dim], in double on the same rounded inputs
  float lse = 0;              ///< log-sum-exp
  double exact_lse = 0;
  bool operator==(const Answer&) const = default;
};

/// A tile of scores of the chosen head. Visits are stored row by row: tile of queries `q_tile`, tile of keys `k_tile`, at
/// q_tile · k_tiles + k_tile.
///
/// When a tile was visited is `order`, among the visits of its own block; blocks run side by side. A block of flash-2
/// and flash-3 walks over the tiles of keys of one tile of queries (flash-3: from the last to the first, and then the
/// next tile of queries), one of flash-1 through all tiles of its head, keys outside; one of naive has a single
/// tile of scores.
///
/// A block of a backward pass owns a tile of keys and walks over the tiles of queries of the heads that share it.
struct TileVisit {
  /// By the mask: naive computes what is skipped too.
  TileKind kind = TileKind::skipped;
  int block = -1;  ///< that visited it; −1: none did, the tile was never computed
  int order = -1;  ///< among the block's visits, from 0; −1: not visited
  /// Rows of queries whose maximum rose after their first weight, so that O and ℓ were rescaled by less than 1.
  /// −1: not recorded (naive and a backward pass have none; flash-3 rescales all rows at every visit).
  int rescaled = -1;
  int o_reads = 0;   ///< rows of O that the visit read from memory: what flash-1 does at each
  int o_writes = 0;  ///< rows of O that it wrote to memory; backward: of dQ's sums that it added to
  /// Of the block, in `Matrix::clock_unit`. −1: not recorded (flash-3: blocks other than the chosen one; their block
  /// and order are those of the kernel's schedule).
  std::int64_t begin = -1, end = -1;
  bool operator==(const TileVisit&) const = default;
};

/// A block's time, all heads: what a causal mask leaves busy. In the order of their numbers.
struct BlockLane {
  int block = 0;
  int head = 0;   ///< backward: the first of those that share its tile of keys
  int tile = -1;  ///< its (first) tile of queries, backward of keys; −1: flash-1, all of the head
  int visits = 0;                     ///< tiles of scores that it computed
  std::int64_t begin = -1, end = -1;  ///< as of TileVisit; −1: not recorded
  bool operator==(const BlockLane&) const = default;
};
/// Lanes of blocks that a trace has at most.
inline constexpr std::size_t kShownBlocks = 512;

/// Whose steps are shown: of the first head.
struct ChosenPlace {
  int head = 0, query = 0, component = 0;
  int q_tile = 0;  ///< the query's
  int block =
      0;  ///< that computes it (flash-1: the head's; backward: that has the key of the same number)
  bool operator==(const ChosenPlace&) const = default;
};

/// Bytes of one tensor, as the kernels' own accesses asked for them (flash-3: as its chosen block asked TMA), and by
/// the formula for the same launch (block); and by the formula for the whole problem that was asked for.
struct LedgerRow {
  Tensor tensor = Tensor::q;
  std::int64_t loaded = 0, stored = 0;  ///< traced
  std::int64_t formula_loaded = 0,
               formula_stored = 0;                  ///< derived; a check holds it to be the same
  std::int64_t whole_loaded = 0, whole_stored = 0;  ///< derived, of asked_length and asked_heads
  std::int64_t held = 0;  ///< derived: bytes of memory that the tensor takes, of the whole problem
  std::int64_t kept = 0;  ///< derived: of a backward pass what of them the forward pass left it
  bool operator==(const LedgerRow&) const = default;
};
/// Bytes of memory, by Tensor.
using Held = std::array<unsigned long long, kTensors>;
/// Of tensors that are there; `all` is the formula for the whole problem.
std::vector<LedgerRow> ledger_rows(const Ledger& asked, const Ledger& formula, const Ledger& all,
                                   const Held& held, const Held& kept = {});

/// What came of a kernel that was broken on purpose. The ledger, the visits, the steps and the answer are of the broken
/// kernel; the checks are of the kernel with nothing left out.
struct BrokenResult {
  std::string outcome;        ///< "right", "wrong numbers", "more bytes"; empty: nothing was broken
  int wrong = 0;              ///< elements of O, backward of dQ, dK and dV, of all heads that ran
  int elements = 0;           ///< how many there are
  Tensor tensor = Tensor::o;  ///< of the first of them; `query` is then the row of dK or dV
  int head = -1, query = -1, component = -1;  ///< of the first of them; −1: none
  double got = 0, want = 0;
  double largest = 0;           ///< |got − want| of the worst
  std::int64_t more_bytes = 0;  ///< asked for beyond what the sound kernel asks
  bool operator==(const BrokenResult&) const = default;

  /// Counts what an element came to, where that is off by more than rounding can explain; NaN is. Rows are of
  /// `columns` elements, `length` of them a head.
  void add(Tensor of, std::size_t element, double value, double exact, double bound, int length,
           int columns);
  /// The same of all elements.
  void add(Tensor of, const std::vector<float>& got, const numeric::AllBounded& exact, int length,
           int columns);
  /// Says what came of it, when all elements are there.
  void judge();
};

/// The matrix of scores in tiles: what is the same in the traces of all lessons on attention.
struct Matrix {
  Dispatch plan;
  Shape shape;
  Mask mask = Mask::none;
  int window = 0;  ///< of sliding-window and prefix, at most the length that was asked for
  int sinks = 0;   ///< of sliding-window
  /// Of the whole length, one after another; empty unless the mask is `document`.
  std::vector<int> documents;
  Break broken = Break::none;

  /// "tiles": under emulation, up to flash-2: tiles of scores that the block has computed. "words": under emulation,
  /// flash-3: how many of Hopper's words follow one another. Both are an order, not a time. On a GPU "ns", from the
  /// first block's begin on, and of flash-3 "cycles" of the multiprocessor.
  std::string clock_unit;
  std::vector<TileVisit> visits;  ///< [q_tiles × k_tiles] of the chosen head
  std::vector<BlockLane> blocks;  ///< of all heads, the first kShownBlocks
  ChosenPlace chosen;
  /// Of the chosen head, [q_tiles]: elements of O, backward of dQ, that are wrong in each tile of queries. All 0 unless
  /// it is broken.
  std::vector<int> wrong;
  std::vector<LedgerRow> ledger;  ///< of tensors that the variant has
  BrokenResult result;

  const TileVisit& visit(int q_tile, int k_tile) const {
    return visits[static_cast<std::size_t>(q_tile * plan.k_tiles + k_tile)];
  }
  /// The mask of what ran, and of all that was asked for; `begins_of(documents)` has where documents begin.
  MaskRule rule() const { return rule_of(shape.length); }
  MaskRule asked_rule() const { return rule_of(shape.asked_length); }
  bool operator==(const Matrix&) const = default;

 private:
  MaskRule rule_of(int length) const;
};

/// From which of `steps` on a visit is known, 1 …: the first whose block has come as far. 0: it was not visited.
template <class Step>
int step_of(const std::vector<Step>& steps, const TileVisit& visit) {
  if (visit.order < 0) return 0;
  const auto come = std::find_if(steps.begin(), steps.end(),
                                 [&](const Step& step) { return step.order >= visit.order; });
  return std::min(static_cast<int>(come - steps.begin()) + 1, static_cast<int>(steps.size()));
}

// ---- from what the kernels wrote ----------------------------------------------------------------------

/// Who has what in a launch.
enum class Owns { query_tile, head, key_tile };
/// The visits of all heads, [heads × q_tiles × k_tiles], in the kernels' own words.
struct Launched {
  const std::vector<Visit>& visits;
  const TilePlan& plan;
  Owns owns = Owns::query_tile;
  bool counts_rescaled = true;
  bool from_first =
      true;  ///< clocks are counted from the first visit's begin on; else they are as they are
};
/// Of the head that is chosen.
std::vector<TileVisit> visits_of(const Launched& visited, int head);
std::vector<BlockLane> lanes_of(const Launched& visited, int heads);

/// Whose steps an explained launch records; where the knobs are past the end, the last.
struct Chosen {
  int head = 0, query = 0, component = 0;
};
/// Where an explained launch records: nothing is visited yet, and nothing asked for.
struct RecordBuffers {
  simt::Buffer<Visit> visits;
  simt::Buffer<StepRecord> steps;
  simt::Buffer<unsigned long long> asked;
  simt::Buffer<float> rows;  ///< `row_count` of a query, [length]

  RecordBuffers(simt::Device& device, const TilePlan& plan, int heads, int row_count = 0);
  Records records(const Chosen& chosen) {
    return {chosen.head, chosen.query, visits.span(), steps.span(), asked.span(), rows.span()};
  }
  Ledger ledger() const;
};

// ---- what a report says of it -------------------------------------------------------------------------

/// Bytes that the kernels asked for, and memory of all tensors, in bytes.
std::int64_t asked_by(const Matrix& trace);
std::int64_t held_by(const Matrix& trace);
/// Tiles of scores of the chosen head that were computed.
int visited(const Matrix& trace);
/// "384 B", "16.4 KB".
std::string bytes_text(std::int64_t bytes);

/// Of rows `first` … `first` + `length` of `got`, [rows × columns], the elements that are off by more than rounding can
/// explain, by tile of `size` rows; NaN is.
std::vector<int> wrong_of_tiles(const std::vector<float>& got, const numeric::AllBounded& exact,
                                int first, int length, int columns, int size);

/// Throws Error for steps of the chosen query that an edited kernel left unrecorded: a picture would show zeros.
void require_steps(const Matrix& trace, std::size_t steps);
/// Steps of a forward pass that do not start from the maximum that the step before left.
template <class Step>
lab::Check check_chain(const std::vector<Step>& steps) {
  int wrong = 0;
  float before = -INFINITY;
  for (const Step& step : steps) {
    wrong += lab::same_bits(step.m_before, before) ? 0 : 1;
    before = step.m_after;
  }
  return lab::none_wrong("recorded_chain", wrong,
                         "Steps of the chosen query that do not start from the maximum left by "
                         "the step before.");
}
/// Where the tolerance of a forward pass comes from.
inline constexpr const char* kForwardTolerance =
    "With nothing omitted, against double on the same rounded inputs; tolerance: the running "
    "bound of both products' sums, of exp and its argument, of each rescale, of weights and O in "
    "their format.";

/// Bytes asked `by` the kernels and held, and visited tiles.
void add_tile_measurements(lab::Report& report, const Matrix& trace, std::string_view variant,
                           std::string_view by, std::string_view held = "memory of all tensors");
/// "flash-2: 10 of 16 tiles of scores a head, 73.7 KB asked of memory": `who` asked for them, `more` comes last. What
/// came of a broken kernel instead, for numbers `of` O.
std::string summary_of(const Matrix& trace, std::string_view who, std::string_view of,
                       const std::string& more = "");
lab::Table answer_table(const Matrix& trace, const Answer& answer);

/// Tables. `who` asked for the bytes; with `kept`, what the forward pass left.
lab::Table ledger_table(const Matrix& trace, std::string_view who, bool kept = false);
lab::Table block_table(const Matrix& trace, Owns owns);
lab::Table broken_table(const Matrix& trace, std::string_view of, std::string_view row);

/// Tensors of which other bytes were asked for than the formula says.
lab::Check check_asked(const Matrix& trace);
/// Which tiles are visited: those that the mask does not hide; and where it hides them, all, or perhaps.
enum class Hidden { skipped, visited, perhaps };
lab::Check check_visits(const Matrix& trace, const std::vector<int>& begins, Hidden hidden);

}  // namespace tilestep::attention

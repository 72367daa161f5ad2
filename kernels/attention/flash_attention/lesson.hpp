#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/flash_attention/params.hpp"
#include "kernels/lessons.hpp"

/// \file
/// All that the lesson's picture is drawn from. What stands here was written by the explained kernels, unless it
/// says otherwise; what it was compared with is in double.

namespace tilestep::flash_attention {

// ---- what ran ---------------------------------------------------------------------------------------

/// The problem that was asked for, and the part of it that ran.
///
/// One run explains a limited number of scores (`Excerpt`, excerpt.hpp): of a larger problem its first head, or its
/// first positions, run; what is shown of the rest (its mask, its formula of bytes) follows from these numbers.
struct Shape {
  int length = 0;               ///< queries and keys that ran
  int heads = 0, kv_heads = 0;  ///< that ran
  int asked_length = 0;
  int asked_heads = 0, asked_kv_heads = 0;
  int head_dim = 0;  ///< columns of Q, K, V and O in memory
  int columns = 0;   ///< of their tiles in shared memory: the rest is filled with zeros
  bool operator==(const Shape&) const = default;
};

/// What the dispatcher made of it. Sentences are without a capital and a full stop; empty: there is nothing to say.
struct Dispatch {
  Variant asked = Variant::flash_2, runs = Variant::flash_2;
  std::string instead;  ///< why another kernel runs: "runs as flash-2: …"
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

// ---- tiles of scores ----------------------------------------------------------------------------------

/// A tile of scores of the chosen head. Visits stand row by row: tile of queries `q_tile`, tile of keys `k_tile`, at
/// q_tile · k_tiles + k_tile.
///
/// When a tile was visited is `order`, among the visits of its own block; blocks run side by side. A block of flash-2
/// and flash-3 goes through the tiles of keys of one tile of queries (flash-3: from the last to the first, and then the
/// next tile of queries), one of flash-1 through all tiles of its head, keys outside; one of naive has a single
/// tile of scores.
///
/// A block of a backward pass has a tile of keys and goes through the tiles of queries of the heads that share it.
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
  /// Of the block, in `Trace::clock_unit`. −1: not recorded (flash-3: blocks other than the chosen one; their block and
  /// order are those of the kernel's schedule).
  std::int64_t begin = -1, end = -1;
  bool operator==(const TileVisit&) const = default;
};

/// A block's time, all heads: what a causal mask leaves busy. In the order of their numbers.
struct BlockLane {
  int block = 0;
  int head = 0;
  int q_tile = -1;  ///< its (first) tile of queries; −1: all of the head (flash-1, backward)
  int k_tile =
      -1;  ///< backward: its tile of keys, of the heads from `head` on that share it; else −1
  int visits = 0;                     ///< tiles of scores that it computed
  std::int64_t begin = -1, end = -1;  ///< as of TileVisit; −1: not recorded
  bool operator==(const BlockLane&) const = default;
};

// ---- the chosen query ---------------------------------------------------------------------------------

/// Whose steps are shown. The knobs `head`, `query` and `component`; past the end the last that ran.
struct ChosenPlace {
  int head = 0, query = 0, component = 0;
  int q_tile = 0;  ///< the query's
  int block =
      0;  ///< that computes it (flash-1: the head's; backward: that has the key of the same number)
  bool operator==(const ChosenPlace&) const = default;
};

/// What one tile of keys did to the chosen query, in the order of the visits: the steps of the picture. Scores as they
/// enter exp: with scale, modifier and mask, in natural units.
///
/// Naive takes the maximum and the sum of the whole row at once: its steps are the tiles of scores from left to right,
/// and of the numbers only `tile_max` is there (from the scores that it stored); the rest is 0.
///
/// Backward: by the order of the visits in their blocks, which run side by side. Of the numbers only `dq` is there.
struct Step {
  int k_tile = 0;
  int order = 0;  ///< of the visit among those of its block
  TileKind kind = TileKind::full;
  float tile_max = 0;  ///< −∞: the query sees no key of the tile
  /// The maximum of all scores so far; −∞: of none.
  float m_before = 0, m_after = 0;
  float rescale = 0;  ///< exp(m_before − m_after): what O and ℓ so far are multiplied by; broken: 1
  float tile_sum =
      0;        ///< of the tile's weights exp(s − m_after); of flash-3 from ℓ before and after
  float l = 0;  ///< sum of all weights so far
  /// The chosen component of O so far: not yet divided by ℓ; flash-1 divides at every visit. 0 unless
  /// `Trace::o_recorded`.
  float o = 0;
  /// Backward: what the tile's block adds to the sum of the chosen component of dQ, which is multiplied by
  /// 1 / sqrt(head_dim) at the end.
  float dq = 0;
  bool operator==(const Step&) const = default;
};

/// The answer of the chosen query.
struct Answer {
  std::vector<float> o;       ///< [head_dim], in BF16 (flash-3's explained kernel: FP32)
  std::vector<double> exact;  ///< [head_dim], in double on the same rounded inputs
  float lse = 0;              ///< log-sum-exp
  double exact_lse = 0;
  std::vector<double>
      o_after;  ///< [steps] the chosen component of softmax over the keys seen so far, in double; backward: empty
  bool operator==(const Answer&) const = default;
};

/// The chosen query's part of a backward pass, and that of the key of the same number; of a forward pass empty. `Answer`
/// is then of the forward pass before it.
struct BackwardRow {
  float lse = 0;  ///< log-sum-exp that the forward pass left
  float d = 0;    ///< D, the sum of dO ∘ O
  /// Of its keys, [length], as they were in registers.
  std::vector<float> p, dp, ds;
  std::vector<float> dq, dk,
      dv;  ///< [head_dim], in BF16; dK and dV of the head that the chosen one shares
  std::vector<double> exact_dq, exact_dk, exact_dv;  ///< in double on the same rounded inputs
  std::vector<double>
      dq_after;  ///< [steps] the chosen component of dQ over the keys of the tiles so far, in double
  bool operator==(const BackwardRow&) const = default;
};

// ---- bytes ------------------------------------------------------------------------------------------------

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

// ---- flash-3's lanes --------------------------------------------------------------------------------------

/// What happens in flash-3's chosen block; Site of flash_3/schedule.hpp in words.
enum class What {
  waits_empty_q,  ///< the producer begins to wait until Q's tile is free
  copies_q,       ///< its copies of Q are issued
  waits_empty_k,  ///< it begins to wait for a stage of K
  copies_k,       ///< its copies of K are issued
  waits_empty_v,
  copies_v,
  full_k,  ///< who looks on sees that K is there
  full_v,
  waits_k,         ///< a consumer begins to wait for K
  waits_turn,      ///< … for its turn
  takes_turn,      ///< it has the turn
  passes_turn,     ///< its products are issued: the next one's turn
  issues_s,        ///< it begins to issue S = Q Kᵀ
  commits_s,       ///< all of them are issued
  done_s,          ///< they are done
  releases_k,      ///< K's stage is given back
  begins_softmax,  ///< scores become weights
  ends_softmax,
  waits_v,
  issues_o,  ///< it begins to issue O += P V
  commits_o,
  done_o,
  releases_v,
  stores,  ///< it begins to store O
  stored,  ///< it is done with that, but for TMA's part
};
constexpr auto names_of(What) {
  return std::to_array<std::string_view>(
      {"waits-empty-q", "copies-q",       "waits-empty-k", "copies-k",  "waits-empty-v",
       "copies-v",      "full-k",         "full-v",        "waits-k",   "waits-turn",
       "takes-turn",    "passes-turn",    "issues-s",      "commits-s", "done-s",
       "releases-k",    "begins-softmax", "ends-softmax",  "waits-v",   "issues-o",
       "commits-o",     "done-o",         "releases-v",    "stores",    "stored"});
}

/// In the order of the block's clock.
struct Event {
  What what = What::copies_k;
  int lane = 0;  ///< 0: the thread that copies; 1, 2, 3: a consumer (warpgroup); −1: who looks on
  int turn = 0;  ///< which of the block's tiles of queries, from 0 (flash-3 takes several)
  int q_tile = 0;  ///< its number in the head
  int head = 0;
  int k_tile =
      0;  ///< −1: none (Q, O). Of a turn the tile whose products of S are issued in it; of a last turn the
  ///< tile of its O += P V
  std::int64_t clock = 0;  ///< from the first event on, in Trace::clock_unit
  bool operator==(const Event&) const = default;
};

/// What a lane is busy with, from one event to another: derived from the events alone.
enum class Activity {
  waits,    ///< for K, V, Q or its turn (the producer: for a stage to be free)
  copies,   ///< K or V under way: from the producer's issue until it is there
  scores,   ///< S = Q Kᵀ on the tensor cores, from issue until done
  softmax,  ///< exponentials
  values,   ///< O += P V on the tensor cores
  stores,
};
constexpr auto names_of(Activity) {
  return std::to_array<std::string_view>(
      {"waits", "copies", "scores", "softmax", "values", "stores"});
}
struct Span {
  Activity what = Activity::waits;
  int lane = 0;  ///< as of Event
  int turn = 0, q_tile = 0, head = 0, k_tile = 0;
  char tensor = ' ';  ///< of copies 'K' or 'V', else ' '
  std::int64_t begin = 0, end = 0;
};

// ---- what a break did -------------------------------------------------------------------------------------

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
};

// ---- what 8 bits cost ---------------------------------------------------------------------------------

/// The same problem with Q and K multiplied in one format: errors against double on the inputs in BF16.
struct QuantizedRow {
  DataType format = DataType::bf16;  ///< bf16 (flash-2), fp8 or int8
  bool smooth_k = false;             ///< without K's mean
  double score_rms =
      0;  ///< root mean square, natural units, over all pairs that are seen, by the 8-bit numbers that
          ///< the kernels made; bf16: 0, its operands are the inputs
  double o_rms = 0;      ///< of O, for the root mean square of O
  double o_largest = 0;  ///< the largest of O, for the same
  bool operator==(const QuantizedRow&) const = default;
};
/// bf16, then fp8 and int8, each as it is and without K's mean.
inline constexpr std::size_t kQuantizedRows = 5;
/// "fp8 less K's mean".
std::string name_of_row(const QuantizedRow& row);

// ---- source -----------------------------------------------------------------------------------------------

/// Marked lines of the kernels' sources, by the words of their marks.
enum class Mark {
  loads,
  copy,
  scores,
  stores,
  mask,
  softmax,
  weights,
  rescale,
  values,
  output,
  // of flash_3.cu
  waits_empty,
  copies,
  full,
  waits_k,
  waits_v,
  takes_turn,
  passes_turn,
  issues_s,
  done_s,
  masks,
  maximum,
  releases_k,
  issues_o,
  done_o,
  rescales,
  releases_v,
  // of backward_recompute.cu
  d_p,
  d_s,
  d_v,
  d_k,
  d_q,
};
constexpr auto names_of(Mark) {
  return std::to_array<std::string_view>(
      {"loads",      "copy",       "scores",      "stores",      "mask",       "softmax", "weights",
       "rescale",    "values",     "output",      "waits-empty", "copies",     "full",    "waits-k",
       "waits-v",    "takes-turn", "passes-turn", "issues-s",    "done-s",     "masks",   "maximum",
       "releases-k", "issues-o",   "done-o",      "rescales",    "releases-v", "dP",      "dS",
       "dV",         "dK",         "dQ"});
}
inline constexpr std::size_t kMarks = 31;
/// Where a variant's kernel is, that of a backward pass, or that of 8 bits: a path of the repository, built in as an
/// asset.
constexpr std::string_view source_path(Variant variant, Pass pass = Pass::forward,
                                       DataType dtype = DataType::bf16) {
  if (is_quantized(dtype)) return "kernels/attention/flash_attention/quantized/quantized.cu";
  if (pass != Pass::forward)
    return "kernels/attention/flash_attention/backward/backward_recompute.cu";
  constexpr std::string_view kPaths[] = {"kernels/attention/flash_attention/naive.cu",
                                         "kernels/attention/flash_attention/flash_1.cu",
                                         "kernels/attention/flash_attention/flash_2.cu"};
  return is_flash_3(variant) ? "kernels/attention/flash_attention/flash_3/flash_3.cu"
                             : kPaths[static_cast<int>(variant)];
}
/// Of source_path; 0: it has no such mark.
std::array<int, kMarks> mark_lines(Variant variant, Pass pass = Pass::forward,
                                   DataType dtype = DataType::bf16);

// ---- all of it --------------------------------------------------------------------------------------------

struct Trace {
  Pass pass = Pass::forward;
  Dispatch plan;
  Shape shape;
  DataType dtype = DataType::bf16;
  bool smooth_k = false;  ///< of fp8 and int8
  Data data = Data::random;
  Mask mask = Mask::none;
  int window = 0;  ///< of sliding-window and prefix, at most the length that was asked for
  int sinks = 0;   ///< of sliding-window
  ScoreMod score_mod = ScoreMod::none;
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
  std::vector<Step> steps;  ///< one a visited tile of keys; empty: the query's tile visits none
  bool o_recorded = false;  ///< whether Step::o is there: of flash-1 and flash-2
  /// Of the chosen query, [length], natural units, as they lie in memory (in BF16; −∞: masked): of naive and
  /// `materialize`; else empty, for no score was stored.
  std::vector<float> scores;
  std::vector<float>
      weights;  ///< of the chosen query, [length], as they lie in memory: of naive; else empty
  Answer answer;
  BackwardRow backward;
  /// Of the chosen head, [q_tiles]: elements of O, backward of dQ, that are wrong in each tile of queries. All 0 unless
  /// it is broken.
  std::vector<int> wrong;
  std::vector<int> wrong_dk,
      wrong_dv;  ///< [k_tiles] the same of dK and dV; of a forward pass empty

  std::vector<LedgerRow> ledger;  ///< of tensors that the variant has
  std::vector<Event> events;      ///< of flash-3's chosen block; else empty
  /// Of fp8 and int8: the same excerpt by the kernels of all three formats, these both ways; else empty.
  std::vector<QuantizedRow> quantized;
  BrokenResult result;
  std::array<int, kMarks> lines{};

  const TileVisit& visit(int q_tile, int k_tile) const {
    return visits[static_cast<std::size_t>(q_tile * plan.k_tiles + k_tile)];
  }
  /// From which step on the visit is known, 1 …: the first whose block has come as far. 0: it was not visited.
  int step_of(const TileVisit& visit) const;
  bool is_backward() const { return pass != Pass::forward; }
  /// Whether visits have `rescaled`.
  bool counts_rescaled() const {
    return !is_backward() && plan.runs != Variant::naive && !is_flash_3(plan.runs);
  }
  /// The mask of what ran, and of all that was asked for; `begins_of(documents)` has where documents begin.
  MaskRule rule() const;
  MaskRule asked_rule() const;
  bool operator==(const Trace&) const = default;
};
/// Lanes of blocks that a trace has at most.
inline constexpr std::size_t kShownBlocks = 512;

/// What flash-3's lanes are busy with, by lane, then by begin.
std::vector<Span> spans_of(const Trace& trace);

nlohmann::json to_json(const Trace& trace);
/// Throws Error saying which member is missing or wrong.
Trace trace_from_json(const nlohmann::json& json);

/// The report's tables that say what a trace says: `steps`, `ledger`, `visits`, `blocks`, `lanes`, `answer`.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::flash_attention

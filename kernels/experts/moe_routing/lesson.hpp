#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/lessons.hpp"

/// The MoE lesson: a router sends each of [tokens] to its best [top_k] of [experts]; every expert
/// multiplies only its own tokens, in whole tiles of a tensor core's n side; the outputs are
/// combined by gate weights. Shazeer et al., "Outrageously large neural networks", 2017; Lepikhin
/// et al., "GShard", 2020 (capacity); Fedus, Zoph & Shazeer, "Switch Transformers", 2021; Gale et
/// al., "MegaBlocks", 2022 (no dropped tokens, grouped tiles).
namespace tilestep::moe_routing {

/// The kernel source that the picture shows.
inline constexpr std::string_view kSourcePath = "kernels/experts/moe_routing/routing.cu";

/// The router's preference.
enum class Routing {
  balanced,  ///< token t to expert t·top_k mod experts and its right neighbours
  skewed,    ///< expert e is wanted in proportion to (e + 1)^-skew
  random,    ///< every expert equally likely
  one_hot,   ///< first choice E0 for every token; further choices E1, E2, …
  custom,    ///< balanced, changed by the knob `custom`
};
constexpr auto names_of(Routing) {
  return std::to_array<std::string_view>({"balanced", "skewed", "random", "one-hot", "custom"});
}
inline constexpr int kRoutings = static_cast<int>(count_of<Routing>());

/// How the experts' products are laid out for the tensor cores.
enum class Scheme {
  padded_to_capacity,  ///< every expert has as many slots as the fullest may have
  tile_padded,         ///< each expert's slots are rounded up to whole tiles; one launch row per
                       ///< expert, blocks without a tile exit immediately
  packed,              ///< kept assignments are side by side; a list of tiles over all experts is
                       ///< shared among persistent blocks
};
constexpr auto names_of(Scheme) {
  return std::to_array<std::string_view>({"padded-to-capacity", "tile-padded", "packed"});
}
/// What each does, and its cost.
constexpr auto reasons_of(Scheme) {
  return std::to_array<std::string_view>(
      {"Every expert has as many slots as the fullest may have, so that one batched product does "
       "them all; slots that stay empty are multiplied too.",
       "Each expert's slots are rounded up to whole tiles: padding costs less than a tile an "
       "expert, but the launch has room for the longest expert and blocks beyond the others leave "
       "at once.",
       "Kept tokens lie side by side and one list of tiles over all experts is shared out among "
       "blocks that stay, so that an uneven routing still fills the machine."});
}
inline constexpr int kSchemes = static_cast<int>(count_of<Scheme>());

struct Params {
  int tokens = 32;
  int experts = 4;
  int top_k = 1;
  Routing routing = Routing::skewed;
  double skew = 2.0;    ///< exponent of `skewed`
  int tile_choice = 0;  ///< 8 << tile_choice token slots are multiplied together
  /// Factor: an expert takes ⌈factor·tokens·top_k / experts − 1e-9⌉ (see capacity_of); 0: no limit.
  double capacity = 0;
  Scheme scheme = Scheme::packed;
  /// "5:2,7:0": first choice of token 5 is E2, of token 7 E0; for `custom`. Of two moves of a token
  /// the later one counts.
  std::string custom = {};
  std::int64_t seed = 1;

  int tile() const { return 8 << tile_choice; }
};

/// A change of the routing `custom`: the token's first choice.
struct Move {
  int token = 0, expert = 0;
};
/// Those listed in `custom`, in order; none in other routings.
std::vector<Move> moves_of(const Params& params);

/// The knobs, bound to Params: tokens experts top_k routing skew tile capacity scheme custom seed.
/// top_k is at most experts, and custom names tokens and experts that exist.
const lab::KnobTable<Params>& knob_table();

/// The most slots that an expert takes; −1: no limit.
int capacity_of(const Params& params);

// The picture's experts are small, so that 65536 tokens stay quick under emulation: kHidden numbers
// a token in, kWidth out. The bench uses real sizes.
inline constexpr int kHidden = 16;
inline constexpr int kWidth = 16;
/// The first tokens whose every number is kept in the trace; the counts are of all.
inline constexpr int kShownTokens = 256;
/// Tiles kept in the trace, of all that ran.
inline constexpr int kShownTiles = 2048;

/// The kernels' steps, in order.
enum class Step { score, top_k, count, offset, permute, multiply, combine };
constexpr auto names_of(Step) {
  return std::to_array<std::string_view>(
      {"score", "top-k", "count", "offset", "permute", "multiply", "combine"});
}
inline constexpr int kSteps = static_cast<int>(count_of<Step>());
/// 1-based line of kSourcePath in this build, for each step: whatever a recording says.
std::array<int, kSteps> step_lines();

/// One token's path, as the kernels wrote it. Vectors of top_k elements, best choice first.
struct TokenTrace {
  std::vector<float> logits;       ///< [experts]; empty for more than kMostLogits experts
  std::vector<int> expert;         ///< chosen
  std::vector<float> probability;  ///< softmax over all experts, of the chosen
  std::vector<float> gate;         ///< the same, divided by their sum over the chosen
  std::vector<int> rank;  ///< place among the expert's assignments, by token, then by choice
  std::vector<int> slot;  ///< row in the permuted input; −1: dropped, the expert was full
  float output = 0;       ///< first component of the combined output
  bool operator==(const TokenTrace&) const = default;
};
inline constexpr int kMostLogits = 64;

/// One expert, as counted and laid out on the device.
struct ExpertTrace {
  int wanted = 0;      ///< assignments that the router gave it
  int kept = 0;        ///< of them within its capacity
  int first_slot = 0;  ///< its first row in the permuted input
  int tiles = 0;       ///< that the tensor cores run for it
  int padded = 0;      ///< tiles · tile − kept
  int dropped() const { return wanted - kept; }
  bool operator==(const ExpertTrace&) const = default;
};

/// One tile as the block that ran it recorded it.
struct TileTrace {
  int expert = 0;
  int number = 0;     ///< among the expert's tiles
  int kept = 0;       ///< slots with a token; the rest are padding
  int block = 0;      ///< linear block that ran it
  int processor = 0;  ///< multiprocessor; under emulation the block again
  /// Begin and end on the block's clock. On a GPU: ns since the first block began. Under
  /// emulation: mma instructions that the block has issued before and after.
  double begin = 0, end = 0;
  bool operator==(const TileTrace&) const = default;
};

/// The multiprocessors that the schemes are compared on: one per persistent block of `packed` in the picture's
/// launch.
inline constexpr int kProcessors = 4;
/// The most tiles of a scheme for which all schemes are run side by side.
inline constexpr int kComparedTiles = 256;

/// One scheme's run of the same tokens: its tiles in the order of their numbers, expert by expert.
struct SchemeTrace {
  Scheme scheme = Scheme::packed;
  int blocks = 0;                             ///< launched
  std::vector<int> expert, kept, block, mma;  ///< of each tile; mma: instructions that it took
  std::size_t tiles() const { return expert.size(); }
  bool operator==(const SchemeTrace&) const = default;
};
/// A tile's multiprocessor, and its begin and end in mma instructions.
struct QueuedTile {
  int tile = 0, processor = 0;
  int begin = 0, end = 0;
};
/// A scheme's tiles on kProcessors multiprocessors, each with one block at a time: blocks start in the order of
/// their numbers, each on the first free multiprocessor.
std::vector<QueuedTile> queued(const SchemeTrace& scheme);

/// All that the picture is drawn from.
struct Trace {
  int tokens = 0, experts = 0, top_k = 0, tile = 0;
  int capacity = -1;  ///< slots; −1: no limit
  Routing routing = Routing::balanced;
  Scheme scheme = Scheme::packed;
  std::vector<TokenTrace> token;    ///< the first kShownTokens
  std::vector<ExpertTrace> expert;  ///< all
  std::vector<TileTrace> tiles;     ///< the first kShownTiles of `tiles_run`, by begin, then block
  std::int64_t tiles_run = 0;
  int blocks = 0;          ///< of the grouped product's launch
  std::string clock_unit;  ///< "ns" or "mma"
  /// Every scheme on these tokens, in the order of Scheme; only the run's own where one of them has too many
  /// tiles; none in older recordings.
  std::vector<SchemeTrace> schemes;
  std::array<int, kSteps> lines = step_lines();

  /// The number of schemes run on the same tokens: all, or only the chosen one where padding takes too many tiles.
  int schemes_run() const;
  std::int64_t kept() const;
  std::int64_t dropped() const;
  /// Slots that the tensor cores run: tiles_run · tile.
  std::int64_t slots() const { return tiles_run * tile; }
  /// Kept assignments of all slots; 1 where no slot runs.
  double useful() const;
  /// The experts with the most of a count, such as &ExpertTrace::kept: several where they tie.
  std::vector<int> with_most(int ExpertTrace::*count) const;
  /// The token and choice in a slot of the permuted input, of those shown: {−1, −1} if none.
  struct Assignment {
    int token = -1, choice = -1;
  };
  Assignment in_slot(int slot) const;
  bool operator==(const Trace&) const = default;
};

/// The name in sentences for some of `of` experts: "E0", "E0 and E3", "5 of 8 experts", "all 4 experts".
std::string experts_text(const std::vector<int>& experts, int of);
/// "E0 is busiest, with 20 tokens", "E0 and E3 are busiest, with 8 tokens each", "all 4 experts have 8
/// tokens each".
std::string busiest_text(const Trace& trace);

/// The trace as tables of the report.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::moe_routing

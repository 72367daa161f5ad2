#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/decode/cost.hpp"
#include "kernels/attention/decode/params.hpp"
#include "kernels/attention/kv_cache/paged/problem.hpp"
#include "kernels/lessons.hpp"

/// \file
/// A run of the lesson on decoding: one launch of the kernel, tile by tile.
namespace tilestep::decode {

/// The kind of a step of the picture: first tiles, then the merge, then a look back.
enum class Act {
  read,   ///< each block has taken one more tile
  merge,  ///< the parts of each request's answer are merged
  time,   ///< when the blocks were at work
};
constexpr auto names_of(Act) {
  return std::to_array<std::string_view>({"read", "merge", "time"});
}

/// What ran, and which part of the whole.
struct Shape {
  Scheme scheme = Scheme::gqa;
  int heads = 1, cached_heads = 1;
  int key = 32, value = 32;
  KvType kv_dtype = KvType::bf16;
  Scales scales = Scales::token;
  int tile = 16;    ///< tokens that a block takes at a time
  std::string cut;  ///< the part of the whole that ran; empty: all
  bool operator==(const Shape&) const = default;
};

/// A block's unit of work, and a tile's effect on the chosen head of the chosen request, as the kernel records them.
using paged::ItemTrace, paged::StepTrace;

/// An item's result for the chosen head.
struct PartTrace {
  int item = 0;
  float m = 0, l = 0, o = 0;
  float weight = 1;  ///< in the merge, e^(m_part − m); a single part is not merged
  bool operator==(const PartTrace&) const = default;
};

/// Bytes of a tensor that the kernel requested.
struct LedgerRow {
  std::string tensor;
  std::int64_t loaded = 0, stored = 0;  ///< traced
  std::int64_t formula = 0;             ///< loaded and stored, by formula
  bool operator==(const LedgerRow&) const = default;
};

/// The result of a broken run.
struct BrokenResult {
  std::string outcome;          ///< in words; empty: nothing was broken
  int wrong = 0, elements = 0;  ///< numbers of O
  std::int64_t more_bytes = 0;  ///< requested than by the sound kernel
  bool operator==(const BrokenResult&) const = default;
};

struct Trace {
  Shape shape;
  Break broken = Break::none;
  std::vector<int> tokens;  ///< of each request
  std::vector<ItemTrace> items;
  int blocks = 0;
  std::string clock_unit;                    ///< "ns" or "items"
  int request = 0, head = 0, component = 0;  ///< chosen
  std::vector<StepTrace> steps;              ///< of the chosen row, by item, then tile
  std::vector<PartTrace> parts;              ///< of the chosen row, by split
  bool merged = false;                       ///< some request had more than one part
  float o = 0, lse = 0;                      ///< the chosen row's answer
  double exact_o = 0, exact_lse = 0;
  std::vector<LedgerRow> ledger;
  BrokenResult result;

  /// Rounds of tiles: the most that a block took.
  int rounds() const;
  /// The step at which the answer is complete: the merge, or the last round.
  int answered() const;
  /// The picture's steps: the rounds, the merge, and one for the clocks.
  int length() const { return answered() + 1; }
  Act act_of(int step) const;  ///< step from 1
  /// The picture's step from which on an item's tile is known, and the item's part.
  int step_of(const ItemTrace& item, int tile) const;
  int end_of(const ItemTrace& item) const { return step_of(item, item.tiles - 1); }
  std::int64_t asked() const;
  /// Of a step, or of a part.
  template <class Of>
  const ItemTrace& item_of(const Of& of) const {
    return items[static_cast<std::size_t>(of.item)];
  }
  int followed_tokens() const { return tokens[static_cast<std::size_t>(request)]; }

  /// Whether `begin` and `end` of the items are times.
  bool clocked() const { return clock_unit == "ns"; }
  /// Begin and end of a block's work on an item, in `clock_unit`; under emulation in tiles.
  struct Worked {
    double begin = 0, end = 0;
  };
  Worked worked(const ItemTrace& item) const;
  /// The launch's duration, in the same unit, and the average number of blocks at work.
  double launch_end() const;
  double mean_at_work() const;
  bool operator==(const Trace&) const = default;
};

/// The trace as tables.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::decode

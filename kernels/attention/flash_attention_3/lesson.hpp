#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "kernels/attention/flash_attention_3/params.hpp"

/// \file
/// All data that the lesson's picture is drawn from. It was written by the explained kernels, unless noted otherwise;
/// reference values are in double.

namespace tilestep::flash_attention_3 {

// ---- lanes -----------------------------------------------------------------------------------------------

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
  int lane = 0;  ///< 0: the thread that copies; 1, 2, 3: a consumer (warpgroup); −1: the observer
  int turn = 0;  ///< which of the block's tiles of queries, from 0 (flash-3 takes several)
  int q_tile = 0;  ///< its number in the head
  int head = 0;
  int k_tile =
      0;  ///< −1: none (Q, O). Of a turn the tile whose products of S are issued in it; of a last turn the
  ///< tile of its O += P V
  std::int64_t clock = 0;  ///< from the first event on, in Trace::clock_unit
  bool operator==(const Event&) const = default;
};

/// A lane's activity between two events: derived from the events alone.
enum class Activity {
  waits,    ///< for K, V, Q or its turn (the producer: for a stage to be free)
  copies,   ///< K or V in flight: from the producer's issue until it has arrived
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

// ---- all of it --------------------------------------------------------------------------------------------

/// Marked lines of the kernels' source, by the words of their marks.
enum class Mark {
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
  weights,
  releases_k,
  issues_o,
  done_o,
  rescales,
  releases_v,
};
constexpr auto names_of(Mark) {
  return std::to_array<std::string_view>({"waits-empty", "copies", "full", "waits-k", "waits-v",
                                          "takes-turn", "passes-turn", "issues-s", "done-s",
                                          "masks", "maximum", "weights", "releases-k", "issues-o",
                                          "done-o", "rescales", "releases-v"});
}
inline constexpr std::size_t kMarks = 17;
inline constexpr std::string_view kSourcePath = "kernels/attention/flash_attention_3/flash_3.cu";
std::array<int, kMarks> mark_lines();

/// Its clock_unit is "words" under emulation, and "cycles" on a GPU.
struct Trace : Matrix {
  Rung runs = Rung::pipelined;
  std::vector<Step> steps;  ///< one per visited tile of keys
  Answer answer;
  std::vector<Event> events;  ///< of the chosen block
  std::array<int, kMarks> lines{};
  bool operator==(const Trace&) const = default;
};

/// The lanes' activities, by lane, then by begin.
std::vector<Span> spans_of(const Trace& trace);

nlohmann::json to_json(const Trace& trace);
/// Throws Error saying which member is missing or wrong.
Trace trace_from_json(const nlohmann::json& json);

/// The report's tables that repeat a trace: `steps`, `ledger`, `blocks`, `lanes`, `answer`.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::flash_attention_3

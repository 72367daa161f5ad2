#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/systems/parallelism/kernels.hpp"
#include "kernels/systems/parallelism/plan.hpp"

/// The lesson on many GPUs: an all-reduce chunk by chunk, by kernels that store into each other's memory; a layer cut over
/// ranks in seven ways, forward and backward, with the bytes that each cut sends and the memory that it takes; what a
/// pipeline leaves idle; and a plan that says bytes and times ahead.
namespace tilestep::parallelism {

inline constexpr std::string_view kSourcePath = "kernels/systems/parallelism/collectives.cu";

struct Params {
  Algorithm algorithm = Algorithm::ring;
  int ranks = 4;
  int message = 1024;  ///< bytes of each rank
  Cut cut = Cut::tensor;
  Schedule schedule = Schedule::one_f_one_b;
  int microbatches = 4;
  Link link = Link::nvlink;
  int tokens = 8192;  ///< of the planned step
  Break broken = Break::none;
  std::int64_t seed = 1;
};

const lab::KnobTable<Params>& knob_table();

enum class Phase { send, arrive };
constexpr auto names_of(Phase) {
  return std::to_array<std::string_view>({"send", "arrive"});
}
inline constexpr int kPhases = static_cast<int>(count_of<Phase>());

/// A rank sends a chunk at a beat.
struct Sent {
  int beat = 0, from = 0, to = 0;
  int chunk = 0;  ///< −1: all
  bool operator==(const Sent&) const = default;
};
/// A rank that waited in vain.
struct Waits {
  int rank = 0, call = 0, from = 0;
  int other_call = -1;  ///< where the other rank waits; −1: it does not
  bool operator==(const Waits&) const = default;
};
struct Outcome {
  std::string text;  ///< empty: nothing was broken
  int wrong = 0, elements = 0;
  bool operator==(const Outcome&) const = default;
};
/// A collective of the cut layer, with the bytes that each rank stored in others' memory.
struct CutCall {
  std::string name;
  Op op = Op::all_reduce;
  bool backward = false;
  std::vector<double> bytes;  ///< by rank
  bool operator==(const CutCall&) const = default;
};

struct Trace {
  Algorithm algorithm = Algorithm::ring;
  Break broken = Break::none;
  int ranks = 4, message = 1024;
  std::vector<Sent> sent;
  /// How often each rank's numbers are in a chunk, in octal digits, rank 0's last; −1: no number. From before the first
  /// beat on, by beat, rank and chunk.
  std::vector<int> held;
  std::vector<int> used;      ///< the same of what each rank went on with, by rank and chunk
  std::vector<double> links;  ///< bytes from rank to rank
  std::vector<Waits> waits;
  Outcome outcome;

  Cut cut = Cut::tensor;
  std::vector<double> memory;          ///< bytes by kind and rank, as they were allocated
  std::vector<CutCall> calls;          ///< in order
  double cut_error = 0;                ///< largest error over its bound
  int cut_equal = 0, cut_numbers = 0;  ///< outputs with the one rank's very bits, of so many

  Schedule schedule = Schedule::one_f_one_b;
  int microbatches = 4;
  std::vector<Slot> slots;

  Link link = Link::nvlink;
  int tokens = 8192;

  int beats() const { return beats_of(algorithm, ranks); }
  int cut_step() const { return beats() + 1; }
  int pipeline_step() const { return beats() + 2; }
  int length() const { return beats() + 3; }
  int held_at(int beat, int rank, int chunk) const {
    return held[static_cast<std::size_t>((beat * ranks + rank) * ranks + chunk)];
  }
  int used_at(int rank, int chunk) const {
    return used[static_cast<std::size_t>(rank * ranks + chunk)];
  }
  double link_at(int from, int to) const {
    return links[static_cast<std::size_t>(from * ranks + to)];
  }
  bool operator==(const Trace& other) const;
};
/// How often a rank's numbers are in a sum, by its marks.
constexpr int times_in(int marks, int rank) {
  return marks < 0 ? 0 : (marks >> (3 * rank)) & 7;
}
/// The marks of a sum of all ranks.
constexpr int all_of_ranks(int ranks) {
  int marks = 0;
  for (int rank = 0; rank < ranks; ++rank) marks |= 1 << (3 * rank);
  return marks;
}

std::vector<lab::Table> tables_of(const Trace& trace);
/// 1-based lines of kSourcePath: of a send, of an addition, of a send of sums.
std::array<int, 3> step_lines();

}  // namespace tilestep::parallelism

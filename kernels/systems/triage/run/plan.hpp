#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/names.hpp"

/// \file
/// The program under diagnosis as data: faults that a plan switches on, the fixes that switch them off, what a diagnosis
/// can say, and which faults a case hides.
namespace tilestep::triage {

/// What slows a decode step; none changes its numbers.
enum class Fault {
  strided,    ///< out: weights stored by columns, read by rows
  unaligned,  ///< qkv: rows of weights are an odd number of elements apart
  apart,      ///< norms and residuals as many small kernels, each launched on its own
  sync,       ///< the host reads a result after route and after each layer
  padding,    ///< the batch is padded to the largest bucket
  fp32,       ///< qkv: weights stored in FP32
  twice,      ///< attend: two sets of blocks read the whole cache
  occupancy,  ///< attend: shared memory leaves room for one block
  straggler,  ///< route: all tokens go to one expert
  anew,       ///< each step captures and instantiates its graph
  unfused,    ///< head: INT8 weights are expanded to memory first
  rare        ///< every fourth step the cache is moved
};
inline constexpr int kFaults = 12;
/// As a diagnosis names them.
constexpr auto names_of(Fault) {
  return std::to_array<std::string_view>({"strided-read", "scalar-fallback", "many-small-kernels",
                                          "host-sync", "padded-batch", "fp32-weights",
                                          "cache-read-twice", "low-occupancy", "one-busy-expert",
                                          "graph-made-anew", "unfused-dequant", "rare-kernel"});
}

/// Which faults are on; and whether the norm is the faster kernel, which is no fault.
struct Plan {
  std::bitset<kFaults> faults;
  bool quick_norm = false;
  bool has(Fault fault) const { return faults[static_cast<std::size_t>(fault)]; }
  Plan with(Fault fault) const {
    Plan other = *this;
    other.faults.set(static_cast<std::size_t>(fault));
    return other;
  }
  Plan without(Fault fault) const {
    Plan other = *this;
    other.faults.reset(static_cast<std::size_t>(fault));
    return other;
  }
  bool operator==(const Plan&) const = default;
};
/// "sound", or the faults' names with + between, and "+quick-norm": the key of recorded rows.
std::string key_of(const Plan& plan);

/// How the host has a step done.
enum class Submission { graph, eager, waiting, anew };
constexpr auto names_of(Submission) {
  return std::to_array<std::string_view>(
      {"graph, replayed", "launch by launch", "launch by launch, with waits", "graph, made anew"});
}
Submission submission_of(const Plan& plan);

/// The operators of a step, in order.
enum class Op {
  embed,
  norm,
  qkv,
  store,
  attend,
  merge,
  out,
  route,
  up,
  down,
  combine,
  dequant,
  head,
  sample,
  move
};
inline constexpr int kOps = 15;
constexpr auto names_of(Op) {
  return std::to_array<std::string_view>({"embed", "norm", "qkv", "store", "attend", "merge", "out",
                                          "route", "up", "down", "combine", "dequant", "head",
                                          "sample", "move"});
}

/// What limits the step, as a diagnosis says it. The first value of these three: nothing is said yet.
enum class Bottleneck { open, memory, latency, host, work };
constexpr auto names_of(Bottleneck) {
  return std::to_array<std::string_view>({"open", "memory", "latency", "host", "work"});
}
/// The operators that a diagnosis can name.
enum class Suspect { open, step, norm, qkv, attend, out, route, experts, head, move };
constexpr auto names_of(Suspect) {
  return std::to_array<std::string_view>(
      {"open", "the step", "norm", "qkv", "attend", "out", "route", "experts", "head", "move"});
}
/// Whether kernels of an operator belong to a suspect.
bool covers(Suspect suspect, Op op);
/// A fault, as a diagnosis names it.
enum class Cause {
  open,
  strided,
  unaligned,
  apart,
  sync,
  padding,
  fp32,
  twice,
  occupancy,
  straggler,
  anew,
  unfused,
  rare
};
constexpr auto names_of(Cause) {
  return std::to_array<std::string_view>(
      {"open", "strided-read", "scalar-fallback", "many-small-kernels", "host-sync", "padded-batch",
       "fp32-weights", "cache-read-twice", "low-occupancy", "one-busy-expert", "graph-made-anew",
       "unfused-dequant", "rare-kernel"});
}
/// What is changed: one for each fault, in their order, and a faster norm.
enum class Fix {
  none,
  transpose_weights,
  align_rows,
  fuse_and_capture,
  keep_on_device,
  fit_the_bucket,
  use_bf16,
  share_the_read,
  free_shared_memory,
  balance_experts,
  replay_the_graph,
  fuse_the_dequant,
  skip_the_move,
  faster_norm
};
constexpr auto names_of(Fix) {
  return std::to_array<std::string_view>(
      {"none", "transpose-weights", "align-rows", "fuse-and-capture", "keep-on-device",
       "fit-the-bucket", "use-bf16", "share-the-read", "free-shared-memory", "balance-experts",
       "replay-the-graph", "fuse-the-dequant", "skip-the-move", "faster-norm"});
}
inline constexpr int kFixes = 14;
/// The fault that a fix takes away; nothing for none and the faster norm.
std::optional<Fault> fault_of(Fix fix);
Fix fix_of(Fault fault);
/// The plan after a fix. One that does not fit changes nothing.
Plan fixed(const Plan& plan, Fix fix);

/// What a diagnosis has to say of a fault.
Bottleneck bottleneck_of(Fault fault);
bool names_operator(Fault fault, Suspect suspect);
Suspect suspect_of(Fault fault);

/// The cases: numbers, which give nothing away. `mixed` hides two faults, which the seed chooses.
enum class Case {
  one,
  two,
  three,
  four,
  five,
  six,
  seven,
  eight,
  nine,
  ten,
  eleven,
  twelve,
  mixed
};
constexpr auto names_of(Case) {
  return std::to_array<std::string_view>({"case-1", "case-2", "case-3", "case-4", "case-5",
                                          "case-6", "case-7", "case-8", "case-9", "case-10",
                                          "case-11", "case-12", "mixed"});
}
inline constexpr int kCases = 12;
/// The complaint that a case begins with.
std::string_view complaint_of(Case which);
/// What is hidden. `seed` is that of mixed cases.
Plan plan_of(Case which, std::int64_t seed);
/// All pairs that a mixed case can hide.
const std::vector<Plan>& mixtures();

/// What one can look at.
enum class Instrument { timeline, kernels, shapes, counters, roofline, sectors, gaps, queue };
constexpr auto names_of(Instrument) {
  return std::to_array<std::string_view>(
      {"timeline", "kernels", "shapes", "counters", "roofline", "sectors", "gaps", "queue"});
}
inline constexpr int kInstruments = 8;
inline constexpr int kProbes = 8;  ///< a learner has so many looks
inline constexpr int kLoop = 4;    ///< steps of the serving loop; the last is every fourth
inline constexpr int kUsualStep = 2;

/// A look at a step of the loop, from 1.
struct Probe {
  Instrument instrument = Instrument::timeline;
  int step = kUsualStep;
  bool operator==(const Probe&) const = default;
};
/// "timeline,kernels:4": nothing for a text of another form, for more than kProbes, and for a probe twice. Empty: none.
std::optional<std::vector<Probe>> probes_of(std::string_view text);
std::string text_of(const std::vector<Probe>& probes);

}  // namespace tilestep::triage

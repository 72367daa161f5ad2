#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/knob.hpp"
#include "kernels/base/simt/stream.hpp"
#include "kernels/lessons.hpp"
#include "kernels/systems/launches/dispatch.hpp"
#include "kernels/systems/launches/kernels.hpp"

/// The lesson on launches: what a host submits and a device works on, for decode steps of a small model as a stream of
/// kernels, as a graph, as graphs for buckets of batch sizes, and as one persistent kernel; then what a shape costs.
namespace tilestep::launches {

/// The kernel sources that the picture shows.
inline constexpr std::string_view kStepSource = "kernels/systems/launches/step.cu",
                                  kPersistentSource = "kernels/systems/launches/persistent.cu";

enum class Mode { eager, graph, bucketed, persistent };
constexpr auto names_of(Mode) {
  return std::to_array<std::string_view>({"eager", "graph", "bucketed", "persistent"});
}

/// A mistake of the host's.
enum class Break {
  none,
  stale_pointer,       ///< the tokens' array is replaced after a graph has captured its address
  missing_dependency,  ///< act does not wait for up, which is in another stream
  host_sync            ///< the host waits for every launch
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>(
      {"none", "stale-pointer", "missing-dependency", "host-sync"});
}

inline constexpr int kMostLayers = 4, kMostSteps = 6, kMostBuckets = 4, kMostSide = 8192;

struct Params {
  Mode mode = Mode::eager;
  int layers = 2;
  std::string batches = "3,2,3";  ///< tokens of the decode steps, one after another
  std::string buckets = "1,2,4";
  int fallback = 0;  ///< layers, from the last, whose gate is not aligned
  int m = 300, n = 4096, k = 4096;
  Break broken = Break::none;
  std::int64_t seed = 1;
};
const lab::KnobTable<Params>& knob_table();
/// Numbers in a text of numbers with commas between; empty: it is none.
std::vector<int> list_of(std::string_view text);

/// The operations of a step.
enum class Op { embed, norm, gate, up, act, down, add };
constexpr auto names_of(Op) {
  return std::to_array<std::string_view>({"embed", "norm", "gate", "up", "act", "down", "add"});
}
inline constexpr int kLayerOps = 6;  ///< without the embedding
/// The launches of a step.
constexpr int launches_of(int layers) {
  return 1 + kLayerOps * layers;
}
/// The place of an operation in a step: 0 for the embedding.
constexpr int place_of(Op op, int layer) {
  return op == Op::embed ? 0 : 1 + kLayerOps * layer + static_cast<int>(op) - 1;
}
constexpr Op op_at(int place) {
  return place == 0 ? Op::embed : static_cast<Op>((place - 1) % kLayerOps + 1);
}
constexpr int layer_at(int place) {
  return place == 0 ? 0 : (place - 1) / kLayerOps;
}
/// The label of a launch: "gate 2"; and of the persistent kernel's.
std::string label_at(int place);
inline constexpr std::string_view kWholeStep = "the whole step";
/// 1-based lines of the sources in this build: of kStepSource for each operation, of kPersistentSource for its phases.
std::array<int, 7> op_lines();
std::array<int, kPhases> phase_lines();

/// A call of the host. A beat is a call, or a moment in which the host waits: order, not time.
struct CallTrace {
  simt::CallKind kind = simt::CallKind::launch;
  int beat = 1;
  int stream = 0;
  std::string what;       ///< "gate 1", "event 2", "graph 1"
  bool captured = false;  ///< it became a node, and the device did nothing
  double begin_us = 0,
         end_us = 0;  ///< on a GPU, by the host's clock, from the section's first call on
  bool operator==(const CallTrace&) const = default;
};
/// A launch or copy that the device has done.
struct WorkTrace {
  int call = 0;  ///< that submitted it
  int beat = 1;
  int stream = 0;
  int place = -1;  ///< of its operation in the step; −1: a copy, or the whole step
  std::string what, kernel;
  std::vector<int> after;           ///< the work that it waited for
  bool wrong = false;               ///< it is named by a finding
  double begin_us = 0, end_us = 0;  ///< on a GPU, by the device's clock
  bool operator==(const WorkTrace&) const = default;
};
/// A mistake, named by the calls, at the beat from which it can be seen.
struct FindingTrace {
  int beat = 1;
  std::string text;
  bool operator==(const FindingTrace&) const = default;
};
/// A launch in a graph, as captured last.
struct NodeTrace {
  int beat = 1;  ///< of its capture
  int graph = 0;
  int place = 0;
  int stream = 0;
  std::string what, uses;  ///< "reads h, gain; writes n"
  bool operator==(const NodeTrace&) const = default;
};

/// How the host had a decode step done.
enum class How { launches, captured, replayed, updated, persistent, no_bucket };
constexpr auto names_of(How) {
  return std::to_array<std::string_view>(
      {"launches", "captured", "replayed", "updated", "persistent", "no bucket"});
}
struct StepTrace {
  int batch = 1;
  int rows = 1;  ///< that were computed: the bucket's
  How how = How::launches;
  int first_beat = 1, last_beat = 1;
  int calls = 0, kernels = 0;
  int wrong = 0;  ///< numbers of h
  bool operator==(const StepTrace&) const = default;
};

/// The product of the shape's knobs.
struct ShapeTrace {
  int m = 1, n = 1, k = 1;
  Kernel kernel = Kernel::tensor;
  std::string why;
  Tiling tiling() const { return tiling_of(m, n); }
  bool operator==(const ShapeTrace&) const = default;
};

struct Trace {
  Mode mode = Mode::eager;
  Break broken = Break::none;
  int layers = 1, fallback = 0;
  int beats = 0;
  bool timed = false;    ///< calls and work have times
  double clocks_us = 0;  ///< how far the clocks of host and device may be apart
  double span_us = 0;    ///< of the longest step, rounded up
  std::vector<CallTrace> calls;
  std::vector<WorkTrace> works;
  std::vector<NodeTrace> nodes;
  std::vector<StepTrace> steps;
  std::vector<FindingTrace> findings;
  std::vector<float> phases;  ///< persistent: the first number of each phase of the last step
  ShapeTrace shape;
  std::array<int, 7> lines = op_lines();
  std::array<int, kPhases> persistent_lines = phase_lines();

  /// The picture's steps: beats, then the shape's tiles, its waves, and the dispatcher's choice.
  int length() const { return beats + 3; }
  int tiles_step() const { return beats + 1; }
  int waves_step() const { return beats + 2; }
  int dispatch_step() const { return beats + 3; }
  /// The decode step that a beat belongs to.
  int step_of(int beat) const;
  bool operator==(const Trace& other) const = default;
};

std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::launches

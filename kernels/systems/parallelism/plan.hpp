#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/systems/parallelism/kernels.hpp"

/// What can be said of a cut before it runs: memory of a rank, bytes of each collective, the slots of a pipeline, and from
/// them the time of a step. All by formulas; a run is compared with them, number for number.
namespace tilestep::parallelism {

/// What is divided among ranks.
enum class Cut { data, fsdp, tensor, sequence, pipeline, expert, context };
constexpr auto names_of(Cut) {
  return std::to_array<std::string_view>(
      {"data", "fsdp", "tensor", "sequence", "pipeline", "expert", "context"});
}
/// The order in which a stage of a pipeline does its microbatches.
enum class Schedule {
  gpipe,        ///< all forward, then all backward
  one_f_one_b,  ///< backward as soon as it can
  interleaved   ///< the same, with two stages a rank
};
constexpr auto names_of(Schedule) {
  return std::to_array<std::string_view>({"gpipe", "1f1b", "interleaved"});
}
/// What joins the ranks, with the bytes that its datasheet gives a rank each way.
enum class Link { nvlink, pcie, network };
constexpr auto names_of(Link) {
  return std::to_array<std::string_view>({"nvlink", "pcie", "network"});
}
/// GB/s each way: NVLink 4 (H100, H200), PCIe 5.0 x16, one 400 Gbit/s port.
constexpr double gb_per_s(Link link) {
  return link == Link::nvlink ? 450 : link == Link::pcie ? 64 : 50;
}
/// What a rank's memory holds.
enum class Kind { parameters, gradients, optimizer, activations, gathered };
constexpr auto names_of(Kind) {
  return std::to_array<std::string_view>(
      {"parameters", "gradients", "optimizer", "activations", "gathered"});
}
inline constexpr int kKinds = 5;

/// A model of layers of attention and a two-layer MLP, each with a residual, without norms.
struct ModelShape {
  int layers = 2, sequences = 8, length = 16;
  int heads = 8, dim = 2, inner = 32;
  int experts = 0;  ///< 0: one MLP for all tokens

  std::int64_t width() const { return std::int64_t{heads} * dim; }
  std::int64_t tokens() const { return std::int64_t{sequences} * length; }
  /// Numbers of a layer's attention, and of an MLP.
  std::int64_t attention() const { return 4 * width() * width(); }
  std::int64_t mlp() const { return 2 * width() * inner; }
  std::int64_t layer() const { return attention() + mlp() * (experts > 0 ? experts : 1); }
};
/// The model that a run cuts: small, with as many layers as a pipeline has stages.
ModelShape small_model(Cut cut, int ranks, Schedule schedule);

using Counts = std::array<std::array<int, kMostRanks>, kMostRanks>;

/// A collective, with the bytes that each rank stores in others' memory.
struct PlannedCall {
  std::string name;
  Op op = Op::all_reduce;
  bool backward = false;
  std::vector<double> bytes;
};
struct CutPlan {
  std::vector<double> memory;  ///< bytes by kind and rank
  std::vector<PlannedCall> calls;
  double memory_at(Kind kind, int ranks, int rank) const {
    return memory[static_cast<std::size_t>(static_cast<int>(kind) * ranks + rank)];
  }
};
/// `routed`: tokens that each rank has for the experts of each. FP32.
CutPlan plan_of(Cut cut, const ModelShape& model, int ranks, Schedule schedule, int microbatches,
                const Counts& routed);

/// A microbatch in a stage of a pipeline. A rank's layers take 2 units of time forward and 4 backward.
struct Slot {
  int rank = 0, stage = 0, microbatch = 0;
  bool backward = false;
  int begin = 0, end = 0;
  bool operator==(const Slot&) const = default;
};
constexpr int stages_of(Schedule schedule, int ranks) {
  return schedule == Schedule::interleaved ? 2 * ranks : ranks;
}
/// All slots, by begin.
std::vector<Slot> pipeline_of(Schedule schedule, int ranks, int microbatches);
/// The share of the ranks' time in which they do nothing.
double bubble_of(const std::vector<Slot>& slots, int ranks);
/// Microbatches of a rank that are forward and not yet backward, at most.
int in_flight(const std::vector<Slot>& slots, int rank);

/// A planned step of a large model: bytes a rank, and seconds if nothing is hidden.
struct PlannedStep {
  Cut cut = Cut::data;
  std::array<double, kKinds> bytes = {};
  double compute = 0, wire = 0, idle = 0;
  double seconds() const { return compute + wire + idle; }
  double memory() const;
};
/// The planned model: 32 layers, 4096 wide, 32 heads, an MLP of 16384; with experts 8 of 4096. `tokens` are of 8
/// sequences; where there are more ranks, there are as many sequences.
ModelShape large_model(Cut cut, int ranks, int tokens);
/// The step of a model, with the operations and bytes a second of a rank.
PlannedStep planned_with(Cut cut, const ModelShape& model, int ranks, Schedule schedule,
                         int microbatches, double flops_per_s, double bytes_per_s);
inline constexpr double kTeraflops = 400;  ///< of a rank, as planned
PlannedStep planned(Cut cut, int ranks, int tokens, Schedule schedule, int microbatches, Link link);

}  // namespace tilestep::parallelism

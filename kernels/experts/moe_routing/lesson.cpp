#include "kernels/experts/moe_routing/lesson.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/base/lab/ladder.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/experts/moe_routing/bench/bench.hpp"
#include "kernels/experts/moe_routing/kernels.hpp"
#include "kernels/experts/moe_routing/run/report.hpp"

namespace tilestep::moe_routing {
namespace {

RouteShape route_shape(const Params& params) {
  return {params.tokens,       params.experts, params.top_k,
          capacity_of(params), params.tile(),  params.scheme};
}

void fill_tiles(Outcome& outcome, const std::vector<TileRun>& runs) {
  Trace& trace = outcome.trace;
  unsigned long long origin = runs.empty() ? 0 : runs.front().begin;
  for (const TileRun& run : runs) origin = std::min(origin, run.begin);
  for (int e = 0; e < trace.experts; ++e) {
    const ExpertTrace& expert = trace.expert[static_cast<std::size_t>(e)];
    for (int number = 0; number < expert.tiles; ++number) {
      const auto i =
          static_cast<std::size_t>(outcome.device.first_tile[static_cast<std::size_t>(e)] + number);
      TileTrace tile;
      tile.expert = e;
      tile.number = number;
      tile.kept = std::clamp(expert.kept - number * trace.tile, 0, trace.tile);
      tile.block = runs[i].block;
      tile.processor = runs[i].processor;
      tile.begin = static_cast<double>(runs[i].begin - origin);
      tile.end = static_cast<double>(runs[i].end - origin);
      outcome.tiles.push_back(tile);
    }
  }
  std::stable_sort(outcome.tiles.begin(), outcome.tiles.end(),
                   [](const TileTrace& a, const TileTrace& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.block < b.block;
                   });
  trace.tiles_run = static_cast<std::int64_t>(outcome.tiles.size());
  const auto shown = std::min<std::size_t>(outcome.tiles.size(), kShownTiles);
  trace.tiles.assign(outcome.tiles.begin(),
                     outcome.tiles.begin() + static_cast<std::ptrdiff_t>(shown));
}

void fill_tokens(Outcome& outcome) {
  const Params& params = outcome.params;
  const Placement& placed = outcome.device;
  for (int t = 0; t < std::min(params.tokens, kShownTokens); ++t) {
    TokenTrace token;
    if (params.experts <= kMostLogits) {
      const auto first =
          outcome.inputs.logits.begin() + static_cast<std::ptrdiff_t>(t) * params.experts;
      token.logits.assign(first, first + params.experts);
    }
    for (int choice = 0; choice < params.top_k; ++choice) {
      const auto i = static_cast<std::size_t>(t) * static_cast<std::size_t>(params.top_k) +
                     static_cast<std::size_t>(choice);
      token.expert.push_back(placed.expert[i]);
      token.probability.push_back(outcome.probability[i]);
      token.gate.push_back(outcome.gate[i]);
      token.rank.push_back(placed.rank[i]);
      token.slot.push_back(placed.slot[i]);
    }
    token.output = outcome.out[static_cast<std::size_t>(t) * kWidth];
    outcome.trace.token.push_back(std::move(token));
  }
}

void fill_experts(Outcome& outcome) {
  const Placement& placed = outcome.device;
  for (std::size_t e = 0; e < placed.wanted.size(); ++e) {
    ExpertTrace expert;
    expert.wanted = placed.wanted[e];
    expert.kept = placed.kept[e];
    expert.first_slot = placed.first_slot[e];
    expert.tiles = placed.first_tile[e + 1] - placed.first_tile[e];
    expert.padded = expert.tiles * outcome.trace.tile - expert.kept;
    outcome.trace.expert.push_back(expert);
  }
}

/// What the tensor cores did during one more launch, where the chip counts that.
void count_tensor_work(Outcome& outcome, simt::Device& device,
                       const std::function<void()>& launch) {
  if (!device.counters().available) return;
  outcome.tensor_pipe = lab::count(device, {"", "", {{simt::metric::kTensorPipe}}}, launch);
  outcome.tensor_instructions =
      lab::count(device, {"", "", {{simt::metric::kTensorInstructions}}}, launch);
}

void run_kernels(Outcome& outcome, simt::Device& device, lab::Progress& progress) {
  const Params& params = outcome.params;
  const Kernels& kernels = kernels_of(device);
  const RouteShape shape = route_shape(params);
  Trace& trace = outcome.trace;
  progress.report(0.2, "routing the tokens");
  Router route(device, shape, outcome.inputs.logits);
  route.run();
  route.download(outcome.device, outcome.probability, outcome.gate);
  fill_experts(outcome);
  progress.check();

  progress.report(0.5, "multiplying the experts' tiles");
  const auto slots = static_cast<std::size_t>(outcome.device.slots());
  const simt::Buffer<std::uint16_t> tokens(device, outcome.inputs.tokens);
  const simt::Buffer<std::uint16_t> weights(device, outcome.inputs.weights);
  simt::Buffer<std::uint16_t> x(device, slots * kHidden);
  simt::Buffer<float> y(device, slots * kWidth);
  simt::Buffer<float> out(device, static_cast<std::size_t>(params.tokens) * kWidth);
  const auto tiles = static_cast<std::size_t>(outcome.device.tiles());
  simt::Trace recording(device, tiles * kTileEntries);
  y.fill(0xFF);
  out.fill(0xFF);
  kernels.permute(device, shape, kHidden, tokens.span(), std::as_const(route.slot).span(),
                  x.span());
  GroupedShape grouped{params.experts,          kHidden,       kWidth, params.tile(),
                       static_cast<int>(slots), params.scheme, 0,      0};
  for (const ExpertTrace& expert : trace.expert) {
    grouped.most_tiles = std::max(grouped.most_tiles, expert.tiles);
  }
  const GroupedArrays arrays{std::as_const(x).span(),
                             weights.span(),
                             y.span(),
                             std::as_const(route.first_slot).span(),
                             std::as_const(route.first_tile).span(),
                             std::as_const(route.kept).span()};
  trace.blocks = kernels.multiply(device, grouped, arrays, recording.tape());
  progress.report(0.7, "combining what the experts gave");
  kernels.combine(device, shape, kWidth, std::as_const(route.gate).span(),
                  std::as_const(route.slot).span(), std::as_const(y).span(), out.span());
  device.synchronize();
  outcome.out = out.download();
  fill_tiles(outcome, tile_runs(recording.download(), tiles));
  fill_tokens(outcome);
  progress.check();
  count_tensor_work(outcome, device, [&] { kernels.multiply(device, grouped, arrays, {}); });
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(gather(params, device, progress));
}

}  // namespace

Router::Router(simt::Device& on, const RouteShape& of, const std::vector<float>& host_logits)
    : device(on), shape(of), logits(on, host_logits) {}

void Router::run() {
  kernels_of(device).route(
      device, shape,
      {logits.span(), expert.span(), probability.span(), gate.span(), rank.span(), slot.span(),
       wanted.span(), kept.span(), first_slot.span(), first_tile.span(), chunk_counts.span()});
  device.synchronize();
}

void Router::download(Placement& placed, std::vector<float>& probabilities,
                      std::vector<float>& gates) const {
  placed.expert = expert.download();
  placed.rank = rank.download();
  placed.slot = slot.download();
  placed.wanted = wanted.download();
  placed.kept = kept.download();
  placed.first_slot = first_slot.download();
  placed.first_tile = first_tile.download();
  probabilities = probability.download();
  gates = gate.download();
}

Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress) {
  Outcome outcome;
  outcome.params = params;
  progress.report(0.05, "making tokens and logits");
  outcome.inputs = make_inputs(params);
  Trace& trace = outcome.trace;
  trace.tokens = params.tokens;
  trace.experts = params.experts;
  trace.top_k = params.top_k;
  trace.tile = params.tile();
  trace.capacity = capacity_of(params);
  trace.routing = params.routing;
  trace.scheme = params.scheme;
  trace.clock_unit = device.can_time() ? "ns" : "mma";
  run_kernels(outcome, device, progress);
  progress.report(0.8, "comparing with the reference");
  outcome.host = reference_placement(params, outcome.inputs.logits);
  progress.check();
  outcome.reference = reference_output(params, outcome.inputs, outcome.host);
  return outcome;
}

/// What of a run is of the GPU that it ran on.
static const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.clock_unit", "its clock"},
                     {"trace.tiles.begin", "its clock"},
                     {"trace.tiles.end", "its clock"},
                     {"trace.tiles.block", "which block was free"},
                     {"trace.tiles.processor", "which processor was free"},
                     {"trace.blocks", "one a processor"},
                     {"tables.tiles.begin", "its clock"},
                     {"tables.tiles.end", "its clock"},
                     {"tables.tiles.block", "which block was free"},
                     {"measurements.busy_share", "its clock"}},
      .any_order = {{"trace.tiles", {"expert", "number"}}, {"tables.tiles", {"expert", "tile"}}},
      .rounding = 0x1p-19,
      .rounding_why =
          "32 times 2^-24, what FP32 rounds by: an mma adds up 16 products in an order of its own, "
          "exp "
          "is within 2 ulp, gates and sums are rounded."};
  return kReplay;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson,
          "Tensor cores work on whole tiles: what counts is how full the experts' tiles are.",
          knob_table(), run, bench_report)
          .with_telling(
              {{"skewed",
                "Most tokens choose E0: it has many full tiles, the last expert one that is nearly "
                "empty.",
                {.routing = Routing::skewed, .skew = 2}},
               {"capacity",
                "The same with a capacity: tokens beyond the busiest expert's limit are dropped.",
                {.routing = Routing::skewed, .skew = 2, .capacity = 1}},
               {"padded",
                "The same as one batched product: every expert gets the slots of the fullest, and "
                "empty slots are multiplied too.",
                {.routing = Routing::skewed, .skew = 2, .scheme = Scheme::padded_to_capacity}},
               {"one-hot",
                "Every token chooses E0: one expert has all the tiles, and packed wastes nothing.",
                {.routing = Routing::one_hot}}})
          .with_trials({{},
                        {.tokens = 50,
                         .experts = 5,
                         .top_k = 2,
                         .routing = Routing::skewed,
                         .skew = 2,
                         .capacity = 1},
                        {.tokens = 33,
                         .experts = 7,
                         .top_k = 3,
                         .routing = Routing::random,
                         .scheme = Scheme::tile_padded},
                        {.tokens = 50,
                         .routing = Routing::skewed,
                         .tile_choice = 1,
                         .scheme = Scheme::padded_to_capacity},
                        {.tokens = 19, .routing = Routing::one_hot},
                        {.tokens = 1}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::moe_routing

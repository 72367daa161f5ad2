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

RouteShape route_shape(const Params& params, Scheme scheme) {
  return {params.tokens, params.experts, params.top_k, capacity_of(params), params.tile(), scheme};
}

/// Tokens in a scheme's layout, and their product.
class Product {
 public:
  /// `route` has run, and the host knows where its tiles begin.
  Product(const Outcome& outcome, const Router& route, const std::vector<int>& first_tile,
          int slots)
      : device_(route.device),
        route_(route),
        first_tile_(first_tile),
        tokens_(route.device, outcome.inputs.tokens),
        weights_(route.device, outcome.inputs.weights),
        x_(route.device, static_cast<std::size_t>(slots) * kHidden),
        y_(route.device, static_cast<std::size_t>(slots) * kWidth),
        recording_(route.device, tiles() * kTileEntries),
        shape_{route.shape.experts, kHidden, kWidth, route.shape.tile, slots,
               route.shape.scheme,  0,       0} {
    y_.fill(0xFF);
    for (std::size_t e = 0; e + 1 < first_tile.size(); ++e) {
      shape_.most_tiles = std::max(shape_.most_tiles, first_tile[e + 1] - first_tile[e]);
    }
    kernels_of(device_).permute(device_, route.shape, kHidden, tokens_.span(), route.slot.span(),
                                x_.span());
  }
  /// Returns the number of blocks launched.
  int multiply(bool recorded = true) {
    const GroupedArrays arrays{
        std::as_const(x_).span(), weights_.span(),          y_.span(),
        route_.first_slot.span(), route_.first_tile.span(), route_.kept.span()};
    return kernels_of(device_).multiply(device_, shape_, arrays,
                                        recorded ? recording_.tape() : simt::Tape());
  }
  simt::Span<const float> y() const { return y_.span(); }
  std::size_t tiles() const { return static_cast<std::size_t>(first_tile_.back()); }
  std::vector<TileRun> tile_runs() const { return moe_routing::tile_runs(recording_, tiles()); }

 private:
  simt::Device& device_;
  const Router& route_;
  const std::vector<int>& first_tile_;
  const simt::Buffer<std::uint16_t> tokens_, weights_;
  simt::Buffer<std::uint16_t> x_;
  simt::Buffer<float> y_;
  simt::Trace recording_;
  GroupedShape shape_;
};

SchemeTrace scheme_trace(const Trace& trace, Scheme scheme, int blocks,
                         const std::vector<int>& first_tile, const std::vector<TileRun>& runs) {
  SchemeTrace made{scheme, blocks, {}, {}, {}, {}};
  std::size_t e = 0;
  for (int i = 0; i < std::min<int>(first_tile.back(), kShownTiles); ++i) {
    while (i >= first_tile[e + 1]) ++e;
    const TileRun& run = runs[static_cast<std::size_t>(i)];
    made.expert.push_back(static_cast<int>(e));
    made.kept.push_back(
        std::clamp(trace.expert[e].kept - (i - first_tile[e]) * trace.tile, 0, trace.tile));
    made.block.push_back(run.block);
    made.mma.push_back(run.mma);
  }
  return made;
}

/// The other schemes' layout and product of the same tokens, where they are few enough to be shown.
void run_other_schemes(Outcome& outcome, simt::Device& device) {
  Trace& trace = outcome.trace;
  if (trace.schemes_run() == 1) return;
  std::vector<SchemeTrace> all;
  for (const Scheme scheme : all_of<Scheme>()) {
    if (scheme == trace.scheme) {
      all.push_back(trace.schemes.front());
      continue;
    }
    Router route(device, route_shape(outcome.params, scheme), outcome.inputs.logits);
    route.run();
    const std::vector<int> first_tile = route.first_tile.download();
    Product product(outcome, route, first_tile, route.first_slot.download().back());
    const int blocks = product.multiply();
    device.synchronize();
    all.push_back(scheme_trace(trace, scheme, blocks, first_tile, product.tile_runs()));
  }
  trace.schemes = std::move(all);
}

void fill_tiles(Outcome& outcome, const std::vector<TileRun>& runs) {
  Trace& trace = outcome.trace;
  unsigned long long origin = runs.empty() ? 0 : runs.front().begin;
  for (const TileRun& run : runs) origin = std::min(origin, run.begin);
  for (int e = 0; e < trace.experts; ++e) {
    const ExpertTrace& expert = trace.expert[static_cast<std::size_t>(e)];
    for (int number = 0; number < expert.tiles; ++number) {
      const int first = outcome.device.first_tile[static_cast<std::size_t>(e)];
      const TileRun& run = runs[static_cast<std::size_t>(first + number)];
      outcome.tiles.push_back({e, number,
                               std::clamp(expert.kept - number * trace.tile, 0, trace.tile),
                               run.block, run.processor, static_cast<double>(run.begin - origin),
                               static_cast<double>(run.end - origin)});
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
    const auto chosen = [&](const auto& all) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(t) * params.top_k;
      return std::decay_t<decltype(all)>(first, first + params.top_k);
    };
    token.expert = chosen(placed.expert);
    token.probability = chosen(outcome.probability);
    token.gate = chosen(outcome.gate);
    token.rank = chosen(placed.rank);
    token.slot = chosen(placed.slot);
    token.output = outcome.out[static_cast<std::size_t>(t) * kWidth];
    outcome.trace.token.push_back(std::move(token));
  }
}

void fill_experts(Outcome& outcome) {
  const Placement& placed = outcome.device;
  for (std::size_t e = 0; e < placed.wanted.size(); ++e) {
    const int tiles = placed.first_tile[e + 1] - placed.first_tile[e], kept = placed.kept[e];
    outcome.trace.expert.push_back(
        {placed.wanted[e], kept, placed.first_slot[e], tiles, tiles * outcome.trace.tile - kept});
  }
}

/// Counts the tensor cores' work in one more launch, where the GPU allows it.
void count_tensor_work(Outcome& outcome, simt::Device& device,
                       const std::function<void()>& launch) {
  if (!device.counters().available) return;
  outcome.tensor_pipe = lab::count(device, {"", "", {{simt::metric::kTensorPipe}}}, launch);
  outcome.tensor_instructions =
      lab::count(device, {"", "", {{simt::metric::kTensorInstructions}}}, launch);
}

void run_kernels(Outcome& outcome, simt::Device& device, lab::Progress& progress) {
  const Params& params = outcome.params;
  Trace& trace = outcome.trace;
  progress.report(0.2, "routing the tokens");
  Router route(device, route_shape(params, params.scheme), outcome.inputs.logits);
  route.run();
  route.download(outcome.device, outcome.probability, outcome.gate);
  fill_experts(outcome);
  progress.check();

  progress.report(0.5, "multiplying the experts' tiles");
  Product product(outcome, route, outcome.device.first_tile, outcome.device.slots());
  simt::Buffer<float> out(device, static_cast<std::size_t>(params.tokens) * kWidth);
  out.fill(0xFF);
  trace.blocks = product.multiply();
  progress.report(0.7, "combining the experts' outputs");
  kernels_of(device).combine(device, route.shape, kWidth, std::as_const(route.gate).span(),
                             std::as_const(route.slot).span(), product.y(), out.span());
  device.synchronize();
  outcome.out = out.download();
  const std::vector<TileRun> runs = product.tile_runs();
  fill_tiles(outcome, runs);
  fill_tokens(outcome);
  trace.schemes = {
      scheme_trace(trace, params.scheme, trace.blocks, outcome.device.first_tile, runs)};
  progress.check();
  run_other_schemes(outcome, device);
  count_tensor_work(outcome, device, [&] { product.multiply(false); });
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

/// The parts of a run that depend on its GPU.
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
          kLesson, "Tensor cores work on whole tiles: speed depends on how full the experts' are.",
          knob_table(), run, bench_report)
          .with_telling(
              {{"balanced",
                "Every expert is wanted equally often: all tiles are full, and the schemes do not "
                "differ.",
                {.routing = Routing::balanced}},
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
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            // Tails of more than half of the largest tile, and of less.
            return bench_report(device, progress, {200, 64, 256, {2, 5}, true});
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::moe_routing

#include "kernels/matmul/hopper_gemm/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/lab/replay.hpp"
#include "kernels/matmul/hopper_gemm/bench/bench.hpp"
#include "kernels/matmul/hopper_gemm/kernels.hpp"
#include "kernels/matmul/hopper_gemm/run/report.hpp"

namespace tilestep::hopper_gemm {
namespace {

constexpr int kMostStages = 8;

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(gather(params, device, progress));
}

void check_together(const Params& params) {
  if (params.variant == Variant::mma_sync && params.dtype != DataType::bf16) {
    lab::refuse_with("dtype", std::string(name_of(params.dtype)), "variant = mma-sync", "bf16",
                     std::string("bf16"));
  }
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("kernel")
          .choice(&Params::variant, {"variant", "Which rung of the ladder runs."})
          .choice(&Params::tile,
                  {"tile", "Warpgroup's tile", "",
                   "Rows × columns of C per wgmma instruction, and of a warpgroup's accumulators."})
          .integer(&Params::stages,
                   {"stages", "Stages", "",
                    "k-tiles that shared memory holds, as far as they fit; wgmma and tma have one, "
                    "pipelined at least two."},
                   1, kMostStages)
          .integer(&Params::consumers,
                   {"consumers", "Consumers", "warpgroups",
                    "Consumer warpgroups; each multiplies 64 rows of the block's tile."},
                   1, 2)
          .with("variant", {"mma-sync", "wgmma", "tma", "pipelined", "warp-specialized",
                            "multicast", "persistent"})
          .choice(&Params::swizzle, {"swizzle", "Swizzle", "B",
                                     "Row length in bytes within which 16-byte chunks are permuted "
                                     "in shared memory; 0: none."})
          .choice(&Params::dtype,
                  {"dtype", "Number format", "",
                   "Format of A and B; accumulators and C are FP32. mma-sync takes bf16 only."})
          .group("model")
          .integer(&Params::m, {"m", "Rows of A and C."}, 1, kMostEdge, true)
          .integer(&Params::n, {"n", "Rows of B (stored transposed), columns of C."}, 1, kMostEdge,
                   true)
          .integer(&Params::k, {"k", "Columns of A and B: products per element of C."}, 1,
                   kMostEdge, true)
          .group("kernel")
          .choice(
              &Params::broken,
              {"break", "Break it", "",
               "Omits a wait or a fence, or expects the bytes of A only, and runs that kernel."})
          .retired_knob("cluster", std::int64_t{2},
                        "multicast, persistent and ping-pong have clusters of two")
          .retired_knob("raster", std::string("rows"),
                        "tiles are computed row by row; Order under Measured has the others")
          .retired_knob("data", std::string("random"),
                        "A and B are random; Data under Measured has zeros")
          .retired_knob("seed", std::int64_t{1}, "the numbers are always the same")
          .require(check_together);
  return table;
}

Plan plan_of(const Params& params) {
  Plan plan{{params.m, params.n, params.k}, params.variant, params.dtype};
  const bool in_turn = params.variant == Variant::ping_pong;
  plan.consumers = in_turn ? 2 : params.consumers;
  plan.rows = in_turn ? 64 : 64 * plan.consumers;
  plan.columns = columns_of(params.tile);
  plan.depth = 128 / element_bytes(params.dtype);
  plan.swizzle = bytes_of(params.swizzle);
  plan.cluster = params.variant >= Variant::multicast ? 2 : 1;
  plan.stage_bytes = (plan.rows + plan.columns) * 128;
  plan.stages = has_one_stage(params.variant)          ? 1
                : params.variant == Variant::pipelined ? std::max(params.stages, 2)
                                                       : params.stages;
  while (shared_bytes_of(plan.stage_bytes, plan.stages, plan.consumers) > kMostSharedBytes) {
    --plan.stages;
  }
  plan.shared_bytes = shared_bytes_of(plan.stage_bytes, plan.stages, plan.consumers);
  const TileOrder tiles = tiles_of(plan, plan.rows * plan.cluster, plan.columns, plan.raster);
  plan.tiles_down = tiles.down * plan.cluster;
  plan.tiles_across = tiles.across;
  // In the picture a persistent block computes two tiles, so that the transition shows; if consumers take
  // turns, each computes two.
  const int each = in_turn ? 4 : params.variant == Variant::persistent ? 2 : 1;
  plan.blocks = (tiles.count() + each - 1) / each * plan.cluster;
  return plan;
}

/// The parts of a run that depend on its GPU.
static const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.clock_unit", "its clock"},
                     {"trace.events", "its clock, and observable events"},
                     {"tables.events", "its clock, and observable events"},
                     {"measurements.producer_waiting", "its clock"},
                     {"measurements.consumer_waiting", "its clock"},
                     {"measurements.most_ahead", "its clock"},
                     {"trace.broken", "the outcome depends on the machine"},
                     {"tables.broken", "the outcome depends on the machine"},
                     {"trace.wrong", "the outcome depends on the machine"}},
      .rounding = 0x1p-12,
      .rounding_why =
          "Tensor cores truncate where the emulation rounds: 13 bits of E4M3's sums are "
          "kept, twice that."};
  return kReplay;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "Tensor cores stay busy only if another warp fetches the tiles: copies "
                            "that run ahead, barriers that count bytes, asynchronous products.",
                            knob_table(), run, bench_report, "events")
          .with_telling(
              {{"one-stage",
                "With one stage, copies and products alternate, whichever warp issues them.",
                {.variant = Variant::tma}},
               {"persistent",
                "A block computes two tiles: copies for the second start before the first is "
                "stored.",
                {.variant = Variant::persistent}},
               {"no-empty-wait",
                "The producer does not wait for a stage to be released, and overwrites operands "
                "still in use.",
                {.broken = Break::skip_empty_wait}}})
          .with_trials(
              {{.variant = Variant::mma_sync,
                .tile = WarpgroupTile::n64,
                .m = 80,
                .n = 72,
                .k = 200},
               {.variant = Variant::wgmma, .consumers = 1, .m = 80, .n = 136, .k = 200},
               {.variant = Variant::tma, .swizzle = Swizzle::bytes32, .m = 80, .n = 136, .k = 200},
               {.variant = Variant::pipelined,
                .stages = 3,
                .dtype = DataType::fp16,
                .m = 80,
                .n = 136,
                .k = 200},
               {.tile = WarpgroupTile::n256, .stages = 2, .m = 80, .n = 136, .k = 328},
               {.stages = 1,
                .consumers = 1,
                .dtype = DataType::fp8_e4m3,
                .m = 64,
                .n = 128,
                .k = 400},
               {.variant = Variant::multicast, .m = 200, .n = 136, .k = 200},
               {.variant = Variant::persistent, .stages = 3, .m = 300, .n = 136, .k = 200},
               {.variant = Variant::ping_pong, .stages = 3, .m = 300, .n = 136, .k = 200}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::hopper_gemm

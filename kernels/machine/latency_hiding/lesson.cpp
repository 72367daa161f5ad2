#include "kernels/machine/latency_hiding/lesson.hpp"

#include "kernels/base/lab/replay.hpp"
#include "kernels/machine/latency_hiding/bench/bench.hpp"
#include "kernels/machine/latency_hiding/run/run.hpp"

namespace tilestep::latency_hiding {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(run_of(params, device, progress));
}

/// The parts of a run that depend on the GPU that it ran on.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.machine", "clocks, counters, and what the compiler gave"},
                     {"trace.multiprocessors", "how many it has"},
                     {"tables.steps", "its clock"},
                     {"tables.probes", "its clock"},
                     {"tables.rows", "its clock, and where warps went"},
                     {"tables.occupancy", "what the compiler gave"},
                     {"tables.counted", "counted by the chip"},
                     {"tables.readouts", "its clock"},
                     {"measurements.mean_latency", "its clock"},
                     {"measurements.probe_cost", "its clock"},
                     {"measurements.sm_clock", "its clock"},
                     {"measurements.waves", "how many blocks it holds"},
                     {"checks.occupancy", "what the compiler gave"},
                     {"checks.reported", "where warps went"},
                     {"checks.votes", "lanes that it ran together"}},
      .rounding = 0x1p-20,
      .rounding_why = "Errors against the reference are of the last bits of FP32."};
  return kReplay;
}

}  // namespace

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "A GPU does not shorten latency; it hides it behind other work in "
                            "flight, from other warps or the same thread.",
                            knob_table(), run, bench_report, "steps")
          .with_telling(
              {{"one-load",
                "One 4-byte load per thread: sixteen warps wait, and little is in flight.",
                {.bytes_per_load = LoadBytes::b4, .loads_in_flight = Loads::l1}},
               {"more-warps",
                "The same with all 64 warps: each waits as long, but four times as much is in "
                "flight.",
                {.warps_per_sm = 64,
                 .bytes_per_load = LoadBytes::b4,
                 .loads_in_flight = Loads::l1}},
               {"one-warp",
                "One warp alone: the latency of a load on an idle machine.",
                {.warps_per_sm = 1, .loads_in_flight = Loads::l1, .block = Block::b32}},
               {"serialized",
                "Four loads, each used before the next is issued: the latency is paid four times.",
                {.broken = Break::serialize_loads}},
               {"divergent-load",
                "Half of the lanes load, then the other half: two requests, one after the other.",
                {.broken = Break::divergent_branch}},
               {"bulk",
                "TMA fetches the same bytes in stages; one thread per block issues and waits.",
                {.kernel = Kernel::bulk_copy}},
               {"chase",
                "A pointer chase through shared memory, L1, L2 and HBM: nothing can be hidden.",
                {.kernel = Kernel::chase, .warps_per_sm = 1, .block = Block::b32}},
               {"fma-dependent",
                "One warp per scheduler with one chain of FMAs: each waits for the previous "
                "result.",
                {.kernel = Kernel::fma, .warps_per_sm = 4, .ilp = 1}},
               {"fma-ilp",
                "Four independent chains in the same warp take as long as one.",
                {.kernel = Kernel::fma, .warps_per_sm = 4, .ilp = 4}},
               {"spilling",
                "32 registers per thread admit 64 warps, which spill most of their values to local "
                "memory.",
                {.kernel = Kernel::spill, .warps_per_sm = 64, .max_registers = Registers::r32}},
               {"roomy",
                "168 registers per thread admit 12 warps, and nothing is spilled.",
                {.kernel = Kernel::spill, .warps_per_sm = 12, .max_registers = Registers::r168}},
               {"divergence",
                "A four-way divergent branch: its arms run one after another.",
                {.kernel = Kernel::diverge, .divergence = Ways::w4}},
               {"tail",
                "A last wave of few blocks leaves most multiprocessors idle.",
                {.kernel = Kernel::tail, .block = Block::b256}}})
          .with_trials(
              {{},
               {.warps_per_sm = 2,
                .bytes_per_load = LoadBytes::b4,
                .loads_in_flight = Loads::l1,
                .block = Block::b64},
               {.warps_per_sm = 8,
                .bytes_per_load = LoadBytes::b8,
                .loads_in_flight = Loads::l8,
                .block = Block::b256},
               {.kernel = Kernel::bulk_copy, .loads_in_flight = Loads::l2},
               {.kernel = Kernel::chase, .warps_per_sm = 4},
               {.kernel = Kernel::fma, .warps_per_sm = 4, .ilp = 1},
               {.kernel = Kernel::fma, .warps_per_sm = 4, .ilp = 7},
               {.kernel = Kernel::spill, .warps_per_sm = 12, .max_registers = Registers::r168},
               {.kernel = Kernel::diverge, .divergence = Ways::w1},
               {.kernel = Kernel::diverge, .divergence = Ways::w32},
               {.kernel = Kernel::tail, .block = Block::b256}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::latency_hiding

#include "kernels/memory/coalescing/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/memory/coalescing/bench/bench.hpp"
#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/reference.hpp"
#include "kernels/memory/coalescing/report.hpp"

namespace tilestep::coalescing {
namespace {

constexpr int kTileEdge = 32;

std::size_t bytes_of(const PatternShape& shape, bool pattern_side) {
  const std::int64_t elements = pattern_side ? shape.array_elements : shape.elements;
  return static_cast<std::size_t>(elements * shape.element_bytes);
}

/// Gathers the lanes' accesses, sorted by block and thread, into requests.
std::vector<WarpRequest> requests_of(const std::vector<simt::TraceRecord>& records) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, simt::AccessKind>;
  // A thread loads before it stores, and so does its warp.
  std::map<Key, WarpRequest> requests;
  for (const simt::TraceRecord& record : records) {
    const std::uint32_t warp = record.thread / kLanes;
    const auto lane = static_cast<std::size_t>(record.thread % kLanes);
    const auto [found, fresh] = requests.try_emplace({record.block, warp, record.kind});
    WarpRequest& request = found->second;
    if (fresh) {
      request.block = static_cast<int>(record.block);
      request.warp = static_cast<int>(warp);
      request.site = record.site == kPatternSite ? Site::pattern : Site::plain;
      request.kind = record.kind == simt::AccessKind::load ? Access::load : Access::store;
      request.byte_offset.fill(-1);
    }
    if ((request.active_lanes >> lane & 1U) != 0) {
      throw Error(fmt::format("thread {} of block {} recorded a second {} where a request has one",
                              record.thread, record.block, name_of(request.kind)),
                  ExitCode::check_failed);
    }
    request.active_lanes |= 1U << lane;
    request.byte_offset[lane] = static_cast<std::int64_t>(record.byte_offset);
  }
  std::vector<WarpRequest> ordered;
  ordered.reserve(requests.size());
  for (const auto& [key, request] : requests) ordered.push_back(request);
  return ordered;
}

/// Traced addresses of the pattern's requests that differ from its definition.
std::int64_t wrong_offsets(const PatternShape& shape, const std::vector<WarpRequest>& requests) {
  IndexWalk walk(shape);
  std::int64_t wrong = 0;
  for (const WarpRequest& request : requests) {
    if (request.site != Site::pattern) continue;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!request.active(lane)) continue;
      const std::int64_t expected = walk.next() * shape.element_bytes;
      if (request.byte_offset[lane] != expected) ++wrong;
    }
  }
  return wrong;
}

/// Elements that the first `threads` threads wrote and that differ between two outputs.
std::int64_t differing(const PatternShape& shape, std::int64_t threads,
                       const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
  const auto size = static_cast<std::size_t>(shape.element_bytes);
  const bool load = shape.access == Access::load;
  IndexWalk walk(shape);
  std::int64_t differ = 0;
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    const std::int64_t index = walk.next();
    const std::size_t at = static_cast<std::size_t>(load ? thread : index) * size;
    if (!std::equal(&a[at], &a[at] + size, &b[at])) ++differ;
  }
  return differ;
}

void run_kernels(Outcome& outcome, simt::Device& device, lab::Progress& progress) {
  const PatternShape& shape = outcome.shape;
  Trace& trace = outcome.trace;
  progress.report(0.05, "making the arrays");
  Arrays arrays(device, shape, outcome.params.seed);
  progress.report(0.2, "running the kernel");
  kernels_of(device).access(device, shape, arrays.in.span(), arrays.out.span());
  device.synchronize();
  const std::vector<unsigned char> timed = arrays.out.download();
  progress.check();

  progress.report(0.5, "recording its accesses");
  arrays.out.fill(Arrays::kUntouched);
  const std::int64_t blocks = std::min<std::int64_t>(outcome.params.blocks(), kTracedBlocks);
  trace.requests = traced_requests(device, shape, blocks, arrays);
  const std::vector<unsigned char> traced = arrays.out.download();
  trace.traced_warps = std::min(outcome.params.warps(), blocks * kWarpsPerBlock);
  progress.check();

  progress.report(0.6, "comparing with the reference");
  const std::int64_t threads = std::min(shape.elements, blocks * kThreadsPerBlock);
  outcome.wrong_timed =
      wrong_elements(shape, shape.elements, arrays.host_in, timed, Arrays::kUntouched);
  progress.check();
  outcome.wrong_traced = wrong_elements(shape, threads, arrays.host_in, traced, Arrays::kUntouched);
  // If lanes store to one place, the one that wins may differ from launch to launch.
  const bool one_place = shape.pattern == Pattern::broadcast && shape.access == Access::store;
  outcome.differ = one_place ? 0 : differing(shape, threads, traced, timed);
  outcome.wrong_offsets = wrong_offsets(shape, trace.requests);
  progress.check();

  const simt::CounterStatus counters = device.counters();
  trace.counters_available = counters.available;
  trace.counters_reason = counters.reason;
  if (!counters.available) return;
  progress.report(0.8, "counting in hardware");
  const auto launch = [&] {
    kernels_of(device).access(device, shape, arrays.in.span(), arrays.out.span());
  };
  try {
    outcome.counted = simt::count_global_traffic(device, launch);
  } catch (const simt::CountersBusy& busy) {  // the rest of the run is fine without them
    trace.counters_available = false;
    trace.counters_reason = busy.what();
  }
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  Outcome outcome;
  outcome.params = params;
  outcome.shape = shape_of(params);
  const SourceLines lines = source_lines(params.pattern, params.access);
  Trace& trace = outcome.trace;
  trace.pattern = params.pattern;
  trace.access = params.access;
  trace.element_bytes = params.element_bytes();
  trace.elements = params.elements;
  trace.pattern_array_bytes = outcome.shape.array_elements * trace.element_bytes;
  trace.warps = params.warps();
  trace.access_line = lines.access;
  trace.index_line = lines.index;
  trace.statement = statement(params);
  run_kernels(outcome, device, progress);
  trace.tile_requests = traced_tiles(device, outcome.wrong_transposed);
  return report_of(outcome);
}

/// Index, in transposed order, of element i of a square tile.
std::size_t transposed(std::size_t i) {
  return i % kTileEdge * kTileEdge + i / kTileEdge;
}

}  // namespace

Arrays::Arrays(simt::Device& device, const PatternShape& shape, std::int64_t seed)
    : host_in(lab::random_bytes(bytes_of(shape, shape.access == Access::load), seed)),
      in(device, host_in),
      out(device, bytes_of(shape, shape.access == Access::store)) {
  out.fill(kUntouched);
}

std::vector<WarpRequest> traced_requests(simt::Device& device, const PatternShape& shape,
                                         std::int64_t blocks, Arrays& arrays) {
  const std::int64_t threads = std::min(shape.elements, blocks * kThreadsPerBlock);
  simt::Trace trace(device, static_cast<std::size_t>(2 * threads));
  kernels_of(device).access(device, shape, arrays.in.span(), arrays.out.span(), trace.tape(),
                            blocks);
  device.synchronize();
  const simt::Trace::Log log = trace.download();
  return requests_of(log.records);
}

std::vector<TileRequest> traced_tiles(simt::Device& device, std::int64_t& wrong) {
  constexpr std::size_t kElements = std::size_t{kTileEdge} * kTileEdge;
  std::vector<float> host(kElements);
  for (std::size_t i = 0; i < kElements; ++i) host[i] = static_cast<float>(i);
  const simt::Buffer<float> in(device, host);
  simt::Buffer<float> out(device, kElements);
  std::vector<TileRequest> requests;
  for (const TransposeRung rung : {TransposeRung::shared_tile, TransposeRung::shared_tile_padded}) {
    out.fill(0xFF);
    simt::Trace trace(device, 2 * kElements);
    kernels_of(device).transpose_traced(device, rung, kTileEdge, kTileEdge, in.span(), out.span(),
                                        trace.tape());
    device.synchronize();
    const simt::Trace::Log log = trace.download();
    const std::vector<float> result = out.download();
    for (std::size_t i = 0; i < kElements; ++i) wrong += result[transposed(i)] != host[i];
    for (const simt::AccessKind kind : {simt::AccessKind::store, simt::AccessKind::load}) {
      TileRequest request;
      request.rung = name_of(rung);
      request.kind = kind == simt::AccessKind::load ? Access::load : Access::store;
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const auto first = std::find_if(log.records.begin(), log.records.end(), [&](const auto& r) {
          return r.thread == lane && r.kind == kind;
        });
        if (first == log.records.end()) {
          throw Error(fmt::format("{} recorded no {} of shared memory by thread {}", request.rung,
                                  name_of(request.kind), lane),
                      ExitCode::check_failed);
        }
        request.byte_offset[lane] = static_cast<std::int32_t>(first->byte_offset);
      }
      request.ways = bank_ways(request.byte_offset);
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

/// The parts of a run that depend on the GPU that it ran on.
static const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.counters", "whether the chip counts"},
                     {"checks.counted_equals_traced", "counted by the chip"}}};
  return kReplay;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson, "Memory moves in 32-byte sectors: the fewer of them a warp touches, the better.",
          knob_table(), run, bench_report, "patterns")
          .with_telling({{"neighbours",
                          "Neighbouring threads load neighbouring floats: four sectors per "
                          "request, and every byte is used.",
                          {.stride = 1}},
                         {"sector-a-lane",
                          "Every lane loads a float from a line of its own: 32 sectors per "
                          "request, one float used of each.",
                          {.stride = 32}},
                         {"shuffled",
                          "The lanes of a warp load its elements in random order: the same "
                          "addresses, and so the same sectors.",
                          {.pattern = Pattern::permuted_warp}}})
          .with_trials(
              {{},
               {.pattern = Pattern::offset,
                .element_size = ElementSize::bytes_8,
                .access = Access::store,
                .elements = 1000},
               {.pattern = Pattern::permuted,
                .element_size = ElementSize::bytes_16,
                .elements = 777},
               {.pattern = Pattern::aos, .access = Access::store, .fields = 3, .elements = 100},
               {.pattern = Pattern::soa, .fields = 3, .elements = 1000},
               {.pattern = Pattern::matrix_row, .elements = 3072},
               {.pattern = Pattern::matrix_column, .element_size = ElementSize::bytes_1},
               {.pattern = Pattern::permuted_warp,
                .element_size = ElementSize::bytes_2,
                .elements = 33}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            Bench bench{{device, progress}};
            bench.sizes = bench_sizes(1 << 20);
            bench_patterns(bench, 1);
            return bench.report;
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::coalescing

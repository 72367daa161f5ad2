// Runs the chain: in three launches and in those that the fusions leave, for all rows by the timed kernels and for the
// first row by the explained one; and assembles the ledger.

#include "kernels/systems/fusion/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::fusion {
namespace {

/// The chain's arrays of some rows.
struct Memory {
  Memory(simt::Device& device, const RowShape& of, const Inputs& inputs)
      : shape(of),
        count(numeric::elements_of(of.rows, of.width)),
        bytes(count * static_cast<std::size_t>(bytes_of(of.type))),
        x(device, std::span(inputs.x).first(bytes)),
        residual(device, std::span(inputs.residual).first(bytes)),
        gain(device, inputs.gain),
        sum(device, bytes),
        normed(device, bytes),
        codes(device, count),
        scale(device, static_cast<std::size_t>(of.rows)) {}

  /// The arrays of a launch of these steps: the first reads what the one before has left.
  RowArrays arrays(const Group& steps) {
    const bool add = steps.first == 0, quantize = steps.last == 2;
    RowArrays all;
    all.first = add                ? x.span()
                : steps.first == 1 ? std::as_const(sum).span()
                                   : std::as_const(normed).span();
    if (add) all.second = residual.span();
    if (add) all.sum = sum.span();
    if (parts_of(steps).norm) all.gain = gain.span();
    if (!quantize && steps.last == 1) all.out = normed.span();
    if (quantize) {
      all.codes = codes.span();
      all.scale = scale.span();
    }
    return all;
  }
  /// Runs launches with `launch` on arrays that nothing has written yet.
  template <class Launch>
  Results after(simt::Device& device, const std::vector<Group>& launches, const Launch& launch) {
    sum.fill(0xFF);
    normed.fill(0xFF);
    codes.fill(0xFF);
    scale.fill(0xFF);
    bool stores_normed = false;
    for (const Group& steps : launches) {
      launch(steps);
      stores_normed = stores_normed || steps.last == 1;
    }
    device.synchronize();
    Results results{sum.download(), {}, codes.download(), scale.download()};
    if (stores_normed) results.normed = normed.download();
    return results;
  }

  RowShape shape;
  std::size_t count, bytes;
  simt::Buffer<unsigned char> x, residual, gain, sum, normed;
  simt::Buffer<std::uint8_t> codes;
  simt::Buffer<float> scale;
};

/// The tensor that a site of a launch's tape is.
Tensor tensor_at(std::uint32_t site, const Group& steps) {
  switch (site) {
    case kFirst:
      return steps.first == 0 ? Tensor::x : steps.first == 1 ? Tensor::sum : Tensor::normed;
    case kSecond:
      return Tensor::residual;
    case kGain:
      return Tensor::gain;
    case kSum:
      return Tensor::sum;
    case kOut:
      return Tensor::normed;
    case kCodes:
      return Tensor::codes;
    default:
      return Tensor::scale;
  }
}
/// The step of the chain that moves a tensor.
int step_of(Tensor tensor, bool stored) {
  switch (tensor) {
    case Tensor::x:
    case Tensor::residual:
      return 0;
    case Tensor::sum:
      return stored ? 0 : 1;
    case Tensor::gain:
      return 1;
    case Tensor::normed:
      return stored ? 1 : 2;
    default:
      return 2;
  }
}

/// The numbers that a launch noted at a site.
std::vector<float> noted(const simt::Trace::Log& log, std::uint32_t site, int count) {
  return log.notes<float>(site, static_cast<std::size_t>(count), 0.0f);
}

/// Bytes by tensor. A gain is read twice, for the largest number and for the output, and comes from memory once.
void add_moves(Lane& lane, const simt::Trace::Log& log, const Group& steps, const RowShape& shape) {
  std::array<std::array<std::int64_t, 2>, kTensors> bytes{};
  for (const simt::TraceRecord& one : log.records) {
    const Tensor tensor = tensor_at(one.site, steps);
    bytes[static_cast<std::size_t>(tensor)][one.kind == simt::AccessKind::store ? 1 : 0] +=
        one.bytes;
  }
  auto& gain = bytes[static_cast<std::size_t>(Tensor::gain)][0];
  gain = std::min<std::int64_t>(gain, std::int64_t{shape.width} * bytes_of(shape.type));
  for (int i = 0; i < kTensors; ++i) {
    for (const bool stored : {false, true}) {
      const std::int64_t moved = bytes[static_cast<std::size_t>(i)][stored ? 1 : 0];
      const auto tensor = static_cast<Tensor>(i);
      if (moved > 0) lane.moves.push_back({step_of(tensor, stored), tensor, stored, moved});
    }
  }
}

/// Runs the explained kernel on the first row, launch by launch.
struct Explained {
  Results results;
  Lane lane;
};
Explained explained(simt::Device& device, const Run& run, const std::vector<Group>& launches,
                    Break broken) {
  RowShape one = run.shape;
  one.rows = 1;
  Memory memory(device, one, run.inputs);
  Explained explained;
  const std::size_t capacity = 8 * static_cast<std::size_t>(one.width) + 256;
  const int shown = run.trace.shown();
  int number = 0;
  explained.results = memory.after(device, launches, [&](const Group& steps) {
    simt::Trace recording(device, capacity);
    kernels_of(device).explained_row(device, one, parts_of(steps), memory.arrays(steps), broken,
                                     recording.tape());
    device.synchronize();
    const simt::Trace::Log log = recording.download();
    add_moves(explained.lane, log, steps, one);
    if (steps.first == 0) explained.lane.held = noted(log, kHeld, shown);
    if (parts_of(steps).norm) explained.lane.normed = noted(log, kNormed, shown);
    for (int step = steps.first; step <= steps.last; ++step) {
      explained.lane.launch[static_cast<std::size_t>(step)] = number;
    }
    ++number;
    if (steps.last == 0) return;
    const RowStats stats = log.all_notes<RowStats>(kStats, 1, "the row's statistics").front();
    if (parts_of(steps).norm) {
      explained.lane.stats.squares = stats.squares;
      explained.lane.stats.inverse = stats.inverse;
    }
    if (parts_of(steps).quantize) {
      explained.lane.stats.largest = stats.largest;
      explained.lane.stats.scale = stats.scale;
    }
  });
  for (int i = 0; i < shown; ++i) {
    const auto at = static_cast<std::size_t>(i);
    explained.lane.codes.push_back(static_cast<float>(decoded(explained.results.codes[at], 1.0f)));
  }
  std::stable_sort(explained.lane.moves.begin(), explained.lane.moves.end(),
                   [](const Move& a, const Move& b) {
                     return a.step != b.step ? a.step < b.step : a.stored < b.stored;
                   });
  return explained;
}

void fill_ledger(Trace& trace, const Params& params, const Chosen& chosen) {
  for (int i = 0; i < kSeams; ++i) {
    const auto at = static_cast<std::size_t>(i);
    trace.seams.push_back({chosen.fused[at], chosen.refused[at]});
  }
  const std::vector<Group> groups = groups_of(chosen.fused);
  for (std::size_t kernel = 0; kernel < groups.size(); ++kernel) {
    for (int op = groups[kernel].first; op <= groups[kernel].last; ++op) {
      trace.ops.push_back({static_cast<int>(kernel), traffic_of(op, chosen.fused, params.dtype)});
    }
  }
  const Seams best = best_seams(params.dtype, params.width, params.batch);
  trace.none = score_of({}, params.dtype);
  trace.own = score_of(chosen.fused, params.dtype);
  trace.best = score_of(best, params.dtype);
  for (int i = 0; i < kSeams; ++i) {
    if (best[static_cast<std::size_t>(i)]) trace.best_list.push_back(i + 1);
  }
}

/// The most numbers that one run computes.
constexpr int kMostNumbers = 1 << 18;

}  // namespace

std::vector<Group> launches_of(const Chosen& chosen) {
  std::vector<Group> launches = {{0, 0}};
  for (int step = 1; step < kChain; ++step) {
    if (chosen.fused[static_cast<std::size_t>(kChainOp + step - 1)]) {
      launches.back().last = step;
    } else {
      launches.push_back({step, step});
    }
  }
  return launches;
}

Parts parts_of(const Group& steps) {
  return {steps.first == 0 ? First::add : First::load, steps.first <= 1 && steps.last >= 1,
          steps.last == 2};
}

lab::Closest compared_codes(const RowShape& shape, const Reference& exact, const Results& results,
                            int* wrong) {
  lab::Closest closest;
  for (std::size_t i = 0; i < results.codes.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(shape.width);
    const double got = decoded(results.codes[i], results.scale[row]), right = exact.normed.value[i];
    const double bound = code_bound(right, exact.normed.bound[i], exact.scale[row], shape.type);
    closest.add(got, right, bound, [&] {
      return fmt::format("row {}, number {}", row, i % static_cast<std::size_t>(shape.width));
    });
    if (wrong != nullptr && !(std::abs(got - right) <= bound)) ++*wrong;
  }
  return closest;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  run.shape = held_by_block({.type = params.dtype,
                             .rows = std::clamp(kMostNumbers / params.width, 1, params.rows),
                             .width = params.width,
                             .threads = params.block()});
  progress.report(0.05, "making rows");
  run.inputs = make_inputs(run.shape, params.seed);
  run.exact = reference_chain(run.shape, run.inputs);
  Trace& trace = run.trace;
  trace.width = params.width;
  trace.rows = run.shape.rows;
  trace.batch = params.batch;
  trace.dtype = params.dtype;
  trace.broken = params.broken;
  trace.threads = params.block();
  trace.cluster = cluster_of(run.shape);
  trace.in_shared = run.shape.packs == 0;
  progress.check();

  progress.report(0.2, "running all rows");
  const Chosen chosen = chosen_of(params.fuse);
  const std::vector<Group> apart = {{0, 0}, {1, 1}, {2, 2}}, together = launches_of(chosen);
  Memory memory(device, run.shape, run.inputs);
  const auto timed = [&](const Group& steps) {
    kernels_of(device).rows(device, run.shape, parts_of(steps), memory.arrays(steps));
  };
  run.unfused = memory.after(device, apart, timed);
  run.fused = memory.after(device, together, timed);
  progress.check();

  progress.report(0.6, "recording the first row");
  const Explained unfused = explained(device, run, apart, Break::none);
  const Explained sound = explained(device, run, together, Break::none);
  run.recorded_unfused = unfused.results;
  run.recorded = sound.results;
  Explained shown = sound;
  if (params.broken != Break::none) {
    shown = explained(device, run, together, params.broken);
    run.broken = shown.results;
    BrokenResult& result = trace.result;
    result.elements = params.width;
    compared_codes(run.shape, run.exact, run.broken, &result.wrong);
    result.outcome = result.wrong == 0
                         ? "no number is wrong all the same"
                         : fmt::format("{} of {} numbers are wrong", result.wrong, result.elements);
  }
  trace.unfused = unfused.lane;
  trace.fused = shown.lane;
  trace.x = unpacked(params.dtype, run.inputs.x);
  trace.residual = unpacked(params.dtype, run.inputs.residual);
  const auto count = static_cast<std::size_t>(trace.shown());
  trace.x.resize(count);
  trace.residual.resize(count);
  fill_ledger(trace, params, chosen);
  return run;
}

}  // namespace tilestep::fusion

#include "kernels/machine/tree_sum/lesson.hpp"

#include <fmt/format.h>

#include <numeric>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/fields.hpp"

namespace tilestep::tree_sum {
namespace {

struct Params {
  int rounds = 3;
};

const lab::Fields<Trace>& fields() {
  static const auto all = lab::Fields<Trace>()
                              .whole("count", &Trace::count, 2, 1024)
                              .whole("line", &Trace::line, 1)
                              .reals("in", &Trace::in, &Trace::count)
                              .reals("sums", &Trace::sums);
  return all;
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  Trace trace;
  trace.count = 1 << params.rounds;
  trace.in.resize(static_cast<std::size_t>(trace.count));
  std::iota(trace.in.begin(), trace.in.end(), 1.0f);
  const simt::Buffer<float> in(device, std::span<const float>(trace.in));
  simt::Buffer<float> sums(device, trace.in.size() * static_cast<std::size_t>(params.rounds));
  simt::Buffer<int> line(device, 1);
  progress.check();
  static_cast<const Kernels&>(device.kernels(kLessonId))
      .sum(device, in.span(), sums.span(), line.span());
  device.synchronize();
  progress.check();
  trace.sums = sums.download();
  trace.line = line.download().front();

  lab::Report report;
  lab::Table rounds{
      "rounds",
      "Rounds",
      {{"round", "round", "", 0}, {"threads", "threads", "", 0}, {"first", "first sum", "", 0}},
      {}};
  for (int round = 0; round < params.rounds; ++round) {
    progress.check();
    rounds.add({round + 1, trace.count >> (round + 1),
                trace.sums[static_cast<std::size_t>(round * trace.count)]});
  }
  const float total = trace.sums[static_cast<std::size_t>((params.rounds - 1) * trace.count)];
  const double exact = 0.5 * trace.count * (trace.count + 1);  // Gauss
  report.checks.push_back(lab::equal("sum", static_cast<double>(total), exact,
                                     "whole numbers below 2^24 are exact in FP32"));
  report.summary =
      fmt::format("{} numbers are added up in {} rounds: {}.", trace.count, params.rounds, total);
  report.tables.push_back(std::move(rounds));
  report.trace = to_json(trace);
  return report;
}

}  // namespace

nlohmann::json to_json(const Trace& trace) {
  return fields().to_json(trace);
}

Trace trace_from_json(const nlohmann::json& json) {
  return fields().from_json(json, "tree-sum trace");
}

const lab::Lesson& lesson() {
  static const lab::LessonOf<Params> lesson{{
      .name = kLesson,
      .takeaway = "Adding in a tree takes as many rounds as the count has binary digits.",
      .knobs = lab::KnobTable<Params>().integer(
          &Params::rounds, {"rounds", "Rounds", "", "How often the numbers are halved."}, 1, 6),
      .run = run,
  }};
  return lesson;
}

}  // namespace tilestep::tree_sum

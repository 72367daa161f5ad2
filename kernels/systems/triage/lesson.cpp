#include "kernels/systems/triage/lesson.hpp"

#include <fmt/format.h>

#include <numeric>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/fields.hpp"
#include "kernels/systems/triage/kernels.hpp"

namespace tilestep::triage {

struct Params {
  int rounds = 3;
};

TILESTEP_TRACE_JSON("triage trace", lab::Fields<Trace>()
                                          .whole("rounds", &Trace::rounds, 1, 5)
                                          .reals("sums", &Trace::sums, &Trace::cells)
                                          .known_each(&Trace::since))

static lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  Trace trace{params.rounds, std::vector<float>(1 << params.rounds)};
  std::iota(trace.sums.begin(), trace.sums.end(), 1.0f);
  simt::Buffer<float> sums(device, trace.sums);
  simt::Trace tape(device, trace.cells());
  kernels_of(device).sum(device, sums.span(), tape.tape());
  trace.sums = tape.download().all_notes<float>(0, trace.cells(), "the sums");

  lab::Report report;
  const int n = trace.threads();
  report.summary = fmt::format("{0} threads add up 1 to {0} in {1} rounds.", n, params.rounds);
  report.tables = {{"rounds", "Rounds", {"round", "adding", {"sum", "first sum"}}}};
  for (int round = 1; round <= params.rounds; ++round) {
    progress.check();
    report.tables[0].add({round, trace.adding(round), trace.sum(round, 0)});
  }
  report.checks = {lab::equal("sum", sums.download(1)[0], n * (n + 1) / 2, "exact in FP32")};
  report.trace = to_json(trace);
  return report;
}

const lab::Lesson& lesson() {
  static const lab::LessonOf<Params> lesson(
      kLesson, "A tree adds up n numbers in log2(n) rounds.",
      lab::KnobTable<Params>().integer(&Params::rounds, {"rounds", "How often to halve."}, 1, 5),
      run);
  return lesson;
}

}  // namespace tilestep::triage

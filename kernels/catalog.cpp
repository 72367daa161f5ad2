#include "kernels/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/base/lab/recording.hpp"
#include "kernels/lessons.hpp"

namespace tilestep {
namespace {

constexpr simt::KernelEntry kEmulatedKernels[] = {
#define LESSON(chapter, id, title) {#id, id::kernels_emulated},
#include "kernels/lessons.def"
};

/// A run that was not timed here still shows the throughput of a real GPU, labelled as recorded.
void add_recorded(lab::Report& report) {
  const lab::Recording* recording = lab::recording(report.lesson);
  if (recording == nullptr) return;
  if (recording->run.params == report.params) {
    for (const lab::Measurement& m : recording->run.measurements) {
      const bool measured = m.provenance == lab::Provenance::recorded;
      if (measured && report.measurement(m.id, m.variant) == nullptr) report.add(m);
    }
  }
  for (const lab::Measurement& m : recording->bench.measurements) report.add(m);
}

lab::Report from_recording(const lab::Request& request) {
  const lab::Recording* recording = lab::recording(request.lesson);
  if (recording == nullptr) {
    throw Error(
        fmt::format("there is no recording of '{}'; make one with tilestep record", request.lesson),
        ExitCode::unavailable);
  }
  if (request.action == lab::Request::Action::bench) {
    lab::Report report = recording->bench;
    report.device.backend = "recorded";
    return report;
  }
  const lab::Knobs& knobs = lesson(request.lesson).knobs();
  const lab::Settings wanted = knobs.completed(request.params);
  // A knob that came after the recording stood at its default.
  if (wanted != knobs.completed(recording->run.params)) {
    throw Error(fmt::format("the recording of '{}' holds the default knobs alone; choose "
                            "--backend emulated or cuda for other settings",
                            request.lesson),
                ExitCode::unavailable);
  }
  lab::Report report = recording->run;
  report.params = wanted;
  report.device.backend = "recorded";
  add_recorded(report);
  return report;
}

std::unique_ptr<simt::Device> make_device(const std::string& backend,
                                          simt::EmulationOptions emulation) {
  if (backend == "cuda") return simt::make_cuda_device();
  if (backend == "auto" && simt::cuda_status().available) return simt::make_cuda_device();
  return simt::make_emulated_device(emulated_kernels(), emulation);
}

}  // namespace

std::span<const lab::Lesson* const> lessons() {
  static const lab::Lesson* const all[] = {
#define LESSON(chapter, id, title) &id::lesson(),
#include "kernels/lessons.def"
  };
  return all;
}

const lab::Lesson& lesson(std::string_view id) {
  std::string ids;
  for (const lab::Lesson* lesson : lessons()) {
    if (lesson->info().id == id) return *lesson;
    ids += (ids.empty() ? "" : ", ") + lesson->info().id;
  }
  throw Error(fmt::format("there is no lesson '{}'; the lessons are: {}", id, ids));
}

std::span<const simt::KernelEntry> emulated_kernels() {
  return kEmulatedKernels;
}

lab::Report answer(const lab::Request& request, lab::Progress& progress,
                   simt::EmulationOptions emulation) {
  const lab::Lesson& asked = lesson(request.lesson);
  const lab::Settings settings = asked.knobs().completed(request.params);
  if (request.backend == "recorded") return from_recording(request);
  const auto device = make_device(request.backend, emulation);
  if (request.action == lab::Request::Action::bench) return asked.bench(*device, progress);
  lab::Report report = asked.run(settings, *device, progress);
  if (request.backend == "auto") report.cuda_refused = simt::why_cuda_refused();
  add_recorded(report);
  return report;
}

bool is_of_run(const lab::Measurement& number, const lab::Report& report) {
  if (const auto knobs = lesson(report.lesson).case_of(number)) {
    return std::all_of(knobs->begin(), knobs->end(), [&](const auto& knob) {
      const auto now = report.params.find(knob.first);
      return now != report.params.end() && now->second == knob.second;
    });
  }
  if (number.recorded_at.empty()) return true;
  const lab::Recording* recording = lab::recording(report.lesson);
  if (recording == nullptr || recording->run.params != report.params) return false;
  const lab::Measurement* then = recording->run.measurement(number.id, number.variant);
  return then != nullptr && then->value == number.value;
}

}  // namespace tilestep

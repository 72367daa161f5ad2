#include "kernels/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "kernels/base/lab/compare.hpp"
#include "kernels/base/lab/nearest.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/race.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/simt/cuda/cuda_module.hpp"
#include "kernels/base/simt/emulator/evidence.hpp"
#include "kernels/base/workbench/compiler.hpp"
#include "kernels/base/workbench/compute_sanitizer.hpp"
#include "kernels/base/workbench/edited.hpp"
#include "kernels/base/workbench/gpu_faults.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/base/workbench/leash.hpp"
#include "kernels/base/workbench/orders.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "kernels/base/workbench/trials.hpp"
#include "kernels/catalog.hpp"
#include "kernels/evidence.hpp"

namespace tilestep {
namespace {

/// A knob that came after a recording stood at its default; with a knob that has gone, or a value that is
/// no longer allowed, nothing can be said.
std::optional<lab::Settings> settings_then(const lab::Knobs& knobs, const lab::Report& run) {
  try {
    return knobs.completed(run.params);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The recorded run of all these settings, if there is one; knobs without effect may stand otherwise.
const lab::Report* recorded_with(const lab::Lesson& of, const lab::Settings& all) {
  const lab::Settings wanted = lab::in_effect(of.knobs(), all);
  return lab::recorded_run(of.info().id, [&](const lab::Report& run) {
    const auto then = settings_then(of.knobs(), run);
    return then && lab::in_effect(of.knobs(), *then) == wanted;
  });
}

/// A run that was not timed here still shows the throughput of a real GPU, labelled as recorded.
void add_recorded(lab::Report& report) {
  const lab::Recording* recording = lab::recording(report.lesson);
  if (recording == nullptr) return;
  if (const lab::Report* then = recorded_with(lesson(report.lesson), report.params)) {
    for (const lab::Measurement& m : then->measurements) {
      const bool measured = m.provenance == lab::Provenance::recorded;
      if (measured && report.measurement(m.id, m.variant) == nullptr) report.add(m);
    }
  }
  for (const lab::Measurement& m : recording->bench.measurements) report.add(m);
}

/// For a button: "Set tile to 16"; of several, "Set 3 knobs as recorded".
lab::Fix fix_to_recorded(const lab::Settings& changes) {
  if (changes.size() == 1) return lab::fix_to(changes.begin()->first, changes.begin()->second);
  return {fmt::format("Set {} knobs as recorded", changes.size()), changes};
}

/// Nothing is ever interpolated: what was not recorded is refused with the nearest that was.
[[noreturn]] void refuse_unrecorded(const lab::Lesson& of, const lab::Settings& wanted) {
  const std::optional<RecordedNear> near = nearest_recorded(of.info().id, wanted);
  const std::string instead =
      "choose --backend emulated, or cuda where there is a GPU, for other settings";
  if (!near) {
    throw Error(
        fmt::format("no run of '{}' with today's knobs was recorded; {}", of.info().id, instead),
        ExitCode::unavailable);
  }
  throw lab::Refused(
      fmt::format("these settings of '{}' were not recorded; nearest: {}, recorded {} on {}; {}",
                  of.info().id, lab::as_arguments(near->changes), near->run->recorded_at,
                  near->run->device.name, instead),
      fix_to_recorded(near->changes), ExitCode::unavailable);
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
    report.params = lesson(request.lesson).knobs().defaults();  // what a bench is about
    report.device.backend = "recorded";
    return report;
  }
  const lab::Lesson& asked = lesson(request.lesson);
  const lab::Settings wanted = asked.knobs().completed(request.params);
  const lab::Report* run = recorded_with(asked, wanted);
  if (run == nullptr) refuse_unrecorded(asked, wanted);
  lab::Report report = *run;
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

lab::Report run_on(simt::Device& device, const lab::Request& request, const lab::Settings& settings,
                   lab::Progress& progress) {
  const lab::Lesson& asked = lesson(request.lesson);
  const lab::QuickBench quick(lab::is_quick(request));
  if (request.action == lab::Request::Action::bench) return asked.bench(device, progress);
  return asked.run(settings, device, progress);
}

lab::Report edited_emulated(const lab::Request& request, const lab::Settings& settings,
                            lab::Progress& progress, const simt::EmulationOptions& emulation,
                            std::string_view stage = workbench::kRunning,
                            simt::EvidenceWriter* evidence = nullptr) {
  const auto tell = [&](std::string_view note) { progress.report(0, note); };
  const workbench::EditedKernels kernels(request.lesson, *request.kernel, emulated_kernels(),
                                         progress, tell);
  progress.report(0, stage);
  progress.check();
  const workbench::EditedModule module{kernels.file(), request.kernel->path};
  return workbench::guarded(module, [&] {
    const auto start = std::chrono::steady_clock::now();
    std::vector<const void*> launched;
    simt::EmulationOptions options = emulation;
    options.launched = &launched;
    const auto device = evidence == nullptr
                            ? simt::make_emulated_device(kernels.table(), options)
                            : simt::make_witnessed_device(kernels.table(), options, *evidence);
    lab::Report report = run_on(*device, request, settings, progress);
    if (stage == workbench::kRunning && request.action == lab::Request::Action::run &&
        request.orders) {
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now() - start);
      workbench::check_orders(report,
                              {lesson(request.lesson), settings, kernels.table(),
                               emulated_kernels(), emulation, module},
                              took, progress);
    }
    lab::EditedKernel info = kernels.info();
    info.idle = !workbench::stand_in_source(launched, module,
                                            workbench::is_shared(request.lesson, info.path));
    workbench::tell_of_edit(report, info, *device);  // last: what is watched has no order
    return report;
  });
}

/// Nothing here outlives the process but `progress`: the thread that does it may be left to itself.
lab::Report run_edited_on_gpu(const lab::Request& request, const lab::Settings& settings,
                              lab::Progress& progress) {
  const auto device = simt::make_cuda_device();
  const auto tell = [&](std::string_view note) { progress.report(0, note); };
  const lab::EditedKernel kernel =
      workbench::use_edited_on_gpu(*device, request.lesson, *request.kernel, progress, tell);
  progress.report(0, workbench::kRunning);
  progress.check();
  const auto run = [&] { return run_on(*device, request, settings, progress); };
  const auto plan = lab::race_of(request);
  lab::Report report = plan ? lab::race(*plan, simt::use_edited_kernels, *device, run) : run();
  report.lesson = request.lesson;
  workbench::tell_of_edit(report, kernel, *device);
  return report;
}

workbench::LeashLimits gpu_limits(const lab::Request& request) {
  workbench::LeashLimits limits;
  limits.anew = request.action == lab::Request::Action::bench;
  if (limits.anew) limits.deadline = std::chrono::seconds(90);  // of a turn, which takes a few
  if (workbench::is_sanitized())
    limits.deadline = std::chrono::minutes(10);  // whose caller ends it
  return limits;
}

/// A bench cannot be had under emulation: the lesson's run has the same kernels.
workbench::FaultSearch search_for_fault(const lab::Request& request, const lab::Settings& settings,
                                        bool barriers, lab::Progress& progress,
                                        const simt::EmulationOptions& emulation) {
  lab::Request again = request;
  again.action = lab::Request::Action::run;
  const auto emulate = [again, settings, &progress, emulation] {
    progress.report(0, workbench::kEmulating);
    return edited_emulated(again, settings, progress, emulation, workbench::kEmulating);
  };
  const auto sanitize = [again, settings, barriers, &progress] {
    progress.report(0, workbench::kSanitizing);
    return workbench::run_sanitized({again.lesson, settings, *again.kernel, barriers},
                                    [&progress] { return progress.cancelled(); });
  };
  return {emulate, sanitize};
}

lab::Report edited_on_gpu(const lab::Request& request, const lab::Settings& settings,
                          lab::Progress& progress, const simt::EmulationOptions& emulation) {
  workbench::GpuFault fault;
  try {
    return workbench::on_leash(
        [request, settings](lab::Progress& leash) {
          return run_edited_on_gpu(request, settings, leash);
        },
        progress, gpu_limits(request));
  } catch (const DeviceLost& lost) {
    if (workbench::is_sanitized() || progress.cancelled()) throw;
    fault = workbench::fault_of(lost);
  } catch (const workbench::Overdue& overdue) {
    if (workbench::is_sanitized()) throw;
    fault = {simt::last_cuda_launch(), overdue.what(), true};
  }
  workbench::tell_of_fault(fault, request.kernel->path,
                           search_for_fault(request, settings, fault.overdue, progress, emulation));
}

/// Under emulation, wherever its run was: that has the lines and the orders, and leaves a GPU to others.
lab::Report answer_trials(const lab::Request& request, const lab::Settings& settings,
                          lab::Progress& progress) {
  if (!request.kernel) {
    throw Error("trials are of an edited kernel, and none was given; allowed without: run, bench");
  }
  const auto tell = [&](std::string_view note) { progress.report(0, note); };
  const workbench::EditedKernels kernels(request.lesson, *request.kernel, emulated_kernels(),
                                         progress, tell);
  workbench::TrialRun run{lesson(request.lesson), kernels, request.kernel->path,
                          emulated_kernels()};
  if (request.orders) run.orders_at = settings;
  return workbench::run_trials(run, progress);
}

/// Compiled with the user's source first. Nothing recorded is added: that is about other kernels.
lab::Report answer_edited(const lab::Request& request, const lab::Settings& settings,
                          lab::Progress& progress, const simt::EmulationOptions& emulation) {
  if (request.backend == "recorded") {
    throw Error(
        "an edited kernel has no recording: recordings are of the kernels that were built in; "
        "allowed: auto, cuda, emulated");
  }
  std::string refused;
  if (request.backend == "cuda") return edited_on_gpu(request, settings, progress, emulation);
  if (request.backend == "auto" && simt::cuda_status().available) {
    try {
      workbench::gpu_compiler();
    } catch (const Error& error) {
      refused = error.what();  // a GPU without its compiler: what can be done is done
    }
    if (refused.empty()) return edited_on_gpu(request, settings, progress, emulation);
  }
  lab::Report report = edited_emulated(request, settings, progress, emulation);
  report.cuda_refused = refused.empty() ? simt::why_cuda_refused() : refused;
  return report;
}

}  // namespace

lab::Report answer(const lab::Request& request, lab::Progress& progress,
                   simt::EmulationOptions emulation) {
  const lab::Lesson& asked = lesson(request.lesson);
  (void)lab::race_of(request);  // refuses one that is none
  (void)lab::is_quick(request);
  const lab::Settings settings = asked.knobs().completed(lab::params_of(request));
  emulation.order = request.order;
  if (request.action == lab::Request::Action::trials)
    return answer_trials(request, settings, progress);
  if (request.kernel) return answer_edited(request, settings, progress, emulation);
  if (request.backend == "recorded") return from_recording(request);
  const auto device = make_device(request.backend, emulation);
  lab::Report report = run_on(*device, request, settings, progress);
  if (request.action == lab::Request::Action::bench) return report;
  if (request.backend == "auto") report.cuda_refused = simt::why_cuda_refused();
  add_recorded(report);
  return report;
}

Witnessed answer_with_evidence(const lab::Request& request, lab::Progress& progress) {
  if (!request.kernel || request.action != lab::Request::Action::run ||
      (request.backend != "emulated" && request.backend != "auto")) {
    throw Error("evidence is kept of runs of an edited kernel under emulation alone");
  }
  const lab::Settings settings = lesson(request.lesson).knobs().completed(request.params);
  simt::EvidenceWriter evidence;
  lab::Report report = edited_emulated(request, settings, progress, {.order = request.order},
                                       workbench::kRunning, &evidence);
  if (evidence.full() && !report.ok()) return {std::move(report), {}};
  return {std::move(report), evidence.take()};
}

lab::Report answer_from_evidence(const lab::Request& request, std::string_view evidence,
                                 lab::Progress& progress) {
  const lab::Lesson& asked = lesson(request.lesson);
  simt::EvidenceReader reader(evidence);
  const auto device =
      simt::make_replaying_device(emulated_kernels(), {.order = request.order}, reader);
  lab::Report report = asked.run(asked.knobs().completed(request.params), *device, progress);
  reader.require_end();
  return report;
}

std::optional<RecordedNear> nearest_recorded(
    std::string_view id, const lab::Settings& settings,
    const std::function<bool(const lab::Report& run)>& eligible) {
  const lab::Lesson& of = lesson(id);
  const lab::Settings all = of.knobs().completed(settings);
  std::optional<RecordedNear> nearest;
  lab::Distance least;
  lab::recorded_run(id, [&](const lab::Report& run) {
    const auto then = settings_then(of.knobs(), run);
    if (!then || (eligible && !eligible(run))) return false;
    const lab::Distance far = lab::distance(of.knobs(), all, *then);
    if (!nearest || far < least) nearest = {&run, lab::differing(*then, all)}, least = far;
    return false;  // look at all
  });
  return nearest;
}

bool is_of_run(const lab::Measurement& number, const lab::Report& report) {
  const lab::Lesson& of = lesson(report.lesson);
  if (const auto knobs = of.case_of(number)) {
    return std::all_of(knobs->begin(), knobs->end(), [&](const auto& knob) {
      const auto now = report.params.find(knob.first);
      return now != report.params.end() && now->second == knob.second;
    });
  }
  if (number.recorded_at.empty()) return true;
  const lab::Report* run = recorded_with(of, report.params);
  if (run == nullptr) return false;
  const lab::Measurement* then = run->measurement(number.id, number.variant);
  return then != nullptr && then->value == number.value;
}

}  // namespace tilestep

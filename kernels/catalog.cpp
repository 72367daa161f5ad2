#include "catalog.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "accumulator_precision/accumulator_precision.hpp"
#include "accumulator_precision/accumulator_precision_kernels.hpp"
#include "coalescing/coalescing.hpp"
#include "coalescing/coalescing_kernels.hpp"
#include "lab/recording.hpp"
#include "moe_routing/moe_routing.hpp"
#include "moe_routing/moe_routing_kernels.hpp"
#include "online_softmax/online_softmax.hpp"
#include "online_softmax/online_softmax_kernels.hpp"
#include "tiling/tiling.hpp"
#include "tiling/tiling_kernels.hpp"

namespace tilestep {
namespace {

constexpr std::array kEmulatedKernels = {
    simt::KernelEntry{"online-softmax", online_softmax::kernels_emulated},
    simt::KernelEntry{"coalescing", coalescing::kernels_emulated},
    simt::KernelEntry{"tiling", tiling::kernels_emulated},
    simt::KernelEntry{"accumulator-precision", accumulator_precision::kernels_emulated},
    simt::KernelEntry{"moe-routing", moe_routing::kernels_emulated},
};

/// A run that was not timed here still shows the throughput of a real GPU, labelled as recorded.
void add_recorded(lab::Report& report) {
  const lab::Recording* recording = lab::recording(report.lesson);
  if (recording == nullptr) return;
  for (const lab::Measurement& m : recording->bench.measurements) report.measurements.push_back(m);
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
  const lab::Settings wanted = lesson(request.lesson).knobs().completed(request.params);
  if (wanted != recording->run.params) {
    throw Error(fmt::format("the recording of '{}' holds the default knobs alone; choose "
                            "--backend emulated or cuda for other settings",
                            request.lesson),
                ExitCode::unavailable);
  }
  lab::Report report = recording->run;
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
  static const std::array<const lab::Lesson*, 5> all = {
      &online_softmax::lesson(), &coalescing::lesson(), &tiling::lesson(),
      &accumulator_precision::lesson(), &moe_routing::lesson()};
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
  device->stop_when([&progress] { return progress.cancelled(); });
  if (request.action == lab::Request::Action::bench) return asked.bench(*device, progress);
  lab::Report report = asked.run(settings, *device, progress);
  add_recorded(report);
  return report;
}

}  // namespace tilestep

#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/simt/backends.hpp"

namespace tilestep {

/// A recorded run, and the knobs that would have to be turned to have its settings; none where it has
/// them.
struct RecordedNear {
  const lab::Report* run = nullptr;
  lab::Settings changes;
};
/// The recorded run that lies nearest to `settings` (lab::distance) of those that are `eligible`; of
/// two as near that of the defaults.
std::optional<RecordedNear> nearest_recorded(
    std::string_view lesson, const lab::Settings& settings,
    const std::function<bool(const lab::Report& run)>& eligible = nullptr);

/// Answers a request on this machine, in this thread: picks the device, runs, and adds recorded
/// measurements (provenance `recorded`) where the lesson has a recording. `auto` means CUDA where
/// it works, else emulation. Throws Error.
/// Where a number was recorded of the very same knobs, that stands beside the run as well. `recorded`
/// answers with a recorded run of these very settings, else a Refused (unavailable) that names the
/// nearest and offers it.
lab::Report answer(const lab::Request& request, lab::Progress& progress,
                   simt::EmulationOptions emulation = {});

/// Whether `number`, one of `report`'s measurements, is about the run that `report` is of. Beside a run
/// stand numbers of the recorded bench too, which are about shapes and kernels of their own.
bool is_of_run(const lab::Measurement& number, const lab::Report& report);

}  // namespace tilestep

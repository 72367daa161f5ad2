#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {

/// What `tilestep record` keeps of one lesson on one GPU: the bench, and the run of the defaults.
struct Recording {
  std::string lesson;
  std::string recorded_at;  ///< ISO date
  std::string protocol;     ///< how it was measured, in a sentence or two
  Report run;
  Report bench;
};
nlohmann::json to_json(const Recording& recording);
/// Throws Error saying what is wrong.
Recording recording_from_json(const nlohmann::json& json);

/// The recordings that were built into the program (assets/recordings/<gpu>/<lesson>.json).
std::span<const Recording> recordings();
/// The recording of `lesson`, if there is one.
const Recording* recording(std::string_view lesson);

}  // namespace tilestep::lab

#include "scenes/shared/recorded.hpp"

#include <fmt/format.h>

#include "kernels/base/lab/recording.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

/// Those of `then` that stand otherwise in `now`.
lab::Settings others(const lab::Settings& then, const lab::Settings& now) {
  lab::Settings differ;
  for (const auto& [id, value] : then) {
    const auto found = now.find(id);
    if (found == now.end() || found->second != value) differ.emplace(id, value);
  }
  return differ;
}

std::string only_for(const lab::Settings& knobs) {
  std::vector<std::string> parts;
  for (const auto& [id, value] : knobs) {
    parts.push_back(fmt::format("{} = {}", id, lab::to_text(value)));
  }
  return fmt::format("Recorded only for {}.", words::joined(parts));
}

}  // namespace

NumberOfRun number_of_run(const lab::Report& report, std::string_view id,
                          std::string_view variant) {
  NumberOfRun none;
  for (const lab::Measurement& m : report.measurements) {
    if (m.id != id || m.variant != variant) continue;
    if (is_of_run(m, report)) return {&m, {}};
    const auto knobs = lesson(report.lesson).case_of(m);
    if (knobs) none.why_not = only_for(others(*knobs, report.params));
  }
  const lab::Recording* recording = lab::recording(report.lesson);
  if (!none.why_not.empty() || recording == nullptr) return none;
  const lab::Measurement* then = recording->run.measurement(id, variant);
  const lab::Settings differ = others(recording->run.params, report.params);
  if (then != nullptr && then->provenance == lab::Provenance::recorded && !differ.empty()) {
    none.why_not = only_for(differ);
  }
  return none;
}

}  // namespace tilestep::scenes

#include "scenes/shared/recorded.hpp"

#include <fmt/format.h>

#include "kernels/answer.hpp"
#include "kernels/base/lab/nearest.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

std::string listed(const lab::Settings& knobs) {
  std::vector<std::string> parts;
  for (const auto& [id, value] : knobs) {
    parts.push_back(fmt::format("{} = {}", id, lab::to_text(value)));
  }
  return words::joined(parts);
}

std::string only_for(const lab::Settings& knobs) {
  return fmt::format("Recorded only for {}.", listed(knobs));
}

}  // namespace

NumberOfRun number_of_run(const lab::Report& report, std::string_view id,
                          std::string_view variant) {
  NumberOfRun none;
  for (const lab::Measurement& m : report.measurements) {
    if (m.id != id || m.variant != variant) continue;
    if (is_of_run(m, report)) return {&m, {}};
    const auto knobs = lesson(report.lesson).case_of(m);
    if (knobs) none.why_not = only_for(lab::differing(*knobs, report.params));
  }
  if (!none.why_not.empty()) return none;
  int runs = 0;
  const auto has_it = [&](const lab::Report& run) {
    const lab::Measurement* then = run.measurement(id, variant);
    const bool has = then != nullptr && then->provenance == lab::Provenance::recorded;
    runs += has ? 1 : 0;
    return has;
  };
  const auto near = nearest_recorded(report.lesson, report.params, has_it);
  if (!near || near->changes.empty()) return none;
  none.why_not = runs == 1 ? only_for(near->changes)
                           : fmt::format("Not recorded for these settings; nearest: {}.",
                                         listed(near->changes));
  return none;
}

}  // namespace tilestep::scenes

#include "kernels/base/lab/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/names.hpp"

namespace tilestep::lab {

Provenance provenance_from(std::string_view text) {
  if (const auto provenance = named<Provenance>(text)) return *provenance;
  throw Error(fmt::format(
      "provenance cannot be '{}'; allowed: measured, counted, traced, derived, recorded", text));
}

Table readout_table(const std::vector<Measurement>& measurements, int decimals) {
  Table table{"readouts",
              "What the run says, and how",
              {{"quantity", "quantity", "", -1},
               {"value", "value", "", decimals},
               {"unit", "unit", "", -1},
               {"source", "source", "", -1},
               {"how", "how", "", -1}},
              {}};
  for (const Measurement& m : measurements) {
    table.add({m.id, m.value, m.unit, m.provenance, m.detail});
  }
  return table;
}

bool Measurement::stable() const {
  if (!p10 || !p90 || value == 0) return true;
  return std::abs(*p90 - *p10) <= 0.10 * std::abs(value);
}

bool Report::ok() const {
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.ok; });
}

const Table* Report::table(std::string_view id) const {
  for (const Table& table : tables) {
    if (table.id == id) return &table;
  }
  return nullptr;
}

const Measurement* Report::measurement(std::string_view id, std::string_view variant) const {
  for (const Measurement& measurement : measurements) {
    if (measurement.id == id && (variant.empty() || measurement.variant == variant)) {
      return &measurement;
    }
  }
  return nullptr;
}

std::string provenance_sentence(const Measurement& measurement, const Report& report) {
  const std::string device = measurement.device.empty() ? report.device.name : measurement.device;
  const std::string day =
      measurement.recorded_at.empty() ? report.recorded_at : measurement.recorded_at;
  std::string sentence;
  switch (measurement.provenance) {
    case Provenance::measured:
      sentence = fmt::format("Measured on {}", device);
      break;
    case Provenance::counted:
      sentence = fmt::format("Counted by the hardware counters of {}", device);
      break;
    case Provenance::traced:
      sentence = fmt::format("Traced by the kernel itself on {}", device);
      break;
    case Provenance::derived:
      sentence = "Derived with a formula";
      break;
    case Provenance::recorded:
      sentence = fmt::format("Recorded on {}{}{}", device, day.empty() ? "" : ", ", day);
      break;
  }
  if (measurement.samples > 0) {
    sentence += fmt::format(", {} samples", measurement.samples);
    if (measurement.p10 && measurement.p90) {
      sentence += fmt::format(", 80 % of them from {:.4g} to {:.4g} {}", *measurement.p10,
                              *measurement.p90, measurement.unit);
    }
    if (!measurement.stable()) sentence += " (unstable: they spread by more than 10 %)";
  }
  sentence += ".";
  if (!measurement.detail.empty()) sentence += " " + measurement.detail;
  return sentence;
}

}  // namespace tilestep::lab

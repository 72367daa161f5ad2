#include "kernels/base/lab/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/names.hpp"

namespace tilestep::lab {
std::string_view to_text(Provenance provenance) {
  return name_of(provenance);
}

Provenance provenance_from(std::string_view text) {
  if (const auto provenance = named<Provenance>(text)) return *provenance;
  throw Error(fmt::format(
      "provenance cannot be '{}'; allowed: measured, counted, traced, derived, recorded", text));
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

}  // namespace tilestep::lab

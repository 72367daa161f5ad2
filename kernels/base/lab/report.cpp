#include "kernels/base/lab/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tilestep::lab {
namespace {

constexpr std::array<std::string_view, 5> kProvenances = {"measured", "counted", "traced",
                                                          "derived", "recorded"};

}  // namespace

std::string_view to_text(Provenance provenance) {
  return kProvenances.at(static_cast<std::size_t>(provenance));
}

Provenance provenance_from(std::string_view text) {
  for (std::size_t i = 0; i < kProvenances.size(); ++i) {
    if (kProvenances[i] == text) return static_cast<Provenance>(i);
  }
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

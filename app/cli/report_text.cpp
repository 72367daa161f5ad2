#include "app/cli/report_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "app/cli/fitted_table.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
std::string settings_words(const lab::Report& report) {
  const lab::Knobs& knobs = lesson(report.lesson).knobs();
  std::string text;
  for (const auto& [id, value] : report.params) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", id, knobs.at(id).text(value));
  }
  return text;
}

std::string number_words(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == std::floor(value) && std::abs(value) < 1e7) return fmt::format("{:.0f}", value);
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e7) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

std::string value_words(const lab::Measurement& measurement) {
  if (!measurement.stable()) return "unstable";
  const std::string number = number_words(measurement.value);
  return measurement.unit.empty() ? number : number + " " + measurement.unit;
}

std::string device_words(const lab::Report& report) {
  std::string name = report.device.name;
  if (report.device.backend == "emulated") name = fmt::format("CPU emulation on {}", name);
  if (report.kernel) {
    const std::string& path = report.kernel->path;
    return fmt::format("your {} on {}", path.substr(path.rfind('/') + 1), name);
  }
  if (report.device.backend == "emulated" || report.recorded_at.empty()) return name;
  return fmt::format("{}, recorded on {}", name, report.recorded_at);
}

std::string provenance_words(const lab::Measurement& measurement, const lab::Report& report) {
  const std::string& device = measurement.device.empty() ? report.device.name : measurement.device;
  std::string words;
  switch (measurement.provenance) {
    case lab::Provenance::measured:
      words = fmt::format("measured on {}", device);
      break;
    case lab::Provenance::counted:
      words = fmt::format("counted by the hardware of {}", device);
      break;
    case lab::Provenance::traced:
      words = "traced by the kernel";
      break;
    case lab::Provenance::derived:
      words = "derived";
      break;
    case lab::Provenance::recorded: {
      const std::string& date =
          measurement.recorded_at.empty() ? report.recorded_at : measurement.recorded_at;
      words = fmt::format("recorded on {} on {}", device, date);
      break;
    }
  }
  if (measurement.samples > 0) words += fmt::format(", {} samples", measurement.samples);
  return words;
}

lab::Table measurement_table(const lab::Report& report) {
  lab::Table table{"measurements", "Measurements", {}, {}};
  for (const char* label : {"what", "variant", "value", "p10–p90", "where from", "detail"}) {
    table.columns.push_back({label, label, "", -1});
  }
  for (const lab::Measurement& m : report.measurements) {
    const bool spread = m.p10 && m.p90;
    table.rows.push_back(
        {m.id, m.variant, value_words(m),
         spread ? fmt::format("{}–{}", number_words(*m.p10), number_words(*m.p90)) : std::string(),
         provenance_words(m, report), m.detail});
  }
  return table;
}

lab::Table check_table(const lab::Report& report) {
  lab::Table table{"checks", "Checks against the reference", {}, {}};
  for (const char* label : {"check", "result", "max error", "tolerance", "why this tolerance"}) {
    table.columns.push_back({label, label, "", -1});
  }
  for (const lab::Check& check : report.checks) {
    table.rows.push_back({check.id, std::string(check.ok ? "ok" : "FAILED"),
                          number_words(check.max_error), number_words(check.tolerance),
                          check.detail});
  }
  return table;
}

std::string report_text(const lab::Report& report) {
  std::string text = report.summary + "\n\n";
  text += fmt::format("lesson  {}\ndevice  {}\n", report.lesson, device_words(report));
  if (!report.params.empty()) text += fmt::format("knobs   {}\n", settings_words(report));
  for (const lab::Table& table : report.tables) {
    text += fmt::format("\n{}\n{}", table.title, aligned(table));
  }
  for (const lab::Table& table : {measurement_table(report), check_table(report)}) {
    if (!table.rows.empty()) text += fmt::format("\n{}\n{}", table.title, aligned(table));
  }
  return text;
}

std::string report_csv(const lab::Report& report) {
  if (report.tables.size() == 1) return report.tables.front().to_csv();
  std::string text;
  for (const lab::Table& table : report.tables) {
    text += fmt::format("{}# {}: {}\n{}", text.empty() ? "" : "\n", table.id, table.title,
                        table.to_csv());
  }
  return text;
}

std::string report_markdown(const lab::Report& report) {
  std::string text = fmt::format("# {}\n\n{}\n\n", report.lesson, report.summary);
  text += fmt::format("- device: {}\n", device_words(report));
  if (!report.params.empty()) text += fmt::format("- knobs: `{}`\n", settings_words(report));
  std::vector<lab::Table> tables = report.tables;
  tables.push_back(measurement_table(report));
  tables.push_back(check_table(report));
  for (const lab::Table& table : tables) {
    if (!table.rows.empty()) text += fmt::format("\n## {}\n\n{}", table.title, table.to_markdown());
  }
  return text;
}

}  // namespace tilestep::app

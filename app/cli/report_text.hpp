#pragma once

#include <string>

#include "app/cli/terminal.hpp"
#include "kernels/base/lab/report.hpp"

/// A report as text: for a terminal, and as CSV and Markdown.
namespace tilestep::app {

/// All of a report, however long and wide.
std::string report_text(const lab::Report& report);
/// What of it fits a terminal: the sentence, the lesson's main table, the checks on a line, and the
/// rates of its ladder. It says what was left out.
std::string report_brief(const lab::Report& report, TerminalSize terminal);
/// One table: as it is. Several: each after a line "# id: title", with an empty line between.
std::string report_csv(const lab::Report& report);
std::string report_markdown(const lab::Report& report);

/// Measurements and checks as tables, so that every form shows them alike.
lab::Table measurement_table(const lab::Report& report);
lab::Table check_table(const lab::Report& report);

/// "measured on NVIDIA H200, 30 samples", "recorded on NVIDIA H200 on 2026-01-31", …
std::string provenance_words(const lab::Measurement& measurement, const lab::Report& report);
/// The value as shown: "4012 GB/s"; a timed number whose spread is over 10 % is withheld.
std::string value_words(const lab::Measurement& measurement);
/// The knobs as `--set` takes them: "keys=16 capacity=off".
std::string settings_words(const lab::Report& report);
/// "CPU emulation on AMD EPYC", "NVIDIA H200", "NVIDIA H200, recorded on 2026-01-31".
std::string device_words(const lab::Report& report);
/// A number with four significant digits, as people write it: "4012", "0.946", "inf".
std::string number_words(double value);

}  // namespace tilestep::app

#pragma once

#include <string>

#include "kernels/base/lab/report.hpp"

/// The ladder of a bench: its rungs with the rate of each.
namespace tilestep::app {

/// The timed rate of a rung of the ladder, if there is one; the first where there are several.
const lab::Measurement* rate_of(const lab::Report& report, const std::string& rung);
/// The reference of a rung's rate: the peer of the same run.
const lab::Measurement* fraction_of(const lab::Report& report, const std::string& rung);

/// The rungs of the report's table `ladder` (columns `rung` and `why` or `what_changed`) with the
/// rate of each. Without such a table: all measurements.
lab::Table ladder_table(const lab::Report& report);

/// What the details of all rungs have in common: what they begin with in whole phrases, their shape,
/// and the note after "; ", if it is the same.
struct SharedDetail {
  std::string shape, note;
};
SharedDetail shared_detail(const lab::Report& report);

/// The ladder as the README shows it, with the shape, the device and the day below it.
std::string ladder_markdown(const lab::Report& report);

}  // namespace tilestep::app

#pragma once

#include <string>
#include <string_view>

#include "kernels/base/lab/report.hpp"

/// The numbers of a report that apply to its run, and why others are not shown.
namespace tilestep::scenes {

struct NumberOfRun {
  const lab::Measurement* number = nullptr;
  /// If there is a number only for other knobs: "Recorded only for tile = 32."; otherwise empty.
  std::string why_not;
};
NumberOfRun number_of_run(const lab::Report& report, std::string_view id,
                          std::string_view variant = {});

}  // namespace tilestep::scenes

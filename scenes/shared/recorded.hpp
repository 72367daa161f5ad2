#pragma once

#include <string>
#include <string_view>

#include "kernels/base/lab/report.hpp"

/// Numbers of a report that are about its run, and why others are not shown.
namespace tilestep::scenes {

struct NumberOfRun {
  const lab::Measurement* number = nullptr;
  /// Where there is none, but one of other knobs: "Recorded only for tile = 32." Else empty.
  std::string why_not;
};
NumberOfRun number_of_run(const lab::Report& report, std::string_view id,
                          std::string_view variant = {});

}  // namespace tilestep::scenes

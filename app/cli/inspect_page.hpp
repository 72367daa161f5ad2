#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/inspect/paths.hpp"
#include "scenes/inspect/request.hpp"
#include "scenes/inspect/timeline.hpp"

namespace tilestep::app {

/// Pictures of a request as SVG, on a dark ground and on a light one.
struct RequestDrawn {
  std::string dark, light;
};

/// What `tilestep inspect` found, as one page that needs nothing but itself: mistakes, the source with what each line moves,
/// the costliest requests as pictures, launches, and what the program did and printed.
std::string inspect_page(const lab::Report& report, const std::string& file,
                         const std::vector<std::string>& source,
                         const std::function<RequestDrawn(const picture::Picture&)>& draw);

}  // namespace tilestep::app

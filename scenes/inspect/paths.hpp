#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/inspect/request.hpp"
#include "scenes/picture/picture.hpp"

namespace tilestep::scenes {

/// The lines that the lanes of a divergent warp executed.
struct InspectedPaths {
  struct Line {
    int line = 0;
    std::int64_t warp = 0;                         ///< executions by the warp
    std::array<std::int64_t, kWarpLanes> lanes{};  ///< executions by each lane
    /// Executions during which a lane idled.
    std::int64_t idle() const;
  };
  int launch = 0, block = 0, warp = 0;
  std::string kernel;
  std::vector<Line> lines;  ///< in the order of the source
};

/// The most divergent warp of each launch, as the report's trace has it. Throws Error for a malformed trace.
std::vector<InspectedPaths> inspected_paths(const lab::Report& report);

/// "warp 7 of block 0, executions by lane"
std::string said_of(const InspectedPaths& paths);

/// For the lines with the most idle lanes a bar per lane, as long as its executions; hatched: it idles while others run.
picture::Picture picture_of(const InspectedPaths& paths);

}  // namespace tilestep::scenes

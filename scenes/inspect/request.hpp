#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/picture/picture.hpp"

/// What a report of `tilestep inspect` (kernels/base/inspect) has of a request, and its picture: the marks are those of the
/// lesson on coalescing.
namespace tilestep::scenes {

inline constexpr int kWarpLanes = 32;

/// The request of a line with the most to spare, in a launch.
struct InspectedRequest {
  int launch = 0, line = 0, bytes = 0, block = 0, warp = 0, moved = 0, least = 0;
  bool shared =
      false;        ///< of shared memory: `moved` and `least` are turns of its banks, else sectors
  std::string use;  ///< "load", "store", "atomic"
  std::array<std::int64_t, kWarpLanes>
      offset{};  ///< of each lane, in bytes from a line's begin; −1: idle
};

/// Those of a report's trace. Throws Error for a trace that is none.
std::vector<InspectedRequest> inspected_requests(const lab::Report& report);

/// How the emulation of the program differs from a GPU, a sentence each; none in a report without them.
std::vector<std::string> differences_of(const lab::Report& report);

/// "warp 7 of block 0: a load of 32 lanes, 4 bytes each"
std::string said_of(const InspectedRequest& request);

/// Lanes, and below them the sectors or banks that they ask for. Of shared memory each row is a turn.
picture::Picture picture_of(const InspectedRequest& request);

}  // namespace tilestep::scenes

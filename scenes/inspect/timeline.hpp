#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/picture/picture.hpp"

namespace tilestep::scenes {

/// The calls of a program in their order, on a lane for the host and one per stream.
struct InspectedTimeline {
  struct Event {
    std::string what;  ///< "copy", "launch", …
    std::string name, detail;
    int line = 0, stream = 0, launch = 0;
  };
  std::vector<Event> events;
  int streams = 1;
};

/// As the report's table `events` has it; without rows where there is none.
InspectedTimeline inspected_timeline(const lab::Report& report);

/// "11 calls on 2 streams, in their order"
std::string said_of(const InspectedTimeline& timeline);

/// A column is a call, a beat and no time: allocations, frees and waits on the host's lane, copies, fills and launches on
/// their stream's. The last calls are omitted where there are more than 48.
picture::Picture picture_of(const InspectedTimeline& timeline);

}  // namespace tilestep::scenes

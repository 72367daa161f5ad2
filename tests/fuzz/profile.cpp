// A trace of another profiler: read, counted, asked, and drawn in the window.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/profile/numbers.hpp"
#include "app/shell/profiling.hpp"
#include "kernels/base/lab/report.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

namespace fs = std::filesystem;

/// A folder that is gone when the program is.
struct TraceFolder {
  TraceFolder() {
    std::string name = (fs::temp_directory_path() / "tilestep-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~TraceFolder() { fs::remove_all(path); }
  fs::path path;
};

/// The examples' first events.
const std::vector<nlohmann::json>& whole() {
  static const std::vector<nlohmann::json> all = [] {
    std::vector<nlohmann::json> texts;
    for (const std::string& name : app::profile_examples()) {
      texts.push_back(nlohmann::json::parse(app::profile_example_text(name)));
      auto& events = texts.back()["traceEvents"];
      events.erase(events.begin() + std::min<std::ptrdiff_t>(40, std::ssize(events)), events.end());
    }
    return texts;
  }();
  return all;
}

void read(std::string_view bytes) {
  static const TraceFolder folder;
  const fs::path file = folder.path / "trace";
  std::ofstream(file, std::ios::binary) << text_of(bytes, whole());
  const auto opened = app::open_profile(file);
  const profile::Numbers& numbers = opened->numbers;
  require(numbers.busiest().busy_ns <= numbers.stretch.ns(),
          "no device is busy longer than the time");
  require(opened->answers.size() == 6, "six questions have six answers");
  for (const auto& lane : opened->timeline.lanes) {
    for (const int columns : {1, 100}) lane.runs(0, 1e6, columns);
  }
  for (std::size_t i = 0; i < opened->trace.events.size(); ++i)
    opened->said_of(static_cast<int>(i));
  const lab::Report report = profile::report_of(opened->trace, numbers, 10);
  lab::report_from_json(lab::to_json(report));
  for (const auto& each : fs::directory_iterator(folder.path)) fs::remove(each);
}

const Target kTarget("profile", read);

}  // namespace
}  // namespace tilestep::fuzz

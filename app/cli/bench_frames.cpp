#include <fmt/format.h>

#include "app/cli/bench_parts.hpp"
#include "app/window/window.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

constexpr int kWidth = 1440, kHeight = 900;
constexpr int kFrames = 200;
constexpr int kStep = 2;  ///< in the middle of a trace, where the picture is busy
struct Front {
  const char* name;
  Tab tab;
  bool reader = false, presenter = false;
};
constexpr Front kFronts[] = {{"data", Tab::data},         {"measured", Tab::measured},
                             {"kernel", Tab::kernel},     {"lesson", Tab::data, true},
                             {"glossary", Tab::glossary}, {"presenter", Tab::data, false, true}};

}  // namespace

BenchPart bench_frames() {
  BenchPart part;
  part.table = {"frames",
                fmt::format("Processor time to build one frame of {} × {}, median of {}", kWidth,
                            kHeight, kFrames),
                {{"lesson", "lesson", "", -1}, {"tab", "tab", "", -1}, {"cost", "cost", "ms", 3}},
                {}};
  nlohmann::json costs = nlohmann::json::array();
  for (const lab::Lesson* lesson : lessons()) {
    for (const auto& [name, tab, reader, presenter] : kFronts) {
      ShellOptions options;
      options.lesson = lesson->info().id;
      options.backend = "emulated";
      options.step = kStep;
      options.tab = tab;
      options.reader = reader;
      options.presenter = presenter;
      const double cost_ms = frame_cost_ms(options, kWidth, kHeight, kFrames);
      part.table.rows.push_back({options.lesson, std::string(name), cost_ms});
      costs.push_back({{"lesson", options.lesson}, {"tab", name}, {"cost_ms", cost_ms}});
    }
  }
  part.json = {
      {"width", kWidth}, {"height", kHeight}, {"frames", kFrames}, {"costs", std::move(costs)}};
  return part;
}

}  // namespace tilestep::app

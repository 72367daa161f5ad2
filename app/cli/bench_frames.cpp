#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/cli/bench_parts.hpp"
#include "app/shell/steps.hpp"
#include "app/window/window.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::app {
namespace {

constexpr int kFrames = 400;

/// What can be at the front, and the keys that bring it there and take it away again.
struct Front {
  const char* name;
  std::vector<Key> there, back;
  Action action =
      Action::moving;  ///< the second thing that is measured; the first one is to stand still
};
const std::vector<Front>& fronts() {
  static const std::vector<Front> all = {
      {"data", {Key::d}, {}},
      {"measured", {Key::m}, {}},
      {"kernel", {Key::k}, {}},
      {"glossary", {Key::g}, {Key::d}},
      {"lesson", {Key::l}, {Key::l}},
      {"presenter", {Key::p}, {Key::p}},
      {"presenter, measured", {Key::p, Key::m}, {Key::m, Key::p, Key::d}},
      {"palette", {Key::find}, {Key::escape}, Action::hovering}};
  return all;
}

nlohmann::json json_of(const FrameCosts& costs) {
  return {{"p50_ms", costs.p50_ms}, {"p99_ms", costs.p99_ms}};
}

/// Writes the rows of one lesson with one set of knobs.
class Writer {
 public:
  Writer(const std::string& lesson, const std::string& knobs, lab::Table& table,
         nlohmann::json& list)
      : lesson_(lesson), knobs_(knobs), table_(table), list_(list) {}

  void measure(FrameBench& bench, const std::string& front, Action action) {
    const FrameCosts still = bench.measure(kFrames, Action::still);
    const FrameCosts moved = bench.measure(kFrames, action);
    const char* name = action == Action::hovering ? "hovering" : "moving";
    list_.push_back({{"lesson", lesson_},
                     {"tab", front},
                     {"knobs", knobs_},
                     {"cost_ms", still.p50_ms},
                     {"still", json_of(still)},
                     {name, json_of(moved)}});
    table_.rows.push_back({lesson_, knobs_, front, still.p50_ms, still.p99_ms, std::string(name),
                           moved.p50_ms, moved.p99_ms});
  }

 private:
  const std::string &lesson_, &knobs_;
  lab::Table& table_;
  nlohmann::json& list_;
};

/// The first step before which the lesson asks something; −1: none.
int question_step(scenes::Scene& scene, const lab::Report& report) {
  scene.load(report);
  const scenes::StepAxis axis = scene.steps();
  for (int step = 0; step < axis.tiles; ++step) {
    if (scene.question({at_step(axis, step)})) return step;
  }
  return -1;
}

}  // namespace

BenchPart bench_frames(const BenchCases& cases) {
  BenchPart part;
  part.table = {"frames",
                fmt::format("Processor time to build one frame of {} × {}, of {}", kBenchWidth,
                            kBenchHeight, kFrames),
                {{"lesson", "lesson", "", -1},
                 {"knobs", "knobs", "", -1},
                 {"tab", "tab", "", -1},
                 {"cost", "still", "ms", 3},
                 {"p99", "99 % below", "ms", 3},
                 {"action", "and then", "", -1},
                 {"action_p50", "median", "ms", 3},
                 {"action_p99", "99 % below", "ms", 3}},
                {}};
  nlohmann::json costs = nlohmann::json::array();
  for (auto& scene : scenes::make_scenes()) {
    const std::string lesson(scene->lesson());
    for (const BenchCase& one : cases.at(lesson)) {
      Writer writer(lesson, one.knobs, part.table, costs);
      {
        FrameBench bench(shell_at(one, kBusyStep), kBenchWidth, kBenchHeight);
        for (const Front& front : fronts()) {
          for (const Key key : front.there) bench.shell().key(key, false);
          writer.measure(bench, front.name, front.action);
          for (const Key key : front.back) bench.shell().key(key, false);
        }
      }
      const int step = question_step(*scene, one.report);
      if (step < 0) continue;
      ShellOptions options = shell_at(one, step);
      options.predict = true;
      FrameBench bench(options, kBenchWidth, kBenchHeight);
      bench.shell().key(Key::right, false);
      writer.measure(bench, "question", Action::hovering);
    }
  }
  part.json = {{"width", kBenchWidth},
               {"height", kBenchHeight},
               {"frames", kFrames},
               {"costs", std::move(costs)}};
  return part;
}

}  // namespace tilestep::app

// The questions and events of the lesson on launches.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/words.hpp"
#include "scenes/systems/launches/scene.hpp"

namespace tilestep::scenes {

using launches::Break, launches::How, launches::Mode, launches::Op, launches::StepTrace,
    launches::WorkTrace;
using words::counted;

/// Before the first call of a step.
std::optional<Question> LaunchesScene::step_question(int step) const {
  const StepTrace& now = trace_.steps[static_cast<std::size_t>(step)];
  const int kernels = launches::launches_of(trace_.layers);
  if (trace_.mode == Mode::persistent) {
    if (step > 0) return std::nullopt;
    return of_kind("persistent-calls",
                   ask_count("One kernel does the whole step. How many calls does the host make?",
                             now.calls, {kernels, 1, 2, now.calls + 3},
                             "the tokens are copied, the barrier's counter is set to 0, the kernel "
                             "is launched, and the host waits."));
  }
  if (step == 0 && trace_.mode == Mode::eager) {
    return of_kind(
        "calls",
        ask_count(fmt::format("A decode step is {} kernels in two streams. How many calls does the "
                              "host make for it?",
                              kernels),
                  now.calls, {kernels, 1, kernels + 2, 2 * kernels},
                  fmt::format("besides the {} launches, events are recorded and waited for, tokens "
                              "are copied, and the host waits for the end.",
                              kernels)));
  }
  if (trace_.mode == Mode::bucketed && now.batch < now.rows) {
    return of_kind(
        "padding",
        ask_count(fmt::format("Step {} has {}. How many rows will its graph compute?", step + 1,
                              counted(now.batch, "token")),
                  now.rows, {now.batch, launches::kMostBatch, now.rows - 1, now.rows + 1},
                  "a graph has the batch that it was captured with: the next bucket's."));
  }
  if (step == 0) return std::nullopt;
  const StepTrace& before = trace_.steps[static_cast<std::size_t>(step) - 1];
  if (now.how == How::updated) {
    return of_kind(
        "changed-batch",
        ask(fmt::format("The graph was captured with {}; now there {}. What does the host do?",
                        counted(before.batch, "token"),
                        now.batch == 1 ? "is 1" : fmt::format("are {}", now.batch)),
            "Captures again, and updates it",
            {"Replays it as it is", "Launches kernel by kernel", "Replays it twice"},
            "a graph holds the arguments and grids of its capture, so they must be replaced."));
  }
  if (now.how == How::replayed) {
    return of_kind("replay-calls",
                   ask_count("The graph is there, and the batch fits it. How many calls does this "
                             "step take?",
                             now.calls, {kernels, 1, now.calls + 2, before.calls},
                             "the tokens are copied, the graph is started, and the host waits."));
  }
  return std::nullopt;
}

/// Before work whose place in the order is worth a thought.
std::optional<Question> LaunchesScene::work_question(int beat) const {
  for (const WorkTrace* work : works_at(beat)) {
    if (work->place < 0 || launches::layer_at(work->place) > 0) continue;
    if (trace_.step_of(beat) != 0) continue;
    if (launches::op_at(work->place) == Op::gate) {
      return of_kind(
          "two-streams",
          ask("gate and up read n, neither what the other writes. What may the device do?",
              "Run them in any order", {"Run gate first", "Wait for the host", "Run only one"},
              "they are in different streams, and an event orders only norm before up."));
    }
    if (launches::op_at(work->place) == Op::act && trace_.broken == Break::missing_dependency) {
      return of_kind("missing",
                     ask("act was launched before its stream waits for up. What will act read?",
                         "Whatever is in up's array",
                         {"up's result", "Nothing: it is refused", "gate's result"},
                         "streams know calls, not arrays; only an event orders two of them."));
    }
  }
  return std::nullopt;
}

std::optional<Question> LaunchesScene::shape_question(int next) const {
  const launches::ShapeTrace& shape = trace_.shape;
  const launches::Tiling tiling = shape.tiling();
  if (next == trace_.tiles_step()) {
    return of_kind(
        "tiles",
        ask_count(fmt::format("A product has tiles of {} rows. X has {}. How many rows does it "
                              "compute?",
                              launches::kTileM, counted(shape.m, "row")),
                  static_cast<std::int64_t>(tiling.rows) * launches::kTileM,
                  {shape.m, (tiling.rows + 1) * launches::kTileM,
                   std::max(tiling.rows - 1, 0) * launches::kTileM, 2 * shape.m},
                  "a tile over the edge costs as much as a full one."));
  }
  if (next == trace_.waves_step()) {
    const int more = std::min(4 * shape.m, launches::kMostSide);
    return of_kind(
        "waves",
        ask_to_set(fmt::format("With m = {}, how many waves do {} multiprocessors need?", more,
                               launches::kMultiprocessors),
                   {"staircase_box"}, "waves", launches::tiling_of(more, shape.n).waves, 0.5,
                   "a wave is one tile for each multiprocessor, and a last tile "
                   "costs a whole wave."));
  }
  return of_kind("amdahl",
                 ask_ratio("20 % of a model's time is spent in layers that fall back to a kernel 5 "
                           "times as slow. How many times as long does the model take?",
                           launches::slowdown(0.2, 5), {5.0, 1.2, 1.0},
                           "80 % stay as they are, and 20 % become 100 %: 1.8 in all."));
}

std::optional<Question> LaunchesScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  std::optional<Question> asked;
  if (next > trace_.beats) {
    asked = shape_question(next);
  } else {
    const int step = trace_.step_of(next);
    asked = trace_.steps[static_cast<std::size_t>(step)].first_beat == next ? step_question(step)
                                                                            : work_question(next);
  }
  return placed(std::move(asked), report_, picture::Key{"gap"});
}

void LaunchesScene::find_events() {
  events_.clear();
  std::vector<Event> all;
  for (std::size_t s = 0; s < trace_.steps.size(); ++s) {
    const StepTrace& step = trace_.steps[s];
    all.push_back({{step.first_beat, 0}, fmt::format("step {}: {}", s + 1, name_of(step.how))});
  }
  if (!trace_.findings.empty()) {
    all.push_back({{trace_.findings.front().beat, 0}, "a mistake is named"});
  }
  all.push_back({{trace_.tiles_step(), 0}, "a product's shape"});
  std::stable_sort(all.begin(), all.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  events_ = std::move(all);
}

}  // namespace tilestep::scenes

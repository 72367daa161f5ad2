// A number that was recorded earlier stands beside the picture only where the knobs stand as they did then.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/base/lab/recording.hpp"
#include "kernels/lessons.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using lab::Measurement;
using scenes::Readout;

namespace {

bool agree(const lab::Settings& some, const lab::Settings& all) {
  for (const auto& [id, value] : some) {
    const auto found = all.find(id);
    if (found == all.end() || found->second != value) return false;
  }
  return true;
}

/// What was recorded of `id` for these knobs: beside the picture of the same settings, or in the bench
/// for a case that they are.
std::vector<double> recorded_for(const lab::Lesson& lesson, std::string_view id,
                                 const lab::Settings& params) {
  std::vector<double> values;
  const lab::Recording* recording = lab::recording(lesson.info().id);
  if (recording == nullptr) return values;
  for (const Measurement& m : recording->run.measurements) {
    const lab::Settings knobs = lesson.case_of(m).value_or(recording->run.params);
    if (m.id == id && agree(knobs, params)) values.push_back(m.value);
  }
  for (const Measurement& m : recording->bench.measurements) {
    const auto knobs = lesson.case_of(m);
    if (m.id == id && knobs && agree(*knobs, params)) values.push_back(m.value);
  }
  return values;
}

/// The number at the start of `text`, and half of its last digit.
std::pair<double, double> shown_number(const std::string& text) {
  const std::size_t point = text.find('.');
  const auto decimals = point == std::string::npos ? 0 : text.size() - point - 1;
  return {std::strtod(text.c_str(), nullptr), 0.5 * std::pow(10.0, -static_cast<int>(decimals))};
}

bool is_dash(const Readout& readout) {
  return readout.value == "—" || readout.value == "–";
}

/// What is wrong with recorded numbers among `readouts`, a line each; `shown` counts them.
std::string recorded_faults(const lab::Lesson& lesson, const std::vector<Readout>& readouts,
                            const lab::Settings& params, int& shown) {
  std::string faults;
  for (const Readout& readout : readouts) {
    if (readout.provenance != lab::Provenance::recorded) continue;
    if (is_dash(readout)) {
      if (readout.detail.empty())
        faults += fmt::format("{}: a dash without a reason\n", readout.id);
      continue;
    }
    ++shown;
    const auto [value, half] = shown_number(readout.value);
    bool found = false;
    for (const double recorded : recorded_for(lesson, readout.id, params)) {
      found = found || std::abs(recorded - value) <= half * (1 + 1e-9);
    }
    if (!found) {
      faults += fmt::format("{} = {} was not recorded for {}\n", readout.id, readout.value,
                            contract::to_text(params));
    }
  }
  return faults;
}

std::vector<Readout> readouts_at_end(const lab::Report& report) {
  const auto scene = tests::scene_of(report.lesson);
  scene->load(report);
  return scene->readouts({contract::some_cursors(*scene).back()});
}

void check_recorded(const lab::Lesson& lesson) {
  std::vector<lab::Settings> all = contract::knob_ends(lesson);
  for (const lab::Settings& mixture : contract::knob_mixtures(lesson, 40)) {
    if (contract::takes(lesson, mixture)) all.push_back(mixture);
  }
  all.emplace_back();
  int shown = 0;
  for (const lab::Settings& settings : all) {
    const lab::Report& report = tests::report_of(lesson.info().id, settings);
    const std::string faults =
        recorded_faults(lesson, readouts_at_end(report), report.params, shown);
    INFO(contract::to_text(settings));
    INFO(faults);
    CHECK(faults.empty());
  }
  // The check sees a number that is shown for other knobs than its own.
  for (Readout readout : readouts_at_end(tests::report_of(lesson.info().id))) {
    readout.provenance = lab::Provenance::recorded;
    readout.value = "123.456";
    CHECK(recorded_faults(lesson, {readout}, lesson.knobs().defaults(), shown) != "");
    readout.value = "—";
    readout.detail.clear();
    CHECK(recorded_faults(lesson, {readout}, lesson.knobs().defaults(), shown) != "");
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                  \
  TEST_CASE(title ": recorded numbers are those of the knobs", "[" #id "_scene]") { \
    check_recorded(id::lesson());                                                   \
  }
#include "kernels/lessons.def"

/// A recording answers for the default knobs, also for those that the lesson has got since.
#define LESSON(chapter, id, title)                                                   \
  TEST_CASE(title ": its recording is answered from and drawn", "[" #id "_scene]") { \
    if (lab::recording(id::kLessonId) == nullptr) return;                            \
    lab::Request request;                                                            \
    request.lesson = id::kLessonId;                                                  \
    request.backend = "recorded";                                                    \
    lab::NoProgress progress;                                                        \
    const lab::Report report = answer(request, progress);                            \
    CHECK(report.params == id::lesson().knobs().defaults());                         \
    const auto scene = tests::scene_of(id::kLessonId);                               \
    scene->load(report);                                                             \
    CHECK(scene->steps().tiles > 0);                                                 \
  }
#include "kernels/lessons.def"

TEST_CASE("a number of another case is seen", "[scenes_shared]") {
  const lab::Recording* recording = lab::recording("tiling");
  if (recording == nullptr) return;
  const lab::Lesson& tiling = lesson("tiling");
  const Measurement* m = recording->bench.measurement("registers_per_thread", "shared-tile");
  REQUIRE(m != nullptr);
  CHECK(m->detail.starts_with("32x32 tiles, padded"));  // what its case says
  const std::vector<Readout> readouts = {{"registers_per_thread", "registers",
                                          fmt::format("{:.0f}", m->value), "",
                                          lab::Provenance::recorded, "how"}};
  int shown = 0;
  lab::Settings params = tiling.knobs().completed(
      {{"variant", "shared-tile"}, {"tile", std::int64_t{32}}, {"padding", true}});
  CHECK(recorded_faults(tiling, readouts, params, shown) == "");
  params["padding"] = false;
  CHECK(recorded_faults(tiling, readouts, params, shown) != "");
  params["padding"] = true;
  params["tile"] = std::int64_t{8};
  CHECK(recorded_faults(tiling, readouts, params, shown) != "");
}

TEST_CASE("the tiling lesson shows what its timed kernel takes where the knobs are that kernel's",
          "[tiling_scene]") {
  if (lab::recording("tiling") == nullptr) return;
  const auto registers = [](const lab::Settings& settings) {
    for (const Readout& readout : readouts_at_end(tests::report_of("tiling", settings))) {
      if (readout.id == "registers_per_thread") return readout.value;
    }
    return std::string("none");
  };
  CHECK(registers({}) == "—");
  CHECK(registers({{"tile", std::int64_t{32}}, {"padding", true}}) == "30");
  CHECK(registers({{"variant", "naive"}, {"tile", std::int64_t{32}}}) == "32");
  CHECK(registers({{"variant", "naive"}}) == "—");
  CHECK(registers({{"variant", "warp-tile"}}) == "127");
}

// A capsule that somebody sent, opened and shown.
#include "app/keep/capsule.hpp"

#include "app/keep/guided.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

/// A capsule of each lesson that has all that one can have.
const std::vector<nlohmann::json>& whole() {
  static const std::vector<nlohmann::json> all = [] {
    std::vector<nlohmann::json> texts;
    for (const lab::Report& run : short_runs()) {
      lab::Report report = run;
      const std::string path = workbench::editable_sources(run.lesson).front();
      const lab::KernelEdit kernel{path, "// mine\nfloat x;\n"};
      report.kernel = lab::EditedKernel{path, lab::hash_of(kernel.text), "g++", 1, false, {}};
      app::Capsule capsule = app::capsule_of(report, kernel);
      if (const lab::Recording* recording = lab::recording(run.lesson)) {
        capsule.bench = recording->bench;
        if (capsule.bench->tables.size() > 1) capsule.bench->tables.resize(1);
      }
      capsule.step = 1;
      capsule.phase = 0;
      capsule.picks = {{"token", 1}, {"lane", 2}, {"thread", 3}};
      capsule.guesses = {{{0, 0}, 1, 0}, {{1, 0}, -1, 2.5}};
      capsule.notes = "look at step 2";
      texts.push_back(nlohmann::json::parse(app::capsule_text(capsule)));
    }
    return texts;
  }();
  return all;
}

void read(std::string_view bytes) {
  const app::Capsule capsule = app::capsule_from_text(text_of(bytes, whole()), "the capsule");
  const std::string written = app::capsule_text(capsule);
  require(app::capsule_text(app::capsule_from_text(written, "the capsule")) == written,
          "a capsule reads as it was written");
  const auto scene = app::scene_of(capsule.report);
  app::picks_of(capsule, *scene, app::cursor_of(capsule, scene->steps()));
  show(capsule.report);
  if (capsule.bench) show_bench(*capsule.bench);
}

const Target kTarget("capsule", read);

}  // namespace
}  // namespace tilestep::fuzz

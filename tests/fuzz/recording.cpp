// A recording of another machine: its run is shown, its bench drawn.
#include "kernels/base/lab/recording.hpp"

#include "kernels/catalog.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

/// Short runs, beside the benches that are built in.
const std::vector<nlohmann::json>& whole() {
  static const std::vector<nlohmann::json> all = [] {
    std::vector<nlohmann::json> texts;
    for (const lab::Report& run : short_runs()) {
      const lab::Recording* recorded = lab::recording(run.lesson);
      if (recorded == nullptr) continue;
      lab::Recording recording = *recorded;
      recording.run = run;
      texts.push_back(lab::to_json(recording));
    }
    return texts;
  }();
  return all;
}

void read(std::string_view bytes) {
  const auto parsed = nlohmann::json::parse(text_of(bytes, whole()), nullptr, false);
  if (parsed.is_discarded()) return;
  const lab::Recording recording = lab::recording_from_json(parsed);
  lesson(recording.bench.lesson);
  show_bench(recording.bench);
}

const Target kTarget("recording", read);

}  // namespace
}  // namespace tilestep::fuzz

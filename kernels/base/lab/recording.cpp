#include "kernels/base/lab/recording.hpp"

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/fields.hpp"

namespace tilestep::lab {

namespace {

const Fields<Recording>& fields() {
  static const auto kFields = Fields<Recording>()
                                  .text("lesson", &Recording::lesson)
                                  .text("recorded_at", &Recording::recorded_at)
                                  .text("protocol", &Recording::protocol)
                                  .object("run", &Recording::run, report_fields())
                                  .object("bench", &Recording::bench, report_fields());
  return kFields;
}

}  // namespace

nlohmann::json to_json(const Recording& recording) {
  return fields().to_json(recording);
}

Recording recording_from_json(const nlohmann::json& json) {
  Recording recording = fields().from_json(json, "recording");
  for (Report* report : {&recording.run, &recording.bench}) {
    report->recorded_at = recording.recorded_at;
    for (Measurement& m : report->measurements) {
      // A number that was measured or counted then is not measured now.
      if (m.provenance == Provenance::measured || m.provenance == Provenance::counted) {
        m.provenance = Provenance::recorded;
      }
      m.device = report->device.name;
      m.recorded_at = recording.recorded_at;
    }
  }
  return recording;
}

std::span<const Recording> recordings() {
  static const std::vector<Recording> all = [] {
    std::vector<Recording> found;
    for (const Asset& asset : assets()) {
      if (!asset.path.starts_with("assets/recordings/")) continue;
      const auto json = nlohmann::json::parse(asset.text, nullptr, false);
      if (json.is_discarded()) {
        throw Error(fmt::format("{} is not JSON; make it anew with tilestep record", asset.path));
      }
      found.push_back(recording_from_json(json));
    }
    return found;
  }();
  return all;
}

const Recording* recording(std::string_view lesson) {
  for (const Recording& recording : recordings()) {
    if (recording.lesson == lesson) return &recording;
  }
  return nullptr;
}

}  // namespace tilestep::lab

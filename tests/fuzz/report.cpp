// What a worker answers, and a capsule holds: a report of any lesson, and the picture made of it.
#include "kernels/base/lab/json.hpp"
#include "kernels/catalog.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

void read(std::string_view bytes) {
  const auto parsed = nlohmann::json::parse(text_of(bytes, short_run_texts()), nullptr, false);
  if (parsed.is_discarded()) return;
  const lab::Report report = lab::report_from_json(parsed);
  const nlohmann::json written = lab::to_json(report);
  require(lab::to_json(lab::report_from_json(written)) == written,
          "a report reads as it was written");
  lesson(report.lesson);
  show(report);
}

const Target kTarget("report", read);

}  // namespace
}  // namespace tilestep::fuzz

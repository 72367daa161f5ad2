#include "kernels/machine/fault/lesson.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/base/lab/check.hpp"
#include "kernels/machine/fault/kernels.hpp"

namespace tilestep::fault {

enum class Kind { none, illegal_address, endless, device_assert, out_of_memory };
constexpr auto names_of(Kind) {
  return std::to_array<std::string_view>(
      {"none", "illegal-address", "endless", "device-assert", "out-of-memory"});
}

struct Params {
  Kind kind = Kind::none;
};

static lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::Buffer<int> numbers(device, std::vector<int>{0});
  if (params.kind == Kind::out_of_memory) {
    const simt::Buffer<char> too_much(device, std::size_t{1} << 50);
  }
  // Of progress a worker tells a few a second: this one is not to be left out.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  progress.report(0.5, "misbehaving");
  kernels_of(device).misbehave(device, numbers.span(), static_cast<int>(params.kind));
  device.synchronize();
  lab::Report report;
  report.summary = "One thread added 1 to 0.";
  report.tables = {{"sum", "Sum", {"sum"}}};
  report.tables[0].add({numbers.download(1)[0]});
  report.checks = {lab::equal("sum", numbers.download(1)[0], 1, "exact")};
  return report;
}

nlohmann::json trace_again(const nlohmann::json& trace) {
  return trace;  // there is none
}

const lab::Lesson& lesson() {
  static const lab::LessonOf<Params> lesson(
      kLesson, "What becomes of a run whose kernel goes wrong.",
      lab::KnobTable<Params>().choice(&Params::kind, {"kind", "What the kernel does."}), run);
  return lesson;
}

}  // namespace tilestep::fault

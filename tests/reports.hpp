#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/catalog.hpp"

/// Devices, runs and reports as the tests of all lessons want them.
namespace tilestep::tests {

/// The sanitizers make emulated threads many times slower, and look at the code, not at its numbers:
/// sweeps take fewer shapes of each kind there.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kFewShapes = true;
#else
inline constexpr bool kFewShapes = false;
#endif

/// The emulation with the kernels of all lessons; with TILESTEP_TEST_BACKEND=cuda in the environment
/// the first CUDA device.
inline std::unique_ptr<simt::Device> test_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1) {
  const char* backend = std::getenv("TILESTEP_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) == "cuda") return simt::make_cuda_device();
  simt::EmulationOptions options;
  options.order = order;
  options.seed = seed;
  return simt::make_emulated_device(emulated_kernels(), options);
}

/// A lesson's kernels on `device`: kernels_of<tiling::Kernels>(*device, tiling::kLessonId).
template <class Kernels>
const Kernels& kernels_of(const simt::Device& device, std::string_view lesson) {
  return static_cast<const Kernels&>(device.kernels(lesson));
}

/// A run of `lesson` on `device`.
inline lab::Report run_on(simt::Device& device, const lab::Lesson& lesson,
                          const lab::Settings& settings = {}) {
  lab::NoProgress progress;
  return lesson.run(settings, device, progress);
}

/// The 1-based line of a source file as it was built into the program.
inline std::string source_line(std::string_view path, int number) {
  std::string_view source = lab::asset(path);
  for (int line = 1; line < number; ++line) source.remove_prefix(source.find('\n') + 1);
  return std::string(source.substr(0, source.find('\n')));
}

/// What the program answers to a run under emulation, recorded measurements included. Made once a
/// process for each lesson and settings, and kept.
inline const lab::Report& report_of(std::string_view lesson, const lab::Settings& settings = {}) {
  static std::map<std::string, std::unique_ptr<lab::Report>> made;
  const std::string key = std::string(lesson) + lab::to_json(settings).dump();
  std::unique_ptr<lab::Report>& report = made[key];
  if (!report) {
    lab::NoProgress progress;
    const lab::Request request{std::string(lesson), settings, lab::Request::Action::run,
                               "emulated"};
    report = std::make_unique<lab::Report>(answer(request, progress));
  }
  return *report;
}

/// The bench that was recorded on a GPU and built into the program. Throws Error if there is none.
inline const lab::Report& recorded_bench(std::string_view lesson) {
  const lab::Recording* recording = lab::recording(lesson);
  if (recording == nullptr) throw Error("no recording of " + std::string(lesson));
  return recording->bench;
}

/// The failed checks of a report, one line each: empty if all hold.
inline std::string failed_checks(const lab::Report& report) {
  std::string failed;
  for (const lab::Check& check : report.checks) {
    if (check.ok) continue;
    failed += check.id + " off by " + std::to_string(check.max_error) + ", tolerance " +
              std::to_string(check.tolerance) + ". " + check.detail + "\n";
  }
  return failed;
}

}  // namespace tilestep::tests

#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/sanitizers.hpp"
#include "kernels/catalog.hpp"

/// Devices, runs and reports as the tests of all lessons want them.
namespace tilestep::tests {

/// The sanitizers make emulated threads many times slower, and look at the code, not at its numbers:
/// sweeps take fewer shapes of each kind there.
#if defined(TILESTEP_ASAN) || defined(TILESTEP_TSAN)
inline constexpr bool kFewShapes = true;
#else
inline constexpr bool kFewShapes = false;
#endif

/// The emulation with the kernels of all lessons; with TILESTEP_TEST_BACKEND=cuda in the environment
/// the first CUDA device.
inline std::unique_ptr<simt::Device> test_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1,
    simt::Completion completion = simt::Completion::latest) {
  const char* backend = std::getenv("TILESTEP_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) == "cuda") return simt::make_cuda_device();
  simt::EmulationOptions options;
  options.order = order;
  options.seed = seed;
  options.completion = completion;
  return simt::make_emulated_device(emulated_kernels(), options);
}

/// The device of the tests that need no order of threads of their own, made once a process.
inline simt::Device& device_at_hand() {
  static const std::unique_ptr<simt::Device> device = test_device();
  return *device;
}

/// Calls `act` with devices that run threads in other orders: backwards, and shuffled in so many
/// ways.
template <class Act>
void in_other_orders(std::uint64_t shuffles, const Act& act) {
  act(*test_device(simt::ThreadOrder::descending));
  for (std::uint64_t seed = 1; seed <= shuffles; ++seed) {
    act(*test_device(simt::ThreadOrder::shuffled, seed));
  }
}

/// Nobody watches.
inline lab::NoProgress unwatched;

/// A run of `lesson` on `device`.
inline lab::Report run_on(simt::Device& device, const lab::Lesson& lesson,
                          const lab::Settings& settings = {}) {
  return lesson.run(settings, device, unwatched);
}

/// The runs of a lesson, by its own Params:
///
///     const tests::Runs run(lesson(), knob_table(), trace_from_json);
///     const lab::Report report = run({.keys = 100});
///     const Trace trace = run.trace({.keys = 100});
template <class Params, class Trace>
class Runs {
 public:
  using Read = Trace (*)(const nlohmann::json& json);
  Runs(const lab::Lesson& lesson, const lab::KnobTable<Params>& knobs, Read reader)
      : lesson_(lesson), knobs_(knobs), read_(reader) {}

  lab::Report operator()(const Params& params = {}, simt::Device& device = device_at_hand()) const {
    return run_on(device, lesson_, knobs_.settings(params));
  }
  Trace trace(const Params& params = {}, simt::Device& device = device_at_hand()) const {
    return read_((*this)(params, device).trace);
  }
  Trace read(const nlohmann::json& json) const { return read_(json); }
  /// "seq=100 heads=2 …"
  std::string words(const Params& params) const {
    std::string text;
    for (const auto& [id, value] : knobs_.settings(params)) {
      text += id + "=" + lab::to_text(value) + " ";
    }
    return text;
  }

 private:
  const lab::Lesson& lesson_;
  const lab::KnobTable<Params>& knobs_;
  Read read_;
};

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
    const lab::Request request{std::string(lesson), settings, lab::Request::Action::run,
                               "emulated"};
    report = std::make_unique<lab::Report>(answer(request, unwatched));
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

/// The table of this id. Throws Error if the report has none.
inline const lab::Table& table_in(const lab::Report& report, std::string_view id) {
  const lab::Table* table = report.table(id);
  if (table == nullptr) throw Error("no table " + std::string(id));
  return *table;
}

/// The cell of a column in a row; null if the table has no such column.
inline const lab::Cell* cell_in(const lab::Table& table, std::size_t row, std::string_view column) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].id == column) return &table.rows.at(row).at(c);
  }
  return nullptr;
}

/// The number there; NaN, which equals nothing, if there is none.
inline double number_in(const lab::Table& table, std::size_t row, std::string_view column) {
  const lab::Cell* cell = cell_in(table, row, column);
  const double* number = cell == nullptr ? nullptr : std::get_if<double>(cell);
  return number == nullptr ? std::nan("") : *number;
}
/// The same in the first row whose first cell reads `row`.
inline double number_in(const lab::Table& table, std::string_view row, std::string_view column) {
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    if (table.text(r, 0) == row) return number_in(table, r, column);
  }
  return std::nan("");
}

/// All cells as they are shown, row by row.
inline std::vector<std::vector<std::string>> texts_of(const lab::Table& table) {
  std::vector<std::vector<std::string>> rows(table.rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) rows[r].push_back(table.text(r, c));
  }
  return rows;
}

/// What stands over the columns.
inline std::vector<std::string> labels_of(const lab::Table& table) {
  std::vector<std::string> labels;
  for (const lab::Column& column : table.columns) labels.push_back(column.label);
  return labels;
}

}  // namespace tilestep::tests

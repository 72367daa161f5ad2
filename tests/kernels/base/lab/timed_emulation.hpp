#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/simt/emulator/clockless.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

namespace tilestep::tests {

/// The emulation, pretending to a clock and to counters, so that the code of a bench runs where
/// there is no GPU: its layouts, its comparisons and its tables are real, its times are not.
class TimedEmulation final : public simt::emulated::ClocklessDevice {
 public:
  explicit TimedEmulation(std::span<const simt::KernelEntry> table = emulated_kernels())
      : ClocklessDevice(table, {}), info_(EmulatedDevice::info()) {
    info_.name = "pretended";
    info_.multiprocessors = 2;
  }

  /// The next sample's milliseconds; asked after the timed work ran, if it runs at all.
  std::function<double()> clock = [] { return 1.0; };
  bool runs_timed_work = false;  ///< once for each call of time_ms
  /// A metric's value in every launch; an Error for one that the chip does not have.
  std::function<double(const std::string&)> counter = [](const std::string&) { return 64.0; };
  const simt::KernelSet* replaced_kernels = nullptr;
  simt::DeviceInfo& pretend() { return info_; }

  const simt::DeviceInfo& info() const override { return info_; }
  const simt::KernelSet& kernels(std::string_view lesson) const override {
    return replaced_kernels != nullptr ? *replaced_kernels : EmulatedDevice::kernels(lesson);
  }
  std::vector<double> time_ms(const std::function<void()>& work,
                              const simt::TimingPlan& plan) override {
    if (runs_timed_work) work();
    std::vector<double> samples(static_cast<std::size_t>(plan.samples));
    for (double& sample : samples) sample = clock();
    return samples;
  }
  simt::CounterStatus counters() override { return {true, ""}; }
  std::vector<std::map<std::string, double>> count(
      const std::vector<std::string>& metrics,
      const std::vector<std::function<void()>>& works) override {
    std::map<std::string, double> values;
    for (const std::string& metric : metrics) values[metric] = counter(metric);
    return std::vector<std::map<std::string, double>>(works.size(), values);
  }

 private:
  simt::DeviceInfo info_;
};

/// The same with kernels of its own in place of a lesson's, which may run the emulated ones.
template <class Kernels>
class TimedKernels {
 public:
  TimedKernels() { device.replaced_kernels = &kernels; }
  operator simt::Device&() { return device; }

  TimedEmulation device;
  Kernels kernels;
};

/// Every check of the report holds, but those that `fails` says must not.
inline void check_holds(
    const lab::Report& report, const std::function<bool(std::string_view id)>& fails =
                                   [](std::string_view) { return false; }) {
  for (const lab::Check& check : report.checks) {
    CAPTURE(check.id, check.max_error, check.tolerance, check.detail);
    CHECK(check.ok == !fails(check.id));
  }
}

/// A quick bench: it says what it leaves out, none of `tables`, counted nothing, and took few samples.
inline void check_quick(const lab::Report& report, std::initializer_list<const char*> tables) {
  check_holds(report);
  CHECK_FALSE(lab::left_out(report).empty());
  for (const char* table : tables) CHECK(report.table(table) == nullptr);
  bool timed = false;
  for (const lab::Measurement& m : report.measurements) {
    CAPTURE(m.id, m.variant, m.samples);
    CHECK(m.provenance != lab::Provenance::counted);
    const bool roof = m.id.ends_with("copy_bandwidth");  // has no ladder
    if (!roof) CHECK(m.samples <= lab::kQuickTurn.samples);
    timed = timed || m.samples > 0;
  }
  CHECK(timed);
}

/// Every table with its columns, and every measurement, that the committed recording of the
/// report's lesson has, is in `report`: pictures, tables of the README and the command line look
/// for them by id. Variants are left out where `variants` is false: they may name sizes.
/// `not_counted`: a measurement of a counter that the device at hand has not.
inline void check_has_what_was_recorded(const lab::Report& report, std::string_view lesson,
                                        bool variants, std::string_view not_counted = {}) {
  const lab::Recording* recording = lab::recording(lesson);
  REQUIRE(recording != nullptr);
  for (const lab::Table& table : recording->bench.tables) {
    CAPTURE(table.id);
    const lab::Table* now = report.table(table.id);
    REQUIRE(now != nullptr);
    CHECK_FALSE(now->rows.empty());
    std::set<std::string> columns;
    for (const lab::Column& column : now->columns) columns.insert(column.id);
    for (const lab::Column& column : table.columns) {
      CAPTURE(column.id);
      CHECK(columns.contains(column.id));
    }
  }
  for (const lab::Measurement& m : recording->bench.measurements) {
    if (m.id.starts_with("datasheet_")) continue;  // of one GPU alone
    if (m.id == not_counted) continue;
    CAPTURE(m.id, m.variant);
    const bool named = variants && !m.id.starts_with("library_");
    const lab::Measurement* now = report.measurement(m.id, named ? m.variant : "");
    REQUIRE(now != nullptr);
    CHECK(now->unit == m.unit);
    // What was measured or counted once has become recorded.
    CHECK((m.provenance == lab::Provenance::recorded || now->provenance == m.provenance));
  }
}

}  // namespace tilestep::tests

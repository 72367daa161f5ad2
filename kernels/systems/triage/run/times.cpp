#include "kernels/systems/triage/run/times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "kernels/base/lab/recording.hpp"
#include "kernels/systems/triage/lesson.hpp"

namespace tilestep::triage {
namespace {

constexpr std::size_t kTapeRoom = std::size_t{1} << 21;

const lab::Cell* cell(const lab::Table& table, std::size_t row, std::string_view column) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].id == column) return &table.rows[row][i];
  }
  return nullptr;
}
double number(const lab::Table& table, std::size_t row, std::string_view column) {
  const lab::Cell* const found = cell(table, row, column);
  const double* const value = found == nullptr ? nullptr : std::get_if<double>(found);
  return value == nullptr ? 0 : *value;
}
std::string word(const lab::Table& table, std::size_t row, std::string_view column) {
  const lab::Cell* const found = cell(table, row, column);
  const auto* const value = found == nullptr ? nullptr : std::get_if<std::string>(found);
  return value == nullptr ? std::string() : *value;
}

/// An operator by its name; −1: there is none.
int op_named(std::string_view name) {
  constexpr auto kNames = names_of(Op());
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? -1 : static_cast<int>(found - kNames.begin());
}

/// Steps of the loop are alike, but for the fourth.
int kind_of(int step) {
  return step % kLoop == 0 ? kLoop : kUsualStep;
}

class Live final : public Times {
 public:
  Live(simt::Device& device, lab::Progress& progress, const Shape& shape)
      : device_(device),
        progress_(progress),
        arrays_(device, shape, make_numbers(shape, 1, kTimedPeriod)) {}

  std::string from() const override { return "measured on " + device_.info().name; }
  double copy_gb_per_s() override {
    if (copy_ > 0) return copy_;
    const simt::Span<std::uint16_t> from = arrays_.cache(0, 0), to = arrays_.spare();
    const double bytes = 2.0 * static_cast<double>(from.count);
    const lab::Spread ms = lab::spread_of(lab::settled_times(
        device_, progress_, [&] { device_.copy_on_device(to.data, from.data, 2 * from.count); },
        kShort, false));
    copy_ = 2 * bytes / ms.median * 1e-6;
    return copy_;
  }
  std::optional<StepTimes> steps(const Plan& plan) override {
    return step_times(program(plan), progress_, kShort);
  }
  std::optional<std::vector<KernelReading>> kernels(const Plan& plan, int step) override {
    return look(plan, step).first;
  }
  std::optional<Timeline> timeline(const Plan& plan, int step) override {
    return look(plan, step).second;
  }

 private:
  static constexpr lab::Pace kShort{100, 20, 20, 5};
  using Look = std::pair<std::vector<KernelReading>, Timeline>;

  Program& program(const Plan& plan) {
    std::unique_ptr<Program>& made = programs_[key_of(plan)];
    if (!made) made = std::make_unique<Program>(arrays_, plan);
    return *made;
  }
  const Look& look(const Plan& plan, int step) {
    const int kind = kind_of(step);
    const auto key = std::pair(key_of(plan), kind);
    const auto found = looks_.find(key);
    if (found != looks_.end()) return found->second;
    Program& its = program(plan);
    Readings readings = counted(its, kind, kTapeRoom);
    Timeline timeline = timed(its, kind, readings, progress_);
    return looks_.emplace(key, Look{std::move(readings.kernels), std::move(timeline)})
        .first->second;
  }

  simt::Device& device_;
  lab::Progress& progress_;
  Arrays arrays_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
  std::map<std::pair<std::string, int>, Look> looks_;
  double copy_ = 0;
};

class Recorded final : public Times {
 public:
  explicit Recorded(const lab::Recording& recording) : recording_(recording) {}

  std::string from() const override {
    return "recorded on " + recording_.bench.device.name + ", " + recording_.recorded_at;
  }
  double copy_gb_per_s() override {
    const lab::Measurement* const copy = recording_.bench.measurement("copy_bandwidth");
    return copy == nullptr ? 0 : copy->value;
  }
  std::optional<StepTimes> steps(const Plan& plan) override {
    Plan of_label = plan;
    of_label.quick_norm = false;
    const std::string label = label_of(of_label);
    if (plan.quick_norm) {
      const lab::Table* const cases = recording_.bench.table("cases");
      for (std::size_t row = 0; cases != nullptr && row < cases->rows.size(); ++row) {
        if (word(*cases, row, "case") != label) continue;
        if (word(*cases, row, "fix") != name_of(Fix::faster_norm)) continue;
        return of_row(*cases, row, "step");
      }
      return std::nullopt;
    }
    const lab::Table* const loop = recording_.bench.table("loop");
    for (std::size_t row = 0; loop != nullptr && row < loop->rows.size(); ++row) {
      if (word(*loop, row, "case") == label) return of_row(*loop, row, "mean");
    }
    return std::nullopt;
  }
  std::optional<std::vector<KernelReading>> kernels(const Plan& plan, int step) override {
    const lab::Table* const table = recording_.bench.table("kernels");
    std::vector<KernelReading> all;
    for (std::size_t row = 0; table != nullptr && row < table->rows.size(); ++row) {
      if (!is_of(*table, row, plan, step)) continue;
      KernelReading one;
      const int op = op_named(word(*table, row, "op"));
      if (op < 0) continue;
      one.op = static_cast<Op>(op);
      one.kernel = word(*table, row, "kernel");
      one.launches = static_cast<int>(number(*table, row, "launches"));
      one.us = number(*table, row, "us");
      one.bytes = 1e6 * number(*table, row, "mb");
      one.flops = 1e6 * number(*table, row, "mflop");
      one.registers = static_cast<int>(number(*table, row, "registers"));
      one.occupancy = number(*table, row, "occupancy") / 100;
      all.push_back(std::move(one));
    }
    return all.empty() ? std::nullopt : std::optional(all);
  }
  std::optional<Timeline> timeline(const Plan& plan, int step) override {
    const lab::Table* const table = recording_.bench.table("spans");
    for (std::size_t row = 0; table != nullptr && row < table->rows.size(); ++row) {
      if (!is_of(*table, row, plan, step)) continue;
      Timeline made;
      add_spans(made, word(*table, row, "host"), true);
      add_spans(made, word(*table, row, "device"), false);
      find_gaps(made);
      return made;
    }
    return std::nullopt;
  }

 private:
  static StepTimes of_row(const lab::Table& table, std::size_t row, std::string_view mean) {
    return {number(table, row, "usual"),
            number(table, row, "fourth"),
            {number(table, row, mean), number(table, row, "p10"), number(table, row, "p90"), 20}};
  }
  /// Rows of the fourth step are there where it differs.
  static bool is_of(const lab::Table& table, std::size_t row, const Plan& plan, int step) {
    const int kind = plan.has(Fault::rare) ? kind_of(step) : kUsualStep;
    return word(table, row, "case") == label_of(plan) &&
           static_cast<int>(number(table, row, "step")) == kind;
  }

  const lab::Recording& recording_;
};

}  // namespace

StepTimes step_times(Program& program, lab::Progress& progress, const lab::Pace& pace) {
  simt::Device& device = program.arrays().device();
  const auto us = [&](const std::function<void()>& work, const lab::Pace& its, double steps) {
    lab::Spread spread = lab::spread_of(lab::settled_times(device, progress, work, its, false));
    spread.median *= 1e3 / steps;
    spread.p10 *= 1e3 / steps;
    spread.p90 *= 1e3 / steps;
    return spread;
  };
  lab::Pace brief = pace;
  brief.settle_ms = std::min(brief.settle_ms, 20.0);
  StepTimes made;
  made.mean = us(
      [&program] {
        for (int step = 1; step <= kLoop; ++step) program.run(step);
      },
      pace, kLoop);
  made.usual = us([&program] { program.run(kUsualStep); }, brief, 1).median;
  made.fourth = program.plan().has(Fault::rare)
                    ? us([&program] { program.run(kLoop); }, brief, 1).median
                    : made.usual;
  return made;
}

std::string label_of(const Plan& plan) {
  if (plan.quick_norm) return {};
  if (plan.faults.none()) return "sound";
  for (int i = 0; i < kCases; ++i) {
    if (plan_of(static_cast<Case>(i), 0) == plan) return std::string(name_of(static_cast<Case>(i)));
  }
  for (std::size_t i = 0; i < mixtures().size(); ++i) {
    if (mixtures()[i] == plan) return "mix-" + std::to_string(i + 1);
  }
  return {};
}

std::unique_ptr<Times> times_for(simt::Device& device, lab::Progress& progress, int layers,
                                 int batch) {
  if (device.can_time() && device.info().compute_capability > 0) {
    Shape shape = kTimedShape;
    shape.layers = layers;
    shape.rows = batch;
    return std::make_unique<Live>(device, progress, shape);
  }
  const lab::Recording* const recording = lab::recording(kLessonId);
  if (recording == nullptr || layers != kTimedShape.layers || batch != kTimedShape.rows) {
    return std::make_unique<Times>();
  }
  return std::make_unique<Recorded>(*recording);
}

std::string spans_text(const Timeline& timeline, bool host) {
  std::string text;
  for (const Span& span : timeline.spans) {
    if (span.host != host) continue;
    text += fmt::format("{}{}|{}|{:.1f}|{:.1f}", text.empty() ? "" : ";", span.what, span.op,
                        span.begin, span.end);
  }
  return text;
}

void add_spans(Timeline& timeline, std::string_view text, bool host) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto part = [&one] {
      const std::size_t bar = std::min(one.find('|'), one.size());
      const std::string_view its = one.substr(0, bar);
      one.remove_prefix(std::min(bar + 1, one.size()));
      return its;
    };
    const auto value = [&part] {
      const std::string its(part());
      return std::strtod(its.c_str(), nullptr);
    };
    Span span{.host = host, .what = std::string(part())};
    const double op = value();
    span.op = op >= 0 && op < kOps ? static_cast<int>(op) : -1;
    span.begin = value();
    span.end = std::max(value(), span.begin);
    timeline.spans.push_back(std::move(span));
  }
}

}  // namespace tilestep::triage

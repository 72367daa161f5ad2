// What the lesson times: the loop of every case before and after every fix, and what instruments see of it.

#include "kernels/systems/triage/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/systems/triage/lesson.hpp"

namespace tilestep::triage {
namespace {

using lab::real, lab::whole;

/// A fixed case may take this much longer or shorter than the sound step.
constexpr double kFixed = 0.1;

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        sizes_(sizes),
        arrays_(device, sizes.shape, make_numbers(sizes.shape, 1, sizes.period)),
        exact_(reference_row(sizes.shape, arrays_.numbers(), 0, Arrays::tokens_of()[0])) {}

  void run() {
    if (sizes_.quick) lab::leave_out(report, {"mixed cases", "fixes that do not fit", "counters"});
    time_copy();
    read("sound", Plan{});
    sound_us_ = means_.at("sound").median;
    for (int i = 0; i < sizes_.cases; ++i) {
      const auto which = static_cast<Case>(i);
      time_case(std::string(name_of(which)), plan_of(which, 0));
    }
    for (int i = 0; i < sizes_.mixtures; ++i) {
      time_case(fmt::format("mix-{}", i + 1), mixtures()[static_cast<std::size_t>(i)]);
    }
    for (lab::Table* const table : {&cases_, &loop_, &kernels_, &spans_}) {
      report.add(std::move(*table));
    }
    if (!counters_.rows.empty()) report.add(std::move(counters_));
    report.add(numbers_.check("numbers",
                              "h and logits of the first row, of every case in both kinds of step, "
                              "against double; FP32 sums, and keys rounded to BF16."));
    report.add(lab::none_wrong(
        "fixed", not_fixed_, "Cases whose own fix leaves them more than 10 % off the sound step."));
    report.summary = fmt::format(
        "The sound step of {} layers takes {:.0f} µs on {}; the faults make it {:.2f} to {:.2f} "
        "times as long, and their own fixes take that back.",
        sizes_.shape.layers, sound_us_, device.info().name, least_, most_);
  }

 private:
  // ---- the roof ---------------------------------------------------------------------------------------

  void time_copy() {
    const simt::Span<std::uint16_t> from = arrays_.cache(0, 0), to = arrays_.spare();
    const std::size_t bytes = from.count * sizeof(std::uint16_t);
    const lab::Spread ms = lab::spread_of(lab::settled_times(
        device, progress, [&] { device.copy_on_device(to.data, from.data, bytes); },
        sizes_.quick ? lab::kQuickTurn : lab::kShown,
        lab::fits_l2(device.info(), 2.0 * static_cast<double>(bytes))));
    report.add(lab::measured("copy_bandwidth", "",
                             lab::rate_of(ms, 2.0 * static_cast<double>(bytes)), "GB/s",
                             "the device's own copy of a layer's keys, read and written"));
  }

  // ---- one plan -----------------------------------------------------------------------------------------

  void judge(Program& program) {
    for (const int step : {kUsualStep, kLoop}) {
      arrays_.h.fill(0xFF);
      arrays_.logits.fill(0xFF);
      program.run(step);
      device.synchronize();
      add_compared(arrays_.h.download(exact_.h.size()), exact_.h, key_of(program.plan()));
      add_compared(arrays_.logits.download(exact_.logits.size()), exact_.logits,
                   key_of(program.plan()));
    }
  }
  void add_compared(const std::vector<float>& got, const std::vector<double>& exact,
                    const std::string& what) {
    double largest = 1;
    for (const double one : exact) largest = std::max(largest, std::abs(one));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      numbers_.add(got[i], exact[i], bound_of(sizes_.shape, largest), [&] { return what; });
    }
  }

  /// Times a plan's loop and reads it with the instruments.
  void read(const std::string& label, const Plan& plan) {
    progress.report(done, label);
    Program program(arrays_, plan);
    judge(program);
    const StepTimes times = step_times(program, progress, sizes_.pace);
    means_[label] = times.mean;
    const std::vector<int> kinds =
        plan.has(Fault::rare) ? std::vector<int>{kUsualStep, kLoop} : std::vector<int>{kUsualStep};
    for (const int step : kinds) {
      Readings readings = counted(program, step, sizes_.room);
      const Timeline timeline = timed(program, step, readings, progress, sizes_.rounds);
      add_kernels(label, step, readings.kernels);
      spans_.add({label, step, spans_text(timeline, true), spans_text(timeline, false)});
      if (step == kUsualStep) add_loop(label, times, timeline);
      if (!sizes_.quick) count_kernels(label, program, step, readings);
    }
    done += 0.9 / (1 + sizes_.cases + sizes_.mixtures);
  }

  void add_loop(const std::string& label, const StepTimes& times, const Timeline& timeline) {
    double busy = 0;
    int launches = 0, calls = 0;
    for (const Span& span : timeline.spans) {
      span.host ? ++calls : ++launches;
      if (!span.host) busy += span.end - span.begin;
    }
    loop_.add({label, times.usual, times.fourth, times.mean.median, times.mean.p10, times.mean.p90,
               launches, calls, busy, timeline.idle_us, timeline.longest_us});
  }

  void add_kernels(const std::string& label, int step, const std::vector<KernelReading>& kernels) {
    double all = 0;
    for (const KernelReading& kernel : kernels) all += kernel.us;
    for (const KernelReading& kernel : kernels) {
      kernels_table_add(label, step, kernel, all);
    }
  }
  void kernels_table_add(const std::string& label, int step, const KernelReading& kernel,
                         double all) {
    const auto rate = [&](double amount) {
      return kernel.us > 0 ? lab::Cell(amount / kernel.us * 1e-3) : lab::Cell();
    };
    kernels_.add({label, step, kernel.op, kernel.kernel, kernel.launches, kernel.us,
                  all > 0 ? lab::Cell(100 * kernel.us / all) : lab::Cell(), kernel.bytes * 1e-6,
                  kernel.flops * 1e-6, rate(kernel.bytes), kernel.registers, 100 * kernel.occupancy,
                  kernel.requests > 0 ? lab::Cell(kernel.sectors / kernel.requests) : lab::Cell()});
  }

  /// Counters of kernels that no plan before had: one launch of each.
  void count_kernels(const std::string& label, const Program& program, int step,
                     const Readings& readings) {
    if (!device.counters().available) return;
    const std::vector<Work> works = program.step(step);
    for (std::size_t kernel = 0; kernel < readings.kernels.size(); ++kernel) {
      const KernelReading& its = readings.kernels[kernel];
      const std::string key =
          fmt::format("{} {} {} {}", name_of(its.op), its.kernel, its.blocks, its.shared_bytes) +
          (program.plan().has(Fault::straggler) ? its.shape : "");
      if (!counted_.insert(key).second) continue;
      const auto first = std::find(readings.of_work.begin(), readings.of_work.end(), kernel);
      const Work& work = works[static_cast<std::size_t>(first - readings.of_work.begin())];
      const auto counter = [&](const char* metric, double scale = 1) {
        const std::optional<double> value = lab::count(
            device,
            {.id = metric, .unit = "", .metrics = {{metric}}, .scale = scale, .launches = 3},
            [&work] { work.launch({}); });
        return value ? lab::Cell(*value) : lab::Cell();
      };
      counters_.add({label, its.op, its.kernel,
                     counter("dram__throughput.avg.pct_of_peak_sustained_elapsed"),
                     counter("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"),
                     counter("sm__warps_active.avg.pct_of_peak_sustained_active"),
                     counter("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active."
                             "ratio")});
      progress.check();
    }
  }

  // ---- a case, and what fixes do to it --------------------------------------------------------------------

  void time_case(const std::string& label, const Plan& plan) {
    read(label, plan);
    const double before = means_.at(label).median, claimed = before / sound_us_;
    least_ = std::min(least_, claimed);
    most_ = std::max(most_, claimed);
    for (int i = 0; i < kFixes; ++i) {
      const auto fix = static_cast<Fix>(i);
      const Plan after = fixed(plan, fix);
      const bool fits = !(after == plan);
      if (sizes_.quick && fix != Fix::none && !fits) continue;
      Program program(arrays_, after);
      if (fits) judge(program);
      const lab::Spread mean = step_times(program, progress, sizes_.pace).mean;
      cases_.add({label, fix, mean.median, mean.p10, mean.p90, before / mean.median, claimed});
      if (after.faults.none() && !after.quick_norm) {
        not_fixed_ += std::abs(mean.median / sound_us_ - 1) <= kFixed ? 0 : 1;
      }
    }
  }

  const BenchSizes sizes_;
  Arrays arrays_;
  const ReferenceRow exact_;
  lab::Closest numbers_;
  std::map<std::string, lab::Spread> means_;
  std::set<std::string> counted_;
  double sound_us_ = 0, least_ = 1e9, most_ = 0;
  std::int64_t not_fixed_ = 0;
  lab::Table cases_{"cases",
                    "A step of each case after each fix, mean of four steps",
                    {"case", "fix", real("step", "a step", "µs", 1), real("p10", "", "µs", 1),
                     real("p90", "", "µs", 1), real("gain", "times as fast", "", 3),
                     real("claimed", "as the sound step", "", 3)}};
  lab::Table loop_{
      "loop",
      "A step of the loop before any fix",
      {"case", real("usual", "a usual step", "µs", 1), real("fourth", "the fourth", "µs", 1),
       real("mean", "mean of four", "µs", 1), real("p10", "", "µs", 1), real("p90", "", "µs", 1),
       whole("launches", "kernels"), whole("calls", "calls of the host"),
       real("busy", "kernels' time", "µs", 1), real("idle", "between kernels", "µs", 1),
       real("longest", "longest gap", "µs", 1)}};
  lab::Table kernels_{
      "kernels",
      "The kernels of a step",
      {"case", whole("step"), lab::column("op", "operator"), "kernel", whole("launches"),
       real("us", "time", "µs", 1), real("share", "", "%", 1), real("mb", "asked for", "MB", 2),
       real("mflop", "", "MFLOP", 2), real("bandwidth", "asked for", "GB/s", 0), whole("registers"),
       real("occupancy", "", "%", 0), real("sectors", "sectors per request", "", 1)}};
  lab::Table spans_{"spans",
                    "Begin and end of calls and kernels: what|operator|begin|end, in µs",
                    {"case", whole("step"), "host", "device"}};
  lab::Table counters_{
      "counters",
      "Hardware counters of a launch",
      {"case", lab::column("op", "operator"), "kernel", real("dram", "memory busy", "%", 0),
       real("tensor", "tensor cores", "%", 0), real("warps", "warps active", "%", 0),
       real("stalls", "warps waiting for memory per issue", "", 1)}};
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::triage

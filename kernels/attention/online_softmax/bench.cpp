#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/report.hpp"

// What is timed: softmax of each row of a random FP32 matrix of 2^28 elements, 1 GiB in and 1 GiB
// out, many times any L2, so that every launch finds its input in memory. Useful work is one read
// and one write of each element, and the roof is the device's own copy of the same bytes.

namespace tilestep::online_softmax {
namespace {

constexpr std::size_t kElements = std::size_t{1} << 28;
constexpr int kMainColumns = 8192;
constexpr int kSweepColumns[] = {1024, 2048, 4096, kMainColumns, 16384, 32768};
constexpr double kUsefulBytes = 8.0 * static_cast<double>(kElements);

/// Median and spread of samples.
struct Spread {
  double median = 0, p10 = 0, p90 = 0;
  int samples = 0;
};

Spread spread_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  // Linear between the two nearest samples.
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - std::floor(at)) * (samples[above] - samples[below]);
  };
  return {quantile(0.5), quantile(0.1), quantile(0.9), static_cast<int>(samples.size())};
}

/// Bytes over a time, in GB/s (10^9): the slow end of the times is the low end of the rates.
Spread rate_of(const Spread& time_ms, double bytes) {
  const auto rate = [&](double ms) { return bytes / ms * 1e-6; };
  return {rate(time_ms.median), rate(time_ms.p90), rate(time_ms.p10), time_ms.samples};
}

lab::Measurement measurement(std::string id, std::string_view variant, const Spread& spread,
                             const char* unit, std::string detail) {
  lab::Measurement m;
  m.id = std::move(id);
  m.variant = variant;
  m.provenance = lab::Provenance::measured;
  m.value = spread.median;
  m.unit = unit;
  m.p10 = spread.p10;
  m.p90 = spread.p90;
  m.samples = spread.samples;
  m.detail = std::move(detail);
  return m;
}

lab::Measurement derived(std::string id, std::string_view variant, double value, const char* unit,
                         std::string detail) {
  lab::Measurement m;
  m.id = std::move(id);
  m.variant = variant;
  m.provenance = lab::Provenance::derived;
  m.value = value;
  m.unit = unit;
  m.detail = std::move(detail);
  return m;
}

std::vector<float> random_floats(std::size_t count, float low, float high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(generator);
  return values;
}

/// Fills a large buffer from 64 MiB of random numbers, doubled on the device until it is full.
void fill_random(simt::Device& device, simt::Buffer<float>& buffer) {
  const std::size_t seeded = std::min<std::size_t>(buffer.count(), std::size_t{1} << 24);
  const std::vector<float> block = random_floats(seeded, -4, 4, 11);
  device.copy_in(buffer.span().data, block.data(), seeded * sizeof(float));
  for (std::size_t full = seeded; full < buffer.count();) {
    const std::size_t more = std::min(full, buffer.count() - full);
    device.copy_on_device(buffer.span().data + full, buffer.span().data, more * sizeof(float));
    full += more;
  }
  device.synchronize();
}

// ---- correctness comes before any timing
// ----------------------------------------------------------

struct RowError {
  double relative = 0;  ///< largest |weight − exact| / exact
  double tolerance = 0;
};

RowError rung_error(simt::Device& device, const Kernels& kernels, Rung rung,
                    const RowShape& shape) {
  const auto columns = static_cast<std::size_t>(shape.columns);
  const float span = 8;
  const std::vector<float> host = random_floats(shape.rows * columns, -span / 2, span / 2, 5);
  const simt::Buffer<float> input(device, std::span<const float>(host));
  simt::Buffer<float> output(device, host.size());
  output.fill(0xFF);
  kernels.softmax_rows(device, rung, shape, input.span(), output.span());
  device.synchronize();
  const std::vector<float> got = output.download();
  RowError error{0, ladder_tolerance(shape.columns, static_cast<double>(span))};
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const std::vector<double> exact =
        reference_softmax(std::span(host).subspan(row * columns, columns));
    for (std::size_t i = 0; i < columns; ++i) {
      const double off =
          std::abs(static_cast<double>(got[row * columns + i]) - exact[i]) / exact[i];
      error.relative = off > error.relative || std::isnan(off) ? off : error.relative;
    }
  }
  return error;
}

lab::Check check_rung(simt::Device& device, const Kernels& kernels, Rung rung) {
  lab::Check check;
  check.id = fmt::format("ladder_{}", to_text(rung));
  check.ok = true;
  check.detail =
      "Largest relative error of a weight against double, over 6 widths and every block size; "
      "tolerance: first-order rounding errors of exp, of the sum and of the division.";
  for (const int columns : {1, 37, 1000, 4096, 4099, kMainColumns}) {
    for (const int threads : kRowBlocks) {
      if (rung == Rung::online_one_read && columns > one_read_columns(threads)) continue;
      const RowError error = rung_error(device, kernels, rung, {5, columns, threads});
      check.ok = check.ok && error.relative <= error.tolerance;
      if (!(error.relative <= check.max_error)) {
        check.max_error = error.relative;
        check.tolerance = error.tolerance;
      }
    }
  }
  return check;
}

// ---- timing
// ---------------------------------------------------------------------------------------

class LadderBench {
 public:
  LadderBench(simt::Device& device, lab::Progress& progress, lab::Report& report)
      : device_(device),
        kernels_(static_cast<const Kernels&>(device.kernels(kLessonId))),
        progress_(progress),
        report_(report),
        input_(device, kElements),
        output_(device, kElements) {
    fill_random(device, input_);
  }

  void run() {
    measure_copy();
    table_ = {"ladder_measured",
              fmt::format("Softmax of {} elements, row by row", kElements),
              {{"rung", "rung", "", -1},
               {"rows", "rows", "", 0},
               {"columns", "columns", "", 0},
               {"threads", "threads", "1/row", 0},
               {"time", "time", "ms", 3},
               {"bandwidth", "bandwidth", "GB/s", 0},
               {"p10", "p10", "GB/s", 0},
               {"p90", "p90", "GB/s", 0},
               {"fraction", "of copy", "", 3}},
              {}};
    blocks_ = table_;
    blocks_.id = "ladder_blocks";
    blocks_.title = "The same for every number of threads a row (fewer samples)";
    int done = 0;
    for (const int columns : kSweepColumns) {
      for (const Rung rung : kRungs) {
        progress_.report(0.25 + 0.6 * done++ / (std::size(kSweepColumns) * std::size(kRungs)),
                         fmt::format("timing {} at {} columns", to_text(rung), columns));
        progress_.check();
        measure_rung(rung, columns);
      }
    }
    report_.tables.push_back(table_);
    report_.tables.push_back(blocks_);
  }

 private:
  void measure_copy() {
    const auto copy = [&] {
      device_.copy_on_device(output_.span().data, input_.span().data, input_.bytes());
    };
    const Spread rate = rate_of(spread_of(device_.time_ms(copy, plan(40))), kUsefulBytes);
    copy_ = rate.median;
    report_.measurements.push_back(
        measurement("copy_bandwidth", "", rate, "GB/s",
                    "the device's own copy of 1 GiB, counted as read and written"));
  }

  static simt::TimingPlan plan(int samples) {
    simt::TimingPlan plan;
    plan.samples = samples;
    return plan;
  }

  Spread time(Rung rung, const RowShape& shape, int samples) {
    const auto launch = [&] {
      kernels_.softmax_rows(device_, rung, shape, input_.span(), output_.span());
    };
    return spread_of(device_.time_ms(launch, plan(samples)));
  }

  void add_row(lab::Table& table, Rung rung, const RowShape& shape, const Spread& time_ms) const {
    const Spread rate = rate_of(time_ms, kUsefulBytes);
    table.rows.push_back({std::string(to_text(rung)), static_cast<double>(shape.rows),
                          static_cast<double>(shape.columns), static_cast<double>(shape.threads),
                          time_ms.median, rate.median, rate.p10, rate.p90, rate.median / copy_});
  }

  /// Finds the best block size, then measures it anew: the samples that chose it do not count.
  void measure_rung(Rung rung, int columns) {
    RowShape best;
    double best_ms = INFINITY;
    for (const int threads : kRowBlocks) {
      if (rung == Rung::online_one_read && columns > one_read_columns(threads)) continue;
      const RowShape shape{kElements / static_cast<std::size_t>(columns), columns, threads};
      const Spread time_ms = time(rung, shape, 20);
      add_row(blocks_, rung, shape, time_ms);
      if (time_ms.median < best_ms) {
        best_ms = time_ms.median;
        best = shape;
      }
    }
    const Spread time_ms = time(rung, best, 40);
    add_row(table_, rung, best, time_ms);
    if (columns == kMainColumns) add_measurements(rung, best, time_ms);
  }

  void add_measurements(Rung rung, const RowShape& shape, const Spread& time_ms) {
    const std::string_view name = to_text(rung);
    const std::string detail = fmt::format(
        "{} x {} FP32, {} threads a row; each element counted as read once and written "
        "once",
        shape.rows, shape.columns, shape.threads);
    const Spread rate = rate_of(time_ms, kUsefulBytes);
    const double reads = 3.0 - static_cast<double>(static_cast<int>(rung));
    auto& out = report_.measurements;
    out.push_back(measurement("softmax_bandwidth", name, rate, "GB/s", detail));
    out.push_back(measurement("softmax_time", name, time_ms, "ms", detail));
    out.push_back(derived("fraction_of_copy", name, rate.median / copy_, "",
                          "softmax_bandwidth / copy_bandwidth of the same run"));
    out.push_back(derived("reads_per_element", name, reads, "reads/element", "by the source"));
    out.push_back(derived("softmax_traffic", name, rate.median * (reads + 1) / 2, "GB/s",
                          "softmax_bandwidth x (reads + 1) / 2: what the kernel asks for; caches "
                          "answer a part of the repeated reads"));
  }

  simt::Device& device_;
  const Kernels& kernels_;
  lab::Progress& progress_;
  lab::Report& report_;
  simt::Buffer<float> input_, output_;
  double copy_ = 0;
  lab::Table table_, blocks_;
};

/// The lesson's own kernel at a size that fills a GPU.
void bench_attention(simt::Device& device, lab::Report& report) {
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  const AttentionShape shape{4096, 4096, 128, 64, false};
  const auto scores_count = static_cast<std::size_t>(shape.queries) * shape.keys;
  simt::Buffer<float> scores(device, scores_count);
  fill_random(device, scores);
  const std::vector<float> host =
      random_floats(static_cast<std::size_t>(shape.keys) * shape.head_dim, -1, 1, 3);
  const simt::Buffer<float> values(device, std::span<const float>(host));
  simt::Buffer<float> output(device, static_cast<std::size_t>(shape.queries) * shape.head_dim);
  const auto launch = [&] {
    kernels.attention(device, shape, KernelFormat::fp32, scores.span(), values.span(),
                      output.span());
  };
  simt::TimingPlan plan;
  plan.flush_l2 = true;
  const Spread time_ms = spread_of(device.time_ms(launch, plan));
  const double bytes = static_cast<double>(scores.bytes() + values.bytes() + output.bytes());
  const std::string detail = fmt::format(
      "{} queries x {} keys, tiles of {}, head dimension {}, FP32; scores, values and output each "
      "counted once",
      shape.queries, shape.keys, shape.tile_width, shape.head_dim);
  report.measurements.push_back(
      measurement("attention_time", "online-softmax", time_ms, "ms", detail));
  report.measurements.push_back(measurement("attention_bandwidth", "online-softmax",
                                            rate_of(time_ms, bytes), "GB/s", detail));
}

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress) {
  if (!device.can_time()) {
    throw Error("the ladder can only be timed on a GPU, and " + device.info().name +
                    " runs the kernels under emulation, whose times say nothing about a GPU",
                ExitCode::unavailable);
  }
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(Params{});
  report.device = device.info();
  report.tables.push_back(ladder_table());
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  for (const Rung rung : kRungs) {
    progress.report(0.05 * static_cast<int>(rung), fmt::format("checking {}", to_text(rung)));
    progress.check();
    report.checks.push_back(check_rung(device, kernels, rung));
  }
  progress.report(0.2, "making 1 GiB of random numbers");
  LadderBench(device, progress, report).run();
  progress.report(0.9, "timing the attention kernel");
  progress.check();
  bench_attention(device, report);

  const std::string_view top = to_text(Rung::online_one_read);
  const lab::Measurement& rate = *report.measurement("softmax_bandwidth", top);
  report.summary = fmt::format(
      "Softmax with one read reaches {:.0f} GB/s, {:.0f} % of what a plain copy reaches ({:.0f} "
      "GB/s) "
      "on {}; with three reads it is {:.0f} GB/s.",
      rate.value, 100 * report.measurement("fraction_of_copy", top)->value,
      report.measurement("copy_bandwidth")->value, report.device.name,
      report.measurement("softmax_bandwidth", to_text(Rung::three_pass))->value);
  progress.report(1, "done");
  return report;
}

}  // namespace tilestep::online_softmax

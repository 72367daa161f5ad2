#include "kernels/attention/online_softmax/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/attention/online_softmax/reference.hpp"
#include "kernels/base/lab/ladder.hpp"
#include "kernels/base/lab/random.hpp"

// Useful work is one read and one write of each element, and the roof is the device's own copy of
// the same bytes.

namespace tilestep::online_softmax {
namespace {

constexpr float kScale = 4;  // inputs lie in (−kScale, kScale)
constexpr std::size_t kPeriod = std::size_t{1} << 24;

bool takes(Rung rung, int columns, int threads) {
  return rung != Rung::online_one_read || columns <= one_read_columns(threads);
}

/// Random numbers that the host knows, and room for their softmax.
class Matrix {
 public:
  Matrix(simt::Device& device, std::size_t elements, std::int64_t seed)
      : device_(device),
        kernels_(static_cast<const Kernels&>(device.kernels(kLessonId))),
        input(device, elements),
        output(device, elements) {
    std::mt19937 generator = lab::generator_of(seed);
    period_ = lab::uniform_floats(generator, std::min(elements, kPeriod));
    for (float& value : period_) value *= kScale;
    lab::fill_with<float>(device, input, period_);
  }

  /// The launch, and the comparison of some of its rows with double.
  lab::Runnable runnable(Rung rung, const RowShape& shape) {
    const auto launch = [this, rung, shape] {
      kernels_.softmax_rows(device_, rung, shape, input.span(), output.span());
    };
    const auto verify = [this, shape, launch] {
      output.fill(0xFF);
      launch();
      device_.synchronize();
      lab::Closest closest;
      for (const std::size_t row : {std::size_t{0}, shape.rows / 2, shape.rows - 1}) {
        compare(row, static_cast<std::size_t>(shape.columns), closest);
      }
      return closest;
    };
    return {launch, verify};
  }

 private:
  void compare(std::size_t row, std::size_t columns, lab::Closest& closest) const {
    std::vector<float> host(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      host[i] = period_[(row * columns + i) % period_.size()];
    }
    const std::vector<double> exact = reference_softmax(host);
    const std::vector<float> got = output.download(row * columns, columns);
    const double tolerance = ladder_tolerance(static_cast<int>(columns), 2.0 * kScale);
    for (std::size_t i = 0; i < columns; ++i) {
      closest.add(static_cast<double>(got[i]) / exact[i], 1, tolerance);
    }
  }

  simt::Device& device_;
  const Kernels& kernels_;
  std::vector<float> period_;

 public:
  simt::Buffer<float> input, output;
};

class Bench {
 public:
  Bench(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes, lab::Report& report)
      : device_(device),
        progress_(progress),
        sizes_(sizes),
        report_(report),
        ladder_(device),
        matrix_(device, sizes.elements, 11) {}

  void run() {
    for (const Rung rung : kRungs) check(rung);
    lab::Climb all;
    for (std::size_t i = 0; i < sizes_.columns.size(); ++i) {
      const double share = 0.7 / static_cast<double>(sizes_.columns.size());
      const double from = 0.1 + share * static_cast<double>(i);
      all.add(climb(plan(sizes_.columns[i], false), from, from + share));
    }
    add_tables(all);
    add_uncached(climb(plan(sizes_.wide_columns, true), 0.8, 0.9));
    time_attention();
    lab::append(report_.checks, ladder_.checks());
  }

 private:
  lab::Climb climb(const lab::LadderPlan& plan, double from, double to) {
    lab::Part part(progress_, from, to);
    return ladder_.climb(plan, part);
  }

  lab::Rung rung(Rung rung) const {
    return {.name = std::string(to_text(rung)),
            .why = std::string(reason_of(rung)),
            .configurations = {},
            .check = fmt::format("ladder_{}", to_text(rung)),
            .check_detail =
                "Largest relative error of a weight against double, over 6 widths and "
                "every block size, and of rows of what is timed; tolerance: "
                "first-order rounding errors of exp, of the sum and of the division.",
            .cells = {{"reads", reads_of(rung)}}};
  }

  /// At widths that the vectors and blocks do not divide, too.
  void check(Rung which) {
    progress_.report(0.03 * static_cast<int>(which), fmt::format("checking {}", to_text(which)));
    const lab::Rung rung = this->rung(which);
    for (const int columns : {1, 37, 1000, 4096, 4099, 8192}) {
      Matrix matrix(device_, 5 * static_cast<std::size_t>(columns), 5);
      for (const int threads : kRowBlocks) {
        progress_.check();
        if (!takes(which, columns, threads)) continue;
        ladder_.judge(rung.check, rung.check_detail,
                      matrix.runnable(which, {5, columns, threads}).verify());
      }
    }
  }

  /// Whether the rows that are under way at once, 2048 threads a multiprocessor, are far more than
  /// L2 holds: then a repeated read goes to memory.
  bool outgrows_l2(int columns, int threads) const {
    const double rows = device_.info().multiprocessors * (2048.0 / threads);
    return !lab::fits_l2(device_.info(), 4.0 * columns * rows);
  }

  lab::LadderPlan plan(int columns, bool uncached) {
    const std::size_t rows = sizes_.elements / static_cast<std::size_t>(columns);
    const bool main = columns == sizes_.main_columns && !uncached;
    const double bytes = 4.0 * static_cast<double>(sizes_.elements);
    lab::LadderPlan plan;
    plan.work = {.bytes_read = bytes, .bytes_written = bytes};
    plan.shape = fmt::format("{} x {} FP32", rows, columns);
    plan.note = "each element counted as read once and written once";
    plan.cells = {{"rows", rows}, {"columns", columns}};
    plan.rate_id = main ? "softmax_bandwidth" : uncached ? "uncached_bandwidth" : "";
    plan.fraction_id = main ? "fraction_of_copy" : uncached ? "uncached_fraction_of_copy" : "";
    plan.time_id = main ? "softmax_time" : "";
    plan.peers = {lab::device_copy(device_, "the device's own copy", matrix_.output.span().data,
                                   matrix_.input.span().data, matrix_.input.bytes())};
    plan.peers[0].rate_id = main ? "copy_bandwidth" : "";
    for (const Rung which : kRungs) {
      lab::Rung& rung = plan.rungs.emplace_back(this->rung(which));
      for (const int threads : kRowBlocks) {
        const RowShape shape{rows, columns, threads};
        if (!takes(which, columns, threads)) continue;
        if (uncached && reads_of(which) > 1 && !outgrows_l2(columns, threads)) continue;
        rung.configurations.push_back(
            {.name = fmt::format("{} threads a row", threads),
             .make = [this, which, shape] { return matrix_.runnable(which, shape); },
             .cells = {{"threads", threads}}});
      }
    }
    return plan;
  }

  static std::vector<lab::Shown> columns() {
    return {{"rung"},      {"rows"}, {"columns"}, {"threads", "threads", "1/row"}, {"time"},
            {"bandwidth"}, {"p10"},  {"p90"},     {"fraction", "of copy"}};
  }

  void add_tables(const lab::Climb& all) {
    report_.tables.push_back(lab::table_of(
        "ladder_measured", fmt::format("Softmax of {} elements, row by row", sizes_.elements),
        columns(), all.rungs));
    report_.tables.push_back(
        lab::table_of("ladder_blocks", "The same for every number of threads a row (fewer samples)",
                      columns(), all.configurations));
    lab::append(report_.measurements, all.measurements);
    for (const Rung rung : kRungs) {
      const lab::Measurement* rate = report_.measurement("softmax_bandwidth", to_text(rung));
      const double traffic = rate == nullptr ? 0 : rate->value * (reads_of(rung) + 1) / 2;
      lab::append(report_.measurements,
                  {lab::derived("reads_per_element", to_text(rung), reads_of(rung), "reads/element",
                                "by the source"),
                   lab::derived("softmax_traffic", to_text(rung), traffic, "GB/s",
                                "softmax_bandwidth x (reads + 1) / 2: what the kernel asks for; "
                                "caches answer a part of the repeated reads")});
    }
  }

  /// Where every read goes to memory, the rates are as the reads say.
  void add_uncached(lab::Climb wide) {
    const double top = wide.rungs.back().rate.median;
    for (lab::Timed& timed : wide.rungs) {
      const double expected = 2 / (*timed.number("reads") + 1);
      timed.cells["expected"] = expected;
      if (!timed.number("fraction") || !wide.rungs.back().number("fraction")) continue;
      timed.cells["of_one_read"] = timed.rate.median / top;
      wide.measurements.push_back(lab::derived(
          "uncached_of_one_read", timed.variant, timed.rate.median / top, "",
          fmt::format("uncached_bandwidth over the last rung's; the reads say 2 / (reads + 1) = "
                      "{:.3f}",
                      expected)));
    }
    std::vector<lab::Shown> shown = columns();
    lab::append(shown, {{"reads", "reads", "1/element"},
                        {"of_one_read", "of one read", "", 3},
                        {"expected", "as the reads say", "", 3}});
    report_.tables.push_back(lab::table_of(
        "ladder_uncached",
        fmt::format("Rows that no cache holds: {} columns, and so many rows under way that they "
                    "are twice the size of L2",
                    sizes_.wide_columns),
        shown, wide.rungs));
    lab::append(report_.measurements, std::move(wide.measurements));
  }

  /// The lesson's own kernel; that its results are right is the business of `run`.
  void time_attention() {
    const auto& kernels = static_cast<const Kernels&>(device_.kernels(kLessonId));
    const AttentionShape& shape = sizes_.attention;
    const auto queries = static_cast<std::size_t>(shape.queries);
    const auto keys = static_cast<std::size_t>(shape.keys);
    const auto head = static_cast<std::size_t>(shape.head_dim);
    Matrix scores(device_, queries * keys, 11), values(device_, keys * head, 3);
    simt::Buffer<float> output(device_, queries * head);
    const auto launch = [&] {
      kernels.attention(device_, shape, KernelFormat::fp32, scores.input.span(),
                        values.input.span(), output.span());
    };
    lab::LadderPlan plan;
    plan.work = {.bytes_read = static_cast<double>(scores.input.bytes() + values.input.bytes()),
                 .bytes_written = static_cast<double>(output.bytes())};
    plan.rungs = {
        {.name = "online-softmax", .why = "the lesson's own kernel", .configurations = {}}};
    plan.rungs[0].configurations = {
        {.name = fmt::format("{} queries x {} keys, tiles of {}, head dimension {}, FP32",
                             shape.queries, shape.keys, shape.tile_width, shape.head_dim),
         .make = [&]() -> lab::Runnable {
           return {launch, {}};
         }}};
    plan.note = "scores, values and output each counted once";
    plan.rate_id = "attention_bandwidth";
    plan.time_id = "attention_time";
    lab::append(report_.measurements, climb(plan, 0.9, 1).measurements);
  }

  simt::Device& device_;
  lab::Progress& progress_;
  const BenchSizes& sizes_;
  lab::Report& report_;
  lab::Ladder ladder_;
  Matrix matrix_;
};

}  // namespace

lab::Table ladder_table() {
  lab::Table table{"ladder",
                   "The ladder: softmax of each row of a matrix",
                   {{"rung", "rung", "", -1},
                    {"reads", "reads", "1/element", 0},
                    {"writes", "writes", "1/element", 0},
                    {"bytes", "bytes", "B/element", 0},
                    {"why", "what changed, and why it is faster", "", -1}},
                   {}};
  for (const Rung rung : kRungs) {
    table.add({rung, reads_of(rung), 1, 4 * (reads_of(rung) + 1), reason_of(rung)});
  }
  return table;
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  lab::Report report;
  report.tables.push_back(ladder_table());
  progress.report(0, "making random numbers");
  Bench(device, progress, sizes, report).run();
  const std::string_view top = to_text(Rung::online_one_read);
  report.summary = fmt::format(
      "Softmax with one read reaches {} on {}, a plain copy {}; with three reads it is {}.",
      lab::headline(report.measurement("softmax_bandwidth", top), 0), device.info().name,
      lab::headline(report.measurement("copy_bandwidth"), 0),
      lab::headline(report.measurement("softmax_bandwidth", to_text(Rung::three_pass)), 0));
  return report;
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress) {
  lab::require_timing(device, "the ladder");
  lab::Report report = bench_report(device, progress, BenchSizes());
  report.lesson = kLessonId;
  report.params = knob_table().settings(Params{});
  report.device = device.info();
  return report;
}

}  // namespace tilestep::online_softmax

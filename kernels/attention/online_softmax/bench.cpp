#include "kernels/base/lab/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/online_softmax/report.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/random.hpp"

// Useful work is one read and one write per element, and the roof is the device's own copy of
// the same bytes.

namespace tilestep::online_softmax {
namespace {

using lab::column, lab::whole;

constexpr float kScale = 4;  // inputs are in (−kScale, kScale)
constexpr std::size_t kPeriod = std::size_t{1} << 24;

std::vector<float> random_scores(std::size_t count, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<float> scores = lab::uniform_floats(generator, count);
  for (float& score : scores) score *= kScale;
  return scores;
}

bool takes(Rung rung, int columns, int threads) {
  return rung != Rung::online_one_read || columns <= one_read_columns(threads);
}

/// Random numbers known to the host, and room for their softmax.
struct Matrix {
  Matrix(simt::Device& on, std::size_t elements, std::int64_t seed)
      : device(on),
        input(on, elements, random_scores(std::min(elements, kPeriod), seed)),
        output(on, elements) {}

  /// The launch, and a comparison of some of its rows with double.
  lab::Runnable runnable(Rung rung, const RowShape& shape) {
    const auto launch = [this, rung, shape] {
      kernels_of(device).softmax_rows(device, rung, shape, input.span(), output.span());
    };
    return lab::judged(device, output, launch, [this, shape] {
      const auto columns = static_cast<std::size_t>(shape.columns);
      const double tolerance = ladder_tolerance(shape.columns, 2.0 * kScale);
      lab::Closest closest;
      for (const std::size_t row : {std::size_t{0}, shape.rows / 2, shape.rows - 1}) {
        const std::vector<double> exact = reference_softmax(input.values(row * columns, columns));
        const std::vector<float> got = output.download(row * columns, columns);
        for (std::size_t i = 0; i < columns; ++i) closest.add(got[i] / exact[i], 1, tolerance);
      }
      return closest;
    });
  }

  simt::Device& device;
  lab::Repeated<float> input;
  simt::Buffer<float> output;
};

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start), sizes_(sizes), matrix_(device, sizes.elements, 11) {}

  void run() {
    report.add(ladder_table());
    if (sizes_.quick) {
      lab::leave_out(
          report, {"other numbers of columns", "rows that no cache holds", "the attention kernel"});
    }
    for (const Rung rung : kRungs) {
      if (!sizes_.quick) check(rung);
    }
    lab::Climb all;
    done = 0.1;
    const double share = 0.7 / static_cast<double>(sizes_.columns.size());
    for (const int columns : sizes_.columns) all.add(climb(plan(columns, false), share));
    add_tables(all);
    if (!sizes_.quick) {
      add_uncached(climb(plan(sizes_.wide_columns, true), 0.8, 0.9));
      time_attention();
    }
    report.summary = fmt::format(
        "Softmax with one read reaches {} on {}, a plain copy {}; with three reads it is {}.",
        headline("softmax_bandwidth", name_of(Rung::online_one_read), 0), device.info().name,
        headline("copy_bandwidth", "", 0),
        headline("softmax_bandwidth", name_of(Rung::three_pass), 0));
  }

 private:
  static lab::Rung rung(Rung which) {
    lab::Rung rung = lab::rung_of(
        which, fmt::format("ladder_{}", name_of(which)),
        "Largest relative error of a weight against double, over 6 widths and every block size, "
        "and in rows of the timed runs; tolerance: first-order rounding errors of exp, of the sum "
        "and of the division.");
    rung.cells = {{"reads", reads_of(which)}};
    return rung;
  }

  /// Also at widths that are no multiples of vectors and blocks.
  void check(Rung which) {
    progress.report(0.03 * static_cast<int>(which), fmt::format("checking {}", name_of(which)));
    const lab::Rung rung = this->rung(which);
    for (const int columns : {1, 37, 1000, 4096, 4099, 8192}) {
      Matrix matrix(device, 5 * static_cast<std::size_t>(columns), 5);
      for (const int threads : kRowBlocks) {
        progress.check();
        if (!takes(which, columns, threads)) continue;
        ladder.judge(rung.check, rung.check_detail,
                     matrix.runnable(which, {5, columns, threads}).verify());
      }
    }
  }

  /// Whether the rows in flight, with 2048 threads per multiprocessor, far exceed L2: then a
  /// repeated read goes to memory.
  bool outgrows_l2(int columns, int threads) const {
    const double rows = device.info().multiprocessors * (2048.0 / threads);
    return !lab::fits_l2(device.info(), 4.0 * columns * rows);
  }

  lab::LadderPlan plan(int columns, bool uncached) {
    const std::size_t rows = sizes_.elements / static_cast<std::size_t>(columns);
    const bool main = columns == sizes_.main_columns && !uncached;
    const double bytes = 4.0 * static_cast<double>(sizes_.elements);
    lab::LadderPlan plan{
        .rungs = {},
        .peers = {lab::device_copy(device, "the device's own copy", matrix_.output.span().data,
                                   matrix_.input.span().data, matrix_.input.bytes())},
        .work = {.bytes_read = bytes, .bytes_written = bytes},
        .shape = fmt::format("{} x {} FP32", rows, columns),
        .note = "each element counted as read once and written once",
        .rate_id = main       ? "softmax_bandwidth"
                   : uncached ? "uncached_bandwidth"
                              : "",
        .fraction_id = main       ? "fraction_of_copy"
                       : uncached ? "uncached_fraction_of_copy"
                                  : "",
        .time_id = main ? "softmax_time" : "",
        .cells = {{"rows", rows}, {"columns", columns}}};
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

  static std::vector<lab::Column> columns() {
    return {"rung",
            "rows",
            "columns",
            lab::Column("threads", "threads", "1/row"),
            "time",
            "bandwidth",
            "p10",
            "p90",
            column("fraction", "of copy")};
  }

  void add_tables(const lab::Climb& all) {
    add_table("ladder_measured", fmt::format("Softmax of {} elements, row by row", sizes_.elements),
              columns(), all.rungs);
    add_table("ladder_blocks", "The same by threads per row (fewer samples)", columns(),
              all.configurations);
    for (const Rung rung : kRungs) {
      const lab::Measurement* rate = report.measurement("softmax_bandwidth", name_of(rung));
      const double traffic = rate == nullptr ? 0 : rate->value * (reads_of(rung) + 1) / 2;
      report.add(lab::derived("reads_per_element", name_of(rung), reads_of(rung), "reads/element",
                              "by the source"));
      report.add(lab::derived("softmax_traffic", name_of(rung), traffic, "GB/s",
                              "softmax_bandwidth x (reads + 1) / 2: the requested bytes; "
                              "caches serve some of the repeated reads"));
    }
  }

  /// If every read goes to memory, the rates follow from the reads.
  void add_uncached(lab::Climb wide) {
    const lab::Timed top = wide.rungs.back();
    for (lab::Timed& timed : wide.rungs) {
      const double expected = 2 / (*timed.number("reads") + 1);
      timed.cells["expected"] = expected;
      if (!timed.number("fraction") || !top.number("fraction")) continue;
      const double share = timed.rate.median / top.rate.median;
      timed.cells["of_one_read"] = share;
      report.add(lab::derived(
          "uncached_of_one_read", timed.variant, share, "",
          fmt::format("uncached_bandwidth over the last rung's; predicted: 2 / (reads + 1) = "
                      "{:.3f}",
                      expected)));
    }
    std::vector<lab::Column> shown = columns();
    lab::append(shown, {lab::Column("reads", "reads", "1/element"),
                        lab::real("of_one_read", "of one read", "", 3),
                        lab::real("expected", "predicted", "", 3)});
    add_table("ladder_uncached",
              fmt::format("Rows beyond all caches: {} columns, with at least twice L2 in flight",
                          sizes_.wide_columns),
              shown, wide.rungs);
  }

  /// The lesson's own kernel; `run` checks its results.
  void time_attention() {
    const AttentionShape& shape = sizes_.attention;
    const auto queries = static_cast<std::size_t>(shape.queries);
    const auto keys = static_cast<std::size_t>(shape.keys);
    const auto head = static_cast<std::size_t>(shape.head_dim);
    Matrix scores(device, queries * keys, 11), values(device, keys * head, 3);
    simt::Buffer<float> output(device, queries * head);
    const auto launch = [&] {
      kernels_of(device).attention(device, shape, Accumulator::fp32, scores.input.span(),
                                   values.input.span(), output.span());
    };
    const std::string name =
        fmt::format("{} queries x {} keys, tiles of {}, head dimension {}, FP32", shape.queries,
                    shape.keys, shape.tile_width, shape.head_dim);
    climb({.rungs = {{.name = "online-softmax",
                      .why = "the lesson's own kernel",
                      .configurations = {{.name = name,
                                          .make =
                                              [&] {
                                                return lab::Runnable{launch, {}};
                                              }}}}},
           .peers = {},
           .work = {.bytes_read = static_cast<double>(scores.input.bytes() + values.input.bytes()),
                    .bytes_written = static_cast<double>(output.bytes())},
           .note = "scores, values and output each counted once",
           .rate_id = "attention_bandwidth",
           .time_id = "attention_time"},
          0.9, 1);
  }

  const BenchSizes& sizes_;
  Matrix matrix_;
};

}  // namespace

lab::Table ladder_table() {
  lab::Table table{
      "ladder",
      "The ladder: softmax of each row of a matrix",
      {"rung", whole("reads", "", "1/element"), whole("writes", "", "1/element"),
       whole("bytes", "", "B/element"), column("why", "what changed, and why it is faster")}};
  for (const Rung rung : kRungs) {
    table.add({rung, reads_of(rung), 1, 4 * (reads_of(rung) + 1), reason_of(rung)});
  }
  return table;
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  progress.report(0, "making random numbers");
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::online_softmax

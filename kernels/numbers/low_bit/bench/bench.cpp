#include "kernels/numbers/low_bit/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/low_bit/reference.hpp"

namespace tilestep::low_bit {
namespace {

using lab::real;

/// Repeated over the matrix: as many weights as the lesson draws.
std::vector<std::uint16_t> period() {
  return weights_of({.data = Data::heavy_tailed});
}

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        sizes_(sizes),
        matrix_(sizes.matrix),
        weights_(device, numeric::elements_of(matrix_.rows, matrix_.columns), period()),
        codes_(device, 2 * weights_.span().count),
        scales_(device, weights_.span().count / 8),
        zeros_(device, weights_.span().count / 8),
        ranges_(device, static_cast<std::size_t>(matrix_.rows) + 1) {}

  void run() {
    kernels_of(device).ranges(device, matrix_, weights_.span(), ranges_.span());
    lab::Climb all;
    for (const Format format : all_of<Format>())
      all.add(climb(sizes_.quick ? lab::quick(plan(format)) : plan(format), 0.3 / kFormats));
    add_table("quantize", fmt::format("Quantizing {} × {} BF16", matrix_.rows, matrix_.columns),
              {"rung", "configuration", "format", real("bits", "bits a weight", "", 3), "time",
               "bandwidth", "p10", "p90", lab::column("fraction", "of copy")},
              all.rungs);
    std::string product = add_linear(*this, sizes_, weights_);
    product += add_gemv(*this, sizes_);
    report.summary =
        product + fmt::format("Quantizing to INT4 runs at {} on {}, a plain copy at {}.",
                              headline("quantize_bandwidth", name_of(Format::int4), 0),
                              device.info().name, headline("copy_bandwidth", "", 0));
  }

 private:
  /// Where the format has no group of its own: 128 weights, a usual choice.
  Quantized quantized(Format format) {
    const Group group = group_of(format, Group::g128);
    const auto groups = weights_.span().count /
                        static_cast<std::size_t>(group_size(group, matrix_.rows, matrix_.columns));
    const std::size_t bytes = code_bytes(format, matrix_.rows, matrix_.columns);
    const auto scale = static_cast<std::size_t>(scale_bytes(format));
    return {format,
            group,
            {codes_.span().data, bytes},
            {scales_.span().data, groups * scale},
            {zeros_.span().data, format == Format::int4_zero ? groups : 0},
            ranges_.span()};
  }

  /// The codes of one period in the middle, against the nearest of all codes.
  lab::Closest compared(const Quantized& w) {
    std::vector<double> weights;
    for (const std::uint16_t bits : period()) {
      weights.push_back(numeric::decode(numeric::kBf16, bits));
    }
    // Scales of a row or of all follow from one period, which each row repeats.
    const int size = std::min(group_size(w.group, matrix_.rows, matrix_.columns), kWeightCount);
    const Matrix one{kWeightCount / std::max(size, kSuperBlock), std::max(size, kSuperBlock)};
    const auto scales = expected_scales(w.format, w.group, one, weights);
    const std::size_t bytes = code_bytes(w.format, 1, kWeightCount);
    const std::size_t first = w.codes.count / bytes / 2 * bytes;
    const std::vector<int> codes = unpacked(w.format, codes_.download(first, bytes));
    lab::Closest closest;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const ExpectedScale& scale = scales[i / (weights.size() / scales.size())];
      const std::vector<int> nearest = nearest_codes(w.format, scale, weights[i]);
      const bool right = std::count(nearest.begin(), nearest.end(), codes[i]) > 0;
      closest.add(right ? 0 : 1, 0, 0);
    }
    return closest;
  }

  lab::LadderPlan plan(Format format) {
    const auto count = static_cast<double>(weights_.span().count);
    const double bits = bits_per_weight(format, Group::g128, matrix_.rows, matrix_.columns);
    lab::LadderPlan plan;
    plan.work = {.bytes_read = 2 * count, .bytes_written = bits / 8 * count};
    plan.shape = fmt::format("{} × {}", matrix_.rows, matrix_.columns);
    plan.note = "each weight counted as read once, codes and scales as written once";
    plan.rate_id = "quantize_bandwidth";
    plan.fraction_id = "quantize_of_copy";
    plan.peers = {lab::device_copy(device, "the device's own copy", codes_.span().data,
                                   weights_.span().data,
                                   static_cast<std::size_t>(plan.work.bytes() / 2))};
    if (format == Format{}) plan.peers[0].rate_id = "copy_bandwidth";
    plan.cells = {{"format", label_of(format)}, {"bits", bits}};
    lab::Rung& rung = plan.rungs.emplace_back();
    rung.name = name_of(format);
    rung.check = fmt::format("quantize_{}", name_of(format));
    rung.check_detail = "2048 codes of the timed run that are not the nearest of all codes.";
    for (const bool wide : {false, true}) {
      const int capability = device.info().compute_capability;
      if (wide && capability != 0 && capability < 90) continue;
      rung.configurations.push_back(
          {.name = wide ? "16 weights a thread" : "8 weights a thread",
           .make = [this, w = quantized(format), wide] {
             const auto launch = [this, w, wide] {
               const Kernels& kernels = kernels_of(device);
               wide ? kernels.quantize_wide(device, matrix_, weights_.span(), w)
                    : kernels.quantize(device, matrix_, weights_.span(), w);
             };
             return lab::judged(device, codes_, launch, [this, w] { return compared(w); });
           }});
    }
    return plan;
  }

  const BenchSizes sizes_;
  const Matrix matrix_;
  lab::Repeated<std::uint16_t> weights_;
  simt::Buffer<std::uint8_t> codes_, scales_, zeros_;
  simt::Buffer<Range> ranges_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  progress.report(0, "making weights");
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::low_bit

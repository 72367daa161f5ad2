// One row of X on W in each format beside BF16; and what it costs to write numbers to memory before they are multiplied.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/random.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/low_bit/bench/bench.hpp"
#include "kernels/numbers/low_bit/reference.hpp"

namespace tilestep::low_bit {
namespace {

using lab::real;
using RowOfW = std::function<std::vector<double>(std::size_t row)>;

std::vector<double> decoded(const std::vector<std::uint16_t>& bf16) {
  std::vector<double> values;
  for (const std::uint16_t bits : bf16) values.push_back(numeric::decode(numeric::kBf16, bits));
  return values;
}

/// W of one layer in one format, in groups of 128 where it has none of its own.
struct StoredLayer {
  Matrix matrix;
  Format format;
  Group group = group_of(format, Group::g128);
  int size = group_size(group, matrix.rows, matrix.columns);
  std::size_t count = numeric::elements_of(matrix.rows, matrix.columns);
  simt::Buffer<std::uint8_t> codes, scales;
  simt::Buffer<Range> ranges;
  simt::Buffer<std::uint32_t> words, pairs;  ///< of INT4, arranged

  StoredLayer(simt::Device& device, const Matrix& of, Format in)
      : matrix(of),
        format(in),
        codes(device, code_bytes(in, of.rows, of.columns)),
        scales(device,
               count / static_cast<std::size_t>(size) * static_cast<std::size_t>(scale_bytes(in))),
        ranges(device, static_cast<std::size_t>(of.rows) + 1),
        words(device, in == Format::int4 ? count / 8 : 0),
        pairs(device, in == Format::int4 ? count / 256 : 0) {}

  Quantized quantized() { return {format, group, codes.span(), scales.span(), {}, ranges.span()}; }
  Arranged arranged() { return {words.span(), pairs.span()}; }
  /// What a row stands for.
  std::vector<double> row(std::size_t row) const {
    const std::size_t bytes = code_bytes(format, 1, matrix.columns);
    const std::size_t columns = static_cast<std::size_t>(matrix.columns);
    const auto of_group = static_cast<std::size_t>(size);
    const auto width = static_cast<std::size_t>(scale_bytes(format));
    const Range all = ranges.download(ranges.count() - 1, 1)[0];
    return stored_values(format, size, codes.download(row * bytes, bytes),
                         scales.download(row * columns / of_group * width,
                                         (columns + of_group - 1) / of_group * width),
                         std::max(-all.low, all.high) / (448.0f * 6.0f));
  }
};

/// Layers of a model, alike, one after the other: what one reads is in no cache any more when its turn comes again.
class FormatLayers {
 public:
  /// Weights in BF16 for `alike` layers; the others repeat them, but for codes in memory of their own.
  FormatLayers(simt::Device& device, const Matrix& matrix, int layers, int alike, int most,
               std::initializer_list<Format> formats)
      : device_(device),
        matrix_(matrix),
        layers_(layers),
        alike_(alike),
        weights_(device, count() * static_cast<std::size_t>(alike), normal_bf16(3, kDeviation)),
        x_(device, numeric::elements_of(most, matrix.columns), normal_bf16(4, 1)),
        y_(device, numeric::elements_of(most, matrix.rows)) {
    for (const Format format : formats) {
      for (int i = 0; i < layers; ++i) {
        StoredLayer& layer = stored_[format].emplace_back(device, matrix, format);
        kernels().ranges(device, matrix, weights(i), layer.ranges.span());
        kernels().quantize(device, matrix, weights(i), layer.quantized());
        if (format != Format::int4) continue;
        kernels().arrange(device, matrix, layer.quantized(), layer.arranged());
      }
    }
    device.synchronize();
  }

  lab::Runnable gemv(Format format, const GemvPlan& plan) {
    return each(1, row_of(format, false), [this, format, plan](int i) {
      kernels().gemv(device_, matrix_, layer(format, i).quantized(), plan, x(1), y(1));
    });
  }
  lab::Runnable linear(const LinearPlan& plan, int batch) {
    return each(batch, row_of(Format::int4, false), [this, plan, batch](int i) {
      kernels().linear(device_, matrix_, layer(Format::int4, i).arranged(), plan, batch, x(batch),
                       y(batch));
    });
  }
  lab::Runnable library(int algorithm, int batch) {
    const auto row = [this](std::size_t at) {
      const auto columns = static_cast<std::size_t>(matrix_.columns);
      return decoded(weights_.values(at * columns, columns));
    };
    return each(batch, row, [this, algorithm, batch](int i) {
      kernels().library_multiply(product(batch), algorithm, arrays(weights(i).data));
    });
  }
  /// Numbers to memory, where all layers have the same place, and their product by the library.
  lab::Runnable unfused(Format format, int algorithm, int batch, simt::Buffer<std::uint16_t>& to) {
    return each(batch, row_of(format, true), [this, format, algorithm, batch, &to](int i) {
      kernels().dequantize_bf16(device_, matrix_, layer(format, i).quantized(), to.span());
      kernels().library_multiply(product(batch), algorithm, arrays(to.span().data));
    });
  }
  lab::Runnable dequantize(Format format, simt::Buffer<std::uint16_t>& to) {
    const auto launch = device_.graph_of([this, format, &to] {
      for (int i = layers_ - 1; i >= 0; --i) {
        kernels().dequantize_bf16(device_, matrix_, layer(format, i).quantized(), to.span());
      }
    });
    return lab::judged(device_, to, launch, [this, format, &to] {
      const auto columns = static_cast<std::size_t>(matrix_.columns);
      lab::Closest closest;
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t row = numeric::mixed(i) % static_cast<std::size_t>(matrix_.rows);
        const std::vector<double> want = row_of(format, true)(row);
        const std::vector<double> got = decoded(to.download(row * columns, columns));
        for (std::size_t k = 0; k < columns; ++k) closest.add(got[k], want[k], 0);
      }
      return closest;
    });
  }

  int algorithms(int batch) {
    if (!kernels().library().available) return 0;
    return kernels().library_algorithms(product(batch), arrays(weights(0).data));
  }
  std::size_t count() const { return numeric::elements_of(matrix_.rows, matrix_.columns); }
  /// Bytes that a product moves: W at so many bits a weight, X and Y.
  double bytes(int batch, double bits) const {
    return static_cast<double>(count()) * bits / 8 + 2.0 * batch * (matrix_.rows + matrix_.columns);
  }
  double bits(Format format) const {
    return bits_per_weight(format, Group::g128, matrix_.rows, matrix_.columns);
  }
  std::string name() const { return fmt::format("{} × {}", matrix_.rows, matrix_.columns); }
  const Matrix& matrix() const { return matrix_; }
  int layers() const { return layers_; }

 private:
  const Kernels& kernels() const { return kernels_of(device_); }
  StoredLayer& layer(Format format, int i) {
    return stored_.at(format)[static_cast<std::size_t>(i)];
  }
  simt::Span<const std::uint16_t> weights(int i) const {
    return {weights_.span().data + static_cast<std::size_t>(i % alike_) * count(), count()};
  }
  simt::Span<const std::uint16_t> x(int batch) const {
    return {x_.span().data, numeric::elements_of(batch, matrix_.columns)};
  }
  simt::Span<std::uint16_t> y(int batch) {
    return {y_.span().data, numeric::elements_of(batch, matrix_.rows)};
  }
  simt::LibraryProduct product(int batch) const {
    return {.m = batch, .n = matrix_.rows, .k = matrix_.columns};
  }
  simt::LibraryArrays arrays(const std::uint16_t* w) {
    return {.a = x_.span().data, .b = w, .c = y_.span().data};
  }
  RowOfW row_of(Format format, bool in_bf16) {
    return [this, format, in_bf16](std::size_t row) {
      std::vector<double> values = layer(format, 0).row(row);
      for (double& value : values) {
        if (!in_bf16) break;
        value = numeric::round_to(numeric::kBf16, static_cast<double>(static_cast<float>(value)));
      }
      return values;
    };
  }
  /// All layers into the same y, the first one's last: 128 of its elements are compared with sums in double.
  lab::Runnable each(int batch, RowOfW row, std::function<void(int layer)> one) {
    const auto launch = device_.graph_of([this, one = std::move(one)] {
      for (int i = layers_ - 1; i >= 0; --i) one(i);
    });
    return lab::judged(device_, y_, launch, [this, batch, row = std::move(row)] {
      const auto columns = static_cast<std::size_t>(matrix_.columns);
      const auto rows = static_cast<std::size_t>(matrix_.rows);
      lab::Closest closest;
      for (std::size_t i = 0; i < 128; ++i) {
        const std::uint64_t random = numeric::mixed(i);
        const std::size_t at = random % rows, n = (random >> 32) % static_cast<std::size_t>(batch);
        const std::vector<double> w = row(at), inputs = decoded(x_.values(n * columns, columns));
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < columns; ++k) {
          sum += w[k] * inputs[k];
          magnitude += std::abs(w[k] * inputs[k]);
        }
        closest.add(decoded(y_.download(n * rows + at, 1))[0], sum,
                    std::ldexp(std::abs(sum), -8) + std::ldexp(magnitude, -18));
      }
      return closest;
    });
  }

  simt::Device& device_;
  const Matrix matrix_;
  const int layers_, alike_;
  lab::Repeated<std::uint16_t> weights_, x_;
  simt::Buffer<std::uint16_t> y_;
  std::map<Format, std::vector<StoredLayer>> stored_;
};

class GemvBench {
 public:
  GemvBench(lab::Bench& bench, const BenchSizes& sizes)
      : bench_(bench),
        sizes_(sizes),
        library_(kernels_of(bench.device).library()),
        read_(rate("read_bandwidth")),
        copy_(rate("copy_bandwidth")) {}

  void time_formats(const Matrix& matrix, double share) {
    FormatLayers layers(bench_.device, matrix, 4 * sizes_.alike, sizes_.alike, 1,
                        {Format::int4, Format::q4_k, Format::ternary});
    lab::LadderPlan plan = plan_of(layers, 1, "gemv");
    lab::Rung& int4 = plan.rungs[add_rung(plan, "int4", "INT4", layers.bits(Format::int4))];
    for (const LinearPlan& one : plans_for(bench_.device.info(), matrix, 1)) {
      if (one.tile != 0) continue;
      int4.configurations.push_back({.name = fmt::format("{} blocks", one.blocks),
                                     .make = [&layers, one] { return layers.linear(one, 1); }});
    }
    add_gemvs(plan, "q4_k", "Q4_K", Format::q4_k, layers, {{16, 8}, {16, 16}, {32, 8}, {32, 16}});
    add_gemvs(plan, "ternary", "ternary", Format::ternary, layers,
              {{16, 8}, {16, 16}, {32, 8}, {32, 16}, {64, 8}, {64, 16}});
    add_gemvs(plan, "ternary-tables", "ternary, tables", Format::ternary, layers,
              {by_tables(matrix, 4), by_tables(matrix, 8)});
    climb(plan, layers, 1, share, formats_);
  }

  void time_unfused(const Matrix& matrix, double share) {
    FormatLayers layers(bench_.device, matrix, sizes_.alike, sizes_.alike,
                        *std::max_element(sizes_.unfused.begin(), sizes_.unfused.end()),
                        {Format::int4, Format::nvfp4});
    simt::Buffer<std::uint16_t> to(bench_.device, layers.count());
    const double part = share / static_cast<double>(sizes_.unfused.size() + 2);
    for (const Format format : {Format::int4, Format::nvfp4}) {
      time_dequantize(layers, format, to, part);
    }
    for (const int batch : sizes_.unfused) time_unfused(layers, batch, to, part);
  }

  /// Adds the tables; answers what to say of them.
  std::string finish() {
    const lab::Column time = real("time", "a layer", "ms", 4),
                      bits = real("bits", "bits a weight", "", 3),
                      rate = real("gb_per_s", "bandwidth", "GB/s", 0),
                      speedup = real("speedup", "times as fast as BF16", "", 2);
    bench_.add_table("gemv", "One row of X on W in each format",
                     {"layer", "format", bits, time, real("bound", "the bytes' bound", "ms", 4),
                      real("of_bound", "of the bound", "", 2), rate, speedup, "configuration"},
                     formats_);
    bench_.add_table("unfused", "Multiplied from registers, or from memory in BF16",
                     {"layer", lab::whole("batch"), "format", time,
                      real("megabytes", "moved", "MB", 0), rate, speedup, "configuration"},
                     ways_);
    bench_.add_table("dequantize", "Numbers in BF16 to memory",
                     {"layer", "format", bits, time, "bandwidth", "p10", "p90",
                      lab::column("fraction", "of copy")},
                     dequantized_);
    std::string text;
    for (const lab::Timed& row : formats_) {
      const auto times = row.number("speedup");
      if (row.cells.at("layer") != formats_.back().cells.at("layer") || !times) continue;
      text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ",
                          std::get<std::string>(row.cells.at("format")), *times);
    }
    if (!text.empty()) return "At batch 1, times as fast as BF16: " + text + ". ";
    return library_.available ? "" : "No BF16 beside the formats: " + library_.reason + ". ";
  }

 private:
  /// In GB/s, 0: not timed.
  double rate(const char* id) const {
    const lab::Measurement* timed = bench_.report.measurement(id);
    return timed == nullptr ? 0 : timed->value;
  }
  lab::LadderPlan plan_of(const FormatLayers& layers, int batch, std::string_view id) const {
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.flops = 2.0 * batch * static_cast<double>(layers.count()) * layers.layers()};
    plan.shape = fmt::format("{}, batch {}", layers.name(), batch);
    plan.cells = {{"layer", layers.name()}, {"batch", batch}};
    plan.note = fmt::format("one of {} layers in a CUDA graph, each with weights of its own",
                            layers.layers());
    plan.flush_l2 = false;  // the other layers do that
    plan.rate_id = fmt::format("{}_rate", id);
    return plan;
  }
  /// `bits`: that it moves for a weight.
  static std::size_t add_rung(lab::LadderPlan& plan, const char* name, const char* label,
                              double bits) {
    lab::Rung& rung = plan.rungs.emplace_back();
    rung.name = name;
    rung.variant = fmt::format("{} {}", name, plan.shape);
    rung.check = fmt::format("{}_{}", plan.rate_id.substr(0, plan.rate_id.find('_')), name);
    rung.check_detail =
        "128 elements of y against sums in double, within BF16's half spacing and 2^-18 of the "
        "products' magnitudes.";
    rung.cells = {{"format", label}, {"bits", bits}};
    return plan.rungs.size() - 1;
  }
  static void add_gemvs(lab::LadderPlan& plan, const char* name, const char* label, Format format,
                        FormatLayers& layers, const std::vector<GemvPlan>& plans) {
    lab::Rung& rung = plan.rungs[add_rung(plan, name, label, layers.bits(format))];
    for (const GemvPlan& one : plans) {
      rung.configurations.push_back(
          {.name = fmt::format("{} of {} rows, {} {}", one.tables ? "clusters" : "tiles", one.rows,
                               one.splits, one.tables ? "blocks" : "warps"),
           .make = [&layers, format, one] { return layers.gemv(format, one); }});
    }
  }
  /// All rows at once, by whole eights of multiprocessors, as clusters lie.
  GemvPlan by_tables(const Matrix& matrix, int blocks) const {
    const int clusters = std::max(bench_.device.info().multiprocessors / 8 * 8 / blocks, 1);
    const int rows = (matrix.rows + clusters * 8 - 1) / (clusters * 8) * 8;
    return {std::min(rows, 4096), blocks, true};
  }

  /// With the library in BF16 as the peer; adds a row for each that was timed.
  void climb(lab::LadderPlan& plan, FormatLayers& layers, int batch, double share,
             std::vector<lab::Timed>& rows) {
    if (library_.available) {
      lab::Rung& peer = plan.peers.emplace_back();
      peer.name = library_.name + " BF16";
      peer.check = "library";
      peer.check_detail = plan.rungs[0].check_detail;
      peer.cells = {{"format", "BF16, " + library_.name}, {"bits", 16.0}};
      for (int i = 0; i < layers.algorithms(batch); ++i) {
        peer.configurations.push_back(
            {.name = fmt::format("algorithm {}", i + 1),
             .make = [&layers, i, batch] { return layers.library(i, batch); }});
      }
    }
    lab::Climb climb = bench_.climb(sizes_.quick ? lab::quick(plan) : plan, share);
    const bool beside = !climb.peers.empty() && climb.peers[0].timed();
    const double bf16 = beside ? climb.peers[0].time_ms.median : 0;
    lab::append(climb.rungs, std::move(climb.peers));
    for (lab::Timed& timed : climb.rungs) {
      if (!timed.timed()) continue;
      const double ms = timed.time_ms.median / layers.layers();
      const double bytes = layers.bytes(batch, timed.number("bits").value_or(0));
      timed.cells["time"] = ms;
      timed.cells["megabytes"] = bytes / 1e6;
      timed.cells["gb_per_s"] = bytes / ms / 1e6;
      if (read_ > 0) timed.cells["bound"] = bytes / read_ / 1e6;
      if (read_ > 0) timed.cells["of_bound"] = bytes / read_ / 1e6 / ms;
      if (beside) timed.cells["speedup"] = bf16 / timed.time_ms.median;
      rows.push_back(std::move(timed));
    }
  }

  void time_dequantize(FormatLayers& layers, Format format, simt::Buffer<std::uint16_t>& to,
                       double share) {
    const double bits = layers.bits(format);
    const double weights = static_cast<double>(layers.count()) * layers.layers();
    lab::LadderPlan plan;
    plan.work = {.bytes_read = weights * bits / 8, .bytes_written = weights * 2};
    plan.shape = fmt::format("{} layers of {}", layers.layers(), layers.name());
    plan.rate_id = "dequantize_bandwidth";
    plan.flush_l2 = false;
    plan.cells = {{"layer", layers.name()}, {"format", label_of(format)}, {"bits", bits}};
    lab::Rung& rung = plan.rungs.emplace_back();
    rung.name = name_of(format);
    rung.check = fmt::format("dequantize_{}", name_of(format));
    rung.check_detail = "16 rows of numbers, each the value rounded to BF16.";
    rung.configurations = {{.name = "32 weights a thread", .make = [&layers, format, &to] {
                              return layers.dequantize(format, to);
                            }}};
    lab::Climb climb = bench_.climb(sizes_.quick ? lab::quick(plan) : plan, share);
    lab::Timed& timed = climb.rungs[0];
    if (!timed.timed()) return;
    timed.cells["time"] = timed.time_ms.median / layers.layers();
    if (copy_ > 0) timed.cells["fraction"] = timed.rate.median / copy_;
    dequantized_.push_back(std::move(timed));
  }

  void time_unfused(FormatLayers& layers, int batch, simt::Buffer<std::uint16_t>& to,
                    double share) {
    lab::LadderPlan plan = plan_of(layers, batch, "unfused");
    const double int4 = layers.bits(Format::int4), nvfp4 = layers.bits(Format::nvfp4);
    lab::Rung& fused = plan.rungs[add_rung(plan, "int4-fused", "INT4, fused", int4)];
    for (const LinearPlan& one : plans_for(bench_.device.info(), layers.matrix(), batch)) {
      fused.configurations.push_back(
          {.name = one.tile == 0
                       ? std::string("GEMV")
                       : fmt::format("tiles of 128 × {}, {} blocks each", one.tile, one.splits),
           .make = [&layers, one, batch] { return layers.linear(one, batch); }});
    }
    const auto add = [&](const char* name, const char* label, Format format, double bits) {
      lab::Rung& rung = plan.rungs[add_rung(plan, name, label, bits)];
      for (int i = 0; i < layers.algorithms(batch); ++i) {
        rung.configurations.push_back(
            {.name = fmt::format("algorithm {}", i + 1), .make = [&layers, &to, format, i, batch] {
               return layers.unfused(format, i, batch, to);
             }});
      }
    };
    if (library_.available) {  // codes are read, numbers written and read
      add("int4-unfused", "INT4, by memory", Format::int4, int4 + 32);
      add("nvfp4-unfused", "NVFP4, by memory", Format::nvfp4, nvfp4 + 32);
    }
    climb(plan, layers, batch, share, ways_);
  }

  lab::Bench& bench_;
  const BenchSizes& sizes_;
  const simt::LibraryStatus library_;
  const double read_, copy_;  ///< GB/s
  std::vector<lab::Timed> formats_, ways_, dequantized_;
};

}  // namespace

std::string add_gemv(lab::Bench& bench, const BenchSizes& sizes) {
  const int capability = bench.device.info().compute_capability;
  if (capability != 0 && capability / 10 != 9) {
    return "The GEMVs for formats of few bits were left out: they need Hopper. ";
  }
  GemvBench gemv(bench, sizes);
  const double share = (1 - bench.done) / static_cast<double>(sizes.layers.size() + 1);
  for (const Matrix& layer : sizes.layers) gemv.time_formats(layer, share);
  gemv.time_unfused(sizes.layers.back(), share);
  return gemv.finish();
}

}  // namespace tilestep::low_bit

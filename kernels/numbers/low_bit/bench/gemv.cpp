// One row of X on W in each format beside BF16; and what it costs to write numbers to memory before they are multiplied.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/quick.hpp"
#include "kernels/numbers/low_bit/bench/layers.hpp"

namespace tilestep::low_bit {
namespace {

using lab::real;

class GemvBench {
 public:
  GemvBench(lab::Bench& bench, const BenchSizes& sizes)
      : bench_(bench),
        sizes_(sizes),
        library_(kernels_of(bench.device).library()),
        read_(rate("read_bandwidth")),
        copy_(rate("copy_bandwidth")) {}

  void time_formats(const Matrix& matrix, double share) {
    Layers layers(bench_.device, matrix, 4 * sizes_.alike, sizes_.alike, 1,
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
    Layers layers(bench_.device, matrix, sizes_.alike, sizes_.alike,
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
  lab::LadderPlan plan_of(const Layers& layers, int batch, std::string_view id) const {
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
                        Layers& layers, const std::vector<GemvPlan>& plans) {
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
  void climb(lab::LadderPlan& plan, Layers& layers, int batch, double share,
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

  void time_dequantize(Layers& layers, Format format, simt::Buffer<std::uint16_t>& to,
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

  void time_unfused(Layers& layers, int batch, simt::Buffer<std::uint16_t>& to, double share) {
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

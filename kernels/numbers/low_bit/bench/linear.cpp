// W4A16 and W8A8 beside cuBLAS in BF16, over the rows of X: where fewer bytes pay, and where they stop to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>

#include "kernels/base/lab/quick.hpp"
#include "kernels/numbers/low_bit/bench/layers.hpp"

namespace tilestep::low_bit {
namespace {

using lab::real;

/// Where the crossing is not where bytes and FLOPs put it, they say why: neither roof is near.
constexpr int kCountedBatch = 64;
lab::Counter busy(const char* id, const char* metric) {
  return {id, "%", {{metric}}};
}

}  // namespace

std::vector<LinearPlan> plans_for(const simt::DeviceInfo& device, const Matrix& matrix, int batch) {
  std::vector<LinearPlan> plans;
  const int capability = device.compute_capability;
  if (capability != 0 && capability / 10 != 9) return plans;
  const int tiles = matrix.rows / 16, multiprocessors = std::max(device.multiprocessors, 1);
  for (const int blocks : {multiprocessors, 2 * multiprocessors, 4 * multiprocessors, tiles}) {
    if (batch <= 8 && blocks <= tiles) plans.push_back({.blocks = blocks});
  }
  for (const int tile : {16, 32, 64, 128}) {
    if ((tile > 16 && tile >= 4 * batch) || 4 * tile < batch) continue;
    for (const int splits : {1, 2, 4}) {
      if (matrix.columns / 128 % splits == 0) plans.push_back({tile, splits});
    }
  }
  return plans;
}

namespace {

class Linear {
 public:
  /// `roofs`: the rates of W8A8's square product.
  Linear(lab::Bench& bench, const BenchSizes& sizes, const EightRates& roofs)
      : bench_(bench), sizes_(sizes), square_(roofs) {}

  /// What reading memory comes to, by the words of `data`.
  void read(const lab::Repeated<std::uint16_t>& data) {
    simt::Device& device = bench_.device;
    const simt::Span<const std::uint32_t> words{
        reinterpret_cast<const std::uint32_t*>(data.span().data), data.span().count / 2};
    const auto first = data.values(0, data.span().count);
    std::uint32_t want = 0;
    for (std::size_t i = 0; i < first.size(); i += 2) {
      want += static_cast<std::uint32_t>(first[i] | first[i + 1] << 16);
    }
    lab::LadderPlan plan;
    plan.work = {.bytes_read = static_cast<double>(data.bytes())};
    plan.rate_id = "read_bandwidth";
    lab::Rung& rung = plan.rungs.emplace_back();
    rung.name = "read";
    rung.check = "read";
    rung.check_detail = "The sum of all words, modulo 2^32, is exact.";
    const int multiprocessors = std::max(device.info().multiprocessors, 1);
    for (const int blocks : {8, 16, 32}) {
      rung.configurations.push_back(
          {.name = fmt::format("{} blocks a multiprocessor", blocks),
           .make = [&device, words, want, threads = 256 * blocks * multiprocessors] {
             const auto sums = std::make_shared<simt::Buffer<std::uint32_t>>(
                 device, static_cast<std::size_t>(threads));
             const auto launch = [&device, words, sums] {
               kernels_of(device).add_up(device, words, sums->span());
             };
             return lab::judged(device, *sums, launch, [sums, want] {
               const std::vector<std::uint32_t> all = sums->download();
               lab::Closest closest;
               closest.add(std::accumulate(all.begin(), all.end(), std::uint32_t{0}), want, 0);
               return closest;
             });
           }});
    }
    const lab::Climb climb = bench_.climb(sizes_.quick ? lab::quick(plan) : plan, 0.05);
    if (climb.rungs[0].timed()) read_ = climb.rungs[0].rate.median;
  }

  void time(const Matrix& matrix, double share) {
    const int most = *std::max_element(sizes_.batches.begin(), sizes_.batches.end());
    Layers layer(bench_.device, matrix, sizes_.alike, sizes_.alike, most, {Format::int4});
    std::array<EightBitLayers, kEightFormats.size()> eights{
        layer.in_eight_bits(kEightFormats[0], most), layer.in_eight_bits(kEightFormats[1], most)};
    const std::size_t first = rows_.size();
    last_ = layer.name();
    for (const int batch : sizes_.batches) {
      time(layer, eights, batch, share / static_cast<double>(sizes_.batches.size()));
    }
    // The tensor cores' roof for this layer: the best that either came to.
    double roof = 0;
    for (std::size_t i = first; i < rows_.size(); ++i) {
      roof = std::max(
          {roof, rows_[i].number("tflops").value_or(0), rows_[i].number("peer").value_or(0)});
    }
    for (std::size_t i = first; i < rows_.size(); ++i) predict(rows_[i], layer, roof);
    for (std::size_t f = 0; f < eights.size(); ++f) predict(first, layer, eights[f], square_[f]);
    cross(layer, first);
  }

  std::string summary() const {
    if (rows_.empty() || !rows_.back().number("speedup")) return "";
    const auto first = std::find_if(rows_.begin(), rows_.end(), [&](const lab::Timed& row) {
      return row.cells.at("layer") == rows_.back().cells.at("layer");
    });
    const auto times = [](const lab::Timed& row) {
      return fmt::format("{:.2f} times as fast at batch {:.0f}", row.number("speedup").value_or(0),
                         row.number("batch").value_or(0));
    };
    return fmt::format("Beside cuBLAS in BF16, weights of {} in INT4 are {} and {}. ", last_,
                       times(*first), times(rows_.back()));
  }
  void add_tables() {
    std::vector<lab::Column> columns{"layer",
                                     lab::whole("batch"),
                                     real("time", "W4A16", "ms", 4),
                                     real("library_time", "BF16", "ms", 4),
                                     real("speedup", "times as fast", "", 2),
                                     real("predicted", "W4A16 predicted", "ms", 4),
                                     real("library_predicted", "BF16 predicted", "ms", 4),
                                     real("predicted_speedup", "predicted", "", 2),
                                     real("of_bound", "of the bytes' bound", "", 2),
                                     real("tflops", "W4A16", "TFLOP/s", 0),
                                     real("peer", "BF16", "TFLOP/s", 0),
                                     "configuration"};
    for (const EightFormat& format : kEightFormats) {
      const auto add = [&](const char* what, const char* words, const char* unit, int decimals) {
        columns.push_back(real(fmt::format("{}_{}", format.id, what),
                               fmt::format("{}{}", format.name, words), unit, decimals));
      };
      add("time", "", "ms", 4);
      add("speedup", ", times as fast", "", 2);
      add("predicted", " predicted", "ms", 4);
      add("predicted_speedup", ", predicted", "", 2);
      add("of_bound", ", of the bytes' bound", "", 2);
      add("tflops", "", "TFLOP/s", 0);
      columns.push_back(lab::column(fmt::format("{}_configuration", format.id),
                                    fmt::format("{}'s configuration", format.name)));
    }
    bench_.add_table("linear", "W4A16 and W8A8 beside cuBLAS in BF16", std::move(columns), rows_);
    bench_.report.add(std::move(crossings_));
  }

 private:
  /// W4A16's plans beside cuBLAS's algorithms.
  lab::LadderPlan plan_of(Layers& layer, int batch) const {
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.bytes_read = layer.layers() * layer.bytes(batch, kBits),
                 .flops = layer.layers() * layer.flops(batch)};
    plan.shape = fmt::format("{}, batch {}", layer.name(), batch);
    plan.cells = {{"layer", layer.name()}, {"batch", batch}};
    plan.note = fmt::format("one of {} layers in a CUDA graph, each with weights of its own",
                            layer.layers());
    plan.flush_l2 = false;  // the other layers do that
    if (batch == kCountedBatch) {
      plan.counters = {
          busy("w4a16_dram", "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
          busy("w4a16_tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed")};
    }
    plan.rate_id = "w4a16_rate";
    plan.fraction_id = "w4a16_of_cublas";
    lab::Rung& rung = plan.rungs.emplace_back();
    rung.name = "w4a16";
    rung.variant = fmt::format("{} {}", layer.name(), batch);
    rung.check = "w4a16";
    rung.check_detail =
        "128 elements of Y against sums in double, within BF16's half spacing and "
        "2^-18 of the products' magnitudes.";
    for (const LinearPlan& one : plans_for(bench_.device.info(), layer.matrix(), batch)) {
      rung.configurations.push_back(
          {.name = one.tile == 0
                       ? fmt::format("GEMV, {} blocks", one.blocks)
                       : fmt::format("tiles of 128 × {}, {} blocks each", one.tile, one.splits),
           .make = [&layer, one, batch] { return layer.linear(one, batch); }});
    }
    const auto library = kernels_of(bench_.device).library();
    rung.peer = library.name + " BF16";
    lab::Rung& peer = plan.peers.emplace_back();
    peer.name = rung.peer;
    peer.variant = rung.variant;
    peer.rate_id = "bf16_rate";
    peer.check = "library";
    peer.check_detail = rung.check_detail;
    for (int i = 0; library.available && i < layer.algorithms(batch); ++i) {
      peer.configurations.push_back(
          {.name = fmt::format("algorithm {}", i + 1),
           .make = [&layer, i, batch] { return layer.library(i, batch); }});
    }
    return plan;
  }

  void time(Layers& layer, std::span<EightBitLayers> eights, int batch, double share) {
    lab::LadderPlan plan = plan_of(layer, batch);
    if (plan.rungs[0].configurations.empty()) return;
    // In the same rounds.
    for (EightBitLayers& eight : eights) plan.peers.push_back(eight.rung(batch));
    for (std::size_t i = 1; i < plan.peers.size(); ++i) {
      plan.peers[i].variant = plan.rungs[0].variant;
      plan.peers[i].rate_id = plan.peers[i].check + "_rate";
    }
    lab::Climb climb = bench_.climb(sizes_.quick ? lab::quick(plan) : plan, share);
    lab::Timed& timed = climb.rungs[0];
    if (!timed.timed()) return;
    const double ours = timed.time_ms.median / layer.layers();
    timed.cells["time"] = ours;
    const lab::Timed& library = climb.peers[0];
    const double theirs = library.timed() ? library.time_ms.median / layer.layers() : 0;
    if (theirs > 0) {
      timed.cells["library_time"] = theirs;
      timed.cells["speedup"] = theirs / ours;
    }
    if (read_ > 0) timed.cells["of_bound"] = layer.bytes(batch, kBits) / read_ / 1e6 / ours;
    for (std::size_t f = 0; f < eights.size(); ++f) {
      const lab::Timed& eight = climb.peers[1 + f];
      if (!eight.timed()) continue;
      const auto cell = [&](const char* what) -> lab::Cell& {
        return timed.cells[fmt::format("{}_{}", kEightFormats[f].id, what)];
      };
      const double ms = eight.time_ms.median / layer.layers();
      cell("time") = ms;
      cell("tflops") = eight.rate.median;
      cell("configuration") = eight.configuration;
      if (theirs > 0) cell("speedup") = theirs / ms;
      if (read_ > 0) cell("of_bound") = eights[f].bytes(batch) / read_ / 1e6 / ms;
    }
    rows_.push_back(std::move(timed));
  }

  /// The longer of what the bytes and the FLOPs take.
  void predict(lab::Timed& row, const Layers& layer, double tflops) const {
    if (read_ == 0 || tflops == 0) return;
    const int batch = static_cast<int>(*row.number("batch"));
    const auto ms = [&](double bits) {
      return std::max(layer.bytes(batch, bits) / read_ / 1e6, layer.flops(batch) / tflops / 1e9);
    };
    row.cells["predicted"] = ms(kBits);
    row.cells["library_predicted"] = ms(16);
    row.cells["predicted_speedup"] = ms(16) / ms(kBits);
  }

  /// The same of W8A8 from row `first` on. The tensor cores' roof is the best rate seen in the format.
  void predict(std::size_t first, const Layers& layer, const EightBitLayers& eight, double roof) {
    const auto id = [&](const char* what) { return fmt::format("{}_{}", eight.format().id, what); };
    for (std::size_t i = first; i < rows_.size(); ++i) {
      roof = std::max(roof, rows_[i].number(id("tflops")).value_or(0));
    }
    for (std::size_t i = first; i < rows_.size() && read_ > 0 && roof > 0; ++i) {
      const int batch = static_cast<int>(*rows_[i].number("batch"));
      const double ms = std::max(eight.bytes(batch) / read_ / 1e6, layer.flops(batch) / roof / 1e9);
      rows_[i].cells[id("predicted")] = ms;
      const auto library = rows_[i].number("library_predicted");
      if (library) rows_[i].cells[id("predicted_speedup")] = *library / ms;
    }
  }

  /// From which batch on W4A16 is no faster: between two that were timed, on a scale of powers of two.
  void cross(const Layers& layer, std::size_t first) {
    const auto crossing = [&](const char* id, double least) -> lab::Cell {
      for (std::size_t i = first + 1; i < rows_.size(); ++i) {
        const auto before = rows_[i - 1].number(id), after = rows_[i].number(id);
        if (!before || !after || *before < least || *after >= least) continue;
        const double part = (*before - least) / (*before - *after);
        return *rows_[i - 1].number("batch") *
               std::pow(*rows_[i].number("batch") / *rows_[i - 1].number("batch"), part);
      }
      return {};
    };
    const auto counted = [&](const char* id) -> lab::Cell {
      for (std::size_t i = first; i < rows_.size(); ++i) {
        if (const auto value = rows_[i].number(id)) return *value;
      }
      return {};
    };
    crossings_.rows.push_back({layer.name(), crossing("predicted_speedup", 1.05),
                               crossing("speedup", 1.05), crossing("speedup", 1.0),
                               counted("w4a16_dram"), counted("w4a16_tensor")});
  }

  static constexpr double kBits = 4.125;
  lab::Bench& bench_;
  const BenchSizes& sizes_;
  const EightRates square_;
  double read_ = 0;  ///< GB/s
  std::vector<lab::Timed> rows_;
  std::string last_;  ///< of the last layer
  lab::Table crossings_{
      "crossing",
      "From which batch on W4A16 is no more than 5 % faster",
      {"layer", real("predicted", "predicted", "", 0), real("measured", "measured", "", 0),
       real("even", "slower from", "", 0), real("dram", "DRAM busy at batch 64", "%", 0),
       real("tensor", "tensor cores busy", "%", 0)}};
};

}  // namespace

std::string add_linear(lab::Bench& bench, const BenchSizes& sizes,
                       const lab::Repeated<std::uint16_t>& data) {
  Linear linear(bench, sizes, add_w8a8(bench, sizes));
  linear.read(data);
  for (const Matrix& layer : sizes.layers) {
    linear.time(layer, 0.4 / static_cast<double>(sizes.layers.size()));
  }
  linear.add_tables();
  return linear.summary() + summary_of_w8a8(bench);
}

}  // namespace tilestep::low_bit

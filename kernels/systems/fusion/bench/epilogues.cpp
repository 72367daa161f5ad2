// Products with epilogues beside the plain product of the lesson hopper-gemm, which is followed by a second launch, and
// beside cuBLAS's plain product.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/base/simt/counters.hpp"
#include "kernels/systems/fusion/bench/bench.hpp"

namespace tilestep::fusion {
namespace {

using lab::real, lab::whole;

constexpr lab::Pace kFewRows{150, 14, 7, 20}, kManyRows{600, 20, 8, 20};
constexpr int kMany = 1024;  ///< rows from which on the tensor cores are the limit

/// MB that a product's launches have to move: a plain product, the launch after it, both as one; and C, written and read.
struct Megabytes {
  double plain, after, fused, intermediate;
};
Megabytes megabytes_of(const EpilogueLayer& layer, int batch) {
  const double m = 2e-6 * batch, c = m * layer.n, out = m * output_columns(layer.epilogue, layer.n);
  const double inputs = layer.k * (m + 2e-6 * layer.n);
  const double second = layer.epilogue == Epilogue::bias       ? 2e-6 * layer.n
                        : layer.epilogue == Epilogue::residual ? c
                                                               : 0;
  return {inputs + c, c + second + out, inputs + second + out, 2 * c};
}

std::string tile_of(TileSize size) {
  return size == TileSize::large ? "128 x 256" : size == TileSize::small ? "64 x 128" : "64 x 64";
}

class Epilogues {
 public:
  Epilogues(lab::Bench& bench, const BenchSizes& sizes) : bench_(bench), sizes_(sizes) {}

  void run(double share) {
    const auto points = static_cast<double>(sizes_.layers.size() * sizes_.batches.size());
    for (const EpilogueLayer& layer : sizes_.layers) {
      const std::size_t first = savings_.size();
      for (const int batch : sizes_.batches) {
        Product product(bench_.device, layer, batch);
        time(product, share / points);
      }
      predict(layer, first);
    }
    for (const int batch : sizes_.batches) pack(batch, share / points);
    bench_.add_table(
        "epilogues", "Products in BF16, and what follows them, in CUDA graphs",
        {lab::Column{"epilogue", "epilogue"}, lab::Column{"layer", "W"}, whole("batch"),
         lab::Column{"rung", "launches"}, real("time", "time", "ms", 4),
         real("tflops", "rate", "TFLOP/s", 1), real("p10", "", "TFLOP/s", 1),
         real("p90", "", "TFLOP/s", 1), real("fraction", "of cuBLAS", "", 3),
         real("megabytes", "bytes", "MB", 1), real("dram", "counted in DRAM", "MB", 1),
         lab::Column{"configuration", "configuration"}},
        rows_);
    bench_.add_table(
        "epilogue_savings", "One launch instead of two",
        {lab::Column{"epilogue", "epilogue"}, whole("batch"), real("plain", "product", "µs", 2),
         real("apart", "and a launch", "µs", 2), real("together", "fused", "µs", 2),
         real("times", "times as fast", "", 3), real("predicted", "by bytes and FLOPs", "", 3),
         real("of_plain", "fused, of the product's rate", "", 3),
         real("intermediate", "intermediate", "MB", 2)},
        savings_);
    bench_.add_table(
        "packing",
        fmt::format("Q, K and V of {} numbers, X read in each product or in one", sizes_.packed.k),
        {whole("batch"), real("apart", "three products", "µs", 2), real("together", "one", "µs", 2),
         real("times", "times as fast", "", 3), lab::Column{"configuration", "configuration"}},
        packed_);
  }

 private:
  enum class How { plain, apart, fused };

  lab::Runnable runnable(Product& product, How how, TileSize size, int packs) {
    lab::Runnable plain = product.plain(size);
    if (how == How::plain) return in_graph(std::move(plain));
    const auto launch = [&product, how, size, packs, multiply = plain.launch] {
      if (how == How::fused) return product.fuse(size);
      multiply();
      product.follow(packs);
    };
    return lab::judged(bench_.device, product.out, bench_.device.graph_of(launch),
                       [&product, how] { return product.compared(how == How::fused); });
  }
  lab::Runnable in_graph(lab::Runnable runnable) {
    runnable.launch = bench_.device.graph_of(std::move(runnable.launch));
    return runnable;
  }
  lab::Rung rung(const char* name, Product& product, How how, double mb) {
    const int batch = product.gemm.shape.m;
    lab::Rung rung{.name = name, .why = "", .configurations = {}};
    rung.variant = fmt::format("{} {} {}", name_of(product.layer.epilogue), batch, name);
    rung.check = "epilogues";
    rung.check_detail =
        "Some numbers against double: the tensor cores' truncation, and BF16 rounded where two "
        "launches would.";
    rung.cells = {{"megabytes", mb}};
    for (const TileSize size : {TileSize::narrow, TileSize::small, TileSize::large}) {
      if (size != TileSize::large && batch >= kMany) continue;
      if (size == TileSize::narrow && product.layer.epilogue == Epilogue::swiglu) continue;
      for (const int packs : {2, 4}) {
        if (packs > 2 && how != How::apart) continue;
        rung.configurations.push_back(
            {.name =
                 fmt::format("{}{}", tile_of(size),
                             how == How::apart ? fmt::format(", then {} packs each", packs) : ""),
             .make = [this, &product, how, size, packs] {
               return runnable(product, how, size, packs);
             }});
      }
    }
    return rung;
  }

  void time(Product& product, double share) {
    const EpilogueLayer& layer = product.layer;
    const int batch = product.gemm.shape.m;
    const Megabytes mb = megabytes_of(layer, batch);
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.rate_id = "epilogue_rate";
    plan.work = {.bytes_read = 1e6 * mb.plain, .flops = product.gemm.flops()};
    plan.turn = batch >= kMany ? kManyRows : kFewRows;
    plan.flush_l2 = batch < kMany;  // with many rows the load must not pause
    plan.shape = fmt::format("{} x {} x {}", batch, layer.n, layer.k);
    plan.cells = {{"epilogue", std::string(name_of(layer.epilogue))},
                  {"layer", fmt::format("{} × {}", layer.n, layer.k)},
                  {"batch", batch}};
    plan.counters = {
        {"dram", "MB", {{simt::metric::kDramBytesRead, simt::metric::kDramBytesWritten}}, 1e-6}};
    const hopper_gemm::Kernels& kernels = hopper_gemm::kernels_of(bench_.device);
    if (const auto library = kernels.library(bench_.device); library.available) {
      lab::Rung& peer = plan.peers.emplace_back(
          lab::Rung{.name = library.name + " BF16", .why = "the peer", .configurations = {}});
      peer.check = "library";
      const int count = kernels.library_algorithms(bench_.device, product.gemm.library_product(),
                                                   product.gemm.library_arrays());
      for (int i = 0; i < std::min(count, 8); ++i) {
        peer.configurations.push_back(
            {.name = fmt::format("algorithm {}", i + 1),
             .make = [this, &product, i] { return in_graph(library_on(product.gemm, i, false)); }});
      }
    }
    plan.rungs = {rung("product alone", product, How::plain, mb.plain),
                  rung("two launches", product, How::apart, mb.plain + mb.after),
                  rung("one launch", product, How::fused, mb.fused)};
    const lab::Climb climb = bench_.climb(plan, share);
    const auto timed = [](const lab::Timed& one) { return one.timed(); };
    for (const auto* some : {&climb.rungs, &climb.peers})
      std::copy_if(some->begin(), some->end(), std::back_inserter(rows_), timed);
    if (!std::all_of(climb.rungs.begin(), climb.rungs.end(), timed)) return;
    lab::Timed& row = savings_.emplace_back(climb.rungs.back());
    const auto us = [&](std::size_t i) { return 1e3 * climb.rungs[i].time_ms.median; };
    row.cells.insert({{"plain", us(0)},
                      {"apart", us(1)},
                      {"together", us(2)},
                      {"times", us(1) / us(2)},
                      {"of_plain", us(0) / us(2)},
                      {"intermediate", mb.intermediate}});
  }

  // ---- one product instead of three ------------------------------------------------------------------

  /// Q, K and V of grouped-query attention: four heads of Q for one of K and V.
  void pack(int batch, double share) {
    const int n = sizes_.packed.n, k = sizes_.packed.k;
    std::vector<std::unique_ptr<Product>> all;
    for (const int rows : {n, n / 4, n / 4, n + n / 2})
      all.push_back(
          std::make_unique<Product>(bench_.device, EpilogueLayer{Epilogue::none, rows, k}, batch));
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.rate_id = "";
    plan.work = {.bytes_read = 2.0 * k * (batch + 1.5 * n), .flops = all[3]->gemm.flops()};
    plan.turn = batch >= kMany ? kManyRows : kFewRows;
    plan.flush_l2 = batch < kMany;
    plan.shape = fmt::format("{} x {} x {}", batch, n + n / 2, k);
    plan.cells = {{"batch", batch}};
    const std::pair<const char*, std::vector<Product*>> ways[] = {
        {"three products", {all[0].get(), all[1].get(), all[2].get()}},
        {"one product", {all[3].get()}}};
    for (const auto& way : ways) {
      const std::vector<Product*>& products = way.second;
      lab::Rung& rung =
          plan.rungs.emplace_back(lab::Rung{.name = way.first, .why = "", .configurations = {}});
      rung.variant = fmt::format("{} {}", way.first, batch);
      rung.check = "library";
      for (const TileSize size : {TileSize::narrow, TileSize::small, TileSize::large})
        rung.configurations.push_back({.name = tile_of(size), .make = [this, products, size] {
                                         return side_by_side(products, size);
                                       }});
    }
    const lab::Climb climb = bench_.climb(plan, share);
    if (!climb.rungs[0].timed() || !climb.rungs[1].timed()) return;
    lab::Timed& row = packed_.emplace_back(climb.rungs[1]);
    const double apart = 1e3 * climb.rungs[0].time_ms.median, together = 1e3 * row.time_ms.median;
    row.cells.insert({{"apart", apart}, {"together", together}, {"times", apart / together}});
  }
  lab::Runnable side_by_side(const std::vector<Product*>& products, TileSize size) {
    const auto launch = [products, size] {
      for (Product* one : products) one->multiply(size, products[0]->gemm);
    };
    lab::Runnable all{bench_.device.graph_of(launch), {}};
    all.verify = [this, products, launch] {
      for (Product* one : products) one->gemm.c.fill(0xFF);
      launch();
      bench_.device.synchronize();
      lab::Closest closest;
      for (Product* one : products) closest.add(compare(one->gemm, 1));
      return closest;
    };
    return all;
  }

  /// A launch takes as long as its bytes at the rate of a copy, or its FLOPs at the best rate that this layer's product
  /// came to; two launches a launch more.
  void predict(const EpilogueLayer& layer, std::size_t first) {
    const lab::Measurement* copy = bench_.report.measurement("copy_bandwidth");
    const lab::Measurement* launch = bench_.report.measurement("launch_cost", "in a graph");
    if (copy == nullptr || launch == nullptr) return;
    double best = 0;  // rows per µs
    for (std::size_t i = first; i < savings_.size(); ++i)
      best = std::max(best, *savings_[i].number("batch") / *savings_[i].number("plain"));
    for (std::size_t i = first; i < savings_.size(); ++i) {
      const double batch = *savings_[i].number("batch"), us = 1e3 / copy->value;  // per MB
      const Megabytes mb = megabytes_of(layer, static_cast<int>(batch));
      savings_[i].cells["predicted"] =
          (std::max(mb.plain * us, batch / best) + mb.after * us + launch->value) /
          std::max(mb.fused * us, batch / best);
    }
  }

  lab::Bench& bench_;
  const BenchSizes& sizes_;
  std::vector<lab::Timed> rows_, savings_, packed_;
};

}  // namespace

void add_epilogues(lab::Bench& bench, const BenchSizes& sizes, double share) {
  const int capability = bench.device.info().compute_capability;
  if (capability != 0 && capability / 10 != 9) return;  // wgmma is Hopper's
  Epilogues(bench, sizes).run(share);
}

}  // namespace tilestep::fusion

#include "kernels/matmul/tiling/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/race.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/matmul/tiling/run/problem.hpp"

// The roofs are the device's own copy and cuBLAS, which is timed in turn with every rung.

namespace tilestep::tiling {
namespace {

using lab::column, lab::real, lab::whole;
namespace metric = simt::metric;

/// A wavefront of shared memory serves so many bytes at most.
constexpr double kWavefrontBytes = 128;
/// Copies in a row that L2 answers, in one sample.
constexpr int kL2Copies = 32;

std::vector<lab::Counter> counters() {
  return {{"dram_bytes", "MB", {{metric::kDramBytesRead, metric::kDramBytesWritten}}, 1e-6},
          {"bank_conflicts", "million", {{metric::kSharedBankConflicts}}, 1e-6},
          {"tensor_pipe", "%", {{metric::kTensorPipe}}},
          {"achieved_occupancy", "%", {{"sm__warps_active.avg.pct_of_peak_sustained_active"}}},
          {"shared_wavefronts", "million", {{metric::kSharedWavefronts}}, 1e-6},
          {"data_wavefronts", "million", {{metric::kDataWavefronts}}, 1e-6},
          {"shared_pipe", "%", {{metric::kSharedWavefrontsPercent}}},
          {"data_pipe", "%", {{metric::kDataWavefrontsPercent}}}};
}

GemmShape square(int edge) {
  return {edge, edge, edge};
}

int bytes_of_input(Variant variant) {
  return variant == Variant::tensor_core ? 2 : 4;
}

/// Of the configuration that was the best; −1: none.
int number_of(const lab::Timed& timed) {
  return static_cast<int>(timed.number("number").value_or(-1));
}

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        kernels_(kernels_of(device)),
        sizes_(sizes),
        library_(kernels_.library(device)) {
    for (const Variant variant : all_of<Variant>()) {
      const int capability = device.info().compute_capability;
      if (variant != Variant::tensor_core || capability == 0 || capability >= 80) {
        rungs_.push_back(variant);
      }
    }
  }

  void run() {
    report.add(ladder_table());
    if (sizes_.quick)
      lab::leave_out(report, {"other sizes", "hardware counters", "what shared memory allows"});
    if (lab::Race::under_way() == nullptr) {
      if (!sizes_.quick) check_all_sizes();
      measure_copies();
    }
    std::vector<lab::Climb> climbs;
    done = 0.13;
    for (const int edge : sizes_.edges) {
      progress.report(done, fmt::format("making matrices of {0} x {0}", edge));
      climbs.push_back(climb_edge(edge, 0.85 / static_cast<double>(sizes_.edges.size())));
    }
    add_results(climbs);
    add_resources(climbs.front());
    for (std::size_t i = 0; i < climbs.size(); ++i) {
      if (sizes_.edges[i] == sizes_.counted_edge && !sizes_.quick) add_counters(climbs[i]);
    }
    add_datasheet();
    add_roofline(climbs);
    report.summary = summary();
  }

 private:
  /// Every rung over sizes that its tiles divide and such that they do not.
  void check_all_sizes() {
    double checked = 0;
    for (const GemmShape& shape : sizes_.checked) {
      progress.report(0.1 * checked++ / static_cast<double>(sizes_.checked.size()),
                      fmt::format("checking at {} x {} x {}", shape.m, shape.n, shape.k));
      Problem problem(device, shape);
      for (const Variant variant : rungs_) {
        progress.check();
        ladder.judge(
            fmt::format("ladder_{}", name_of(variant)),
            "Against double at 1, 33 x 7 x 100, 128, 257 x 100 x 129, 512, 1000 x 1100 x 1030 and "
            "2048 (there 256 elements); tolerance: what rounding can explain in the order of the "
            "kernel's additions.",
            rung_on(problem, device, variant, kBestConfiguration).verify());
      }
    }
  }

  // ---- roofs ----

  /// The device's own copy, `copies` times in a row; TB/s.
  double measure_copy(const char* id, std::size_t bytes, int copies, const char* what) {
    const std::size_t count = bytes / sizeof(float);
    std::mt19937 generator = lab::generator_of(5);
    const lab::Repeated<float> from(
        device, count, lab::uniform_floats(generator, std::min(count, std::size_t{1} << 22)));
    simt::Buffer<float> to(device, count);
    const auto launch = [&] {
      for (int i = 0; i < copies; ++i) {
        device.copy_on_device(to.span().data, from.span().data, from.bytes());
      }
    };
    progress.report(0.1, "measuring copies");
    const lab::Spread rate = lab::rate_of(
        lab::spread_of(lab::settled_times(device, progress, launch, lab::kShown, false)),
        2.0 * static_cast<double>(from.bytes()) * copies);
    report.add(lab::measured(id, "", rate, "GB/s",
                             fmt::format("the device's own copy of {:.4g} MiB, counted as read and "
                                         "written{}",
                                         static_cast<double>(from.bytes()) / (1 << 20), what)));
    return rate.median * 1e-3;
  }

  void measure_copies() {
    roofs_.dram_tb_s = measure_copy("copy_bandwidth", sizes_.copy_bytes, 1, "");
    const std::size_t in_l2 = device.info().l2_bytes / 8 / sizeof(float) * sizeof(float);
    if (in_l2 == 0) return;
    roofs_.l2_tb_s = measure_copy("l2_copy_bandwidth", in_l2, kL2Copies,
                                  ", many in a row that stay in L2; the gaps between them are in "
                                  "it, so that L2 can do more");
  }

  // ---- the ladder ----

  lab::Rung rung(Variant variant, Problem& problem) {
    lab::Rung rung =
        lab::rung_of(variant, "", detail_of_check(" in the order of the kernel's additions"));
    rung.cells = {{"what_changed", rung.why}};
    rung.peer = variant == Variant::tensor_core ? library_.name + " BF16" : library_.name + " FP32";
    const auto all = kernels_.configurations(variant);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const int number = static_cast<int>(i), edge = problem.shape.m;
      const bool fits =
          edge % all[i].tile_m == 0 && edge % all[i].tile_n == 0 && edge % all[i].tile_k == 0;
      if (!all[i].any_size && !fits) continue;
      rung.configurations.push_back(
          {.name = std::string(all[i].name),
           .make = [this, &problem, variant,
                    number] { return rung_on(problem, device, variant, number); },
           .cells = {{"number", number}},
           .check = fmt::format("{}, {} at {}", rung.name, all[i].name, edge)});
    }
    return rung;
  }

  lab::Rung library(const char* id, const char* format, Problem& problem,
                    std::initializer_list<std::pair<const char*, Precision>> ways) {
    lab::Rung peer;
    peer.name = fmt::format("{} {}", library_.name, format);
    peer.why = "the peer";
    peer.cells = {{"what_changed", peer.why}};
    peer.variant = library_.name;
    peer.rate_id = id;
    peer.check_detail = detail_of_check(" in any order of additions");
    for (const auto& [name, precision] : ways) {
      peer.configurations.push_back(
          {.name = name,
           .make = [this, &problem,
                    precision = precision] { return library_on(problem, device, precision); },
           .check = fmt::format("{}, {} at {}", id, name, problem.shape.m)});
    }
    return peer;
  }

  static std::string detail_of_check(const char* order) {
    return fmt::format(
        "Against double at {} random elements of C and its four corners, none of the others NaN; "
        "tolerance: what rounding can explain{}.",
        kProbes - 4, order);
  }

  lab::Climb climb_edge(int edge, double share) {
    Problem problem(device, square(edge));
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.bytes_read = ideal_bytes(problem.shape, 2), .flops = flops_of(problem.shape)};
    plan.shape = fmt::format("{}³", edge);
    plan.cells = {{"size", edge}};
    plan.rate_id = "gemm_rate";
    plan.fraction_id = "fraction_of_cublas";
    if (library_.available) {
      plan.peers = {library("library_fp32", "FP32", problem,
                            {{"default", Precision::fp32}, {"pedantic", Precision::fp32_pedantic}}),
                    library("library_bf16", "BF16", problem, {{"default", Precision::bf16}})};
    }
    for (const Variant variant : rungs_) plan.rungs.push_back(rung(variant, problem));
    if (edge == sizes_.counted_edge) plan.counters = counters();
    return climb(plan, share);
  }

  // ---- what came of it ----

  void add_results(const std::vector<lab::Climb>& climbs) {
    std::vector<lab::Timed> rows, configurations;
    for (const lab::Climb& climb : climbs) {
      for (const auto* some : {&climb.rungs, &climb.peers}) {
        std::copy_if(some->begin(), some->end(), std::back_inserter(rows),
                     [](const lab::Timed& timed) { return timed.timed(); });
      }
      lab::append(configurations, climb.configurations);
    }
    const lab::Column size{"size", "M = N = K"}, rate{"tflops", "rate"};
    const lab::Column fraction{"fraction", "of cuBLAS"};
    add_table("ladder_measured", fmt::format("The ladder on {}, random data", device.info().name),
              {"rung", size, column("what_changed", "what changed"), "configuration", rate,
               real("p10", "", "TFLOP/s", 2), real("p90", "", "TFLOP/s", 2), fraction},
              rows);
    add_table("configurations", "Every compiled configuration (fewer samples)",
              {"rung", "configuration", size, rate, fraction}, configurations);
  }

  void add_resources(const lab::Climb& main) {
    lab::Table table{
        "resources",
        "What the compiled kernels take of a multiprocessor",
        {"rung", "configuration", whole("threads", "", "1/block"),
         whole("registers", "", "1/thread"), whole("spilled", "", "B/thread"),
         whole("shared", "shared memory", "B/block"), whole("blocks", "", "1/multiprocessor"),
         real("occupancy", "occupancy limit", "", 3)}};
    for (std::size_t rung = 0; rung < rungs_.size(); ++rung) {
      const std::string_view name = name_of(rungs_[rung]);
      const auto all = kernels_.configurations(rungs_[rung]);
      for (int i = 0; i < static_cast<int>(all.size()); ++i) {
        const Resources r = kernels_.resources(device, rungs_[rung], i);
        const std::string detail(all[static_cast<std::size_t>(i)].name);
        table.add({name, detail, r.threads, r.registers, r.local_bytes,
                   r.dynamic_shared_bytes + r.static_shared_bytes, r.blocks_per_multiprocessor,
                   r.occupancy()});
        if (i != number_of(main.rungs[rung])) continue;
        lab::append(report.measurements,
                    {lab::derived("registers_per_thread", name, r.registers, "registers", detail),
                     lab::derived("blocks_per_multiprocessor", name, r.blocks_per_multiprocessor,
                                  "blocks", detail),
                     lab::derived("occupancy_limit", name, r.occupancy(), "", detail)});
      }
    }
    report.add(std::move(table));
  }

  /// What the hardware counted beside what the threads ask for, and what shared memory allows.
  void add_counters(lab::Climb& climb) {
    if (!device.counters().available) return;
    const GemmShape shape = square(sizes_.counted_edge);
    for (std::size_t i = 0; i < rungs_.size(); ++i) {
      const int number = number_of(climb.rungs[i]);
      if (number < 0) continue;
      const Configuration& one =
          kernels_.configurations(rungs_[i])[static_cast<std::size_t>(number)];
      const bool tiled = rungs_[i] >= Variant::shared_tile;
      const auto loads = static_cast<double>(tiled ? tiled_loads(shape, one.tile_m, one.tile_n)
                                                   : untiled_loads(shape));
      const double asked = (bytes_of_input(rungs_[i]) * loads + 4.0 * shape.m * shape.n) * 1e-6;
      climb.rungs[i].cells["asked_bytes"] = asked;
      report.add(lab::derived(
          "asked_bytes", climb.rungs[i].name, asked, "MB",
          fmt::format("{}³: what the threads load of A and B and store of C; caches answer a part",
                      sizes_.counted_edge)));
      if (tiled) add_ceiling(climb.rungs[i]);
    }
    add_table(
        "counters", fmt::format("Hardware counters at {}³, one launch", sizes_.counted_edge),
        {"rung", whole("dram_bytes", "DRAM traffic", "MB"),
         real("bank_conflicts", "shared bank conflicts", "million", 2),
         real("tensor_pipe", "tensor pipe active", "%", 1),
         real("achieved_occupancy", "achieved occupancy", "%", 1),
         whole("asked_bytes", "asked for by threads", "MB"),
         real("shared_wavefronts", "shared wavefronts", "million", 1),
         real("data_wavefronts", "all wavefronts", "million", 1),
         real("shared_pipe", "shared of peak", "%", 1), real("data_pipe", "all of peak", "%", 1)},
        climb.rungs);
    std::vector<lab::Timed> with_shared;
    std::copy_if(climb.rungs.begin(), climb.rungs.end(), std::back_inserter(with_shared),
                 [](const lab::Timed& timed) { return timed.number("ceiling").has_value(); });
    add_table(
        "shared_ceiling",
        fmt::format("What shared memory allows at {}³: a wavefront a cycle, of up to 128 bytes",
                    sizes_.counted_edge),
        {"rung", real("shared_bytes", "shared bytes per FLOP", "B/FLOP", 4),
         real("flop_per_byte", "FLOP per shared byte", "FLOP/B", 2),
         real("ceiling", "", "TFLOP/s", 2), column("tflops", "rate"),
         real("share", "of the ceiling", "", 3)},
        with_shared);
  }

  /// The rate at which every cycle would have a wavefront of shared memory.
  void add_ceiling(lab::Timed& timed) {
    const auto wavefronts = timed.number("shared_wavefronts"), pipe = timed.number("shared_pipe");
    if (!wavefronts || !pipe || *wavefronts <= 0 || *pipe <= 0) return;
    const double bytes =
        kWavefrontBytes * *wavefronts * 1e6 / flops_of(square(sizes_.counted_edge));
    const double ceiling = timed.rate.median / (*pipe / 100);
    timed.cells["shared_bytes"] = bytes;
    timed.cells["flop_per_byte"] = 1 / bytes;
    timed.cells["ceiling"] = ceiling;
    timed.cells["share"] = *pipe / 100;
    lab::append(
        report.measurements,
        {lab::derived("shared_bytes_per_flop", timed.name, bytes, "B/FLOP",
                      fmt::format("{}³: 128 B x shared wavefronts / FLOPs", sizes_.counted_edge)),
         lab::derived("shared_ceiling", timed.name, ceiling, "TFLOP/s",
                      fmt::format("{}³: {:.2f} TFLOP/s / {:.1f} % of the cycles with a wavefront "
                                  "of shared memory",
                                  sizes_.counted_edge, timed.rate.median, *pipe))});
  }

  void add_roofline(const std::vector<lab::Climb>& climbs) {
    std::vector<RooflinePoint> points;
    for (std::size_t i = 0; i < climbs.size(); ++i) {
      const GemmShape shape = square(sizes_.edges[i]);
      for (std::size_t rung = 0; rung < rungs_.size(); ++rung) {
        const lab::Timed& timed = climbs[i].rungs[rung];
        if (!timed.timed()) continue;
        const int bytes = bytes_of_input(rungs_[rung]);
        const std::string label = fmt::format("{} {}³", timed.name, shape.m);
        points.push_back({label, flops_of(shape) / ideal_bytes(shape, bytes), timed.rate.median,
                          lab::Provenance::measured,
                          fmt::format("ideal: {}·(m·k + k·n) + 4·m·n, each matrix once", bytes)});
        const std::optional<double> dram = timed.number("dram_bytes");
        if (!dram || *dram <= 0) continue;
        points.push_back({label + ", counted bytes", flops_of(shape) / (*dram * 1e6),
                          timed.rate.median, lab::Provenance::measured,
                          "DRAM bytes that the hardware counted"});
      }
    }
    // The datasheet's peak where there is one: libraries leave it room, and kernels that are not
    // matrix products alone have been measured above cuBLAS.
    for (const char* id : {"datasheet_bf16", "library_bf16", "library_fp32"}) {
      const lab::Measurement* roof = report.measurement(id);
      if (roof != nullptr && roofs_.tflops == 0) roofs_.tflops = roof->value;
    }
    if (roofs_.tflops > 0) {
      for (RooflinePoint& point : attention_points(roofs_)) points.push_back(std::move(point));
    }
    report.add(roofline_table(points));
  }

  /// The datasheet's lines, for the one GPU whose datasheet this is.
  void add_datasheet() {
    if (device.info().name.find("H200") == std::string::npos) return;
    const char* source = "NVIDIA H200 SXM datasheet, dense";
    lab::append(report.measurements, {lab::derived("datasheet_bandwidth", "", 4800, "GB/s", source),
                                      lab::derived("datasheet_fp32", "", 67, "TFLOP/s", source),
                                      lab::derived("datasheet_bf16", "", 989, "TFLOP/s", source)});
  }

  std::string summary() const {
    const auto text = [&](Variant variant) {
      const auto* fraction = report.measurement("fraction_of_cublas", name_of(variant));
      return headline("gemm_rate", name_of(variant), 1) +
             (fraction == nullptr ? ""
                                  : fmt::format(" ({:.0f} % of cuBLAS)", 100 * fraction->value));
    };
    return fmt::format("On {} the top FP32 rung reaches {} and tensor-core {} at {}³.{}",
                       device.info().name, text(Variant::warp_tile), text(Variant::tensor_core),
                       sizes_.edges.front(),
                       library_.available ? "" : " No peer: " + library_.reason + ".");
  }

  const Kernels& kernels_;
  const BenchSizes& sizes_;
  LibraryStatus library_;
  std::vector<Variant> rungs_;
  Roofs roofs_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::tiling

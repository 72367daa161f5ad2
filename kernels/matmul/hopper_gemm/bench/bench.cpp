#include "kernels/matmul/hopper_gemm/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/matmul/hopper_gemm/bench/parts.hpp"

namespace tilestep::hopper_gemm {
namespace {

using lab::column, lab::real, lab::whole;
namespace metric = simt::metric;

constexpr const char* kWhatIsCompared =
    "Against double at 256 elements of C, its corners among them, none of the others NaN; "
    "tolerance: the tensor cores' truncation, and C's rounding to BF16.";

constexpr int kLaunchesOfShares = 50;

std::vector<lab::Counter> counters() {
  return {
      {"tensor_pipe",
       "%",
       {{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}, {metric::kTensorPipe}},
       1,
       kLaunchesOfShares},
      store_conflicts(),
      dram_traffic(),
      l2_reads()};
}

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        kernels_(kernels_of(device)),
        sizes_(sizes),
        library_(kernels_.library(device)) {}

  void run() {
    report.add(ladder_table());
    if (sizes_.quick) {
      lab::leave_out(report, {"other sizes", "few rows", "FP8", "stages", "instructions", "data",
                              "hardware counters"});
    } else {
      check_all_sizes();
    }
    std::vector<lab::Timed> rows, configurations;
    done = 0.05;
    for (const int edge : sizes_.edges) {
      const bool counted = edge == sizes_.counted_edge;
      Problem problem(device, {edge, edge, edge}, DataType::bf16, Data::random, false);
      lab::LadderPlan plan = plan_of_bf16(problem, fmt::format("{}³", edge));
      for (const Variant variant : all_of<Variant>()) {
        plan.rungs.push_back(rung_of(variant, problem, false));
      }
      if (counted) plan.counters = counters();
      keep(climb(plan, 0.6 / static_cast<double>(sizes_.edges.size())), counted, rows,
           configurations);
    }
    if (!sizes_.quick) {
      Problem problem(device, sizes_.thin, DataType::bf16, Data::random, false);
      lab::LadderPlan plan = plan_of_bf16(
          problem, fmt::format("m = {}, n = k = {}", problem.shape.m, problem.shape.n));
      plan.rungs = {rung_of(Variant::persistent, problem, true)};
      plan.flush_l2 = true;  // each byte of B is used for only 64 products: it must come from DRAM
      keep(climb(plan, 0.65, 0.7), false, rows, configurations);
    }
    add_tables(rows, configurations);
    if (!sizes_.quick) {
      add_counts(*this, sizes_);
      measure_fp8();
      measure_fp8_errors();
      add_roofs(*this, sizes_);
    }
    report.summary = summary();
  }

 private:
  static bool is_thin(const Configuration& one) { return one.columns == 64; }

  lab::Rung rung_of(Variant variant, Problem& problem, bool thin) {
    lab::Rung rung = lab::rung_of(variant, "", kWhatIsCompared);
    rung.cells = {{"what_changed", rung.why}};
    const auto all = kernels_.configurations();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Configuration& one = all[i];
      if (one.variant != variant || one.dtype != problem.type || one.any_stages ||
          one.plain_stores || one.block_scaled || (is_thin(one) && !thin)) {
        continue;
      }
      const int number = static_cast<int>(i);
      rung.configurations.push_back(
          {.name = std::string(one.name),
           .make = [&problem, number] { return kernel_on(problem, number); },
           .cells = {{"number", number}},
           .check = fmt::format("{}, {} at {}", rung.name, one.name, shape_of(problem))});
    }
    return rung;
  }

  static std::string shape_of(const Problem& problem) {
    const GemmShape& s = problem.shape;
    return fmt::format("{} x {} x {}", s.m, s.n, s.k);
  }

  /// The library's configurations are all algorithms that it proposes.
  lab::Rung library_rung(Problem& problem, const std::string& name, const char* rate_id,
                         bool fast_accumulation) {
    lab::Rung peer;
    peer.name = name;
    peer.why = "the peer";
    peer.cells = {{"what_changed", peer.why}};
    peer.variant = name;
    peer.rate_id = rate_id;
    peer.check_detail = kWhatIsCompared;
    const int count = kernels_.library_algorithms(
        device, problem.library_product(fast_accumulation), problem.library_arrays());
    for (int i = 0; i < count; ++i) {
      peer.configurations.push_back(
          {.name = fmt::format("algorithm {} of {}", i + 1, count),
           .make = [&problem, i,
                    fast_accumulation] { return library_on(problem, i, fast_accumulation); },
           .check = fmt::format("{}, algorithm {} at {}", name, i + 1, shape_of(problem))});
    }
    return peer;
  }

  lab::LadderPlan plan_of(Problem& problem, const std::string& shape) {
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.bytes_read = problem.bytes(), .flops = problem.flops()};
    plan.shape = shape;
    plan.cells = {{"size", lab::Cell(shape)}};
    plan.rounds = sizes_.rounds;
    // Four fifths of a turn let it settle, the rest counts.
    plan.turn = {0.8 * sizes_.turn_ms, 20, 8, 20};
    plan.flush_l2 = false;  // products take longer than the bytes, and the load must not pause
    return plan;
  }

  lab::LadderPlan plan_of_bf16(Problem& problem, const std::string& shape) {
    lab::LadderPlan plan = plan_of(problem, shape);
    plan.rate_id = "gemm_rate";
    plan.fraction_id = "fraction_of_cublas";
    if (library_.available) {
      plan.peers = {library_rung(problem, library_.name + " BF16", "library_bf16", false)};
    }
    return plan;
  }

  static void keep(const lab::Climb& climb, bool counted, std::vector<lab::Timed>& rows,
                   std::vector<lab::Timed>& configurations) {
    for (const auto* some : {&climb.rungs, &climb.peers}) {
      for (lab::Timed timed : *some) {
        if (!timed.timed()) continue;
        timed.cells["counted"] = counted ? 1 : 0;
        rows.push_back(std::move(timed));
      }
    }
    lab::append(configurations, climb.configurations);
  }

  void add_tables(const std::vector<lab::Timed>& rows,
                  const std::vector<lab::Timed>& configurations) {
    const lab::Column size{"size", "size"}, rate{"tflops", "rate"};
    const lab::Column fraction{"fraction", "of cuBLAS"};
    add_table("ladder_measured",
              fmt::format("The ladder on {}, random BF16 data", device.info().name),
              {"rung", size, column("what_changed", "what changed"), "configuration", rate,
               real("p10", "", "TFLOP/s", 2), real("p90", "", "TFLOP/s", 2), fraction},
              rows);
    add_table("configurations", "Every compiled configuration (fewer samples)",
              {"rung", "configuration", size, rate, fraction}, configurations);
    std::vector<lab::Timed> counted;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(counted),
                 [](const lab::Timed& row) { return row.number("tensor_pipe").has_value(); });
    if (counted.empty()) return;
    add_table("counters",
              fmt::format("Hardware counters at {}³, one launch; of the tensor pipe {}",
                          sizes_.counted_edge, kLaunchesOfShares),
              {"rung", real("tensor_pipe", "tensor pipe active", "%", 1),
               whole("store_conflicts", "bank conflicts of stores"),
               whole("dram_bytes", "DRAM traffic", "MB"), whole("l2_bytes", "L2 reads", "MB")},
              counted);
  }

  /// Every compiled kernel, at sizes that its tiles divide and at others.
  void check_all_sizes() {
    const auto all = kernels_.configurations();
    double checked = 0;
    for (const GemmShape& shape : sizes_.checked) {
      progress.report(0.05 * checked++ / static_cast<double>(sizes_.checked.size()),
                      fmt::format("checking at {} x {} x {}", shape.m, shape.n, shape.k));
      for (std::size_t i = 0; i < all.size(); ++i) {
        progress.check();
        if (all[i].block_scaled && shape.k % 128 != 0) continue;
        Problem problem(device, shape, all[i].dtype, Data::random, all[i].block_scaled);
        for (int stages = all[i].any_stages ? 1 : 0; stages <= (all[i].any_stages ? 4 : 0);
             ++stages) {
          ladder.judge(fmt::format("ladder_{}", name_of(all[i].variant)),
                       "Against double at 64, 136 x 200 x 128, 200 x 1000 x 136, 256, 1000 x 136 x "
                       "1000 and 1 x 8 x 16; tolerance as above.",
                       kernel_on(problem, static_cast<int>(i), stages).verify());
        }
      }
    }
  }

  // ---- FP8 ----------------------------------------------------------------------------------------

  /// One kernel beside one of the library's modes.
  void climb_fp8(std::vector<lab::Timed>& rows, bool scaled, const char* name, const char* peer,
                 double from, double to) {
    const int edge = sizes_.fp8_edge;
    Problem problem(device, {edge, edge, edge}, DataType::fp8_e4m3, Data::random, scaled);
    lab::LadderPlan plan = plan_of(problem, fmt::format("{}³, E4M3", edge));
    plan.rate_id = "fp8_rate";
    plan.fraction_id = "fp8_fraction_of_cublas";
    if (library_.available) {
      lab::Rung rung =
          library_rung(problem, fmt::format("{} {}", library_.name, peer), "library_fp8", false);
      if (!rung.configurations.empty()) plan.peers.push_back(std::move(rung));
    }
    lab::Rung rung;
    rung.name = name;
    rung.why = scaled ? "Scales of 1x128 and 128x128; sums promoted to FP32 every 128 of k."
                      : "One scale for all; sums along k stay in the tensor cores.";
    rung.check_detail = kWhatIsCompared;
    rung.cells = {{"what_changed", rung.why}, {"peer_name", peer}};
    const auto all = kernels_.configurations();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].dtype != DataType::fp8_e4m3 || all[i].block_scaled != scaled) continue;
      const int number = static_cast<int>(i);
      rung.configurations.push_back(
          {.name = std::string(all[i].name),
           .make = [&problem, number] { return kernel_on(problem, number); },
           .check = fmt::format("{} at {}³", name, edge)});
    }
    plan.rungs = {std::move(rung)};
    lab::Climb climbed = climb(plan, from, to);
    lab::append(rows, std::move(climbed.rungs));
    for (lab::Timed& timed : climbed.peers) {
      if (timed.timed()) rows.push_back(std::move(timed));
    }
  }

  void measure_fp8() {
    std::vector<lab::Timed> rows;
    climb_fp8(rows, false, "fp8-per-tensor", "FP8, no fast accumulation", 0.7, 0.78);
    climb_fp8(rows, true, "fp8-block-scaled", "FP8, 1x128 and 128x128 scales", 0.78, 0.86);
    add_table("fp8", fmt::format("FP8 (E4M3) at {}³, C in BF16", sizes_.fp8_edge),
              {"rung", column("what_changed", "what changed"), "configuration",
               lab::Column{"tflops", "rate"}, real("p10", "", "TFLOP/s", 2),
               real("p90", "", "TFLOP/s", 2), lab::Column{"fraction", "of cuBLAS"}},
              rows);
    const lab::Measurement* plain = report.measurement("fp8_rate", "fp8-per-tensor");
    const lab::Measurement* scaled = report.measurement("fp8_rate", "fp8-block-scaled");
    if (plain == nullptr || scaled == nullptr) return;
    report.add(lab::derived("block_scaled_share", "fp8-block-scaled", scaled->value / plain->value,
                            "", "its rate / fp8-per-tensor's"));
  }

  /// Relative errors of C in FP32 on positive numbers, whose sums only grow: uniform in 0.5–1.5.
  void measure_fp8_errors() {
    progress.report(0.87, "errors of FP8 sums");
    const GemmShape shape{256, 256, 8192};
    Matrices matrices = make_matrices(shape, DataType::fp8_e4m3, 3);
    for (auto* values : {&matrices.a, &matrices.b}) {
      for (float& value : *values) value = rounded(1 + 0.5f * value, DataType::fp8_e4m3);
    }
    matrices.a_words = packed(matrices.a, shape.m, shape.k, DataType::fp8_e4m3);
    matrices.b_words = packed(matrices.b, shape.n, shape.k, DataType::fp8_e4m3);
    const numeric::AllBounded exact = reference_product(shape, matrices, DataType::fp8_e4m3);
    Params params;
    params.variant = Variant::persistent;
    params.dtype = DataType::fp8_e4m3;
    params.m = shape.m;
    params.n = shape.n;
    params.k = shape.k;
    std::vector<long long> clocks;
    const Plan plan = hopper_gemm::plan_of(params);
    const std::vector<float> plain = run_explained(
        device, {plan, Fault::none, 0, std::max(kSites, 4 * plan.k_tiles())}, matrices, clocks);
    const simt::Buffer<std::uint16_t> a(device, matrices.a_words);
    const simt::Buffer<std::uint16_t> b(device, matrices.b_words);
    const std::vector<float> ones(numeric::elements_of(shape.k / 128, shape.m), 1.0f);
    const simt::Buffer<float> scales(device, ones);
    simt::Buffer<float> c(device, numeric::elements_of(shape.m, shape.n));
    kernels_.multiply_scaled(device, shape, {a.span(), b.span()}, {scales.span(), scales.span()},
                             c.span());
    device.synchronize();
    lab::Table table{"fp8_error",
                     "E4M3, uniform in 0.5-1.5, k = 8192, C in FP32: relative error against double",
                     {column("sums", "sums along k"), real("mean_error", "mean", "%", 5),
                      real("largest_error", "largest", "%", 5)}};
    add_error(table, "fp8-per-tensor", plain, exact);
    add_error(table, "fp8-block-scaled", c.download(), exact);
    report.add(std::move(table));
  }

  void add_error(lab::Table& table, const char* variant, const std::vector<float>& c,
                 const numeric::AllBounded& exact) {
    double sum = 0;
    double largest = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const double error =
          std::abs(static_cast<double>(c[i]) - exact.value[i]) / std::abs(exact.value[i]);
      sum += error;
      largest =
          std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
    }
    const double mean = 100 * sum / static_cast<double>(c.size());
    table.add({variant, mean, 100 * largest});
    report.add(lab::derived("fp8_mean_error", variant, mean, "%",
                            "mean of |C - double| / double, 256 x 256 x 8192"));
    if (std::string_view(variant) != "fp8-block-scaled") return;
    report.add(
        lab::within("fp8_block_scaled_error", mean, 0.02,
                    "Mean relative error in percent on numbers uniform in 0.5-1.5; tolerance: "
                    "the error of FP32 sums of 128 products each."));
  }

  std::string summary() const {
    const std::string bf16 =
        fmt::format("persistent reaches {} in BF16", headline("gemm_rate", "persistent", 0));
    if (sizes_.quick) return bf16 + ".";
    return fmt::format("{}; block-scaled FP8 {}.", bf16,
                       headline("fp8_rate", "fp8-block-scaled", 0));
  }

  const Kernels& kernels_;
  const BenchSizes& sizes_;
  LibraryStatus library_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::hopper_gemm

#include "kernels/matmul/hopper_gemm/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/matmul/hopper_gemm/problem.hpp"

namespace tilestep::hopper_gemm {
namespace {

using lab::column, lab::real, lab::whole;
namespace metric = simt::metric;

constexpr const char* kWhatIsCompared =
    "Against double at 256 elements of C, its corners among them, none of the others NaN; "
    "tolerance: what the tensor cores may cut off, and C's rounding to BF16.";

// What stores wait for in shared memory: the hardware also counts that TMA or a wgmma comes between.
constexpr const char* kStoreConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";
constexpr const char* kLoadWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
constexpr const char* kStoreWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum";

const lab::Counter kDramTraffic{
    "dram_bytes", "MB", {{metric::kDramBytesRead, metric::kDramBytesWritten}}, 1e-6};
const lab::Counter kL2Reads{
    "l2_bytes", "MB", {{"lts__t_sectors_op_read.sum"}, {"lts__t_sectors.sum"}}, 32e-6};

std::vector<lab::Counter> counters() {
  return {{"tensor_pipe",
           "%",
           {{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"},
            {metric::kTensorPipe}}},
          {"store_conflicts", "", {{kStoreConflicts}}},
          kDramTraffic,
          kL2Reads};
}

/// Of a multiprocessor in dense BF16 (tensor_cycles).
constexpr double kFlopsACycle = 4096;

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        kernels_(kernels_of(device)),
        sizes_(sizes),
        library_(kernels_.library(device)) {}

  void run() {
    report.add(ladder_table());
    check_all_sizes();
    std::vector<lab::Timed> rows, configurations;
    const double share = 0.6 / static_cast<double>(sizes_.edges.size());
    for (std::size_t i = 0; i < sizes_.edges.size(); ++i) {
      const int edge = sizes_.edges[i];
      const double from = 0.05 + share * static_cast<double>(i);
      Problem problem(device, {edge, edge, edge}, DataType::bf16, Data::random, false);
      keep(climb(plan_of_ladder(problem, fmt::format("{}³", edge), edge == sizes_.counted_edge),
                 from, from + share),
           edge == sizes_.counted_edge, rows, configurations);
    }
    {
      Problem problem(device, sizes_.thin, DataType::bf16, Data::random, false);
      keep(climb(plan_of_thin(problem), 0.65, 0.7), false, rows, configurations);
    }
    add_tables(rows, configurations);
    count_stores();
    count_rasters();
    count_matrices();
    measure_fp8();
    measure_fp8_errors();
    sweep_stages();
    compare_data();
    measure_instructions();
    add_resources();
    lab::append(report.checks, ladder.checks());
    report.summary = summary();
  }

 private:
  static bool is_thin(const Configuration& one) { return one.rows == 64; }

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

  /// All algorithms that the library proposes are its configurations.
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
    // Of a turn four fifths settle, the rest counts.
    plan.turn = {0.8 * sizes_.turn_ms, 20, 8, 20};
    plan.flush_l2 = false;  // products take longer than the bytes do, and the load must not pause
    return plan;
  }

  lab::LadderPlan plan_of_ladder(Problem& problem, const std::string& shape, bool counted) {
    lab::LadderPlan plan = plan_of(problem, shape);
    plan.rate_id = "gemm_rate";
    plan.fraction_id = "fraction_of_cublas";
    if (library_.available) {
      plan.peers = {library_rung(problem, library_.name + " BF16", "library_bf16", false)};
    }
    for (const Variant variant : all_of<Variant>()) {
      plan.rungs.push_back(rung_of(variant, problem, false));
    }
    if (counted) plan.counters = counters();
    return plan;
  }

  lab::LadderPlan plan_of_thin(Problem& problem) {
    lab::LadderPlan plan =
        plan_of(problem, fmt::format("m = {}, n = k = {}", problem.shape.m, problem.shape.n));
    plan.rate_id = "gemm_rate";
    plan.fraction_id = "fraction_of_cublas";
    if (library_.available) {
      plan.peers = {library_rung(problem, library_.name + " BF16", "library_bf16", false)};
    }
    plan.rungs = {rung_of(Variant::persistent, problem, true)};
    plan.flush_l2 = true;  // each byte of B is used for 64 products alone: it must come from DRAM
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
    add_table("counters", fmt::format("Hardware counters at {}³, one launch", sizes_.counted_edge),
              {"rung", real("tensor_pipe", "tensor pipe active", "%", 1),
               whole("store_conflicts", "bank conflicts of stores"),
               whole("dram_bytes", "DRAM traffic", "MB"), whole("l2_bytes", "L2 reads", "MB")},
              counted);
  }

  std::optional<double> counted(const lab::Counter& counter, const std::function<void()>& launch) {
    progress.check();
    return lab::count(device, counter, launch);
  }
  static lab::Cell cell(const std::optional<double>& value) {
    return value ? lab::Cell(*value) : lab::Cell();
  }

  /// C's way through shared memory with the swizzle and without, where the tensor cores have nothing else to
  /// do: one k-tile.
  void count_stores() {
    if (!device.counters().available) return;
    const int edge = sizes_.counted_edge;
    const GemmShape shape{edge, edge, 64};
    Problem problem(device, shape, DataType::bf16, Data::random, false);
    lab::Table table{
        "store_conflicts",
        fmt::format("persistent at {0} x {0} x 64: C's tiles on their way out", edge),
        {column("layout", "layout"), whole("wavefronts", "wavefronts of stores"),
         whole("conflicts", "of them by conflicts"), whole("matrices", "8 x 8 matrices stored")}};
    for (const bool plain : {false, true}) {
      const int number = configuration_where([plain](const Configuration& c) {
        return c.variant == Variant::persistent && c.rows == 128 && c.cluster == 1 &&
               c.dtype == DataType::bf16 && c.plain_stores == plain;
      });
      const char* layout = plain ? "plain" : "swizzled";
      const lab::Runnable runnable = kernel_on(problem, number);
      const auto conflicts = counted({"", "", {{kStoreConflicts}}}, runnable.launch);
      const auto wavefronts = counted({"", "", {{kStoreWavefronts}}}, runnable.launch);
      const double matrices = static_cast<double>(edge) * edge / 64;
      table.add({layout, cell(wavefronts), cell(conflicts), matrices});
      if (!conflicts) continue;
      report.add(lab::counted("epilogue_conflicts", layout, *conflicts, "",
                              fmt::format("one launch, {0} x {0} x 64", edge)));
    }
    report.add(std::move(table));
  }

  /// What the order of the tiles and sharing B save.
  void count_rasters() {
    if (!device.counters().available) return;
    const int edge = sizes_.fp8_edge;
    Problem problem(device, {edge, edge, edge}, DataType::bf16, Data::random, false);
    lab::Table table{
        "raster_bytes",
        fmt::format("persistent at {}³, by the order of C's tiles", edge),
        {column("raster", "order"), whole("cluster", "blocks of a cluster"),
         whole("dram_bytes", "DRAM traffic", "MB"), whole("l2_bytes", "L2 reads", "MB")}};
    for (const Raster raster : all_of<Raster>()) {
      for (const int cluster : {1, 2}) {
        progress.report(0.7, fmt::format("counting bytes of {}", name_of(raster)));
        const int number = configuration_where([cluster](const Configuration& c) {
          return c.variant == Variant::persistent && c.rows == 128 && c.cluster == cluster &&
                 c.dtype == DataType::bf16 && !c.plain_stores;
        });
        const lab::Runnable runnable = kernel_on(problem, number, 0, raster);
        const auto dram = counted(kDramTraffic, runnable.launch);
        const auto l2 = counted(kL2Reads, runnable.launch);
        if (!dram || !l2) continue;
        table.add({raster, cluster, *dram, *l2});
        report.add(lab::counted("raster_dram", fmt::format("{}-{}", name_of(raster), cluster),
                                *dram, "MB", fmt::format("one launch, {}³", edge)));
      }
    }
    report.add(std::move(table));
  }

  /// Passes of shared memory for a matrix of 8 x 8 numbers: derived, traced from the addresses that the kernel
  /// used, counted.
  void count_matrices() {
    lab::Table table{"conflicts",
                     "Passes of shared memory for an 8 x 8 matrix of 16-bit numbers",
                     {column("access", "access"), whole("row_bytes", "bytes of a row", "B"),
                      column("layout", "layout"), whole("derived", "derived"),
                      real("traced", "traced", "", 2), real("counted", "counted", "", 2)}};
    constexpr int kRepeats = 1024;
    simt::Buffer<int> places(device, 32);
    for (const bool stores : {false, true}) {
      const lab::Counter wavefronts{
          "passes", "", {{stores ? kStoreWavefronts : kLoadWavefronts}}, 1.0 / (4 * kRepeats)};
      for (const int row : {32, 64, 128}) {
        for (const bool swizzled : {false, true}) {
          const auto launch = [&] {
            kernels_.access_matrices(device, stores, row, swizzled, kRepeats, places.span());
          };
          const auto passes =
              device.counters().available ? counted(wavefronts, launch) : std::nullopt;
          launch();
          device.synchronize();
          table.add({stores ? "stmatrix" : "ldmatrix", row, swizzled ? "swizzled" : "plain",
                     matrix_passes(row, swizzled), traced_passes(places.download()), cell(passes)});
        }
      }
    }
    report.add(std::move(table));
  }

  /// Every compiled kernel over sizes that its tiles divide and such that they do not.
  void check_all_sizes() {
    const auto all = kernels_.configurations();
    double done = 0;
    for (const GemmShape& shape : sizes_.checked) {
      progress.report(0.05 * done++ / static_cast<double>(sizes_.checked.size()),
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

  /// One kernel beside one way of the library's.
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
    Matrices matrices = make_matrices(shape, DataType::fp8_e4m3, Data::random, 3);
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
    const std::vector<float> plain =
        run_explained(device,
                      {params.variant, params.dtype, params.raster, Fault::none, plan, shape, 0,
                       std::max(kSites, 4 * plan.k_tiles)},
                      matrices, clocks);
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
                    "what FP32 sums of 128 products each leave."));
  }

  // ---- stages, data, instructions -----------------------------------------------------------------

  lab::Spread timed(const std::function<void()>& launch, double flops) {
    return lab::rate_of(
        lab::spread_of(lab::settled_times(device, progress, launch, lab::kShown, false)),
        flops * 1e-3);
  }

  int configuration_where(const std::function<bool(const Configuration&)>& wanted) const {
    const auto all = kernels_.configurations();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (wanted(all[i])) return static_cast<int>(i);
    }
    throw Error("hopper-gemm: no such configuration");
  }

  void sweep_stages() {
    const int number = configuration_where([](const Configuration& c) { return c.any_stages; });
    const Configuration& one = kernels_.configurations()[static_cast<std::size_t>(number)];
    const int edge = sizes_.swept_edge;
    Problem problem(device, {edge, edge, edge}, DataType::bf16, Data::random, false);
    lab::Table table{"stages_measured",
                     fmt::format("warp-specialized, 128x256x64, {}³, by stages", edge),
                     {whole("stages"), real("tflops", "rate", "TFLOP/s", 2),
                      real("cycles", "cycles a k-tile", "cycles", 0),
                      real("predicted", "predicted", "cycles", 0), real("p10", "", "TFLOP/s", 2),
                      real("p90", "", "TFLOP/s", 2)}};
    const double products = 8.0 * tensor_cycles(one.columns);  // four steps, two consumers
    double alone = 0;
    for (int stages = 1; stages <= one.stages; ++stages) {
      progress.report(0.88 + 0.01 * stages, fmt::format("timing {} stages", stages));
      const lab::Runnable runnable = kernel_on(problem, number, stages);
      const lab::Spread rate = timed(runnable.launch, problem.flops());
      const double mhz = clock_beside(runnable.launch);
      const double cycles = 2.0 * one.rows * one.columns * 64 * device.info().multiprocessors *
                            mhz * 1e-6 / rate.median;
      if (stages == 1) alone = cycles;
      // With one stage nothing overlaps: what its k-tile takes is the time from asking to landing, and the
      // products. With s of them s k-tiles share that time, until the products alone are longer.
      const double predicted = std::max(products, alone / stages);
      table.add({stages, rate.median, cycles, predicted, rate.p10, rate.p90});
      report.add(lab::measured("rate_by_stages", std::to_string(stages), rate, "TFLOP/s",
                               fmt::format("{}³, 128x256x64, 2 consumers", edge)));
    }
    report.add(std::move(table));
  }

  /// The clock of the multiprocessors in MHz while `launch` runs over and over, median of five.
  double clock_beside(const std::function<void()>& launch) {
    simt::Buffer<long long> out(device, 2);
    std::vector<double> all;
    for (int probe = 0; probe < 5; ++probe) {
      for (int i = 0; i < 60; ++i) launch();
      kernels_.probe_clock(device, out.span());
      device.synchronize();
      progress.check();
      const std::vector<long long> both = out.download();
      all.push_back(1e3 * static_cast<double>(both[0]) / static_cast<double>(both[1]));
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

  void compare_data() {
    const int number = configuration_where([](const Configuration& c) {
      return c.variant == Variant::persistent && c.cluster == 2 && c.dtype == DataType::bf16;
    });
    const int edge = sizes_.swept_edge;
    lab::Table table{"data",
                     fmt::format("persistent at {}³: what the numbers are", edge),
                     {column("data", "data"), real("tflops", "rate", "TFLOP/s", 2),
                      whole("clock_mhz", "clock", "MHz"),
                      real("pipe_share", "share of the tensor cores' peak at that clock", "%", 1)}};
    for (const Data data : all_of<Data>()) {
      progress.report(0.94, fmt::format("timing {} data", name_of(data)));
      Problem problem(device, {edge, edge, edge}, DataType::bf16, data, false);
      const lab::Runnable runnable = kernel_on(problem, number);
      const lab::Spread rate = timed(runnable.launch, problem.flops());
      const double mhz = clock_beside(runnable.launch);
      const double peak = mhz * 1e-6 * device.info().multiprocessors * kFlopsACycle;
      table.add({data, rate.median, mhz, 100 * rate.median / peak});
      report.add(lab::measured("rate_by_data", name_of(data), rate, "TFLOP/s",
                               fmt::format("persistent, {}³", edge)));
    }
    report.add(std::move(table));
  }

  void measure_instructions() {
    lab::Table table{"instruction_roofs",
                     "wgmma of 64 x n x 16 in BF16, two warpgroups: cycles of the multiprocessor "
                     "on a stage that "
                     "stays in shared memory, and on stages that TMA fills from L2",
                     {"tile", real("cycles", "stays", "cycles", 1), real("fed", "fed", "cycles", 1),
                      whole("tensor_cycles", "tensor cores alone", "cycles"),
                      whole("read_cycles", "reads of shared memory", "cycles"),
                      whole("write_cycles", "writes of what comes", "cycles"),
                      real("share", "of the tensor cores' rate", "", 3)}};
    std::mt19937 generator = lab::generator_of(7);
    const int blocks = device.info().multiprocessors;
    const simt::Buffer<std::uint16_t> a(
        device, lab::uniform_bf16(generator, numeric::elements_of(blocks * 128, 256)));
    for (const WarpgroupTile tile : all_of<WarpgroupTile>()) {
      const int columns = columns_of(tile);
      progress.report(0.96, fmt::format("timing wgmma of {}", name_of(tile)));
      const simt::Buffer<std::uint16_t> b(
          device, lab::uniform_bf16(generator, numeric::elements_of(blocks * columns, 256)));
      const simt::Buffer<std::uint16_t> stage(
          device, lab::uniform_bf16(generator, numeric::elements_of(128 + columns, 64)));
      const double stays = cycles_of([&](simt::Span<long long> out) {
        kernels_.resident(device, columns, sizes_.products, stage.span(), out);
      });
      const double fed = cycles_of([&](simt::Span<long long> out) {
        kernels_.fed(device, columns, sizes_.products, a.span(), b.span(), out);
      });
      const int alone = tensor_cycles(columns);
      table.add(
          {tile, stays, fed, alone, read_cycles(columns), write_cycles(columns, 2), alone / fed});
      report.add(lab::traced("wgmma_cycles", name_of(tile), stays, "cycles",
                             "clock of the multiprocessor over products of one stage, median of "
                             "all"));
      report.add(lab::traced("wgmma_cycles_fed", name_of(tile), fed, "cycles",
                             "the same, four stages filled from L2"));
    }
    report.add(std::move(table));
  }

  /// Cycles of one wgmma: two consumers, four steps a product of 64 of k; median of all multiprocessors.
  double cycles_of(const std::function<void(simt::Span<long long>)>& launch) {
    simt::Buffer<long long> cycles(device, static_cast<std::size_t>(device.info().multiprocessors));
    for (int i = 0; i < 3; ++i) launch(cycles.span());  // the first ones warm up
    device.synchronize();
    std::vector<long long> all = cycles.download();
    std::sort(all.begin(), all.end());
    return static_cast<double>(all[all.size() / 2]) / (sizes_.products * 2.0 * 4.0);
  }

  void add_resources() {
    lab::Table table{
        "resources",
        "What the compiled kernels take of a multiprocessor",
        {"rung", "configuration", whole("threads", "", "1/block"),
         whole("registers", "", "1/thread"), whole("spilled", "", "B/thread"),
         whole("shared", "shared memory", "B/block"), whole("blocks", "", "1/multiprocessor")}};
    const auto all = kernels_.configurations();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const simt::Resources r = kernels_.resources(device, static_cast<int>(i));
      table.add({all[i].variant, std::string(all[i].name), r.threads, r.registers, r.local_bytes,
                 r.dynamic_shared_bytes + r.static_shared_bytes, r.blocks_per_multiprocessor});
    }
    report.add(std::move(table));
  }

  std::string summary() const {
    return fmt::format("persistent reaches {} in BF16; block-scaled FP8 {}.",
                       headline("gemm_rate", "persistent", 0),
                       headline("fp8_rate", "fp8-block-scaled", 0));
  }

  const Kernels& kernels_;
  const BenchSizes& sizes_;
  LibraryStatus library_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  Bench bench({device, progress}, sizes);
  bench.run();
  return std::move(bench.report);
}

}  // namespace tilestep::hopper_gemm

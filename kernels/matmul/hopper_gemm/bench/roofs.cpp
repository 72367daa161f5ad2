#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/matmul/hopper_gemm/bench/parts.hpp"

namespace tilestep::hopper_gemm {
namespace {

using lab::column, lab::real, lab::whole;

/// Per multiprocessor, in dense BF16 (tensor_cycles).
constexpr double kFlopsACycle = 4096;

/// Times and traces parts of a multiprocessor.
class Roofs : BenchPart {
 public:
  using BenchPart::BenchPart;

  void run() {
    sweep_stages();
    sweep_depth();
    compare_data();
    measure_instructions();
    add_resources();
  }

 private:
  lab::Spread timed(const std::function<void()>& launch, double flops) {
    return lab::rate_of(
        lab::spread_of(lab::settled_times(device_, progress_, launch, lab::kShown, false)),
        flops * 1e-3);
  }

  void sweep_stages() {
    const int number =
        configuration_where(kernels_, [](const Configuration& c) { return c.any_stages; });
    const Configuration& one = kernels_.configurations()[static_cast<std::size_t>(number)];
    // Four times as deep as wide: a block's prologue and epilogue weigh little beside its k-tiles.
    const int edge = sizes_.swept_edge, depth = 4 * edge;
    const std::string shape = fmt::format("{0} x {0} x {1}", edge, depth);
    Problem problem(device_, {edge, edge, depth}, DataType::bf16, Data::random, false);
    lab::Table table{
        "stages_measured",
        fmt::format("warp-specialized, 128x256x64, {}, by stages", shape),
        {whole("stages"), real("tflops", "rate", "TFLOP/s", 2),
         real("cycles", "cycles/k-tile", "cycles", 0), real("predicted", "predicted", "cycles", 0),
         real("p10", "", "TFLOP/s", 2), real("p90", "", "TFLOP/s", 2)}};
    const double products = 8.0 * tensor_cycles(one.columns);  // four steps, two consumers
    double alone = 0;
    for (int stages = 1; stages <= one.stages; ++stages) {
      progress_.report(0.88 + 0.01 * stages, fmt::format("timing {} stages", stages));
      const lab::Runnable runnable = kernel_on(problem, number, stages);
      const lab::Spread rate = timed(runnable.launch, problem.flops());
      const double mhz = clock_beside(runnable.launch);
      const double cycles = 2.0 * one.rows * one.columns * 64 * device_.info().multiprocessors *
                            mhz * 1e-6 / rate.median;
      if (stages == 1) alone = cycles;
      // With one stage nothing overlaps: its k-tile takes the time from request to landing plus that of the
      // products. With more stages one is multiplied, and released once the next has landed: the others are in
      // flight and share that time, until the products alone take longer.
      const double predicted =
          stages == 1 ? alone : std::max(products, (alone - products) / (stages - 1));
      table.add({stages, rate.median, cycles, predicted, rate.p10, rate.p90});
      report_.add(lab::measured("rate_by_stages", std::to_string(stages), rate, "TFLOP/s",
                                shape + ", 128x256x64, 2 consumers"));
    }
    report_.add(std::move(table));
  }

  /// The shorter k, the larger the share of a tile's time spent storing it.
  void sweep_depth() {
    const auto of_pair = [this](Variant variant) {
      return configuration_where(kernels_, [variant](const Configuration& c) {
        return c.variant == variant && c.cluster == 2 && c.dtype == DataType::bf16;
      });
    };
    const int edge = sizes_.wide_edge;
    lab::Table table{"by_depth",
                     fmt::format("{0} x {0} x k in BF16, clusters of 2: stores between products "
                                 "or beside them",
                                 edge),
                     {whole("k"), real("persistent", "persistent", "TFLOP/s", 2),
                      real("ping_pong", "ping-pong", "TFLOP/s", 2),
                      real("ratio", "ping-pong / persistent", "", 3)}};
    for (const int depth : sizes_.depths) {
      progress_.report(0.93, fmt::format("timing tile after tile at k = {}", depth));
      Problem problem(device_, {edge, edge, depth}, DataType::bf16, Data::random, false);
      const auto rate = [&](Variant variant) {
        const lab::Runnable runnable = kernel_on(problem, of_pair(variant));
        const lab::Spread spread = timed(runnable.launch, problem.flops());
        report_.add(lab::measured("rate_by_depth",
                                  fmt::format("{}, k = {}", name_of(variant), depth), spread,
                                  "TFLOP/s", fmt::format("{0} x {0} x {1}", edge, depth)));
        return spread.median;
      };
      const double persistent = rate(Variant::persistent), ping_pong = rate(Variant::ping_pong);
      table.add({depth, persistent, ping_pong, ping_pong / persistent});
    }
    report_.add(std::move(table));
  }

  /// The clock of the multiprocessors in MHz while `launch` runs over and over, median of five.
  double clock_beside(const std::function<void()>& launch) {
    simt::Buffer<long long> out(device_, 2);
    std::vector<double> all;
    for (int probe = 0; probe < 5; ++probe) {
      for (int i = 0; i < 60; ++i) launch();
      kernels_.probe_clock(device_, out.span());
      device_.synchronize();
      progress_.check();
      const std::vector<long long> both = out.download();
      all.push_back(1e3 * static_cast<double>(both[0]) / static_cast<double>(both[1]));
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

  void compare_data() {
    const int number = configuration_where(kernels_, [](const Configuration& c) {
      return c.variant == Variant::persistent && c.cluster == 2 && c.dtype == DataType::bf16;
    });
    const int edge = sizes_.swept_edge;
    lab::Table table{"data",
                     fmt::format("persistent at {}³: by the data", edge),
                     {column("data", "data"), real("tflops", "rate", "TFLOP/s", 2),
                      whole("clock_mhz", "clock", "MHz"),
                      real("pipe_share", "share of the tensor cores' peak at that clock", "%", 1)}};
    for (const Data data : all_of<Data>()) {
      progress_.report(0.94, fmt::format("timing {} data", name_of(data)));
      Problem problem(device_, {edge, edge, edge}, DataType::bf16, data, false);
      const lab::Runnable runnable = kernel_on(problem, number);
      const lab::Spread rate = timed(runnable.launch, problem.flops());
      const double mhz = clock_beside(runnable.launch);
      const double peak = mhz * 1e-6 * device_.info().multiprocessors * kFlopsACycle;
      table.add({data, rate.median, mhz, 100 * rate.median / peak});
      report_.add(lab::measured("rate_by_data", name_of(data), rate, "TFLOP/s",
                                fmt::format("persistent, {}³", edge)));
    }
    report_.add(std::move(table));
  }

  void measure_instructions() {
    lab::Table table{"instruction_roofs",
                     "wgmma of 64 x n x 16 in BF16, two warpgroups: cycles of the multiprocessor "
                     "on a stage that "
                     "stays in shared memory, and on stages that TMA fills from L2",
                     {"tile", real("cycles", "stays", "cycles", 1), real("fed", "fed", "cycles", 1),
                      whole("tensor_cycles", "tensor cores alone", "cycles"),
                      whole("read_cycles", "shared-memory reads", "cycles"),
                      whole("write_cycles", "incoming writes", "cycles"),
                      real("delivered", "from L2", "B/cycle", 1),
                      real("share", "of the tensor cores' rate", "", 3)}};
    std::mt19937 generator = lab::generator_of(7);
    const int blocks = device_.info().multiprocessors;
    const simt::Buffer<std::uint16_t> a(
        device_, lab::uniform_bf16(generator, numeric::elements_of(blocks * 128, 256)));
    for (const WarpgroupTile tile : all_of<WarpgroupTile>()) {
      const int columns = columns_of(tile);
      progress_.report(0.96, fmt::format("timing wgmma of {}", name_of(tile)));
      const simt::Buffer<std::uint16_t> b(
          device_, lab::uniform_bf16(generator, numeric::elements_of(blocks * columns, 256)));
      const simt::Buffer<std::uint16_t> stage(
          device_, lab::uniform_bf16(generator, numeric::elements_of(128 + columns, 64)));
      const double stays = cycles_of([&](simt::Span<long long> out) {
        kernels_.resident(device_, columns, sizes_.products, stage.span(), out);
      });
      const double fed = cycles_of([&](simt::Span<long long> out) {
        kernels_.fed(device_, columns, sizes_.products, a.span(), b.span(), out);
      });
      const int alone = tensor_cycles(columns);
      // 16 of k: two consumers' rows of A and one tile's columns of B for two instructions.
      const double comes = (2 * 64 + columns) * 16 * 2 / 2.0;
      table.add({tile, stays, fed, alone, read_cycles(columns), write_cycles(columns, 2),
                 comes / fed, alone / fed});
      report_.add(lab::traced("wgmma_cycles", name_of(tile), stays, "cycles",
                              "clock of the multiprocessor over products of one stage, median of "
                              "all"));
      report_.add(lab::traced("wgmma_cycles_fed", name_of(tile), fed, "cycles",
                              "the same, four stages filled from L2"));
    }
    report_.add(std::move(table));
  }

  /// Cycles of one wgmma: two consumers, four steps a product of 64 of k; median of all multiprocessors.
  double cycles_of(const std::function<void(simt::Span<long long>)>& launch) {
    simt::Buffer<long long> cycles(device_,
                                   static_cast<std::size_t>(device_.info().multiprocessors));
    for (int i = 0; i < 3; ++i) launch(cycles.span());  // the first ones warm up
    device_.synchronize();
    std::vector<long long> all = cycles.download();
    std::sort(all.begin(), all.end());
    return static_cast<double>(all[all.size() / 2]) / (sizes_.products * 2.0 * 4.0);
  }

  void add_resources() {
    lab::Table table{
        "resources",
        "The compiled kernels' share of a multiprocessor",
        {"rung", "configuration", whole("threads", "", "1/block"),
         whole("registers", "", "1/thread"), whole("spilled", "", "B/thread"),
         whole("shared", "shared memory", "B/block"), whole("blocks", "", "1/multiprocessor")}};
    const auto all = kernels_.configurations();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const simt::Resources r = kernels_.resources(device_, static_cast<int>(i));
      table.add({all[i].variant, std::string(all[i].name), r.threads, r.registers, r.local_bytes,
                 r.dynamic_shared_bytes + r.static_shared_bytes, r.blocks_per_multiprocessor});
    }
    report_.add(std::move(table));
  }
};

}  // namespace

int configuration_where(const Kernels& kernels,
                        const std::function<bool(const Configuration&)>& wanted) {
  const auto all = kernels.configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (wanted(all[i])) return static_cast<int>(i);
  }
  throw Error("hopper-gemm: no such configuration");
}

void add_roofs(lab::Bench& bench, const BenchSizes& sizes) {
  Roofs(bench, sizes).run();
}

}  // namespace tilestep::hopper_gemm

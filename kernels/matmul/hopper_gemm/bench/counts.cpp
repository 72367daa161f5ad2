#include <fmt/format.h>

#include <functional>
#include <optional>
#include <vector>

#include "kernels/base/simt/counters.hpp"
#include "kernels/matmul/hopper_gemm/bench/parts.hpp"

namespace tilestep::hopper_gemm {
namespace {

using lab::column, lab::real, lab::whole;
namespace metric = simt::metric;

constexpr const char* kStoreConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";
constexpr const char* kLoadWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
constexpr const char* kStoreWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum";

/// Counts one launch of each.
class Counts : BenchPart {
 public:
  using BenchPart::BenchPart;

  void run() {
    count_stores();
    count_rasters();
    count_matrices();
  }

 private:
  std::optional<double> counted(const lab::Counter& counter, const std::function<void()>& launch) {
    progress_.check();
    return lab::count(device_, counter, launch);
  }
  static lab::Cell cell(const std::optional<double>& value) {
    return value ? lab::Cell(*value) : lab::Cell();
  }

  /// C's stores through shared memory with the swizzle and without, while the tensor cores have nothing else
  /// to do: one k-tile.
  void count_stores() {
    if (!device_.counters().available) return;
    const int edge = sizes_.counted_edge;
    const GemmShape shape{edge, edge, 64};
    Problem problem(device_, shape, DataType::bf16, Data::random, false);
    lab::Table table{
        "store_conflicts",
        fmt::format("persistent at {0} x {0} x 64: stores of C's tiles", edge),
        {column("layout", "layout"), whole("wavefronts", "wavefronts of stores"),
         whole("conflicts", "of them conflicts"), whole("matrices", "8 x 8 matrices stored")}};
    for (const bool plain : {false, true}) {
      const int number = configuration_where(kernels_, [plain](const Configuration& c) {
        return c.variant == Variant::persistent && c.rows == 128 && c.cluster == 1 &&
               c.dtype == DataType::bf16 && c.plain_stores == plain;
      });
      const char* layout = plain ? "plain" : "swizzled";
      const lab::Runnable runnable = kernel_on(problem, number);
      const auto conflicts = counted(store_conflicts(), runnable.launch);
      const auto wavefronts = counted({"", "", {{kStoreWavefronts}}}, runnable.launch);
      const double matrices = static_cast<double>(edge) * edge / 64;
      table.add({layout, cell(wavefronts), cell(conflicts), matrices});
      if (!conflicts) continue;
      report_.add(lab::counted("epilogue_conflicts", layout, *conflicts, "",
                               fmt::format("one launch, {0} x {0} x 64", edge)));
    }
    report_.add(std::move(table));
  }

  /// The savings from the order of the tiles and from sharing B.
  void count_rasters() {
    if (!device_.counters().available) return;
    const int edge = sizes_.fp8_edge;
    Problem problem(device_, {edge, edge, edge}, DataType::bf16, Data::random, false);
    lab::Table table{
        "raster_bytes",
        fmt::format("persistent at {}³, by the order of C's tiles", edge),
        {column("raster", "order"), whole("cluster", "blocks/cluster"),
         whole("dram_bytes", "DRAM traffic", "MB"), whole("l2_bytes", "L2 reads", "MB")}};
    for (const Raster raster : all_of<Raster>()) {
      for (const int cluster : {1, 2}) {
        progress_.report(0.7, fmt::format("counting bytes of {}", name_of(raster)));
        const int number = configuration_where(kernels_, [cluster](const Configuration& c) {
          return c.variant == Variant::persistent && c.rows == 128 && c.cluster == cluster &&
                 c.dtype == DataType::bf16 && !c.plain_stores;
        });
        const lab::Runnable runnable = kernel_on(problem, number, 0, raster);
        const auto dram = counted(dram_traffic(), runnable.launch);
        const auto l2 = counted(l2_reads(), runnable.launch);
        if (!dram || !l2) continue;
        table.add({raster, cluster, *dram, *l2});
        report_.add(lab::counted("raster_dram", fmt::format("{}-{}", name_of(raster), cluster),
                                 *dram, "MB", fmt::format("one launch, {}³", edge)));
      }
    }
    report_.add(std::move(table));
  }

  /// Shared-memory passes for a matrix of 8 x 8 numbers: derived, traced from the kernel's addresses, and
  /// counted.
  void count_matrices() {
    lab::Table table{"conflicts",
                     "Shared-memory passes for an 8 x 8 matrix of 16-bit numbers",
                     {column("access", "access"), whole("row_bytes", "row bytes", "B"),
                      column("layout", "layout"), whole("derived", "derived"),
                      real("traced", "traced", "", 2), real("counted", "counted", "", 2)}};
    constexpr int kRepeats = 1024;
    simt::Buffer<int> places(device_, 32);
    for (const bool stores : {false, true}) {
      const lab::Counter wavefronts{
          "passes", "", {{stores ? kStoreWavefronts : kLoadWavefronts}}, 1.0 / (4 * kRepeats)};
      for (const int row : {32, 64, 128}) {
        for (const bool swizzled : {false, true}) {
          const auto launch = [&] {
            kernels_.access_matrices(device_, stores, row, swizzled, kRepeats, places.span());
          };
          const auto passes =
              device_.counters().available ? counted(wavefronts, launch) : std::nullopt;
          launch();
          device_.synchronize();
          table.add({stores ? "stmatrix" : "ldmatrix", row, swizzled ? "swizzled" : "plain",
                     matrix_passes(row, swizzled), traced_passes(places.download()), cell(passes)});
        }
      }
    }
    report_.add(std::move(table));
  }
};

}  // namespace

lab::Counter store_conflicts() {
  return {"store_conflicts", "", {{kStoreConflicts}}};
}
lab::Counter dram_traffic() {
  return {"dram_bytes", "MB", {{metric::kDramBytesRead, metric::kDramBytesWritten}}, 1e-6};
}
lab::Counter l2_reads() {
  return {"l2_bytes", "MB", {{"lts__t_sectors_op_read.sum"}, {"lts__t_sectors.sum"}}, 32e-6};
}

void add_counts(lab::Bench& bench, const BenchSizes& sizes) {
  Counts(bench, sizes).run();
}

}  // namespace tilestep::hopper_gemm

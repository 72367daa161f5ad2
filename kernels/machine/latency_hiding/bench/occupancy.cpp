// Occupancy: our calculator against the CUDA runtime's answers.

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/machine/latency_hiding/bench/parts.hpp"

namespace tilestep::latency_hiding {
namespace {

using lab::column, lab::whole;

/// Any launch: warps of a block, bytes of shared memory (small ones too) and carve-out.
Demand random_demand(std::mt19937& random, const Variant& variant) {
  const Multiprocessor sm;
  Demand demand{.registers = variant.registers, .static_shared_bytes = variant.static_shared_bytes};
  demand.threads = static_cast<int>(1 + random() % 1024);
  const std::uint32_t most =
      random() % 3 == 0 ? static_cast<std::uint32_t>(sm.most_shared_of_block) : 24 * 1024;
  demand.dynamic_shared_bytes = static_cast<int>(random() % (most + 1));
  demand.carveout = random() % 3 == 0 ? -1 : static_cast<int>(random() % 101);
  return demand;
}

}  // namespace

void bench_occupancy(Parts& parts) {
  const std::vector<Variant> variants = parts.kernels.variants(parts.device);
  lab::Table kernels{"kernels",
                     "The kernels as compiled",
                     {column("kernel", "kernel"), whole("registers", "registers a thread"),
                      whole("static_shared", "static shared memory", "bytes"),
                      whole("local_bytes", "local memory a thread", "bytes")}};
  for (const Variant& one : variants) {
    kernels.add({one.name, one.registers, one.static_shared_bytes, one.local_bytes});
  }
  parts.report.add(std::move(kernels));
  lab::Table table{
      "occupancy_answers",
      "Blocks of a multiprocessor, as the CUDA runtime answers",
      {column("kernel", "kernel"), whole("registers"), whole("static_shared", "static", "bytes"),
       whole("block", "block", "threads"), whole("dynamic_shared", "dynamic", "bytes"),
       whole("carveout", "carve-out", "%"), whole("blocks", "blocks")}};
  std::mt19937 random = lab::generator_of(500);
  std::int64_t wrong = 0;
  const bool asks = parts.device.info().compute_capability > 0;
  for (int i = 0; asks && i < parts.sizes.occupancy_samples; ++i) {
    const auto which = static_cast<std::size_t>(random() % variants.size());
    const Variant& variant = variants[which];
    const Demand demand = random_demand(random, variant);
    const int blocks =
        parts.kernels.runtime_blocks(parts.device, static_cast<int>(which), demand.threads,
                                     demand.dynamic_shared_bytes, demand.carveout);
    wrong += occupancy_of(demand).resident != blocks ? 1 : 0;
    table.add({variant.name, demand.registers, demand.static_shared_bytes, demand.threads,
               demand.dynamic_shared_bytes, demand.carveout, blocks});
  }
  parts.report.add(std::move(table));
  parts.report.add(lab::none_wrong(
      "occupancy_equals_runtime", wrong,
      "Launches for which our calculator has another number of blocks than the runtime."));
}

}  // namespace tilestep::latency_hiding

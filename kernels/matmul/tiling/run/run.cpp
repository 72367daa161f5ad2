// What a run gathers: loads counted over the whole launch, the accesses of one block, races.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/emulator/emulated_like.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/tiling/run/report.hpp"

namespace tilestep::tiling {
namespace {

constexpr int kOrders = 64;
constexpr int kWarp = 32;
constexpr int kBanks = 32;

/// Padding that leaves no conflict among a warp's turned stores: the warp has 32 / tile rows of
/// threads, whose elements must fall between those of the next column.
int padding_of(const Params& params) {
  return params.padding ? std::max(1, 32 / params.tile) : 0;
}

GemmShape shape_of(const Params& params) {
  return {params.m, params.n, params.k};
}

/// FP32 operands on a device.
struct Uploaded {
  Uploaded(simt::Device& device, const GemmShape& shape, const Matrices& matrices)
      : a(device, matrices.a),
        b(device, matrices.b),
        c(device, numeric::elements_of(shape.m, shape.n)),
        loads(device, 1) {
    c.fill(0xFF);
    loads.fill(0);
  }
  Operands operands(bool counted) {
    return {a.span(), b.span(), c.span(),
            counted ? loads.span() : simt::Span<unsigned long long>{}};
  }
  CountedRun result(simt::Device& device) const {
    device.synchronize();
    return {c.download(), static_cast<std::int64_t>(loads.download().front())};
  }

  simt::Buffer<float> a, b, c;
  simt::Buffer<unsigned long long> loads;
};

/// One launch of `variant` over all of C, with the picture's tile where it has a picture.
CountedRun launch(simt::Device& device, const Outcome& outcome, Variant variant, bool counted) {
  const Params& params = outcome.params;
  if (!has_picture(variant)) {
    return run_gemm(device, variant, kBestConfiguration, outcome.shape, outcome.matrices, counted);
  }
  Uploaded data(device, outcome.shape, outcome.matrices);
  const PictureRun run{variant, params.tile, padding_of(params),   RemovedBarrier::none,
                       0,       0,           params.blocks_down(), params.blocks_across()};
  kernels_of(device).picture(device, run, outcome.shape, data.operands(counted));
  return data.result(device);
}

// ---- the chosen block ---------------------------------------------------------------------------

/// What each thread did to one of the tiles in shared memory, in its program order.
struct TileAccesses {
  std::vector<std::vector<int>> stores, reads;  ///< by thread: slots

  explicit TileAccesses(int threads)
      : stores(static_cast<std::size_t>(threads)), reads(static_cast<std::size_t>(threads)) {}
};

/// How often shared memory had to serve the worst warp access: the most different words in a bank.
int worst_ways(const std::vector<std::vector<int>>& by_thread) {
  int worst = 1;
  for (std::size_t first = 0; first < by_thread.size(); first += kWarp) {
    const std::size_t end = std::min(first + kWarp, by_thread.size());
    for (std::size_t i = 0; i < by_thread[first].size(); ++i) {
      std::array<std::vector<int>, kBanks> words;
      for (std::size_t thread = first; thread < end; ++thread) {
        if (i >= by_thread[thread].size()) continue;
        const int slot = by_thread[thread][i];
        auto& bank = words[static_cast<std::size_t>(slot % kBanks)];
        if (std::find(bank.begin(), bank.end(), slot) == bank.end()) bank.push_back(slot);
      }
      for (const auto& bank : words) worst = std::max(worst, static_cast<int>(bank.size()));
    }
  }
  return worst;
}

class BlockReader {
 public:
  BlockReader(const Trace& trace, BlockTrace& block)
      : trace_(trace),
        block_(block),
        threads_(trace.tile * trace.tile),
        a_(threads_),
        b_(threads_) {
    const auto elements = static_cast<std::size_t>(threads_);
    for (KTile& tile : block_.k_tiles) {
      for (KTile::Operand* of : {&tile.a, &tile.b}) {
        of->loads.assign(elements, 0);
        if (block_.variant != Variant::shared_tile) continue;
        of->loader.assign(elements, -1);
        of->slot.assign(elements, -1);
        of->reads.assign(elements, 0);
      }
    }
  }

  void read(const std::vector<simt::TraceRecord>& records) {
    for (const simt::TraceRecord& record : records) add(record);
    std::int64_t so_far = 0;
    for (KTile& tile : block_.k_tiles) {
      for (const KTile::Operand* of : {&tile.a, &tile.b})
        so_far += std::accumulate(of->loads.begin(), of->loads.end(), 0);
      tile.loads_so_far = so_far;
    }
    if (block_.variant != Variant::shared_tile) return;
    fill_tile(a_, &KTile::a, 1);
    fill_tile(b_, &KTile::b, trace_.tile);
  }

  BankWays bank_ways() const {
    return {worst_ways(a_.stores), worst_ways(b_.stores), worst_ways(a_.reads),
            worst_ways(b_.reads)};
  }

 private:
  void add(const simt::TraceRecord& record) {
    const int element = static_cast<int>(record.byte_offset / sizeof(float));
    const auto thread = static_cast<std::size_t>(record.thread);
    if (record.site == kSiteA) {
      const int row = element / trace_.k - trace_.first_row();
      const int kk = element % trace_.k;
      load(kk, row * trace_.tile + kk % trace_.tile, &KTile::a, thread);
    } else if (record.site == kSiteB) {
      const int kk = element / trace_.n;
      const int column = element % trace_.n - trace_.first_column();
      load(kk, kk % trace_.tile * trace_.tile + column, &KTile::b, thread);
    } else if (record.site != kSiteC) {
      TileAccesses& tile = record.site == kSiteTileA ? a_ : b_;
      auto& list = record.kind == simt::AccessKind::store ? tile.stores : tile.reads;
      list[thread].push_back(element);
    }
  }

  void load(int kk, int at, KTile::Operand KTile::*of, std::size_t thread) {
    KTile::Operand& tile = block_.k_tiles.at(static_cast<std::size_t>(kk / trace_.tile)).*of;
    const auto element = static_cast<std::size_t>(at);
    ++tile.loads.at(element);
    if (!tile.loader.empty()) tile.loader[element] = static_cast<int>(thread);
  }

  /// A thread stores one element a k-tile (the one with its own number, see shared_tile) and then
  /// reads `tile` slots; so its n-th store and its reads n·tile … belong to k-tile n.
  /// One place along k is `stride` elements of the tile.
  void fill_tile(const TileAccesses& tile, KTile::Operand KTile::*of, int stride) {
    std::vector<int> element_at;
    for (std::size_t number = 0; number < block_.k_tiles.size(); ++number) {
      KTile& k_tile = block_.k_tiles[number];
      for (std::size_t thread = 0; thread < tile.stores.size(); ++thread) {
        const int slot = tile.stores[thread].at(number);
        (k_tile.*of).slot[thread] = slot;
        if (static_cast<std::size_t>(slot) >= element_at.size()) {
          element_at.resize(static_cast<std::size_t>(slot) + 1, -1);
        }
        element_at[static_cast<std::size_t>(slot)] = static_cast<int>(thread);
      }
      int up = 0, down = 0, before = 0;
      for (const std::vector<int>& slots_read : tile.reads) {
        const std::size_t first = number * static_cast<std::size_t>(trace_.tile);
        for (std::size_t i = first; i < first + static_cast<std::size_t>(trace_.tile); ++i) {
          const int element = element_at.at(static_cast<std::size_t>(slots_read.at(i)));
          ++(k_tile.*of).reads.at(static_cast<std::size_t>(element));
          up += i > first && element - before == stride ? 1 : 0;
          down += i > first && before - element == stride ? 1 : 0;
          before = element;
        }
      }
      const int all = threads_ * (trace_.tile - 1), way = up == all ? 1 : down == all ? -1 : 0;
      k_tile.along_k = &tile == &a_ || k_tile.along_k == way ? way : 0;
    }
  }

  const Trace& trace_;
  BlockTrace& block_;
  int threads_;
  TileAccesses a_, b_;
};

/// Room for every access that the block can make, and its sums.
std::size_t trace_capacity(const Trace& trace, Variant variant) {
  const auto tile = static_cast<std::size_t>(trace.tile);
  const std::size_t k_tiles = static_cast<std::size_t>(trace.k + trace.tile - 1) / tile;
  const std::size_t sums = k_tiles * tile * tile;
  if (variant == Variant::shared_tile) return sums * (1 + 2 + 2 + 2 * tile) + tile * tile;
  return sums + 2 * tile * tile * static_cast<std::size_t>(trace.k);
}

/// Runs the chosen block alone, recording. Returns all of C; only the block is written.
std::vector<float> record_block(simt::Device& device, const Outcome& outcome, Variant variant,
                                BlockTrace& block, BankWays* ways) {
  const auto& kernels = kernels_of(device);
  const Trace& trace = outcome.trace;
  const auto elements = static_cast<std::size_t>(trace.tile * trace.tile);
  const auto k_tiles = static_cast<std::size_t>(outcome.params.k_tiles());
  Uploaded data(device, outcome.shape, outcome.matrices);
  simt::Trace records(device, trace_capacity(trace, variant));
  const PictureRun run{
      variant, trace.tile, trace.padding, RemovedBarrier::none, trace.block_row, trace.block_col,
      1,       1};
  kernels.picture(device, run, outcome.shape, data.operands(false), records.tape());
  device.synchronize();

  block.variant = variant;
  block.k_tiles.resize(k_tiles);
  const simt::Trace::Log log = records.download();
  BlockReader reader(trace, block);
  reader.read(log.records);
  if (ways != nullptr) *ways = reader.bank_ways();
  const auto by_thread = log.notes<float>(kSumSite, k_tiles * elements, 0);
  for (std::size_t number = 0; number < k_tiles; ++number) {
    std::vector<float>& of_tile = block.k_tiles[number].sums;
    of_tile.resize(elements);
    for (std::size_t thread = 0; thread < elements; ++thread) {
      const int element = block.element_of(static_cast<int>(thread), trace.tile);
      of_tile[static_cast<std::size_t>(element)] = by_thread[number * elements + thread];
    }
  }
  block.lines = phase_lines(variant);
  return data.c.download();
}

void fill_bands(Outcome& outcome) {
  Trace& trace = outcome.trace;
  const auto& a = outcome.matrices.a;
  const auto first = a.begin() + trace.first_row() * trace.k;
  trace.a_band.assign(first, first + trace.rows() * trace.k);
  for (int kk = 0; kk < trace.k; ++kk) {
    const auto row = outcome.matrices.b.begin() + kk * trace.n + trace.first_column();
    trace.b_band.insert(trace.b_band.end(), row, row + trace.columns());
  }
}

// ---- races --------------------------------------------------------------------------------------

/// Notes which elements of C are wrong after one order of the threads.
void judge(Outcome& outcome, const std::vector<float>& c, int order, bool block_alone) {
  const Trace& trace = outcome.trace;
  Races& races = outcome.trace.races;
  bool wrong = false;
  for (int row = 0; row < trace.m; ++row) {
    for (int column = 0; column < trace.n; ++column) {
      const int in_row = row - trace.first_row();
      const int in_column = column - trace.first_column();
      const bool in_block =
          in_row >= 0 && in_row < trace.rows() && in_column >= 0 && in_column < trace.columns();
      if (block_alone && !in_block) continue;
      const auto at = static_cast<std::size_t>(row * trace.n + column);
      const double off = std::abs(static_cast<double>(c[at]) - outcome.reference.value[at]);
      if (off <= outcome.reference.bound[at]) continue;  // NaN is wrong too
      if (races.order < 0 && !wrong) {
        races.row = row;
        races.column = column;
        races.got = c[at];
        races.want = outcome.reference.value[at];
      }
      wrong = true;
      if (races.order < 0 && in_block) {
        races.wrong_elements.push_back(in_row * trace.tile + in_column);
      }
    }
  }
  ++races.orders;
  if (!wrong) return;
  ++races.wrong_orders;
  if (races.order < 0) races.order = order;
}

/// Runs the kernel with its barrier removed: under emulation the chosen block in shuffled orders of
/// its threads, on a GPU all blocks, in whatever order they run.
void look_for_races(Outcome& outcome, simt::Device& device, lab::Progress& progress) {
  static const simt::KernelEntry kTable[] = {{kLessonId, kernels_emulated}};
  const Trace& trace = outcome.trace;
  const bool emulated = device.info().backend == "emulated";
  PictureRun run{Variant::shared_tile, trace.tile, trace.padding, outcome.params.remove_barrier};
  if (emulated) {
    run.block_row = trace.block_row;
    run.block_col = trace.block_col;
    run.blocks_down = run.blocks_across = 1;
  } else {
    run.blocks_down = outcome.params.blocks_down();
    run.blocks_across = outcome.params.blocks_across();
  }
  outcome.trace.races.where = emulated ? "emulated, chosen block, shuffled thread orders"
                                       : "on the GPU, all blocks, as they happened to run";
  for (int order = 0; order < kOrders; ++order) {
    progress.report(0.5 + 0.4 * order / kOrders, "running without the barrier");
    progress.check();
    std::unique_ptr<simt::Device> shuffled;
    if (emulated) {
      shuffled = simt::make_emulated_like(device, kTable,
                                          {.order = simt::ThreadOrder::shuffled,
                                           .seed = static_cast<std::uint64_t>(order) + 1,
                                           .os_threads = 1});
    }
    simt::Device& where = emulated ? *shuffled : device;
    const auto& kernels = kernels_of(where);
    Uploaded data(where, outcome.shape, outcome.matrices);
    kernels.picture(where, run, outcome.shape, data.operands(false));
    where.synchronize();
    judge(outcome, data.c.download(), order, emulated);
  }
}

/// What one block of the counted launch computes.
void describe_tile(Outcome& outcome, const Kernels& kernels) {
  const Params& params = outcome.params;
  if (params.variant == Variant::shared_tile) outcome.tile_m = outcome.tile_n = params.tile;
  if (has_picture(params.variant)) return;
  for (const Configuration& one : kernels.configurations(params.variant)) {
    if (!one.any_size) continue;
    outcome.tile_m = one.tile_m;
    outcome.tile_n = one.tile_n;
  }
}

}  // namespace

CountedRun run_gemm(simt::Device& device, Variant variant, int configuration,
                    const GemmShape& shape, const Matrices& matrices, bool counted) {
  const auto& kernels = kernels_of(device);
  Uploaded data(device, shape, matrices);
  const Operands operands = data.operands(counted);
  if (variant != Variant::tensor_core) {
    kernels.gemm(device, variant, configuration, shape, operands);
    return data.result(device);
  }
  const simt::Buffer<std::uint16_t> a(device, bf16_bits(matrices.a));
  const simt::Buffer<std::uint16_t> b(device, bf16_bits(matrices.b));
  kernels.gemm_bf16(device, configuration, shape, {a.span(), b.span(), operands.c, operands.loads});
  return data.result(device);
}

Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress) {
  const auto& kernels = kernels_of(device);
  Outcome outcome;
  outcome.params = params;
  outcome.shape = shape_of(params);
  const bool bf16 = params.variant == Variant::tensor_core;
  outcome.matrices = make_matrices(outcome.shape, params.seed, bf16);
  outcome.reference = reference_product(outcome.shape, outcome.matrices,
                                        bf16 ? Adding::tensor_core : Adding::in_order);
  describe_tile(outcome, kernels);
  outcome.resources = kernels.resources(device, params.variant, kBestConfiguration);

  Trace& trace = outcome.trace;
  trace.variant = params.variant;
  trace.tile = params.tile;
  trace.m = params.m;
  trace.n = params.n;
  trace.k = params.k;
  trace.padding = padding_of(params);
  // Neither the first row nor the first column of blocks, where there are more: so the picture
  // shows that a block's bands of A and B are chosen independently.
  trace.block_row = params.blocks_down() / 3;
  trace.block_col = params.blocks_across() / 2;
  fill_bands(outcome);

  progress.report(0.1, "counting loads");
  const CountedRun counted = launch(device, outcome, params.variant, true);
  outcome.counted = counted.c;
  trace.global_loads = counted.loads;
  outcome.timed = launch(device, outcome, params.variant, false).c;
  progress.check();
  trace.naive_global_loads = params.variant == Variant::naive
                                 ? counted.loads
                                 : launch(device, outcome, Variant::naive, true).loads;
  progress.check();

  trace.exact = block_of(trace, outcome.reference.value);
  if (!has_picture(params.variant)) {
    trace.c_block = block_of(trace, outcome.counted);
    trace.block.lines = trace.naive.lines = phase_lines(trace.block.variant);
    for (const Variant variant : all_of<Variant>()) {
      if (variant < Variant::shared_tile || variant > params.variant) continue;
      progress.report(0.3, "recording who has what of a block");
      trace.rungs.push_back(record_rung(device, variant, params, outcome.uneven));
      if (variant != params.variant) trace.rungs.back().owners.clear();
      progress.check();
    }
    return outcome;
  }
  progress.report(0.3, "recording the chosen block");
  const bool tiled = params.variant == Variant::shared_tile;
  outcome.recorded = block_of(trace, record_block(device, outcome, params.variant, trace.block,
                                                  tiled ? &trace.bank_ways : nullptr));
  trace.c_block = outcome.recorded;
  progress.check();
  record_block(device, outcome, Variant::naive, trace.naive, nullptr);
  if (tiled && params.remove_barrier != RemovedBarrier::none) {
    look_for_races(outcome, device, progress);
  }
  return outcome;
}

}  // namespace tilestep::tiling

// One block of a rung alone, on matrices of its size: who stores which element of C, and what a thread
// reads of the tiles in shared memory.

#include <algorithm>
#include <utility>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/tiling/run/report.hpp"

namespace tilestep::tiling {
namespace {

constexpr int kNobody = -1;
/// Threads of a block are alike: one in so many says what it reads, in two runs, and in one what it stores. All of them
/// would leave more than is checked of a run whose process nobody trusts (kMostEvidence).
constexpr std::uint32_t kOneIn = 32;

/// What the threads of one block did, one in kOneIn or all of them.
struct BlockLog {
  std::vector<int> stores;       ///< elements of C
  std::vector<int> reads = {0};  ///< numbers of the tiles in shared memory, where on the tape
  std::vector<int> requests = {0};
  std::vector<int> owners;  ///< of each element of C; kNobody: not one thread, once
};

/// Room for all that a block stores, and what one thread in kOneIn reads of shared memory: at most 2 for each element of C.
std::size_t tape_capacity(Variant variant, const GemmShape& shape) {
  const std::size_t elements = numeric::elements_of(shape.m, shape.n);
  const auto steps = static_cast<std::size_t>(shape.k / k_at_once(variant));
  const std::size_t inputs = numeric::elements_of(shape.m + shape.n, shape.k);
  return elements * 3 + 3 * inputs + 2 * elements * (steps + 1) / kOneIn;
}

BlockLog log_block(simt::Device& device, Variant variant, const GemmShape& shape, std::int64_t seed,
                   std::uint32_t stores_of) {
  const auto& kernels = kernels_of(device);
  const bool bf16 = variant == Variant::tensor_core;
  const Matrices matrices = make_matrices(shape, seed, bf16);
  const simt::Buffer<float> a(device, matrices.a), b(device, matrices.b);
  simt::Buffer<float> c(device, numeric::elements_of(shape.m, shape.n));
  simt::Trace records(device, tape_capacity(variant, shape));
  simt::Tape tape = records.tape();
  tape.loads_of = kOneIn;
  tape.stores_of = stores_of;
  const Operands operands{a.span(), b.span(), c.span(), {}};
  if (variant == Variant::shared_tile) {
    const PictureRun run{.variant = variant, .tile = shape.m, .blocks_down = 1, .blocks_across = 1};
    kernels.picture(device, run, shape, operands, tape);
  } else if (bf16) {
    const simt::Buffer<std::uint16_t> a_bits(device, bf16_bits(matrices.a)),
        b_bits(device, bf16_bits(matrices.b));
    kernels.gemm_bf16(device, kBestConfiguration, shape,
                      {a_bits.span(), b_bits.span(), c.span(), {}}, tape);
    device.synchronize();  // before the bits go
  } else {
    kernels.gemm(device, variant, kBestConfiguration, shape, operands, tape);
  }
  device.synchronize();
  const int number_bytes = bf16 ? 2 : 4;  // of what is in the tiles
  BlockLog log;
  log.owners.assign(c.count(), kNobody);
  std::vector<int> times(c.count());
  const auto add = [](std::vector<int>& counts, std::size_t thread, int count) {
    if (counts.size() <= thread) counts.resize(thread + 1);
    counts[thread] += count;
  };
  for (const simt::TraceRecord& record : records.download().records) {
    const std::size_t thread = record.thread;
    const bool tile = record.site == kSiteTileA || record.site == kSiteTileB;
    if (tile && record.kind == simt::AccessKind::load) {
      add(log.reads, thread / kOneIn, record.bytes / number_bytes);
      add(log.requests, thread / kOneIn, 1);
    }
    if (record.site != kSiteC) continue;
    for (std::uint64_t byte = 0; byte < record.bytes; byte += sizeof(float)) {
      const std::size_t element = (record.byte_offset + byte) / sizeof(float);
      add(log.stores, thread / stores_of, 1);
      log.owners.at(element) = ++times[element] == 1 ? static_cast<int>(thread) : kNobody;
    }
  }
  return log;
}

/// Pieces of rows × columns all of whose elements have one owner, as large as they may be.
void find_units(Rung& rung, const std::vector<int>& owners) {
  const auto alike = [&](int rows, int columns) {
    for (int i = 0; i < rung.rows * rung.columns; ++i) {
      const int row = i / rung.columns, column = i % rung.columns;
      const int first = row / rows * rows * rung.columns + column / columns * columns;
      if (owners[static_cast<std::size_t>(i)] != owners[static_cast<std::size_t>(first)]) {
        return false;
      }
    }
    return true;
  };
  const auto grow = [&](int& unit, int whole) {
    for (int wider = 2 * unit; whole % wider == 0; wider *= 2) {
      const int before = std::exchange(unit, wider);
      if (alike(rung.unit_rows, rung.unit_columns)) continue;
      unit = before;
      return;
    }
  };
  grow(rung.unit_columns, rung.columns);
  grow(rung.unit_rows, rung.rows);
  for (int row = 0; row < rung.rows; row += rung.unit_rows) {
    for (int column = 0; column < rung.columns; column += rung.unit_columns) {
      rung.owners.push_back(owners[numeric::index_of(row, column, rung.columns)]);
    }
  }
}

std::int64_t unlike_first(const std::vector<int>& counts) {
  return std::count_if(counts.begin(), counts.end(),
                       [&](int count) { return count != counts.front(); });
}

}  // namespace

Rung record_rung(simt::Device& device, Variant variant, const Params& params,
                 std::int64_t& uneven) {
  Rung rung{.variant = variant, .rows = params.tile, .columns = params.tile, .depth = params.tile};
  if (variant > Variant::shared_tile) {
    const Configuration& shown = kernels_of(device).shown(variant);
    rung.rows = shown.tile_m;
    rung.columns = shown.tile_n;
    rung.depth = shown.tile_k;
  }
  // What one more k-tile adds: some kernels read a step ahead, and one too many at the end, warp_tile
  // from the next of three stages, which must have been written.
  const int first = variant == Variant::warp_tile ? 3 : 1;
  const auto log = [&](int k_tiles, std::uint32_t stores_of) {
    return log_block(device, variant, {rung.rows, rung.columns, k_tiles * rung.depth}, params.seed,
                     stores_of);
  };
  const BlockLog one = log(first, kOneIn), two = log(first + 1, 1);
  if (two.stores.empty()) throw Error(std::string(name_of(variant)) + " did not record a block");
  rung.threads = static_cast<int>(two.stores.size());
  rung.owned = two.stores.front();
  rung.reads = std::max(two.reads.front() - one.reads.front(), 0);
  rung.requests = std::max(two.requests.front() - one.requests.front(), 0);
  uneven += std::count(two.owners.begin(), two.owners.end(), kNobody) + unlike_first(two.stores) +
            unlike_first(two.reads) + unlike_first(two.requests);
  find_units(rung, two.owners);
  return rung;
}

}  // namespace tilestep::tiling

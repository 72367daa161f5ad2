#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/machine/latency_hiding/lesson.hpp"

/// \file
/// The lesson's kernels as the host calls them, the same for both backends.

namespace tilestep::latency_hiding {

/// The order of a thread's loads and stores.
enum class Order { together, serialized, by_arms };
constexpr Order order_of(Break broken) {
  return static_cast<Order>(broken);
}
static_assert(order_of(Break::serialize_loads) == Order::serialized &&
              order_of(Break::divergent_branch) == Order::by_arms);

/// How a kernel is launched: blocks, threads per block, and the dynamic shared memory that keeps other blocks out.
struct Grid {
  std::int64_t blocks = 1;
  int threads = 128;
  int shared_bytes = 0;

  std::int64_t warps() const { return blocks * (threads / kLanes); }
  std::int64_t all_threads() const { return blocks * threads; }
};

struct CopyShape {
  Grid grid;
  int bytes_per_load = 16, loads = 4;
  Order order = Order::together;
  int ways = 1;
};

inline constexpr int kMostStages = 8;
/// The rows of the array in a stage. Shared memory per block: the stages, their barriers and the alignment of
/// both.
struct BulkShape {
  int columns = 256;  ///< floats of a row, 4–256
  int rows = 1;
  int stages = 4;
  /// Stages that a block copies: neighbours, for a launch with blocks enough for all. 0: every gridDim-th one.
  int of_block = 0;

  __host__ __device__ constexpr int stage_bytes() const { return columns * rows * 4; }
  constexpr int shared_bytes() const { return stages * (stage_bytes() + 8) + 128; }
};
/// The shape for a block whose threads would load this many bytes each.
constexpr BulkShape bulk_shape(int bytes_per_load, int threads, int stages) {
  const int floats = bytes_per_load * threads / 4;
  const int columns = floats < 256 ? floats : 256;
  return {columns, floats / columns, stages};
}
/// The shapes that the knobs ask for.
constexpr BulkShape bulk_shape(const Params& params) {
  return bulk_shape(bytes_of(params.bytes_per_load), threads_of(params.block),
                    count_of(params.loads_in_flight));
}
constexpr CopyShape copy_shape(const Params& params, const Grid& grid) {
  return {grid, bytes_of(params.bytes_per_load), count_of(params.loads_in_flight),
          order_of(broken_of(params)), count_of(params.divergence)};
}

/// A launch of a kernel that computes: fma, spill, diverge or tail.
struct Compute {
  Kernel kernel = Kernel::fma;
  Grid grid = {};
  int chains = 1;                   ///< of fma
  int registers = 168;              ///< that spill is compiled for
  int ways = 1;                     ///< through the branch of diverge
  int rounds = 1;                   ///< segments of fma; none of tail
  int steps = 0;                    ///< of a round; none of spill
  unsigned active = ~0u;            ///< warps of a block of fma that run
  simt::Span<unsigned> voted = {};  ///< an element for each way of diverge
};

/// By the knobs; how long it takes is up to who launches it.
constexpr Compute compute_of(const Params& params, const Grid& grid) {
  return {.kernel = params.kernel,
          .grid = grid,
          .chains = params.ilp,
          .registers = count_of(params.max_registers),
          .ways = count_of(params.divergence)};
}

/// A node of the pointer chase, in a line of its own.
struct Node {
  unsigned long long next;  ///< address
  unsigned long long rest[15];
};
static_assert(sizeof(Node) == 128);
/// Dynamic shared memory of a block that chases: a ring with one number per lane.
inline constexpr int kRingBytes = kLanes * 4;
/// The end of a walk, and the total time of its hops, by both clocks.
struct Walked {
  unsigned node;
  long long cycles, nanoseconds;
};

/// Values that a thread of the spilling kernel keeps live.
inline constexpr int kLive = 128;
/// The factor of x in chains of FMAs.
inline constexpr float kScale = 0.75f;

/// A kernel as it was compiled, for occupancy.
struct Variant {
  std::string name;  ///< "copy 16 bytes, 4 loads"
  int registers = 0, static_shared_bytes = 0, local_bytes = 0;
};

class Kernels : public simt::KernelSet {
 public:
  /// out ← in. Throws Error for a shape that was not compiled.
  virtual void copy(simt::Device& device, const CopyShape& shape, simt::Span<const float> in,
                    simt::Span<float> out, const simt::Tape& tape = {}) const = 0;
  /// The same by TMA. Throws Error (unavailable) on a GPU that is not Hopper's.
  virtual void bulk_copy(simt::Device& device, const Grid& grid, const BulkShape& shape,
                         simt::Span<const float> in, simt::Span<float> out,
                         const simt::Tape& tape = {}) const = 0;
  virtual void fill_words(simt::Device& device, simt::Span<unsigned> words,
                          unsigned seed) const = 0;
  virtual void count_wrong(simt::Device& device, simt::Span<const unsigned> words, unsigned seed,
                           simt::Span<unsigned long long> wrong) const = 0;

  virtual void link(simt::Device& device, simt::Span<Node> nodes,
                    simt::Span<const unsigned> order) const = 0;
  /// starts: three of each warp; visited: kProbes of each warp, addresses of nodes and places in shared memory.
  virtual void chase(simt::Device& device, const Grid& grid, simt::Span<const Node> nodes,
                     simt::Span<const unsigned> starts, simt::Span<unsigned long long> visited,
                     const simt::Tape& tape = {}) const = 0;
  virtual void walk(simt::Device& device, bool past_l1, simt::Span<const Node> nodes,
                    std::int64_t warm, std::int64_t hops, simt::Span<Walked> walked) const = 0;
  virtual void walk_shared(simt::Device& device, std::int64_t hops,
                           simt::Span<Walked> walked) const = 0;
  /// `visited` has one element per hop, `cycles` one more.
  virtual void time_hops(simt::Device& device, simt::Span<const Node> nodes, std::int64_t warm,
                         simt::Span<unsigned> visited, simt::Span<unsigned> cycles) const = 0;

  /// in has one element per thread, of spill one per thread and round; out has one per thread. Under tail there may be
  /// more threads than elements.
  virtual void compute(simt::Device& device, const Compute& what, simt::Span<const float> in,
                       simt::Span<float> out, const simt::Tape& tape = {}) const = 0;

  /// Resources of the compiled kernel of a probed run with this launch.
  virtual simt::Resources resources(simt::Device& device, const Params& params,
                                    const Grid& grid) const = 0;
  /// The kernels whose occupancy is queried; with 0 registers under emulation.
  virtual std::vector<Variant> variants(simt::Device& device) const = 0;
  /// How many blocks of a variant a multiprocessor holds, as the CUDA runtime answers; nothing is launched. `carveout`
  /// in percent, −1: the driver's choice. Throws Error (unavailable) under emulation.
  virtual int runtime_blocks(simt::Device& device, int variant, int threads, int shared_bytes,
                             int carveout) const = 0;
};

}  // namespace tilestep::latency_hiding

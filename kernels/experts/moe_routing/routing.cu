// An MoE layer, step by step: the kernels that the picture shows.
//
//   score_and_choose  a thread a token: softmax over its logits and the top_k best experts
//   count_chunk       a block a chunk of assignments: how many want each expert, and the place of
//                     each assignment among those of its chunk
//   lay_out           one block, a thread an expert: chunks added up, capacity applied, slots and
//                     tiles handed out by an exclusive scan over the experts
//   place             a thread an assignment: its slot, or −1 where its expert is full
//   permute           a thread a number: the tokens' rows to their slots
//   multiply_tiles    a warp a tile: mma.m16n8k16 with the expert's weights as the 16 rows of A and
//                     eight tokens as the columns of B
//   combine_choices   a thread an output: the gate-weighted sum of what a token's experts gave
//
// logits [tokens × experts], x [slots × hidden], weights [experts × width × hidden], y [slots ×
// width], all row-major. An assignment is a pair (token, choice), number token·top_k + choice. No
// step depends on the order in which threads happen to run: places are counted, never raced for.

#include <cassert>
#include <cfloat>

#include "kernels/base/simt/mma.hpp"
#include "kernels/experts/moe_routing/launch.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND {

namespace {

constexpr int kThreads = 256;
/// Assignments that a block counts; one a thread.
constexpr int kChunk = kThreads;
/// Persistent blocks of the picture's packed product: few, so that each has several tiles.
constexpr int kPictureBlocks = 4;
constexpr int kMmaRows = 16, kMmaColumns = 8, kMmaDepth = 16;

template <class T>
using Global = simt::Global<T>;

/// Notes where in this file the step is; the picture's Kernel tab marks the line.
__device__ void note(Global<int> lines, Step step, int line) {
  const bool first = blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0;
  if (lines && first) lines[static_cast<int>(step)] = line;
}

// ---- score, top-k -------------------------------------------------------------------------------

struct Chosen {
  Global<int> expert;
  Global<float> probability, gate;
};

/// A logit that can be compared and subtracted: NaN counts as the lowest number, and infinities as
/// the lowest and the largest. With a NaN no comparison holds, and nobody would be chosen.
__device__ float comparable(float logit) {
  return fminf(fmaxf(logit, -FLT_MAX), FLT_MAX);
}

__global__ void score_and_choose(Global<const float> logits, Chosen chosen, RouteShape shape,
                                 Global<int> lines) {
  const int token = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (token >= shape.tokens) return;
  const auto row = logits + token * shape.experts;

  note(lines, Step::score, __LINE__ + 4);
  float largest = -FLT_MAX;
  for (int e = 0; e < shape.experts; ++e) largest = fmaxf(largest, comparable(row[e]));
  float sum = 0;
  for (int e = 0; e < shape.experts; ++e) sum += expf(comparable(row[e]) - largest);

  note(lines, Step::top_k, __LINE__ + 11);
  float last = largest;  // the choice before; the first may be as large as the largest itself
  int last_expert = -1;
  float of_chosen = 0;
  for (int choice = 0; choice < shape.top_k; ++choice) {
    int best = -1;
    float best_logit = 0;
    for (int e = 0; e < shape.experts; ++e) {
      const float logit = comparable(row[e]);
      // Behind the last choice in the order "larger logit first, among equals the lower number".
      const bool open = logit < last || (logit == last && e > last_expert);
      if (open && (best < 0 || logit > best_logit)) {
        best = e;
        best_logit = logit;
      }
    }
    const int assignment = token * shape.top_k + choice;
    const float probability = expf(best_logit - largest) / sum;
    chosen.expert[assignment] = best;
    chosen.probability[assignment] = probability;
    of_chosen += probability;
    last = best_logit;
    last_expert = best;
  }
  for (int choice = 0; choice < shape.top_k; ++choice) {
    const int assignment = token * shape.top_k + choice;
    chosen.gate[assignment] = chosen.probability[assignment] / of_chosen;
  }
}

// ---- count, offset, place -----------------------------------------------------------------------

__global__ void count_chunk(Global<const int> expert, Global<int> rank, Global<int> chunk_counts,
                            RouteShape shape, Global<int> lines) {
  const auto experts = simt::dynamic_shared<int>(kChunk, 0, "experts of the chunk");
  const auto counts = simt::dynamic_shared<int>(static_cast<std::size_t>(shape.experts),
                                                kChunk * sizeof(int), "counts of the chunk");
  const int thread = static_cast<int>(threadIdx.x);
  const int assignment = static_cast<int>(blockIdx.x) * kChunk + thread;
  const bool there = assignment < shape.tokens * shape.top_k;
  const int mine = there ? expert[assignment] : -1;
  experts[thread] = mine;
  for (int e = thread; e < shape.experts; e += kChunk) counts[e] = 0;
  __syncthreads();  // all choices and all zeros must be there before anybody counts

  note(lines, Step::count, __LINE__ + 1);
  if (there) atomicAdd(&counts[mine], 1);  // whole numbers: the order does not matter
  int before = 0;
  for (int other = 0; other < thread; ++other) before += experts[other] == mine ? 1 : 0;
  if (there) rank[assignment] = before;
  __syncthreads();  // every count must be complete before it is written out
  for (int e = thread; e < shape.experts; e += kChunk) {
    chunk_counts[static_cast<int>(blockIdx.x) * shape.experts + e] = counts[e];
  }
}

/// The sum of `value` over the threads before this one; all of the block call it.
__device__ int exclusive_scan(simt::Shared<int> values, int value) {
  const int thread = static_cast<int>(threadIdx.x);
  values[thread] = value;
  __syncthreads();  // every value must be there before its neighbours add it
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const int left = thread >= distance ? values[thread - distance] : 0;
    __syncthreads();  // all must have read before any value changes
    values[thread] += left;
    __syncthreads();  // and all sums must be there before the next round reads them
  }
  return values[thread] - value;
}

struct LaidOut {
  Global<int> chunk_counts, wanted, kept, first_slot, first_tile;
};

__global__ void lay_out(LaidOut out, RouteShape shape, int chunks, Global<int> lines) {
  const auto values = simt::dynamic_shared<int>(kThreads, 0, "values");
  const auto fullest = simt::dynamic_shared<int>(1, kThreads * sizeof(int), "fullest");
  const int e = static_cast<int>(threadIdx.x);
  const bool there = e < shape.experts;
  if (e == 0) fullest[0] = 0;
  __syncthreads();  // the zero must be there before the experts raise it

  // From counts of chunks to where each chunk's assignments begin among those of the expert.
  int wanted = 0;
  for (int chunk = 0; there && chunk < chunks; ++chunk) {
    const int count = out.chunk_counts[chunk * shape.experts + e];
    out.chunk_counts[chunk * shape.experts + e] = wanted;
    wanted += count;
  }
  const int kept = shape.capacity >= 0 ? min(wanted, shape.capacity) : wanted;
  if (there) atomicMax(&fullest[0], kept);
  __syncthreads();  // every expert must have raised it before any reads it

  const bool same = shape.scheme == Scheme::padded_to_capacity;
  const int room = !same ? kept : shape.capacity >= 0 ? shape.capacity : fullest[0];
  const int tiles = there ? (room + shape.tile - 1) / shape.tile : 0;
  const int slots = !there ? 0 : shape.scheme == Scheme::packed ? kept : tiles * shape.tile;
  note(lines, Step::offset, __LINE__ + 1);
  const int first_slot = exclusive_scan(values, slots);
  __syncthreads();  // all must have read their sums before the next scan writes
  const int first_tile = exclusive_scan(values, tiles);
  if (!there) return;
  out.wanted[e] = wanted;
  out.kept[e] = kept;
  out.first_slot[e] = first_slot;
  out.first_tile[e] = first_tile;
  if (e + 1 == shape.experts) {
    out.first_slot[e + 1] = first_slot + slots;
    out.first_tile[e + 1] = first_tile + tiles;
  }
}

__global__ void place(Global<const int> expert, LaidOut out, Global<int> rank, Global<int> slot,
                      RouteShape shape) {
  const int assignment = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (assignment >= shape.tokens * shape.top_k) return;
  const int e = expert[assignment];
  const int among = out.chunk_counts[assignment / kChunk * shape.experts + e] + rank[assignment];
  rank[assignment] = among;
  slot[assignment] = among < out.kept[e] ? out.first_slot[e] + among : -1;
}

// ---- permute ------------------------------------------------------------------------------------

__global__ void permute_rows(Global<const std::uint16_t> tokens, Global<const int> slot,
                             Global<std::uint16_t> x, RouteShape shape, int hidden,
                             Global<int> lines) {
  const std::int64_t number = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t assignment = number / hidden;
  if (assignment >= std::int64_t{shape.tokens} * shape.top_k) return;
  const std::int64_t i = number % hidden;
  note(lines, Step::permute, __LINE__ + 2);
  const std::int64_t to = slot[assignment];
  if (to >= 0) x[to * hidden + i] = tokens[assignment / shape.top_k * hidden + i];
}

// ---- multiply -----------------------------------------------------------------------------------

struct Recorded {
  Global<int> block, processor;
  Global<unsigned long long> begin, end;
};

/// On a GPU nanoseconds that all multiprocessors share; under emulation, where time says nothing,
/// the mma instructions that the block has issued.
__device__ unsigned long long clock_of([[maybe_unused]] unsigned long long issued) {
#if defined(__CUDACC__)
  unsigned long long nanoseconds = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  return nanoseconds;
#else
  return issued;
#endif
}
__device__ int processor_of([[maybe_unused]] int block) {
#if defined(__CUDACC__)
  unsigned number = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  return static_cast<int>(number);
#else
  return block;
#endif
}

/// Two neighbours of a row in a register, as a fragment holds them.
__device__ unsigned pair_at(Global<const std::uint16_t> array, std::int64_t at) {
  return simt::as<const unsigned>(array + at)[0];
}

/// Columns of eight tokens times all of the expert's weights.
__device__ int multiply_columns(Global<const std::uint16_t> x, Global<const std::uint16_t> w,
                                Global<float> y, std::int64_t first_slot, int rows, int hidden,
                                int width) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int pair = lane % 4 * 2;
  int issued = 0;
  for (int out = 0; out < width; out += kMmaRows) {
    float d[4] = {};
    for (int k = 0; k < hidden; k += kMmaDepth) {
      const std::int64_t upper = std::int64_t{out + group} * hidden + k + pair;
      const std::int64_t lower = upper + std::int64_t{8} * hidden;
      const unsigned a[4] = {pair_at(w, upper), pair_at(w, lower), pair_at(w, upper + 8),
                             pair_at(w, lower + 8)};
      // A column without a token is zero: the tensor core multiplies it all the same.
      const std::int64_t token = (first_slot + group) * hidden + k + pair;
      const bool inside = group < rows;
      simt::mma_m16n8k16_bf16(d, a, inside ? pair_at(x, token) : 0,
                              inside ? pair_at(x, token + 8) : 0);
      ++issued;
    }
    for (int i = 0; i < 4; ++i) {
      const int column = pair + i % 2;
      const int row = out + group + i / 2 * 8;
      if (column < rows) y[(first_slot + column) * width + row] = d[i];
    }
  }
  return issued;
}

__global__ void multiply_tiles(Global<const std::uint16_t> x, Global<const std::uint16_t> weights,
                               Global<float> y, Global<const int> first_slot,
                               Global<const int> first_tile, GroupedShape shape, Recorded recorded,
                               Global<int> lines) {
  const bool packed = shape.scheme == Scheme::packed;
  const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  int e = packed ? 0 : static_cast<int>(blockIdx.y);
  // `packed` shares one list of tiles among blocks that stay; else a block has one tile or none.
  int tile = static_cast<int>(blockIdx.x) + (packed ? 0 : first_tile[e]);
  const int end = first_tile[packed ? shape.experts : e + 1];
  unsigned long long issued = 0;
  // Outside the loop: the first block may have no tile.
  note(lines, Step::multiply, __LINE__ + 8);
  while (tile < end) {
    while (tile >= first_tile[e + 1]) ++e;
    const unsigned long long begin = clock_of(issued);
    const std::int64_t slot = first_slot[e] + std::int64_t{tile - first_tile[e]} * shape.tile;
    const auto w = weights + std::int64_t{e} * shape.width * shape.hidden;
    for (int column = 0; column < shape.tile; column += kMmaColumns) {
      const int rows = static_cast<int>(first_slot[e + 1] - slot) - column;
      issued += static_cast<unsigned>(
          multiply_columns(x, w, y, slot + column, rows, shape.hidden, shape.width));
    }
    if (recorded.begin && threadIdx.x == 0) {
      recorded.block[tile] = block;
      recorded.processor[tile] = processor_of(block);
      recorded.begin[tile] = begin;
      recorded.end[tile] = clock_of(issued);
    }
    if (!packed) break;
    tile += blocks;
  }
}

// ---- combine ------------------------------------------------------------------------------------

__global__ void combine_choices(Global<const float> gate, Global<const int> slot,
                                Global<const float> y, Global<float> out, RouteShape shape,
                                int width, Global<int> lines) {
  const std::int64_t number = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t token = number / width;
  if (token >= shape.tokens) return;
  const std::int64_t i = number % width;
  float sum = 0;
  note(lines, Step::combine, __LINE__ + 4);
  for (int choice = 0; choice < shape.top_k; ++choice) {
    const std::int64_t assignment = token * shape.top_k + choice;
    const std::int64_t from = slot[assignment];
    if (from >= 0) sum += gate[assignment] * y[from * width + i];  // a dropped choice adds nothing
  }
  out[number] = sum;
}

// ---- launches -----------------------------------------------------------------------------------

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

simt::Launch launch_of(const char* name, std::int64_t threads, std::size_t shared_ints = 0) {
  return {.name = name,
          .grid = dim3(blocks_for(threads)),
          .block = dim3(kThreads),
          .shared_bytes = shared_ints * sizeof(int)};
}

void check_route(const RouteShape& shape) {
  const auto within = [](const char* what, int value, int low, int high) {
    if (value >= low && value <= high) return;
    throw Error("moe_routing: " + std::string(what) + " is " + std::to_string(value) +
                "; allowed: " + std::to_string(low) + "–" + std::to_string(high));
  };
  within("tokens", shape.tokens, 1, 1 << 24);
  within("experts", shape.experts, 1, kThreads);
  within("top_k", shape.top_k, 1, shape.experts);
  within("tile", shape.tile, 1, 1 << 16);
}

}  // namespace

class KernelsHere final : public Kernels {
 public:
  void route(simt::Device& device, const RouteShape& shape,
             const RouteArrays& arrays) const override {
    check_route(shape);
    const std::int64_t assignments = std::int64_t{shape.tokens} * shape.top_k;
    const int chunks = static_cast<int>(blocks_for(assignments));
    assert(arrays.chunk_counts.count >=
           static_cast<std::size_t>(chunks) * static_cast<std::size_t>(shape.experts));
    const auto expert = simt::global(arrays.expert, "expert");
    const auto rank = simt::global(arrays.rank, "rank");
    const auto lines = simt::global(arrays.lines, "lines");
    const LaidOut out{simt::global(arrays.chunk_counts, "chunk_counts"),
                      simt::global(arrays.wanted, "wanted"), simt::global(arrays.kept, "kept"),
                      simt::global(arrays.first_slot, "first_slot"),
                      simt::global(arrays.first_tile, "first_tile")};
    simt::launch(device, launch_of("score_and_choose", shape.tokens), score_and_choose,
                 simt::global(arrays.logits, "logits"),
                 Chosen{expert, simt::global(arrays.probability, "probability"),
                        simt::global(arrays.gate, "gate")},
                 shape, lines);
    simt::launch(
        device,
        launch_of("count_chunk", assignments,
                  static_cast<std::size_t>(kChunk) + static_cast<std::size_t>(shape.experts)),
        count_chunk, expert, rank, out.chunk_counts, shape, lines);
    simt::launch(device, launch_of("lay_out", kThreads, kThreads + 1), lay_out, out, shape, chunks,
                 lines);
    simt::launch(device, launch_of("place", assignments), place, expert, out, rank,
                 simt::global(arrays.slot, "slot"), shape);
  }

  void permute(simt::Device& device, const RouteShape& shape, int hidden,
               simt::Span<const std::uint16_t> tokens, simt::Span<const int> slot,
               simt::Span<std::uint16_t> x, simt::Span<int> lines) const override {
    if (x.count == 0) return;
    device.fill(x.data, 0, x.count * sizeof(std::uint16_t));
    simt::launch(device,
                 launch_of("permute_rows", std::int64_t{shape.tokens} * shape.top_k * hidden),
                 permute_rows, simt::global(tokens, "tokens"), simt::global(slot, "slot"),
                 simt::global(x, "x"), shape, hidden, simt::global(lines, "lines"));
  }

  int multiply(simt::Device& device, const GroupedShape& shape, const GroupedArrays& arrays,
               const TileRecording& recording, simt::Span<int> lines) const override {
    if (shape.hidden % kMmaDepth != 0 || shape.width % kMmaRows != 0 ||
        shape.tile % kMmaColumns != 0) {
      throw Error("moe_routing: hidden " + std::to_string(shape.hidden) + ", width " +
                  std::to_string(shape.width) + " and tile " + std::to_string(shape.tile) +
                  " must be multiples of 16, 16 and 8, the sizes of an mma");
    }
    if (device.info().compute_capability < simt::kMmaCapability && device.can_time()) {
      throw Error(
          "the grouped product needs tensor cores with BF16, of compute capability 8.0 or "
          "newer; " +
              device.info().name + " is older",
          ExitCode::unavailable);
    }
    const bool packed = shape.scheme == Scheme::packed;
    const dim3 grid =
        packed ? dim3(static_cast<unsigned>(shape.blocks > 0 ? shape.blocks : kPictureBlocks))
               : dim3(static_cast<unsigned>(shape.most_tiles > 0 ? shape.most_tiles : 1),
                      static_cast<unsigned>(shape.experts));
    simt::launch(
        device, {.name = "multiply_tiles", .grid = grid, .block = dim3(32)}, multiply_tiles,
        simt::global(arrays.x, "x"), simt::global(arrays.weights, "weights"),
        simt::global(arrays.y, "y"), simt::global(arrays.first_slot, "first_slot"),
        simt::global(arrays.first_tile, "first_tile"), shape,
        Recorded{simt::global(recording.block, "block"),
                 simt::global(recording.processor, "processor"),
                 simt::global(recording.begin, "begin"), simt::global(recording.end, "end")},
        simt::global(lines, "lines"));
    return static_cast<int>(grid.x * grid.y);
  }

  void combine(simt::Device& device, const RouteShape& shape, int width,
               simt::Span<const float> gate, simt::Span<const int> slot, simt::Span<const float> y,
               simt::Span<float> out, simt::Span<int> lines) const override {
    simt::launch(device, launch_of("combine_choices", std::int64_t{shape.tokens} * width),
                 combine_choices, simt::global(gate, "gate"), simt::global(slot, "slot"),
                 simt::global(y, "y"), simt::global(out, "out"), shape, width,
                 simt::global(lines, "lines"));
  }

  std::span<const Configuration> configurations() const override { return gemm_configurations(); }
  void grouped_gemm(simt::Device& device, int configuration, const GroupedShape& shape,
                    const GroupedArrays& arrays, const TileRecording& recording) const override {
    launch_grouped_gemm(device, configuration, shape, arrays, recording);
  }
  LibraryStatus library(simt::Device& device) const override { return library_status(device); }
  void library_loop(simt::Device& device, const GroupedShape& shape, const GroupedArrays& arrays,
                    std::span<const int> first_slot, std::span<const int> kept) const override {
    launch_library_loop(device, shape, arrays, first_slot, kept);
  }
};

}  // namespace tilestep::moe_routing::SIMT_BACKEND

namespace tilestep::moe_routing {

const simt::KernelSet& SIMT_KERNELS(kernels)() {
  static const SIMT_BACKEND::KernelsHere kernels;
  return kernels;
}

}  // namespace tilestep::moe_routing

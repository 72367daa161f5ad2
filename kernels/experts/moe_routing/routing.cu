// An MoE layer, step by step: the kernels that the picture shows.
//
//   score_and_choose  a thread per token: softmax over its logits and the top_k best experts
//   count_chunk       a block per chunk of assignments: the count for each expert, and the place of
//                     each assignment among those of its chunk
//   lay_out           one block, a thread per expert: chunks added up, capacity applied, slots and
//                     tiles assigned by an exclusive scan over the experts
//   place             a thread per assignment: its slot, or −1 where its expert is full
//   permute           a thread per number: the tokens' rows to their slots
//   multiply_tiles    a warp per tile: mma.m16n8k16 with the expert's weights as the 16 rows of A and
//                     eight tokens as the columns of B
//   combine_choices   a thread per output: the gate-weighted sum of a token's expert outputs
//
// logits [tokens × experts], x [slots × hidden], weights [experts × width × hidden], y [slots ×
// width], all row-major. An assignment is a pair (token, choice), number token·top_k + choice. No
// step depends on the order in which threads run: places are counted, never raced for.

#include <cfloat>
#include <cstdint>

#include "kernels/base/simt/mma.hpp"
#include "kernels/experts/moe_routing/kernels.hpp"
#include "kernels/experts/moe_routing/tiles.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND {

constexpr int kThreads = 256;
/// Assignments that a block counts; one per thread.
constexpr int kChunk = kThreads;
constexpr int kMmaRows = 16, kMmaColumns = 8, kMmaDepth = 16;

template <class T>
using Global = simt::Global<T>;

// ---- score, top-k -------------------------------------------------------------------------------

struct Chosen {
  Global<int> expert;
  Global<float> probability, gate;
};

/// A logit that can be compared and subtracted: NaN counts as the lowest number, and infinities as
/// the lowest and the largest. All comparisons with NaN fail, so no expert would be chosen.
__device__ float comparable(float logit) {
  return fminf(fmaxf(logit, -FLT_MAX), FLT_MAX);
}

__global__ void score_and_choose(Global<const float> logits, Chosen chosen, RouteShape shape) {
  const int token = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (token >= shape.tokens) return;
  const auto row = logits + token * shape.experts;

  float largest = -FLT_MAX;
  for (int e = 0; e < shape.experts; ++e) largest = fmaxf(largest, comparable(row[e]));
  float sum = 0;
  for (int e = 0; e < shape.experts; ++e)
    sum += expf(comparable(row[e]) - largest);  // [step: score]

  float last = largest;  // the choice before; the first may be as large as the largest itself
  int last_expert = -1;
  float of_chosen = 0;
  for (int choice = 0; choice < shape.top_k; ++choice) {
    int best = -1;
    float best_logit = 0;
    for (int e = 0; e < shape.experts; ++e) {
      const float logit = comparable(row[e]);
      // After the last choice in the order "larger logit first, on a tie the lower number".
      const bool open = logit < last || (logit == last && e > last_expert);
      if (open && (best < 0 || logit > best_logit)) {  // [step: top-k]
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
                            RouteShape shape) {
  const auto experts = simt::dynamic_shared<int>(kChunk, 0, "experts of the chunk");
  const auto counts = simt::dynamic_shared<int>(static_cast<std::size_t>(shape.experts),
                                                kChunk * sizeof(int), "counts of the chunk");
  const int thread = static_cast<int>(threadIdx.x);
  const int assignment = static_cast<int>(blockIdx.x) * kChunk + thread;
  const bool there = assignment < shape.tokens * shape.top_k;
  const int mine = there ? expert[assignment] : -1;
  experts[thread] = mine;
  for (int e = thread; e < shape.experts; e += kChunk) counts[e] = 0;
  __syncthreads();  // all choices and zeros must be written before the count

  // whole numbers: the order does not matter
  if (there) atomicAdd(&counts[mine], 1);  // [step: count]
  int before = 0;
  for (int other = 0; other < thread; ++other) before += experts[other] == mine ? 1 : 0;
  if (there) rank[assignment] = before;
  __syncthreads();  // all counts must be complete before they are written out
  for (int e = thread; e < shape.experts; e += kChunk) {
    chunk_counts[static_cast<int>(blockIdx.x) * shape.experts + e] = counts[e];
  }
}

/// The sum of `value` over the threads before this one; called by the whole block.
__device__ int exclusive_scan(simt::Shared<int> values, int value) {
  const int thread = static_cast<int>(threadIdx.x);
  values[thread] = value;
  __syncthreads();  // every value must be written before its neighbours add it
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const int left = thread >= distance ? values[thread - distance] : 0;
    __syncthreads();  // all must have read before any value changes
    values[thread] += left;
    __syncthreads();  // all sums must be written before the next round reads them
  }
  return values[thread] - value;
}

struct LaidOut {
  Global<int> chunk_counts, wanted, kept, first_slot, first_tile;
};

__global__ void lay_out(LaidOut out, RouteShape shape, int chunks) {
  const auto values = simt::dynamic_shared<int>(kThreads, 0, "values");
  const auto fullest = simt::dynamic_shared<int>(1, kThreads * sizeof(int), "fullest");
  const int e = static_cast<int>(threadIdx.x);
  const bool there = e < shape.experts;
  if (e == 0) fullest[0] = 0;
  __syncthreads();  // the zero must be written before the experts raise it

  // Turns chunk counts into the start of each chunk's assignments among the expert's.
  int wanted = 0;
  for (int chunk = 0; there && chunk < chunks; ++chunk) {
    const int count = out.chunk_counts[chunk * shape.experts + e];
    out.chunk_counts[chunk * shape.experts + e] = wanted;
    wanted += count;
  }
  const int kept = shape.capacity >= 0 ? min(wanted, shape.capacity) : wanted;
  if (there) atomicMax(&fullest[0], kept);
  __syncthreads();  // all experts must have raised it before any reads it

  const bool same = shape.scheme == Scheme::padded_to_capacity;
  const int room = !same ? kept : shape.capacity >= 0 ? shape.capacity : fullest[0];
  const int tiles = there ? (room + shape.tile - 1) / shape.tile : 0;
  const int slots = !there ? 0 : shape.scheme == Scheme::packed ? kept : tiles * shape.tile;
  const int first_slot = exclusive_scan(values, slots);  // [step: offset]
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
                             Global<std::uint16_t> x, RouteShape shape, int hidden) {
  const std::int64_t number = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t assignment = number / hidden;
  if (assignment >= std::int64_t{shape.tokens} * shape.top_k) return;
  const std::int64_t i = number % hidden;
  const std::int64_t to = slot[assignment];
  if (to >= 0)
    x[to * hidden + i] = tokens[assignment / shape.top_k * hidden + i];  // [step: permute]
}

// ---- multiply -----------------------------------------------------------------------------------

/// Two neighbours of a row in one register, as a fragment holds them.
__device__ unsigned pair_at(Global<const std::uint16_t> array, std::int64_t at) {
  return simt::as<const unsigned>(array + at)[0];
}

/// Columns of eight tokens times all of the expert's weights. Returns the number of instructions.
__device__ int multiply_columns(const GroupedOperands& operands, Global<const std::uint16_t> w,
                                std::int64_t first_slot, int rows, const GroupedShape& shape) {
  const auto x = operands.x;
  const auto y = operands.y;
  const int hidden = shape.hidden;
  const int width = shape.width;
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

template <class Tape>
__global__ void multiply_tiles(GroupedOperands operands, GroupedShape shape, Tape tape) {
  const bool packed = shape.scheme == Scheme::packed;
  const int blocks = static_cast<int>(gridDim.x);
  int e = packed ? 0 : static_cast<int>(blockIdx.y);
  // `packed` shares one list of tiles among persistent blocks; otherwise a block has at most one tile.
  int tile = static_cast<int>(blockIdx.x) + (packed ? 0 : operands.first_tile[e]);
  const int end = operands.first_tile[packed ? shape.experts : e + 1];
  TileRecorder recorder(shape.tile / kMmaColumns * (shape.width / kMmaRows) *
                        (shape.hidden / kMmaDepth));
  while (tile < end) {
    while (tile >= operands.first_tile[e + 1]) ++e;
    if (threadIdx.x == 0) recorder.begins(tape);
    const std::int64_t in_expert = tile - operands.first_tile[e];
    const std::int64_t slot = operands.first_slot[e] + in_expert * shape.tile;
    const auto w = operands.weights + std::int64_t{e} * shape.width * shape.hidden;
    int issued = 0;
    for (int column = 0; column < shape.tile; column += kMmaColumns) {
      const int rows = static_cast<int>(operands.first_slot[e + 1] - slot) - column;
      issued += multiply_columns(operands, w, slot + column, rows, shape);  // [step: multiply]
    }
    if (threadIdx.x == 0) recorder.ends(tape, tile, 1, issued);
    if (!packed) break;
    tile += blocks;
  }
}

// ---- combine ------------------------------------------------------------------------------------

__global__ void combine_choices(Global<const float> gate, Global<const int> slot,
                                Global<const float> y, Global<float> out, RouteShape shape,
                                int width) {
  const std::int64_t number = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t token = number / width;
  if (token >= shape.tokens) return;
  const std::int64_t i = number % width;
  float sum = 0;
  for (int choice = 0; choice < shape.top_k; ++choice) {
    const std::int64_t assignment = token * shape.top_k + choice;
    const std::int64_t from = slot[assignment];
    // a dropped choice adds nothing
    if (from >= 0) sum += gate[assignment] * y[from * width + i];  // [step: combine]
  }
  out[number] = sum;
}

}  // namespace tilestep::moe_routing::SIMT_BACKEND

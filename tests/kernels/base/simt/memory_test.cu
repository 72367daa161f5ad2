// Atomics, views, vectors, shared memory, math words, traces.

#include <cmath>
#include <limits>

#include "kernels/base/simt/simt.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

template <class T>
__global__ void add_all(Global<T> total, T value) {
  atomicAdd(&total[0], value);
}

template <class T>
T added(Device& device, T value, unsigned blocks, unsigned threads) {
  Buffer<T> total(device, 1);
  total.fill(0);
  launch(device, {.name = "add_all", .grid = {blocks}, .block = {threads}}, add_all<T>,
         global(total.span(), "total"), value);
  return total.download().front();
}

TEST_CASE("simt: atomic sums over many blocks", "[simt]") {
  const auto device = make_emulated(ThreadOrder::shuffled);
  CHECK(added<int>(*device, -2, 100, 64) == -12800);
  CHECK(added<unsigned>(*device, 3, 100, 64) == 19200);
  CHECK(added<unsigned long long>(*device, 1ULL << 33, 10, 10) == 100ULL << 33);
  CHECK(added<float>(*device, 0.5f, 100, 64) == 3200);
  CHECK(added<double>(*device, 0.125, 100, 64) == 800);
}

// Element `outside` of a row, or what the block finds in the tile before it writes.
__global__ void shared_tile(Global<float> found, int row, int column) {
  __shared__ Array<float, 3, 5> tile;
  __shared__ Array<int, 4> line;
  const int i = static_cast<int>(threadIdx.x);
  if (i == 0) found[blockIdx.x] = tile[row][column];
  __syncthreads();  // nobody writes before thread 0 has read
  tile[i % 3][i % 5] = 1;
  line[i % 4] = i;
  const Shared<int> part = line;
  if (i == 0) part[3] = 0;
}

TEST_CASE("simt: a block finds nothing in static shared memory", "[simt]") {
  const auto device = make_emulated();
  constexpr int kBlocks = 7;
  Buffer<float> found(*device, kBlocks);
  found.fill(0);
  for (int launches = 0; launches < 2; ++launches) {
    launch(*device, {.name = "shared_tile", .grid = {kBlocks}, .block = {15}}, shared_tile,
           global(found.span(), "found"), 2, 4);
    for (const float value : found.download()) CHECK(std::isnan(value));
  }
}

TEST_CASE("simt: an index outside of a static shared array is named", "[simt]") {
  const auto device = make_emulated();
  Buffer<float> found(*device, 1);
  const auto error = [&](int row, int column) {
    return tests::error_of([&] {
      launch(*device, {.name = "shared_tile", .grid = {1}, .block = {15}}, shared_tile,
             global(found.span(), "found"), row, column);
    });
  };
  const std::string at = "shared_tile: thread (0,0,0) of block (0,0,0) takes index ";
  CHECK(error(3, 0) == at + "3 of a shared array where it has 3 elements (allowed: 0–2)");
  CHECK(error(0, 5) == at + "5 of a shared array where it has 5 elements (allowed: 0–4)");
  CHECK(error(0, -1) == at + "-1 of a shared array where it has 5 elements (allowed: 0–4)");
}

__global__ void all_atomics(Global<int> cells, Global<unsigned long long> wide) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicSub(&cells[0], 1);
  atomicMin(&cells[1], -i);
  atomicMax(&cells[2], i);
  atomicAnd(&cells[3], ~(1 << (i % 5)));
  atomicOr(&cells[4], 1 << (i % 5));
  atomicXor(&cells[5], i);
  for (int old = 0, seen = 0;; old = seen) {  // a sum by compare and swap
    seen = atomicCAS(&cells[6], old, old + i);
    if (seen == old) break;
  }
  if (atomicExch(&cells[7], 1) == 0) atomicAdd(&cells[8], 1);
  atomicMax(&wide[0], static_cast<unsigned long long>(i) << 32);
  __threadfence();
}

TEST_CASE("simt: the other atomics", "[simt]") {
  constexpr int kThreads = 20 * 50;
  const auto device = make_emulated();
  Buffer<int> cells(*device, std::vector<int>{0, 0, 0, 0xFF, 0, 0, 0, 0, 0});
  Buffer<unsigned long long> wide(*device, 1);
  wide.fill(0);
  launch(*device, {.name = "all_atomics", .grid = {20}, .block = {50}}, all_atomics,
         global(cells.span(), "cells"), global(wide.span(), "wide"));
  int parity = 0;
  for (int i = 0; i < kThreads; ++i) parity ^= i;
  CHECK(cells.download() == std::vector<int>{-kThreads, 1 - kThreads, kThreads - 1, 0xE0, 0x1F,
                                             parity, kThreads * (kThreads - 1) / 2, 1, 1});
  CHECK(wide.download().front() == static_cast<unsigned long long>(kThreads - 1) << 32);
}

__global__ void move_vectors(Global<const float> in, Global<float> out) {
  const Checked<const float4> vectors = as<float4>(in);
  const float4 v = __ldg(&vectors[threadIdx.x]);
  as<float2>(out)[2 * threadIdx.x] = make_float2(v.w, v.z);
  __stcs(&as<float2>(out + 2)[2 * threadIdx.x], make_float2(v.y, v.x));
}

TEST_CASE("simt: arrays seen as vectors", "[simt]") {
  const auto device = make_emulated();
  Buffer<float> in(*device, counting<float>(16));
  Buffer<float> out(*device, 16);
  const Span<const float> in_span = in.span();
  launch(*device, {.name = "move_vectors", .block = {4}}, move_vectors, global(in_span, "in"),
         global(out.span(), "out"));
  CHECK(out.download() == std::vector<float>{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12});
}

TEST_CASE("simt: a checked view behaves like a pointer", "[simt]") {
  int numbers[] = {1, 2, 3, 4};
  Checked<int> view(numbers, 4, "numbers");
  CHECK(*view == 1);
  CHECK(*(view + 2) == 3);
  CHECK((view + 3)[-1] == 3);
  CHECK((view + 5 - 3)[1] == 4);
  CHECK(&view[2] == numbers + 2);
  view += 2;
  ++view;
  const Checked<const int> constant = view;
  CHECK(constant[0] == 4);
  CHECK(outcome_of([&] { (void)constant[1]; }) ==
        "the host accesses numbers[4], but numbers has 4 elements (allowed: 0–3)");
  CHECK(static_cast<bool>(view));
  CHECK_FALSE(static_cast<bool>(Checked<int>()));
}

__global__ void look_at_shared(Global<int> out) {
  const Shared<float> values = dynamic_shared<float>(64);
  const int t = static_cast<int>(threadIdx.x);
  const int fresh = std::isnan(values[t]) ? 1 : 0;
  __syncthreads();  // all have looked before anyone writes
  values[t] = 1;
  out[static_cast<int>(blockIdx.x) * 64 + t] = fresh;
}

TEST_CASE("simt: dynamic shared memory is NaN before every block", "[simt]") {
  const auto device = make_emulated();
  Buffer<int> out(*device, 5 * 64);
  launch(*device,
         {.name = "look_at_shared", .grid = {5}, .block = {64}, .shared_bytes = 64 * sizeof(float)},
         look_at_shared, global(out.span(), "out"));
  CHECK(out.download() == std::vector<int>(5 * 64, 1));
}

__global__ void compute_words(Global<double> out) {
  out[0] = rsqrtf(4.0f) + __fdividef(1.0f, 4.0f) + __expf(0.0f) + exp2f(3.0f) + log2f(8.0f);
  out[1] = fmaxf(1.0f, NAN) + fminf(2.0f, INFINITY) + max(1, 2u) + min(1.5, 2.0f);
  out[2] = __popc(0xF0u) + __clz(1) * 100 + __ffs(8) * 10000;
  out[3] = __uint_as_float(__float_as_uint(1.5f)) + __int_as_float(__float_as_int(0.25f));
  out[4] = static_cast<double>(clock64() <= clock64());
  out[5] = warpSize + fabsf(-1.0f) + sqrtf(9.0f);
}

TEST_CASE("simt: math words", "[simt]") {
  const auto device = make_emulated();
  Buffer<double> out(*device, 6);
  launch(*device, {.name = "compute_words"}, compute_words, global(out.span(), "out"));
  CHECK(out.download() == std::vector<double>{0.5 + 0.25 + 1 + 8 + 3, 1 + 2 + 2 + 1.5,
                                              4 + 3100 + 40000, 1.75, 1, 36});
}

template <class In, class Out>
__global__ void gather(In in, Out out, int stride) {
  const int t = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.x * blockDim.x) + t;
  out[i] = in[t * stride];
  if (t == 0) out[i] += 1;
}

constexpr std::uint32_t kIn = 1;
constexpr std::uint32_t kOut = 2;

Trace::Log trace_gather(Device& device, std::size_t capacity, std::vector<float>& result) {
  Buffer<float> in(device, counting<float>(64));
  Buffer<float> out(device, 16);
  Trace trace(device, capacity);
  const Span<const float> in_span = in.span();
  launch(device, {.name = "gather", .grid = {2}, .block = {8}},
         gather<Traced<const float>, Traced<float>>, traced(in_span, "in", trace.tape(), kIn),
         traced(out.span(), "out", trace.tape(), kOut), 3);
  result = out.download();
  return trace.download();
}

TEST_CASE("simt: a traced kernel records each access, and computes the same", "[simt]") {
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    std::vector<float> result;
    const Trace::Log log = trace_gather(*device, 1000, result);
    REQUIRE(log.records.size() == 2 * (8 * 2 + 2));
    std::size_t next = 0;
    const auto expect = [&](unsigned block, unsigned thread, std::uint32_t site,
                            std::uint64_t offset, AccessKind kind) {
      const TraceRecord& record = log.records[next++];
      CHECK(record.block == block);
      CHECK(record.thread == thread);
      CHECK(record.site == site);
      CHECK(record.byte_offset == offset);
      CHECK(record.bytes == sizeof(float));
      CHECK(record.kind == kind);
    };
    for (unsigned block = 0; block < 2; ++block) {
      for (unsigned thread = 0; thread < 8; ++thread) {
        const std::uint64_t to = (block * 8 + thread) * sizeof(float);
        expect(block, thread, kIn, thread * 3 * sizeof(float), AccessKind::load);
        expect(block, thread, kOut, to, AccessKind::store);
        if (thread == 0) expect(block, thread, kOut, to, AccessKind::load);
        if (thread == 0) expect(block, thread, kOut, to, AccessKind::store);
        CHECK(result[block * 8 + thread] == static_cast<float>(thread * 3 + (thread == 0)));
      }
    }
  }
}

struct Pair {
  float product;
  int block, thread;  // 12 bytes: two entries
};

template <class Tape>
__global__ void note_products(Global<float> out, Tape tape) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const float product = static_cast<float>(i) * 0.5f;
  if (i % 3 != 1) {
    tape.note(kOut, i, Pair{product, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x)});
  }
  if (tape.chosen(i)) tape.note(kIn, 2, product);
  const auto traced = tape.traced(out, 7);
  traced[i] = product;
}

TEST_CASE("simt: notes come back by their number, whatever the order of threads", "[simt]") {
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    Buffer<float> out(*device, 24);
    Trace trace(*device, 24 * 2 + 24 + 1);
    launch(*device, {.name = "note_products", .grid = {3}, .block = {8}}, note_products<Tape>,
           global(out.span(), "out"), trace.tape(5));
    const Trace::Log log = trace.download();
    CHECK(log.records.size() == 24);
    const std::vector<Pair> pairs = log.notes<Pair>(kOut, 24, {-1, -1, -1});
    for (int i = 0; i < 24; ++i) {
      const Pair& pair = pairs[static_cast<std::size_t>(i)];
      const bool written = i % 3 != 1;
      CHECK(pair.product == (written ? static_cast<float>(i) * 0.5f : -1));
      CHECK(pair.block == (written ? i / 8 : -1));
      CHECK(pair.thread == (written ? i % 8 : -1));
    }
    CHECK(log.notes<float>(kIn, 4, -1) == std::vector<float>{-1, -1, 2.5f, -1});
    const std::vector<float> recorded = out.download();
    out.fill(0);
    launch(*device, {.name = "note_products", .grid = {3}, .block = {8}}, note_products<NoTape>,
           global(out.span(), "out"), NoTape{});
    CHECK(out.download() == recorded);
  }
}

enum class Slip { none, twice };

/// Keeps a pair of each thread, a count of them, a clock of each block's first thread.
template <class Tape>
__global__ void keep_products(Global<float> out, Tape tape) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const float product = static_cast<float>(tape.does(Slip::twice) ? 2 * i : i);
  tape.put(0, i, Pair{product, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x)});
  tape.put(0, i + 1000, Pair{});  // outside: dropped
  tape.put(1, i, Pair{});         // not what is kept there: dropped
  tape.add(1, i % 2, 3ULL);
  if (tape.in_its_block()) tape.tick(1, static_cast<int>(threadIdx.x), 100 + i);
  out[i] = product;
}

TEST_CASE("simt: a tape puts and adds where the host keeps it, ticks in rows, and breaks a kernel",
          "[simt]") {
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    Buffer<float> out(*device, 24);
    Buffer<Pair> pairs(*device, 24);
    Buffer<unsigned long long> counts(*device, 2);
    Buffer<long long> clocks(*device, 2 * 6);
    counts.fill(0);
    clocks.fill(0);
    Tape tape;
    CHECK(!tape);
    tape.keep(0, pairs.span()).keep(1, counts.span());
    tape.clocks = clocks.span();
    tape.numbers = 6;
    tape.chosen_block = 2;
    tape.fault = static_cast<int>(Slip::twice);
    CHECK(tape);
    launch(*device, {.name = "keep_products", .grid = {3}, .block = {8}}, keep_products<Tape>,
           global(out.span(), "out"), tape);
    const std::vector<Pair> kept = pairs.download();
    for (int i = 0; i < 24; ++i) {
      const Pair& pair = kept[static_cast<std::size_t>(i)];
      CHECK(pair.product == static_cast<float>(2 * i));
      CHECK(pair.block == i / 8);
      CHECK(pair.thread == i % 8);
    }
    CHECK(counts.download() == std::vector<unsigned long long>{36, 36});
    // Site 1's row, as far as there is room: threads 6 and 7 are beyond it.
    CHECK(clocks.download() ==
          std::vector<long long>{0, 0, 0, 0, 0, 0, 116, 117, 118, 119, 120, 121});
    launch(*device, {.name = "keep_products", .grid = {3}, .block = {8}}, keep_products<NoTape>,
           global(out.span(), "out"), NoTape{});
    CHECK(out.download() == counting<float>(24));
  }
}

TEST_CASE("simt: a trace with no room for what is recorded says so, and the kernel is right",
          "[simt]") {
  const auto device = make_emulated();
  for (const std::size_t room : {std::size_t{10}, std::size_t{0}}) {
    std::vector<float> result;
    CHECK(tests::contains(tests::error_of([&] { trace_gather(*device, room, result); }),
                          "recorded 36 entries where " + std::to_string(room) + " were expected"));
    CHECK(result[1] == 3);
  }
}

TEST_CASE("simt: a traced view checks bounds and keeps its origin", "[simt]") {
  const auto device = make_emulated();
  Buffer<float> data(*device, counting<float>(8));
  Trace trace(*device, 4);
  const auto view = traced(data.span(), "data", trace.tape(), 7) + 5;
  CHECK(missing_in(outcome_of([&] { (void)view[3]; }), {"accesses data[8]"}) == "");
}

}  // namespace
}  // namespace tilestep::simt

// Warp collectives against obvious references.

#include <bit>
#include <functional>

#include "kernels/base/simt/simt.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

constexpr int kLanes = 32;

enum Shuffle { kIndexed, kUp, kDown, kXor };

template <class T>
__global__ void shuffle(Global<const T> in, Global<T> out, int kind, int argument, int width) {
  const int t = static_cast<int>(threadIdx.x);
  const T value = in[t];
  const unsigned all = 0xFFFFFFFFu;
  T result = value;
  if (kind == kIndexed) result = __shfl_sync(all, value, argument, width);
  if (kind == kUp) result = __shfl_up_sync(all, value, static_cast<unsigned>(argument), width);
  if (kind == kDown) result = __shfl_down_sync(all, value, static_cast<unsigned>(argument), width);
  if (kind == kXor) result = __shfl_xor_sync(all, value, argument, width);
  out[t] = result;
}

// The lane that `lane` reads from, as the guide's prose says.
int source_lane(int lane, int kind, int argument, int width) {
  const int segment = lane / width;
  const int place = lane % width;
  switch (kind) {
    case kIndexed:
      return segment * width + argument % width;
    case kUp:
      return place < argument ? lane : lane - argument;
    case kDown:
      return place + argument >= width ? lane : lane + argument;
    default:
      return (lane ^ argument) / width > segment ? lane : lane ^ argument;
  }
}

template <class T>
void check_shuffles(Device& device, T scale) {
  std::vector<T> values = counting<T>(2 * kLanes);
  for (T& value : values) value = value * scale;
  Buffer<T> in(device, values);
  Buffer<T> out(device, values.size());
  const Span<const T> in_span = in.span();
  for (const int kind : {kIndexed, kUp, kDown, kXor}) {
    for (const int width : {1, 2, 4, 8, 16, 32}) {
      for (const int argument : {0, 1, 2, 5, 16, 31}) {
        launch(device, {.name = "shuffle", .block = {2 * kLanes}}, shuffle<T>,
               global(in_span, "in"), global(out.span(), "out"), kind, argument, width);
        std::vector<T> expected(values.size());
        for (int t = 0; t < 2 * kLanes; ++t) {
          const int warp = t / kLanes * kLanes;
          expected[t] = values[warp + source_lane(t % kLanes, kind, argument, width)];
        }
        CAPTURE(kind, width, argument);
        CHECK(out.download() == expected);
      }
    }
  }
}

TEST_CASE("simt: shuffles", "[simt]") {
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    check_shuffles<int>(*device, -3);
    check_shuffles<unsigned long long>(*device, 1ULL << 40);
    check_shuffles<float>(*device, 0.5f);
    check_shuffles<double>(*device, -1e100);
  }
}

__global__ void shuffle_outside_mask(Global<int> out) {
  if (threadIdx.x >= 8) return;
  out[threadIdx.x] = __shfl_down_sync(0xFFu, static_cast<int>(threadIdx.x), 4);
}

TEST_CASE("simt: a shuffle from a lane outside the mask gives all bits set", "[simt]") {
  const auto device = make_emulated();
  Buffer<int> out(*device, 8);
  launch(*device, {.name = "shuffle_outside_mask", .block = {32}}, shuffle_outside_mask,
         global(out.span(), "out"));
  CHECK(out.download() == std::vector<int>{4, 5, 6, 7, -1, -1, -1, -1});
}

constexpr int kResults = 11;

// Lanes with even and odd numbers form groups that vote for themselves.
__global__ void vote(Global<const int> in, Global<int> out) {
  const int t = static_cast<int>(threadIdx.x);
  const int value = in[t];
  const unsigned bits = static_cast<unsigned>(value);
  const unsigned mask = t % 2 == 0 ? 0x55555555u : 0xAAAAAAAAu;
  const Global<int> row = out + t * kResults;
  row[0] = static_cast<int>(__ballot_sync(mask, value > 0));
  row[1] = __any_sync(mask, value > 100);
  row[2] = __all_sync(mask, value > -100);
  row[3] = __reduce_add_sync(mask, value);
  row[4] = __reduce_min_sync(mask, value);
  row[5] = __reduce_max_sync(mask, value);
  row[6] = static_cast<int>(__reduce_min_sync(mask, bits));
  row[7] = static_cast<int>(__reduce_max_sync(mask, bits));
  row[8] = static_cast<int>(__reduce_and_sync(mask, bits));
  row[9] = static_cast<int>(__reduce_or_sync(mask, bits));
  row[10] = static_cast<int>(__reduce_xor_sync(mask, bits));
  __syncwarp(mask);
}

std::vector<int> expected_votes(const std::vector<int>& values, int t) {
  unsigned ballot = 0, sum = 0, conjunction = ~0u, disjunction = 0, difference = 0;
  std::vector<int> group;
  for (int lane = t % 2; lane < kLanes; lane += 2) {
    const int value = values[t / kLanes * kLanes + lane];
    const unsigned bits = static_cast<unsigned>(value);
    group.push_back(value);
    ballot |= static_cast<unsigned>(value > 0) << lane;
    sum += bits;
    conjunction &= bits;
    disjunction |= bits;
    difference ^= bits;
  }
  const auto by_bits = [](int a, int b) {
    return static_cast<unsigned>(a) < static_cast<unsigned>(b);
  };
  const auto [low, high] = std::minmax_element(group.begin(), group.end());
  const auto [low_bits, high_bits] = std::minmax_element(group.begin(), group.end(), by_bits);
  return {static_cast<int>(ballot),
          *high > 100,
          *low > -100,
          static_cast<int>(sum),
          *low,
          *high,
          *low_bits,
          *high_bits,
          static_cast<int>(conjunction),
          static_cast<int>(disjunction),
          static_cast<int>(difference)};
}

TEST_CASE("simt: votes and reductions of diverged halves of a warp", "[simt]") {
  std::vector<int> values(3 * kLanes);
  for (int i = 0; i < 3 * kLanes; ++i) values[i] = (i * 7919) % 211 - 105;
  std::vector<int> expected;
  for (int t = 0; t < 3 * kLanes; ++t) {
    const std::vector<int> row = expected_votes(values, t);
    expected.insert(expected.end(), row.begin(), row.end());
  }
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    Buffer<int> in(*device, values);
    Buffer<int> out(*device, values.size() * kResults);
    const Span<const int> in_span = in.span();
    launch(*device, {.name = "vote", .block = {3 * kLanes}}, vote, global(in_span, "in"),
           global(out.span(), "out"));
    CHECK(out.download() == expected);
  }
}

// A tree sum by shuffles in each warp, then over the warps through shared memory.
__global__ void warp_sum(Global<const float> in, Global<float> out) {
  __shared__ float part[kLanes];
  const int t = static_cast<int>(threadIdx.x);
  float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int delta = kLanes / 2; delta > 0; delta /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFu, sum, static_cast<unsigned>(delta));
  }
  if (t % kLanes == 0) part[t / kLanes] = sum;
  __syncthreads();  // all parts are there before the first warp reads them
  if (t < kLanes) {
    const unsigned warps = blockDim.x / kLanes;
    float total = threadIdx.x < warps ? part[t] : 0;
    for (int delta = kLanes / 2; delta > 0; delta /= 2) {
      total += __shfl_xor_sync(0xFFFFFFFFu, total, delta);
    }
    if (t == 0) out[blockIdx.x] = total;
  }
}

TEST_CASE("simt: a sum by shuffles over many blocks", "[simt]") {
  constexpr int kBlocks = 40;
  constexpr int kThreads = 256;
  const std::vector<float> values(kBlocks * kThreads, 0.25f);
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    Buffer<float> in(*device, values);
    Buffer<float> out(*device, kBlocks);
    const Span<const float> in_span = in.span();
    launch(*device, {.name = "warp_sum", .grid = {kBlocks}, .block = {kThreads}}, warp_sum,
           global(in_span, "in"), global(out.span(), "out"));
    CHECK(out.download() == std::vector<float>(kBlocks, kThreads * 0.25f));
  }
}

__global__ void lonely_mask(Global<unsigned> out) {
  out[threadIdx.x] = __reduce_add_sync(__activemask(), threadIdx.x);
}

TEST_CASE("simt: __activemask promises the calling lane alone", "[simt]") {
  const auto device = make_emulated();
  Buffer<unsigned> out(*device, 40);
  launch(*device, {.name = "lonely_mask", .block = {40}}, lonely_mask, global(out.span(), "out"));
  CHECK(out.download() == counting<unsigned>(40));
}

}  // namespace
}  // namespace tilestep::simt

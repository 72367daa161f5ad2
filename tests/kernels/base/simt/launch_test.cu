// Launch shapes, block barriers, thread orders, cancelling, several devices at once.

#include <atomic>
#include <chrono>
#include <thread>

#include "kernels/base/simt/simt.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

__global__ void mark(Global<unsigned> out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] += block * 10000 + thread;
}

TEST_CASE("simt: every thread of a launch runs once, with its own indices", "[simt]") {
  const dim3 grids[] = {{1}, {2}, {7, 3}, {2, 3, 5}, {101}};
  const dim3 blocks[] = {{1}, {31}, {32}, {33}, {7, 5, 3}, {97}, {1024}, {16, 64}, {4, 4, 64}};
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    for (const dim3 grid : grids) {
      for (const dim3 block : blocks) {
        const unsigned threads = block.x * block.y * block.z;
        const unsigned block_count = grid.x * grid.y * grid.z;
        Buffer<unsigned> out(*device, std::size_t{block_count} * threads);
        out.fill(0);
        launch(*device, {.name = "mark", .grid = grid, .block = block}, mark,
               global(out.span(), "out"));
        std::vector<unsigned> expected(out.count());
        for (unsigned i = 0; i < expected.size(); ++i) {
          expected[i] = i / threads * 10000 + i % threads;
        }
        CHECK(out.download() == expected);
      }
    }
  }
}

TEST_CASE("simt: a launch beyond the limits is refused by name", "[simt]") {
  const auto device = make_emulated();
  Buffer<unsigned> out(*device, 1);
  const auto refused = [&](dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
    return outcome_of([&] {
      launch(*device, {.name = "mark", .grid = grid, .block = block, .shared_bytes = shared_bytes},
             mark, global(out.span(), "out"));
    });
  };
  CHECK(refused({0}, {1}) == "mark: grid.x is 0 (allowed: 1–2147483647)");
  CHECK(refused({1, 65536}, {1}) == "mark: grid.y is 65536 (allowed: 1–65535)");
  CHECK(refused({1, 1, 0}, {1}) == "mark: grid.z is 0 (allowed: 1–65535)");
  CHECK(refused({1}, {0}) == "mark: block.x is 0 (allowed: 1–1024)");
  CHECK(refused({1}, {1025}) == "mark: block.x is 1025 (allowed: 1–1024)");
  CHECK(refused({1}, {1, 1, 65}) == "mark: block.z is 65 (allowed: 1–64)");
  CHECK(refused({1}, {32, 33}) ==
        "mark: the number of threads of a block is 1056 (allowed: 1–1024)");
  CHECK(missing_in(refused({1}, {1}, 1 << 20), {"mark: the dynamic shared memory of a block",
                                                "1048576 (allowed: 0–232448"}) == "");
}

TEST_CASE("simt: sizes that a kernel does not take are refused by name", "[simt]") {
  const auto within = [](int value) {
    return outcome_of([&] { require_within("sample: keys", value, 1, 9); });
  };
  CHECK(within(0) == "sample: keys is 0; allowed: 1–9");
  CHECK(within(10) == "sample: keys is 10; allowed: 1–9");
  CHECK(within(1) == within(9));
  const auto multiple = [](int value) {
    return outcome_of([&] { require_multiple("sample: m", value, 16); });
  };
  CHECK(multiple(24) == "sample: m is 24; allowed: multiples of 16");
  CHECK(multiple(0) == "sample: m is 0; allowed: multiples of 16");
  CHECK(multiple(32) == within(1));
  CHECK(blocks_for(257, 256) == 2);
  const Launch row = row_of_blocks("mark", 2147483647, 256, 12);
  CHECK(row.grid.x == 2147483647);
  CHECK(row.block.x == 256);
  CHECK(row.shared_bytes == 12);
  CHECK(missing_in(outcome_of([] { row_of_blocks("mark", 2147483648, 256); }),
                   {"mark: a launch of more than 2147483647 blocks"}) == "");
}

// Sums the block's part of `in`. Without `kSafe` the barrier between the steps is missing.
template <bool kSafe>
__global__ void block_sum(Global<const int> in, Global<int> out, int threads) {
  __shared__ int part[1024];
  const int t = static_cast<int>(threadIdx.x);
  part[t] = in[static_cast<int>(blockIdx.x) * threads + t];
  __syncthreads();  // all parts are there before the first step reads them
  for (int step = 1; step < threads; step *= 2) {
    const int value = t + step < threads ? part[t + step] : 0;
    if constexpr (kSafe) __syncthreads();  // all have read before anyone overwrites
    part[t] += value;
    __syncthreads();  // all have added before the next step reads
  }
  if (t == 0) out[static_cast<int>(blockIdx.x)] = part[0];
}

template <bool kSafe>
bool sums_are_right(Device& device, int blocks, int threads) {
  const std::vector<int> values = counting<int>(static_cast<std::size_t>(blocks * threads));
  Buffer<int> in(device, values);
  Buffer<int> out(device, static_cast<std::size_t>(blocks));
  const Span<const int> in_span = in.span();
  launch(device,
         {.name = "block_sum",
          .grid = {static_cast<unsigned>(blocks)},
          .block = {static_cast<unsigned>(threads)}},
         block_sum<kSafe>, global(in_span, "in"), global(out.span(), "out"), threads);
  const std::vector<int> sums = out.download();
  for (int block = 0; block < blocks; ++block) {
    const auto begin = values.begin() + block * threads;
    if (sums[block] != std::accumulate(begin, begin + threads, 0)) return false;
  }
  return true;
}

TEST_CASE("simt: a shared-memory sum is right in every thread order", "[simt]") {
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    for (const int threads : {1, 2, 31, 61, 128, 1024}) {
      CHECK(sums_are_right<true>(*device, 5, threads));
    }
  }
}

TEST_CASE("simt: a missing barrier shows when the thread order is shuffled", "[simt]") {
  CHECK(sums_are_right<false>(*make_emulated(ThreadOrder::ascending), 3, 128));  // luck, not merit
  CHECK_FALSE(sums_are_right<false>(*make_emulated(ThreadOrder::descending), 3, 128));
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    CHECK_FALSE(sums_are_right<false>(*make_emulated(ThreadOrder::shuffled, seed), 3, 128));
  }
}

__global__ void note_order(Global<int> order, Global<int> next) {
  for (int phase = 0; phase < 2; ++phase) {
    order[atomicAdd(&next[0], 1)] = static_cast<int>(threadIdx.x);
    __syncthreads();  // the phases are told apart by their place in `order`
  }
}

std::vector<int> order_of(const EmulationOptions& options) {
  const auto device = make_emulated_device({}, options);
  Buffer<int> order(*device, 128);
  Buffer<int> next(*device, 1);
  next.fill(0);
  launch(*device, {.name = "note_order", .block = {64}}, note_order, global(order.span(), "order"),
         global(next.span(), "next"));
  return order.download();
}

TEST_CASE("simt: threads run in the order that was asked for", "[simt]") {
  std::vector<int> up = counting<int>(64);
  const std::vector<int> down(up.rbegin(), up.rend());
  const auto doubled = [](std::vector<int> phase) {
    phase.insert(phase.end(), phase.begin(), phase.begin() + 64);
    return phase;
  };
  CHECK(order_of({.order = ThreadOrder::ascending}) == doubled(up));
  CHECK(order_of({.order = ThreadOrder::descending}) == doubled(down));
  const std::vector<int> shuffled = order_of({.order = ThreadOrder::shuffled, .seed = 5});
  CHECK(shuffled == order_of({.order = ThreadOrder::shuffled, .seed = 5}));
  CHECK(shuffled != order_of({.order = ThreadOrder::shuffled, .seed = 6}));
  const std::vector<int> first(shuffled.begin(), shuffled.begin() + 64);
  const std::vector<int> second(shuffled.begin() + 64, shuffled.end());
  CHECK(first != second);
  CHECK(std::is_permutation(first.begin(), first.end(), up.begin()));
  CHECK(std::is_permutation(second.begin(), second.end(), up.begin()));
}

__global__ void count_votes(Global<int> out) {
  const int t = static_cast<int>(threadIdx.x);
  const int multiples_of_3 = __syncthreads_count(t % 3 == 0);
  const int any_is_7 = __syncthreads_or(t == 7);
  const int any_is_700 = __syncthreads_or(t == 700);
  const int all_small = __syncthreads_and(t < 700);
  const int all_tiny = __syncthreads_and(t < 7);
  out[t] = multiples_of_3 * 10000 + any_is_7 * 1000 + any_is_700 * 100 + all_small * 10 + all_tiny;
}

TEST_CASE("simt: barriers with votes", "[simt]") {
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    Buffer<int> out(*device, 100);
    launch(*device, {.name = "count_votes", .block = {100}}, count_votes,
           global(out.span(), "out"));
    CHECK(out.download() == std::vector<int>(100, 34 * 10000 + 1000 + 10));
  }
}

__global__ void spin(Global<int> out, int rounds) {
  for (int round = 0; round < rounds; ++round) __syncthreads();
  if (blockIdx.x == 0) out[0] = 1;
}

TEST_CASE("simt: a launch that is given up ends with Cancelled", "[simt]") {
  const auto device = make_emulated();
  Buffer<int> out(*device, 1);
  const auto endless = [&](unsigned blocks, int rounds) {
    launch(*device, {.name = "spin", .grid = {blocks}, .block = {64}}, spin,
           global(out.span(), "out"), rounds);
  };
  device->stop_when([] { return true; });
  CHECK_THROWS_AS(endless(1, 1), Cancelled);
  for (const bool many_blocks : {true, false}) {
    std::atomic<bool> stop{false};
    device->stop_when([&] { return stop.load(); });
    std::thread user([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      stop = true;
    });
    CHECK_THROWS_AS(many_blocks ? endless(1u << 30, 0) : endless(1, 1 << 30), Cancelled);
    user.join();
  }
  device->stop_when({});
  CHECK_NOTHROW(endless(3, 5));
  CHECK(out.download().front() == 1);
}

TEST_CASE("simt: two devices work in two threads at once", "[simt]") {
  std::atomic<int> right{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 2; ++user) {
    users.emplace_back([&right, user] {
      const auto device = make_emulated(ThreadOrder::shuffled, static_cast<std::uint64_t>(user));
      for (int round = 0; round < 5; ++round) {
        right += sums_are_right<true>(*device, 7 + user, 96 + user) ? 1 : 0;
      }
    });
  }
  for (std::thread& user : users) user.join();
  CHECK(right == 10);
}

TEST_CASE("simt: a device may move from one thread to another", "[simt]") {
  const auto device = make_emulated();
  CHECK(sums_are_right<true>(*device, 3, 64));
  bool right = false;
  std::thread([&] { right = sums_are_right<true>(*device, 3, 64); }).join();
  CHECK(right);
}

class SomeKernels final : public KernelSet {};
const KernelSet& some_kernels() {
  static const SomeKernels kernels;
  return kernels;
}

TEST_CASE("simt: the emulated device", "[simt]") {
  const KernelEntry table[] = {{"some-lesson", some_kernels}};
  const auto device = make_emulated_device(table, {.os_threads = 3});
  CHECK(device->info().backend == "emulated");
  CHECK_FALSE(device->info().name.empty());
  CHECK(device->info().multiprocessors == 3);
  CHECK(device->info().memory_bytes > 0);
  CHECK(&device->kernels("some-lesson") == &some_kernels());
  CHECK(outcome_of([&] { device->kernels("other"); }) ==
        "the lesson other has no kernels for the CPU emulation");
  CHECK_FALSE(device->can_time());
  CHECK_THROWS_AS(device->time_ms([] {}, {}), Error);

  Buffer<int> buffer(*device, counting<int>(10));
  Buffer<int> copy(*device, 10);
  CHECK(copy.download() == std::vector<int>(10, -1));  // fresh memory: all bits set
  device->copy_on_device(copy.span().data, buffer.span().data, buffer.bytes());
  device->synchronize();
  CHECK(copy.download() == counting<int>(10));
  CHECK_THROWS_AS(copy.upload(std::vector<int>(9)), Error);
  Buffer<int> empty(*device, 0);
  CHECK(empty.download().empty());
}

}  // namespace
}  // namespace tilestep::simt

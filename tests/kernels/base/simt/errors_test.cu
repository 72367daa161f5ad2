// What goes wrong in a kernel is reported with kernel, block, thread and line.

#include <atomic>
#include <stdexcept>

#include "kernels/base/simt/simt.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

// The error of a kernel launched with `block` threads in two blocks; the same in every order.
template <class... Params, class... Args>
std::string error_in(dim3 block, std::size_t shared_bytes, void (*kernel)(Params...),
                     const Args&... args) {
  std::string first;
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    for (int repeat = 0; repeat < 2; ++repeat) {  // the device is as good as new afterwards
      const std::string text = outcome_of([&] {
        launch(*device,
               {.name = "wrong", .grid = {2}, .block = block, .shared_bytes = shared_bytes}, kernel,
               args...);
      });
      if (first.empty()) first = text;
      CHECK(text == first);
    }
  }
  return first;
}

std::string in_line(int line) {
  return "line " + std::to_string(line) + " of errors_test.cu";
}

constexpr int kDivergentLine = __LINE__ + 4;
constexpr int kOtherLine = __LINE__ + 5;
__global__ void divergent() {
  if (threadIdx.x < 5) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_CASE("simt: a barrier in two branches is reported", "[simt]") {
  CHECK(error_in({64}, 0, divergent) ==
        "wrong: thread (0,0,0) of block (0,0,0) waits at __syncthreads() in " +
            in_line(kDivergentLine) + ", but thread (5,0,0) waits at another one, in " +
            in_line(kOtherLine) + "; all threads of a block must reach the same one");
}

constexpr int kEarlyLine = __LINE__ + 3;
__global__ void early_exit(int last) {
  if (static_cast<int>(threadIdx.y) == last) return;
  __syncthreads();
}

TEST_CASE("simt: a barrier that some threads never reach is reported", "[simt]") {
  CHECK(error_in({8, 4}, 0, early_exit, 3) ==
        "wrong: thread (0,0,0) of block (0,0,0) waits at __syncthreads() in " +
            in_line(kEarlyLine) +
            ", but thread (0,3,0) has ended without reaching it; all threads of a block must "
            "reach the same one");
  CHECK(missing_in(error_in({8, 4}, 0, early_exit, 0), {"thread (0,1,0) of block (0,0,0) waits",
                                                        "but thread (0,0,0) has ended"}) == "");
}

__global__ void lane_left() {
  if (threadIdx.x == 3) return;
  __syncwarp();
}
__global__ void wrong_mask() {
  __ballot_sync(0x0000FFFEu, 1);
}
__global__ void masks_differ() {
  __any_sync(threadIdx.x % 2 == 0 ? 0xFFFFFFFFu : 0xAAAAAAAAu, 1);
}
__global__ void barrier_or_warp() {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __shfl_sync(0xFFFFFFFFu, 1, 0);
  }
}
__global__ void bad_width() {
  __shfl_xor_sync(0xFFFFFFFFu, 1, 1, 12);
}

TEST_CASE("simt: warp collectives that cannot complete are reported", "[simt]") {
  CHECK(missing_in(error_in({32}, 0, lane_left),
                   {"thread (0,0,0) of block (0,0,0) waits at __syncwarp() in line ",
                    "with mask 0xffffffff, but lane 3, which the mask names, has ended"}) == "");
  CHECK(missing_in(error_in({20}, 0, lane_left), {"lane 3, which the mask names, has ended"}) ==
        "");
  CHECK(missing_in(error_in({1}, 0, wrong_mask),
                   {"thread (0,0,0) of block (0,0,0) calls a vote in line ",
                    "with mask 0x0000fffe, which does not name its own lane 0"}) == "");
  CHECK(missing_in(error_in({32}, 0, masks_differ),
                   {"with mask 0xffffffff, but lane 1, which the mask names, has ended"}) == "");
  CHECK(missing_in(error_in({32}, 0, barrier_or_warp),
                   {"thread (16,0,0) of block (0,0,0) waits at a shuffle",
                    "lane 0, which the mask names, waits at __syncthreads() in line "}) == "");
  CHECK(missing_in(error_in({1}, 0, bad_width),
                   {"shuffles with width 12 (allowed: 1, 2, 4, 8, 16, 32)"}) == "");
}

__global__ void full_mask() {
  __syncwarp();
}

TEST_CASE("simt: a mask that names lanes beyond the block is reported", "[simt]") {
  CHECK(missing_in(error_in({48}, 0, full_mask),
                   {"thread (32,0,0) of block (0,0,0)",
                    "lane 16, which the mask names, does not exist: the block has 48 threads"}) ==
        "");
}

__global__ void read_at(Global<const float> scores, Global<float> out, int offset) {
  if (blockIdx.x == 1 && threadIdx.x == 3) out[0] = scores[offset];
}

TEST_CASE("simt: an access out of bounds is reported", "[simt]") {
  const auto device = make_emulated();
  Buffer<float> scores(*device, 4096);
  Buffer<float> out(*device, 1);
  const auto text = [&](int offset) {
    return error_in({32}, 0, read_at, global(scores.span(), "scores"), global(out.span(), "out"),
                    offset);
  };
  CHECK(text(0) == "no error");
  CHECK(text(4095) == "no error");
  CHECK(text(4096) ==
        "wrong: thread (3,0,0) of block (1,0,0) accesses scores[4096], but scores has 4096 "
        "elements (allowed: 0–4095)");
  CHECK(missing_in(text(-1), {"accesses scores[-1], but"}) == "");
}

__global__ void read_vector(Global<const float> in, Global<float4> out, int offset) {
  out[blockIdx.x] = as<float4>(in + offset)[0];
}

TEST_CASE("simt: a misaligned or overlong vector access is reported", "[simt]") {
  const auto device = make_emulated();
  Buffer<float> in(*device, counting<float>(10));
  Buffer<float4> out(*device, 2);  // one for each block
  const auto text = [&](int offset) {
    return error_in({1}, 0, read_vector, global(in.span(), "in"), global(out.span(), "out"),
                    offset);
  };
  CHECK(text(4) == "no error");
  CHECK(text(3) ==
        "wrong: thread (0,0,0) of block (0,0,0) takes in from element 3 on as vectors of 16 bytes, "
        "but that address is not a multiple of 16 bytes");
  CHECK(missing_in(text(8), {"accesses in[0], but in has 0 elements (allowed: none)"}) == "");
}

__global__ void use_shared(int count, int offset, int index) {
  dynamic_shared<float>(static_cast<std::size_t>(count), static_cast<std::size_t>(offset),
                        "tile")[index] = 1;
}

TEST_CASE("simt: dynamic shared memory is checked", "[simt]") {
  CHECK(error_in({1}, 64, use_shared, 16, 0, 15) == "no error");
  CHECK(error_in({1}, 64, use_shared, 8, 32, 7) == "no error");
  CHECK(missing_in(error_in({1}, 64, use_shared, 16, 0, 16),
                   {"accesses tile[16], but tile has 16 elements (allowed: 0–15)"}) == "");
  CHECK(missing_in(error_in({1}, 64, use_shared, 17, 0, 0),
                   {"takes 68 bytes of dynamic shared memory from byte 0 on, but the launch gave "
                    "the block 64 bytes"}) == "");
  CHECK(missing_in(error_in({1}, 64, use_shared, 1, 2, 0), {"multiple of 4 bytes"}) == "");
  CHECK(missing_in(error_in({1}, 0, use_shared, 1, 0, 0), {"gave the block 0 bytes"}) == "");
}

__global__ void throws(int thread) {
  __syncthreads();
  if (static_cast<int>(threadIdx.x) == thread) throw std::runtime_error("the reason");
  __syncthreads();
}

TEST_CASE("simt: an exception in a kernel is reported", "[simt]") {
  CHECK(error_in({64}, 0, throws, 9) ==
        "wrong: thread (9,0,0) of block (0,0,0) threw an exception: the reason");
}

struct Counted {
  static inline std::atomic<int> alive{0};
  Counted() { ++alive; }
  ~Counted() { --alive; }
};
__global__ void holds_objects(int thread) {
  const Counted object;
  __syncwarp();
  __syncthreads();
  if (static_cast<int>(threadIdx.x) == thread) throw std::runtime_error("the reason");
  __syncthreads();
}

TEST_CASE("simt: after an error every thread is unwound", "[simt]") {
  CHECK(missing_in(error_in({96}, 0, holds_objects, 40), {"thread (40,0,0)"}) == "");
  CHECK(Counted::alive == 0);
}

__global__ void fails_from(unsigned first) {
  if (blockIdx.x >= first) throw std::runtime_error("the reason");
}

TEST_CASE("simt: the first failing block is the one reported", "[simt]") {
  const auto device = make_emulated(ThreadOrder::ascending, 1, 4);
  for (int repeat = 0; repeat < 20; ++repeat) {
    CHECK(missing_in(outcome_of([&] {
                       launch(*device, {.name = "late", .grid = {500}, .block = {32}}, fails_from,
                              77u);
                     }),
                     {"of block (77,0,0)"}) == "");
  }
}

__global__ void launches(Device* device) {
  launch(*device, {.name = "inner"}, full_mask);
}

TEST_CASE("simt: a kernel inside a kernel and kernel words outside one are refused", "[simt]") {
  const auto device = make_emulated();
  CHECK(missing_in(outcome_of([&] { launch(*device, {.name = "outer"}, launches, device.get()); }),
                   {"outer: thread (0,0,0) of block (0,0,0) launches inner"}) == "");
  CHECK(missing_in(outcome_of([] { __syncthreads(); }), {"outside a kernel"}) == "");
  const Checked<int> empty(nullptr, 0, "empty");
  CHECK(outcome_of([&] { (void)empty[0]; }) ==
        "the host accesses empty[0], but empty has 0 elements (allowed: none)");
}

}  // namespace
}  // namespace tilestep::simt

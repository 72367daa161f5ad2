// The emulated tensor-core words against the obvious.

#include "kernels/base/simt/mma.hpp"

#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/packed.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using tests::error_of;

namespace {

using Bits = std::uint16_t;

/// An integer as BF16; exact up to 256.
Bits bf16(int value) {
  return static_cast<Bits>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

/// The same as FP16; exact up to 2048.
Bits fp16(int value) {
  return static_cast<Bits>(simt::pack_fp16(static_cast<float>(value), 0) & 0xFFFFu);
}

/// 16 × 16 of A times 16 × 8 of B, through ldmatrix, by every warp of the block for itself.
template <bool kHalf>
void multiply_tile(simt::Global<const Bits> a, simt::Global<const Bits> b, simt::Global<float> d) {
  const auto a_tile = simt::dynamic_shared<Bits>(16 * 16, 0, "A tile");
  const auto b_tile = simt::dynamic_shared<Bits>(16 * 16, 16 * 16 * sizeof(Bits), "B tile");
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  if (thread < 32) {
    simt::cp_async16(a_tile + lane * 8, a + lane * 8);
    simt::cp_async16(b_tile + lane * 8, b + lane * 8);
    simt::cp_async_commit();
    simt::cp_async_wait<0>();
  }
  __syncthreads();  // the tiles must be there before any warp reads them
  unsigned of_a[4];
  unsigned of_b[4];
  simt::ldmatrix_x4(of_a, a_tile + (lane % 16 * 16 + lane / 16 * 8));
  simt::ldmatrix_x4_trans(of_b, b_tile + (lane % 16 * 16 + lane / 16 * 8));
  for (int half = 0; half < 2; ++half) {
    float sums[4] = {1, 1, 1, 1};
    if constexpr (kHalf) {
      simt::mma_m16n8k16_fp16(sums, of_a, of_b[half * 2], of_b[half * 2 + 1]);
    } else {
      simt::mma_m16n8k16_bf16(sums, of_a, of_b[half * 2], of_b[half * 2 + 1]);
    }
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8;
      const int column = half * 8 + lane % 4 * 2 + i % 2;
      d[(warp * 16 + row) * 16 + column] = sums[i];
    }
  }
}

/// 16 × 32 of A times the transpose of 8 × 32 of B, fragments as the PTX ISA's table has them.
void multiply_bytes(simt::Global<const unsigned> a, simt::Global<const unsigned> b,
                    simt::Global<int> d) {
  const int lane = static_cast<int>(threadIdx.x), row = lane / 4, word = lane % 4;
  const unsigned of_a[4] = {a[row * 8 + word], a[(row + 8) * 8 + word], a[row * 8 + word + 4],
                            a[(row + 8) * 8 + word + 4]};
  int sums[4] = {1, 1, 1, 1};
  simt::mma_m16n8k32_s8(sums, of_a, b[row * 8 + word], b[row * 8 + word + 4]);
  for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + word * 2 + i % 2] = sums[i];
}

/// What ldmatrix gives each lane, as the PTX ISA's table has it.
void load_fragments(simt::Global<const Bits> source, simt::Global<unsigned> plain,
                    simt::Global<unsigned> turned) {
  const auto tile = simt::dynamic_shared<Bits>(32 * 8, 0, "tile");
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 8; ++i) tile[lane * 8 + i] = source[lane * 8 + i];
  __syncthreads();  // all rows must be there
  unsigned r[4];
  simt::ldmatrix_x4(r, tile + lane * 8);
  for (int i = 0; i < 4; ++i) plain[lane * 4 + i] = r[i];
  simt::ldmatrix_x4_trans(r, tile + lane * 8);
  for (int i = 0; i < 4; ++i) turned[lane * 4 + i] = r[i];
}

void misaligned_rows(simt::Global<const Bits>) {
  const auto tile = simt::dynamic_shared<Bits>(33 * 8, 0, "tile");
  unsigned r[4];
  simt::ldmatrix_x4(r, tile + (static_cast<int>(threadIdx.x) * 8 + 1));
}

void copy_guarded(simt::Global<const float> from, simt::Global<float> to, int count) {
  const auto tile = simt::dynamic_shared<float>(32, 0, "tile");
  const int lane = static_cast<int>(threadIdx.x);
  simt::cp_async4(tile + lane, from + lane, lane < count);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  to[lane] = tile[lane];
}

std::unique_ptr<simt::Device> device_with(simt::ThreadOrder order, std::uint64_t seed) {
  return simt::make_emulated_device({}, {.order = order, .seed = seed, .os_threads = 1});
}

template <class T>
simt::Buffer<T> uploaded(simt::Device& device, const std::vector<T>& host) {
  return simt::Buffer<T>(device, std::span<const T>(host));
}

/// Integers, exact in the format, in all orders of the lanes.
template <bool kHalf>
void check_products() {
  std::vector<Bits> a(256);
  std::vector<Bits> b(256);
  std::vector<int> a_values(256);
  std::vector<int> b_values(256);
  for (int i = 0; i < 256; ++i) {
    const auto at = static_cast<std::size_t>(i);
    a_values[at] = i * 37 % 101 - 50;
    b_values[at] = i * 53 % 97 - 48;
    a[at] = kHalf ? fp16(a_values[at]) : bf16(a_values[at]);
    b[at] = kHalf ? fp16(b_values[at]) : bf16(b_values[at]);
  }
  for (const auto order :
       {simt::ThreadOrder::ascending, simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    const auto device = device_with(order, 3);
    const auto on_a = uploaded(*device, a);
    const auto on_b = uploaded(*device, b);
    simt::Buffer<float> d(*device, 2 * 256);
    d.fill(0xFF);
    simt::launch(*device, {.name = "multiply_tile", .block = dim3(64), .shared_bytes = 1024},
                 multiply_tile<kHalf>, simt::global(on_a.span(), "a"),
                 simt::global(on_b.span(), "b"), simt::global(d.span(), "d"));
    const std::vector<float> got = d.download();
    for (int i = 0; i < 512; ++i) {
      const int row = i / 16 % 16;
      const int column = i % 16;
      int sum = 1;
      for (int k = 0; k < 16; ++k) {
        sum += a_values[static_cast<std::size_t>(row * 16 + k)] *
               b_values[static_cast<std::size_t>(k * 16 + column)];
      }
      CHECK(got[static_cast<std::size_t>(i)] == static_cast<float>(sum));
    }
  }
}

}  // namespace

TEST_CASE("an emulated mma multiplies, whatever the order of the lanes", "[mma]") {
  check_products<false>();
  check_products<true>();
}

TEST_CASE("an emulated mma multiplies whole numbers of a byte", "[mma]") {
  std::vector<unsigned> a(16 * 8), b(8 * 8);
  const auto byte = [](const std::vector<unsigned>& words, int row, int k) {
    const unsigned word = words[static_cast<std::size_t>(row * 8 + k / 4)];
    return static_cast<int>(static_cast<std::int8_t>(word >> k % 4 * 8));
  };
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<unsigned>(i) * 2654435761u;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<unsigned>(i + 7) * 2246822519u;
  const auto device = device_with(simt::ThreadOrder::shuffled, 3);
  const auto on_a = uploaded(*device, a), on_b = uploaded(*device, b);
  simt::Buffer<int> d(*device, 128);
  simt::launch(*device, {.name = "multiply_bytes", .block = dim3(32)}, multiply_bytes,
               simt::global(on_a.span(), "a"), simt::global(on_b.span(), "b"),
               simt::global(d.span(), "d"));
  const std::vector<int> got = d.download();
  for (int i = 0; i < 128; ++i) {
    int sum = 1;
    for (int k = 0; k < 32; ++k) sum += byte(a, i / 8, k) * byte(b, i % 8, k);
    CHECK(got[static_cast<std::size_t>(i)] == sum);
  }
}

TEST_CASE("pairs of BF16 are compared, and numbers saturate", "[mma]") {
  const unsigned a = simt::pack_bf16(1.5f, -2), b = simt::pack_bf16(1, 4);
  CHECK(simt::max_bf16x2(a, b) == simt::pack_bf16(1.5f, 4));
  CHECK(simt::max_or_nan_bf16x2(a, b) == simt::pack_bf16(1.5f, 4));
  CHECK(simt::max_or_nan_bf16x2(0x7FC0u, b) == (0x7FFFu | (b & 0xFFFF0000u)));
  CHECK(simt::max_or_nan_bf16x2(a, 0xFF810000u) == (0x7FFF0000u | (a & 0xFFFFu)));
  CHECK(simt::min_bf16x2(a, b) == simt::pack_bf16(1, -2));
  CHECK(simt::max_magnitude_bf16x2(a, b) == simt::pack_bf16(1.5f, -4));
  CHECK(simt::greater_bf16x2(a, b) == 0xFFFFu);
  CHECK(simt::greater_bf16x2(b, a) == 0xFFFF0000u);
  CHECK(simt::greater_bf16x2(a, a) == 0);
  // E5M2: 1, the tie of 1 and 1.25, more than the largest, the least subnormal number turned.
  CHECK(simt::pack_e5m2(1, 1.125f, 1e9f, -0x1p-16f) == 0x817B3C3Cu);
  CHECK(simt::near_reciprocal(-4) == -0.25f);
  CHECK(simt::saturated(-1) == 0);
  CHECK(simt::saturated(0.25f) == 0.25f);
  CHECK(simt::saturated(7) == 1);
  CHECK(simt::nearest_int(2.5f) == 2);
  CHECK(simt::nearest_int(-3.5f) == -4);
  CHECK(simt::nearest_int(1e20f) == 2147483647);
  CHECK(simt::nearest_int(-1e20f) == -2147483647 - 1);
}

TEST_CASE("two numbers go into a register and come back", "[mma]") {
  // All FP16, subnormal and infinite ones too; numbers between two go to the even one.
  for (unsigned bits = 0; bits <= 0x7C00u; ++bits) {
    const auto value = static_cast<float>(numeric::decode(numeric::kFp16, bits));
    const unsigned pair = bits | (bits | 0x8000u) << 16;
    REQUIRE(simt::pack_fp16(value, -value) == pair);
    REQUIRE(simt::unpack_fp16(pair, 0) == value);
    REQUIRE(simt::unpack_fp16(pair, 1) == -value);
  }
  CHECK(simt::unpack_fp16(0x7E00u, 0) != simt::unpack_fp16(0x7E00u, 0));
  CHECK(simt::pack_fp16(2049, 2051) == simt::pack_fp16(2048, 2052));
  CHECK(simt::pack_bf16(1, -2) == (0x3F80u | 0xC000u << 16));
  CHECK(simt::unpack_bf16(0x3F80u | 0xC000u << 16, 1) == -2);
}

TEST_CASE("ldmatrix gives the documented fragments", "[mma]") {
  std::vector<Bits> source(256);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<Bits>(i);
  const auto device = device_with(simt::ThreadOrder::shuffled, 11);
  const auto on_source = uploaded(*device, source);
  simt::Buffer<unsigned> plain(*device, 128);
  simt::Buffer<unsigned> turned(*device, 128);
  simt::launch(*device, {.name = "load_fragments", .block = dim3(32), .shared_bytes = 512},
               load_fragments, simt::global(on_source.span(), "source"),
               simt::global(plain.span(), "plain"), simt::global(turned.span(), "turned"));
  const std::vector<unsigned> got = plain.download();
  const std::vector<unsigned> got_turned = turned.download();
  const auto element = [](int matrix, int row, int column) {
    return static_cast<unsigned>(matrix * 64 + row * 8 + column);
  };
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const auto at = static_cast<std::size_t>(lane * 4 + i);
      const int row = lane / 4;
      const int column = lane % 4 * 2;
      CHECK(got[at] == (element(i, row, column) | element(i, row, column + 1) << 16));
      CHECK(got_turned[at] == (element(i, column, row) | element(i, column + 1, row) << 16));
    }
  }
}

TEST_CASE("a row that is not aligned to 16 bytes is refused with its place", "[mma]") {
  const auto device = device_with(simt::ThreadOrder::ascending, 1);
  const std::string error = error_of([&] {
    simt::launch(*device, {.name = "misaligned_rows", .block = dim3(32), .shared_bytes = 528},
                 misaligned_rows, simt::Global<const Bits>{});
  });
  CHECK(error.find("misaligned_rows") != std::string::npos);
  CHECK(error.find("tile") != std::string::npos);
}

TEST_CASE("a guarded asynchronous copy writes zeros for what lies outside", "[mma]") {
  const auto device = device_with(simt::ThreadOrder::ascending, 1);
  const auto from = uploaded(*device, std::vector<float>(20, 2.5f));
  simt::Buffer<float> to(*device, 32);
  simt::launch(*device, {.name = "copy_guarded", .block = dim3(32), .shared_bytes = 128},
               copy_guarded, simt::global(from.span(), "from"), simt::global(to.span(), "to"), 20);
  const std::vector<float> got = to.download();
  for (std::size_t i = 0; i < 32; ++i) CHECK(got[i] == (i < 20 ? 2.5f : 0.0f));
}

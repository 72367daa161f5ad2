// The forms of wgmma under emulation, and sums that TMA adds up, against sums in double.

#include <bit>
#include <string>
#include <vector>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/tensor_map.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/hopper_testing.hpp"
#include "tests/kernels/base/simt/testing.hpp"
#include "tests/kernels/base/simt/wgmma_kernels.cu"

namespace tilestep::simt {
namespace {

using emulated_backend::Fault;
using emulated_backend::Form;
using hopper::Format;

/// Small integers, so that every sum is exact.
int a_number(int row, int k) {
  return (row * 7 + k * 5) % 9 - 4;
}
int b_number(int column, int k) {
  return (column * 3 + k * 11) % 8 - 3;
}

template <Format kFormat>
std::uint16_t bits_of(int value) {
  if (kFormat == Format::s8) return static_cast<std::uint8_t>(static_cast<std::int8_t>(value));
  const auto spec = kFormat == Format::bf16   ? numeric::kBf16
                    : kFormat == Format::fp16 ? numeric::kFp16
                                              : numeric::kE4m3;
  return static_cast<std::uint16_t>(numeric::encode(spec, value));
}

template <Format kFormat, int kN, Form kForm>
auto product(const EmulationOptions& options, Fault fault = Fault::none) {
  constexpr bool kBytes = kFormat == Format::e4m3 || kFormat == Format::s8;
  constexpr bool kTurned = kForm == Form::turned || kForm == Form::both;
  using Element = std::conditional_t<kBytes, std::uint8_t, std::uint16_t>;
  using Sum = std::conditional_t<kFormat == Format::s8, int, float>;
  constexpr int kDepth = 128 / static_cast<int>(sizeof(Element));
  std::vector<Element> a;
  std::vector<Element> b(static_cast<std::size_t>(kN * kDepth));
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < kDepth; ++k) {
      a.push_back(static_cast<Element>(bits_of<kFormat>(a_number(row, k))));
    }
  }
  for (int n = 0; n < kN; ++n) {
    for (int k = 0; k < kDepth; ++k) {
      b[static_cast<std::size_t>(kTurned ? k * kN + n : n * kDepth + k)] =
          static_cast<Element>(bits_of<kFormat>(b_number(n, k)));
    }
  }
  const auto device = make_emulated_device({}, options);
  const Buffer<Element> a_there(*device, a);
  const Buffer<Element> b_there(*device, b);
  Buffer<Sum> d(*device, 64 * kN);
  d.fill(0xFF);
  const auto map = [&](const Buffer<Element>& matrix, int rows, int columns, int box_rows) {
    return tensor_map(matrix.span(), {.rows = rows,
                                      .columns = columns,
                                      .box_rows = box_rows,
                                      .box_columns = kDepth,
                                      .swizzle = 128});
  };
  const Span<const std::uint8_t> bytes{reinterpret_cast<const std::uint8_t*>(a_there.span().data),
                                       64 * 128};
  launch(*device,
         {.name = "one_tile", .block = {128}, .shared_bytes = 64 * 128 + kN * 128 + 8 + 1024},
         emulated_backend::one_tile<kFormat, kN, kForm, Sum>, map(a_there, 64, kDepth, 64),
         kTurned ? map(b_there, kDepth, kN, kDepth) : map(b_there, kN, kDepth, kN),
         global(bytes, "a"), global(d.span(), "d"), fault);
  return d.download();
}

template <Format kFormat, int kN, Form kForm>
void check_product() {
  constexpr int kDepth = kFormat == Format::bf16 || kFormat == Format::fp16 ? 64 : 128;
  for (const EmulationOptions& options : all_completions()) {
    const auto got = product<kFormat, kN, kForm>(options);
    bool same = true;
    for (int row = 0; row < 64; ++row) {
      for (int column = 0; column < kN; ++column) {
        double sum = 0;
        for (int k = 0; k < kDepth; ++k) {
          sum += static_cast<double>(a_number(row, k)) * b_number(column, k);
        }
        same = same && static_cast<double>(got[static_cast<std::size_t>(row * kN + column)]) == sum;
      }
    }
    CHECK(same);
  }
}

TEST_CASE("hopper: wgmma takes A from registers, B with n fastest, and whole numbers", "[hopper]") {
  check_product<Format::bf16, 64, Form::plain>();
  check_product<Format::bf16, 64, Form::registers>();
  check_product<Format::fp16, 32, Form::registers>();
  check_product<Format::e4m3, 64, Form::registers>();
  check_product<Format::bf16, 64, Form::turned>();
  check_product<Format::bf16, 128, Form::turned>();
  check_product<Format::fp16, 256, Form::both>();
  check_product<Format::fp16, 160, Form::plain>();
  check_product<Format::bf16, 176, Form::registers>();
  check_product<Format::s8, 64, Form::plain>();
  check_product<Format::s8, 96, Form::registers>();
}

TEST_CASE("hopper: two numbers share a register, and powers of two are approximate", "[hopper]") {
  CHECK(hopper::pack_bf16(1.0f, -2.0f) == 0xC0003F80u);
  CHECK(hopper::pack_fp16(1.0f, -2.0f) == 0xC0003C00u);
  CHECK(hopper::pack_fp16(1.0f + 0x1p-11f, 70000.0f) == 0x7C003C00u);  // ties to even; too large
  CHECK(hopper::exp2_approximate(-3.0f) == 0.125f);
  CHECK(hopper::exp2_approximate(-INFINITY) == 0.0f);
  CHECK(hopper::exp2_approximate(-127.0f) == 0.0f);
}

TEST_CASE("hopper: a B with n fastest that is not waited for is named", "[hopper]") {
  names(
      [](const EmulationOptions& options) {
        product<Format::bf16, 128, Form::both>(options, Fault::full_wait);
      },
      {"one_tile: thread (", "may still",
       line_in("wgmma_kernels.cu", "hopper::fetch(b_map, b_tile +")});
}

template <class T>
void check_added(int blocks, auto bits, auto number) {
  constexpr int kColumns = 16 / sizeof(T);
  std::vector<T> numbers;
  std::vector<T> before;
  for (int i = 0; i < 8 * kColumns; ++i) {
    numbers.push_back(bits(i % 5 - 1));
    before.push_back(bits(i % 7));
  }
  for (EmulationOptions options : all_completions()) {
    options.os_threads = 2;
    const auto device = make_emulated_device({}, options);
    const Buffer<T> added(*device, numbers);
    Buffer<T> matrix(*device, before);
    const auto map = tensor_map(
        matrix.span(), {.rows = 7, .columns = kColumns, .box_rows = 8, .box_columns = kColumns});
    launch(*device,
           {.name = "add_boxes",
            .grid = {static_cast<unsigned>(blocks)},
            .block = {32},
            .shared_bytes = 128 + 1024},
           emulated_backend::add_boxes<T>, map, global(added.span(), "numbers"));
    const std::vector<T> got = matrix.download();
    bool same = true;
    for (int i = 0; i < 8 * kColumns; ++i) {
      const bool inside = i < 7 * kColumns;
      const double sum = i % 7 + (inside ? blocks * (i % 5 - 1.0) : 0.0);
      same = same && static_cast<double>(number(got[static_cast<std::size_t>(i)])) == sum;
    }
    CHECK(same);
  }
}

TEST_CASE("hopper: TMA adds boxes up, from all blocks", "[hopper]") {
  check_added<float>(
      200, [](int value) { return static_cast<float>(value); }, [](float value) { return value; });
  check_added<std::uint16_t>(
      50, [](int value) { return bits_of<Format::bf16>(value); },
      [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); });
}

}  // namespace
}  // namespace tilestep::simt

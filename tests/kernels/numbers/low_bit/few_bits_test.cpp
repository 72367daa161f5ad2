// The GEMVs for ternary and Q4_K, and numbers in BF16, against bytes taken apart one by one and sums in double.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/catalog.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"
#include "kernels/numbers/low_bit/reference.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::low_bit;
using namespace tilestep::tests;

namespace {

using Bytes = std::vector<std::uint8_t>;

double decoded(const numeric::FloatSpec& format, std::uint32_t bits) {
  return numeric::decode(format, bits);
}
double fp16_at(const Bytes& bytes, std::size_t at) {
  return decoded(numeric::kFp16, static_cast<std::uint32_t>(bytes[at] | bytes[at + 1] << 8));
}
std::vector<std::uint16_t> in_bf16(const std::vector<double>& values) {
  std::vector<std::uint16_t> bits;
  for (const double value : values) {
    bits.push_back(static_cast<std::uint16_t>(
        numeric::encode(numeric::kBf16, numeric::round_to(numeric::kBf16, value))));
  }
  return bits;
}
std::vector<double> normal_values(std::mt19937& random, std::size_t count) {
  std::normal_distribution<double> one;
  std::vector<double> values(count);
  for (double& value : values) value = one(random);
  return values;
}

/// As the layout of `block_q4_K` is published: `half d, dmin; uint8_t scales[12], qs[128]`. Of each 64 weights the first
/// 32 have the low halves of 32 bytes. Scale and minimum j: of the first four the low 6 bits of bytes j and j + 4, of the
/// last four a half of byte j + 4 below the upper 2 bits of bytes j − 4 and j.
void decode_block(const std::uint8_t* block, double d, double dmin, std::vector<double>& weights) {
  const std::uint8_t* scales = block + 4;
  const std::uint8_t* q = block + 16;
  for (int j = 0; j < 8; ++j) {
    const int scale = j < 4 ? scales[j] % 64 : scales[j + 4] % 16 + scales[j - 4] / 64 * 16;
    const int minimum = j < 4 ? scales[j + 4] % 64 : scales[j + 4] / 16 + scales[j] / 64 * 16;
    for (int i = 0; i < 32; ++i) {
      const int byte = q[j / 2 * 32 + i];
      weights.push_back(d * scale * (j % 2 == 0 ? byte % 16 : byte / 16) - dmin * minimum);
    }
  }
}

/// W in few bits on a device, and what it stands for.
class Stored {
 public:
  /// As `quantize` writes it, but Q4_K: any bytes, with d and dmin of an ordinary size.
  Stored(simt::Device& device, Format format, Group group, const Matrix& matrix,
         std::mt19937& random)
      : device_(device),
        matrix_(matrix),
        codes_(device, code_bytes(format, matrix.rows, matrix.columns)),
        scales_(device,
                count() / static_cast<std::size_t>(group_size(group, matrix.rows, matrix.columns)) *
                    static_cast<std::size_t>(scale_bytes(format))),
        ranges_(device, static_cast<std::size_t>(matrix.rows) + 1),
        q_{format, group, codes_.span(), scales_.span(), {}, ranges_.span()} {
    if (format == Format::q4_k) {
      make_blocks(random);
      return;
    }
    const simt::Buffer<std::uint16_t> w(device, in_bf16(normal_values(random, count())));
    kernels().ranges(device, matrix, w.span(), ranges_.span());
    kernels().quantize(device, matrix, w.span(), q_);
    device.synchronize();
    const Range all = ranges_.download().back();
    weights_ =
        stored_values(format, group_size(group, matrix.rows, matrix.columns), codes_.download(),
                      scales_.download(), std::max(-all.low, all.high) / (448.0f * 6.0f));
  }

  /// The first element of y that is not what it should be; "": none. `exact`: sums must be, before the last rounding.
  std::string complaint(const GemvPlan& plan, const std::vector<double>& x, bool exact = false) {
    const auto columns = static_cast<std::size_t>(matrix_.columns);
    const std::vector<std::uint16_t> bits = in_bf16(x);
    const simt::Buffer<std::uint16_t> inputs(device_, bits);
    auto y = lab::unwritten<std::uint16_t>(device_, static_cast<std::size_t>(matrix_.rows));
    kernels().gemv(device_, matrix_, q_, plan, inputs.span(), y.span());
    const std::vector<std::uint16_t> got = y.download();
    for (std::size_t row = 0; row < got.size(); ++row) {
      double sum = 0, magnitude = 0;
      for (std::size_t k = 0; k < columns; ++k) {
        const double product = weights_[row * columns + k] * decoded(numeric::kBf16, bits[k]);
        sum += product;
        magnitude += std::abs(product);
      }
      const double bound = std::ldexp(std::abs(sum), -8) + std::ldexp(magnitude, -20);
      const double value = decoded(numeric::kBf16, got[row]);
      const bool good = exact
                            ? got[row] == in_bf16({static_cast<double>(static_cast<float>(sum))})[0]
                            : std::abs(value - sum) <= bound;
      if (!good) return fmt::format("row {}: {}, not {}", row, value, sum);
    }
    return "";
  }
  std::string complaint(const GemvPlan& plan, std::mt19937& random) {
    return complaint(plan, normal_values(random, static_cast<std::size_t>(matrix_.columns)));
  }

  /// How many numbers are not the weight in FP32, rounded to BF16.
  int wrong_numbers() {
    auto numbers = lab::unwritten<std::uint16_t>(device_, count());
    kernels().dequantize_bf16(device_, matrix_, q_, numbers.span());
    const std::vector<std::uint16_t> got = numbers.download();
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double value = static_cast<double>(static_cast<float>(weights_[i]));
      wrong += decoded(numeric::kBf16, got[i]) == numeric::round_to(numeric::kBf16, value) ? 0 : 1;
    }
    return wrong;
  }

 private:
  const Kernels& kernels() const { return kernels_of(device_); }
  std::size_t count() const { return numeric::elements_of(matrix_.rows, matrix_.columns); }

  void make_blocks(std::mt19937& random) {
    Bytes bytes(codes_.count());
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    for (std::size_t at = 0; at < bytes.size(); at += kSuperBlockBytes) {
      bytes[at + 1] = static_cast<std::uint8_t>(0x18 + random() % 8);  // from 2^-9 to 2^-7
      bytes[at + 3] = static_cast<std::uint8_t>(0x20 + random() % 8);
      decode_block(bytes.data() + at, fp16_at(bytes, at), fp16_at(bytes, at + 2), weights_);
    }
    codes_.upload(bytes);
  }

  simt::Device& device_;
  Matrix matrix_;
  simt::Buffer<std::uint8_t> codes_, scales_;
  simt::Buffer<Range> ranges_;
  Quantized q_;
  std::vector<double> weights_;
};

const simt::EmulationOptions kOrders[] = {
    {},
    {.order = simt::ThreadOrder::shuffled, .seed = 5, .completion = simt::Completion::seeded},
    {.order = simt::ThreadOrder::descending, .completion = simt::Completion::early_copies}};
// A slice for some of the warps, one more than a round of them, and rings that go round.
constexpr Matrix kShapes[] = {{128, 256}, {256, 768}, {128, 1280}, {128, 4352}};
constexpr GemvPlan kPlans[] = {{16, 8}, {32, 8}, {16, 16}, {32, 16}, {64, 8}, {64, 16}};
// Clusters that end within the rows, blocks without a slice, warps with more rows than are on their way.
constexpr GemvPlan kTablePlans[] = {
    {128, 1, true}, {48, 2, true}, {200, 4, true}, {8, 8, true}, {1024, 1, true}};

}  // namespace

TEST_CASE("GEMV of few bits: y is W · x of the bytes, in every plan, shape and order",
          "[low_bit]") {
  Part part("GEMV of few bits", 8);
  std::mt19937 random(11);
  for (const simt::EmulationOptions& order : kOrders) {
    const auto device = device_under_test(emulated_kernels(), order);
    for (const Matrix& matrix : kShapes) {
      for (const Format format : {Format::ternary, Format::q4_k}) {
        if (part.skips()) continue;
        Stored w(*device, format, group_of(format, Group::g32), matrix, random);
        for (const GemvPlan& plan : kPlans) {
          if (format == Format::q4_k && plan.rows == 64) continue;
          INFO(matrix.columns << " columns, " << plan.rows << " rows, " << plan.splits);
          CHECK(w.complaint(plan, random) == "");
        }
        for (const GemvPlan& plan : kTablePlans) {
          if (format == Format::q4_k) continue;
          INFO(matrix.columns << " columns, tables of " << plan.rows << " rows, " << plan.splits);
          CHECK(w.complaint(plan, random) == "");
        }
      }
    }
  }
  if (part.skips()) return;
  const auto device = device_under_test(emulated_kernels());
  Stored w(*device, Format::ternary, Group::tensor, {1024, 1024}, random);
  CHECK(w.complaint({1024, 2, true}, random) == "");
}

TEST_CASE("GEMV of few bits: ternary sums of small whole numbers are exact", "[low_bit]") {
  const auto device = device_under_test(emulated_kernels());
  std::mt19937 random(3);
  Stored w(*device, Format::ternary, Group::tensor, {256, 1536}, random);
  std::vector<double> x(1536);
  for (double& one : x) one = static_cast<double>(random() % 255) - 127;
  CHECK(w.complaint({32, 8}, x, true) == "");
  // One warp has more rows than the others, which are done with a slice's tables first.
  CHECK(w.complaint({136, 1, true}, x, true) == "");
}

TEST_CASE("numbers in BF16 are the weights rounded", "[low_bit]") {
  std::mt19937 random(8);
  for (const simt::EmulationOptions& order : kOrders) {
    const auto device = device_under_test(emulated_kernels(), order);
    for (const Matrix& matrix : {Matrix{128, 256}, Matrix{128, 768}}) {
      CHECK(Stored(*device, Format::int4, Group::g128, matrix, random).wrong_numbers() == 0);
      CHECK(Stored(*device, Format::nvfp4, Group::g16, matrix, random).wrong_numbers() == 0);
    }
  }
}

TEST_CASE("GEMV of few bits: shapes, plans and formats that there are not are refused by name",
          "[low_bit]") {
  const auto device = device_under_test(emulated_kernels());
  std::mt19937 random(1);
  const auto refused = [&](Format format, const Matrix& matrix, const GemvPlan& plan,
                           const char* words) {
    Stored w(*device, format, group_of(format, Group::g32), matrix, random);
    const std::string said = tests::error_of([&] { w.complaint(plan, random); });
    INFO(said);
    CHECK(contains(said, words));
  };
  refused(Format::int8, {128, 256}, {}, "format is int8; allowed: ternary, q4_k");
  refused(Format::ternary, {96, 256}, {}, "multiples of 128");
  refused(Format::ternary, {128, 256}, {48, 8}, "allowed: 16, 32, 64");
  refused(Format::q4_k, {128, 256}, {64, 8}, "allowed: 16, 32");
  refused(Format::ternary, {128, 256}, {32, 4}, "allowed: 8, 16");
  refused(Format::ternary, {128, 256}, {36, 2, true}, "multiples of 8");
  refused(Format::ternary, {128, 256}, {8192, 2, true}, "8–4096");
  refused(Format::ternary, {128, 256}, {128, 3, true}, "allowed: 1, 2, 4, 8");
  refused(Format::q4_k, {128, 256}, {128, 2, true}, "allowed: ternary");
  Stored groups(*device, Format::int4, Group::g32, {128, 256}, random);
  CHECK(contains(tests::error_of([&] { groups.wrong_numbers(); }), "int4 in groups of 128, nvfp4"));
}

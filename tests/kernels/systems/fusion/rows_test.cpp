// The row kernels against double, in every combination of steps and every way to hold a row; fused against unfused; and
// cross entropy.

#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/systems/fusion/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::fusion;
using tests::contains;

namespace {

simt::KernelEntry kRowTable[] = {{"fusion", kernels_emulated}};

std::unique_ptr<simt::Device> row_device(simt::ThreadOrder order = simt::ThreadOrder::ascending) {
  simt::EmulationOptions options;
  options.order = order;
  return tests::device_under_test(kRowTable, options);
}

/// Everything that launches of `parts` leave, on arrays that start as NaN.
struct Left {
  std::vector<unsigned char> sum, out;
  std::vector<std::uint8_t> codes;
  std::vector<float> scale;
};
Left left_by(simt::Device& device, const RowShape& shape, const Parts& parts,
             const std::vector<unsigned char>& first, const std::vector<unsigned char>& second,
             const std::vector<unsigned char>& gain) {
  const std::size_t count = numeric::elements_of(shape.rows, shape.width);
  const std::size_t bytes = count * static_cast<std::size_t>(bytes_of(shape.type));
  const auto a = lab::uploaded(device, first), b = lab::uploaded(device, second),
             g = lab::uploaded(device, gain);
  auto sum = lab::unwritten<unsigned char>(device, bytes),
       out = lab::unwritten<unsigned char>(device, bytes);
  auto codes = lab::unwritten<std::uint8_t>(device, count);
  auto scale = lab::unwritten<float>(device, static_cast<std::size_t>(shape.rows));
  simt::Buffer<int> turns(device, kTurns);
  turns.fill(0);
  RowArrays arrays;
  arrays.turns = turns.span();
  arrays.first = a.span();
  if (parts.first == First::add) arrays.second = b.span();
  if (parts.norm) arrays.gain = g.span();
  if (parts.first == First::add) arrays.sum = sum.span();
  if (parts.quantize) {
    arrays.codes = codes.span();
    arrays.scale = scale.span();
  } else if (parts.norm || parts.first == First::swiglu) {
    arrays.out = out.span();
  }
  fusion::kernels_of(device).rows(device, shape, parts, arrays);
  device.synchronize();
  CHECK(turns.download() == std::vector<int>(kTurns, 0));
  return {sum.download(), out.download(), codes.download(), scale.download()};
}

/// A chain in three launches, two and one; all must agree bit for bit, and with double.
void check_chain(simt::Device& device, const RowShape& shape, std::int64_t seed = 3) {
  INFO(shape.rows << " x " << shape.width << " " << name_of(shape.type) << ", " << shape.threads
                  << " threads, " << shape.packs << " packs");
  const Inputs in = make_inputs(shape, seed);
  const std::vector<unsigned char> none;
  const Left add = left_by(device, shape, kAdd, in.x, in.residual, none);
  const Left norm = left_by(device, shape, kNorm, add.sum, none, in.gain);
  const Left quantize = left_by(device, shape, kQuantize, norm.out, none, none);
  const Left add_norm = left_by(device, shape, kAddNorm, in.x, in.residual, in.gain);
  const Left norm_quantize = left_by(device, shape, kNormQuantize, add.sum, none, in.gain);
  const Left all = left_by(device, shape, kAddNormQuantize, in.x, in.residual, in.gain);
  CHECK(add_norm.sum == add.sum);
  CHECK(all.sum == add.sum);
  CHECK(add_norm.out == norm.out);
  CHECK(norm_quantize.codes == quantize.codes);
  CHECK(all.codes == quantize.codes);
  CHECK(norm_quantize.scale == quantize.scale);
  CHECK(all.scale == quantize.scale);

  const Reference exact = reference_chain(shape, in);
  const std::vector<float> sums = unpacked(shape.type, add.sum),
                           normed = unpacked(shape.type, norm.out);
  lab::Closest sum, n;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sum.add(sums[i], exact.sum[i], 0);
    const double right = exact.normed.value[i];
    n.add(normed[i], right,
          exact.normed.bound[i] + half_spacing(shape.type, std::abs(right) * 1.01));
  }
  CHECK(sum.ok());
  CHECK(n.ok());
  CHECK(compared_codes(shape, exact, {all.sum, {}, all.codes, all.scale}).ok());
}

}  // namespace

TEST_CASE(
    "Row kernels: fused, unfused and double agree over widths, formats and ways to hold a row",
    "[fusion]") {
  const auto device = row_device(simt::ThreadOrder::shuffled);
  for (const Dtype type : all_of<Dtype>()) {
    for (const int width : {1, 7, 127, 1000, 4096, 5000}) {
      check_chain(*device, held_by_block({type, 3, width, 128, 4}));
    }
    // In registers of one block, of a cluster, and in shared memory.
    for (const int packs : {1, 2, 4, 0}) check_chain(*device, {type, 2, 2048, 64, packs});
    check_chain(*device, {type, 2, 2045, 32, 0});
  }
  check_chain(*device, {Dtype::bf16, 127, 64, 32, 1});  // several rows per block
}

TEST_CASE("Row kernels: rows in a stream, several of which each block or cluster takes",
          "[fusion]") {
  const auto device = row_device(simt::ThreadOrder::shuffled);
  const auto check = [&](Dtype type, int rows, int width, int threads, int packs) {
    check_chain(*device, {type, rows, width, threads, packs, 1, true});
  };
  for (const Dtype type : all_of<Dtype>()) {
    for (const int packs : {1, 2, 4}) check(type, 5, 1024, 32 * 4 / packs, packs);
    check(type, 3, 2040, 32, 4);  // a cluster whose last block has less
  }
  check(Dtype::bf16, 23, 64, 32, 1);  // several rows per block, the last of which has fewer
  check(Dtype::bf16, 1, 8, 32, 4);
  check(Dtype::bf16, 3, 20000, 512, 4);
  check(Dtype::bf16, 5, 1024, 32, 8);  // each of a cluster's threads has eight packs at most
  // One row after another is the same as each by itself.
  const RowShape apart{Dtype::bf16, 5, 1024, 64, 2}, stream{Dtype::bf16, 5, 1024, 64, 2, 1, true};
  const Inputs in = make_inputs(apart, 3);
  const Left one = left_by(*device, apart, kAddNormQuantize, in.x, in.residual, in.gain),
             other = left_by(*device, stream, kAddNormQuantize, in.x, in.residual, in.gain);
  CHECK(one.sum == other.sum);
  CHECK(one.codes == other.codes);
  CHECK(one.scale == other.scale);
  if (!tests::all_is_wanted()) return;
  for (const int width : {32768, 65536, 131072, 262144}) {
    check(Dtype::bf16, 5, width, 1024, 4);
    if (width < 262144) check(Dtype::fp16, 5, width, 512, 4);
  }
}

TEST_CASE("Row kernels: the widest rows, in clusters", "[fusion]") {
  const auto device = row_device();
  const RowShape widest{Dtype::bf16, 1, 262144, 512, 0};
  const Inputs in = make_inputs(widest, 3);
  const Left codes = left_by(*device, widest, kAddNormQuantize, in.x, in.residual, in.gain);
  CHECK(
      compared_codes(widest, reference_chain(widest, in), {codes.sum, {}, codes.codes, codes.scale})
          .ok());
  check_chain(*device, {Dtype::bf16, 1, 20000, 256, 4});
  if (!tests::all_is_wanted()) return;
  for (const Dtype type : all_of<Dtype>()) {
    for (const int width : {8192, 16384, 32768, 65536, 131072, 262144}) {
      check_chain(*device, {type, 3, width, 1024, 0});
      check_chain(*device, {type, 2, width, 256, 0});
      const RowShape registers{type, 2, width, 1024, 4};
      if (cluster_of(registers) > 0) check_chain(*device, registers);
    }
    for (const int width : {8191, 65535, 100003}) check_chain(*device, {type, 2, width, 1024, 0});
  }
}

TEST_CASE("Row kernels: a row of zeros, and numbers at the ends of a format", "[fusion]") {
  const auto device = row_device();
  const RowShape shape{Dtype::bf16, 2, 64, 32, 1};
  const std::vector<float> zeros(128, 0.0f), ones(64, 1.0f);
  const Left left = left_by(*device, shape, kAddNormQuantize, packed(shape.type, zeros),
                            packed(shape.type, zeros), packed(shape.type, ones));
  CHECK(left.codes == std::vector<std::uint8_t>(128, 0));
  CHECK(left.scale == std::vector<float>(2, 0.0f));
  std::vector<float> large(128, 1e18f);
  large[3] = 1e-30f;
  const Left huge = left_by(*device, shape, kNormQuantize, packed(shape.type, large), {},
                            packed(shape.type, ones));
  CHECK(decoded(huge.codes[0], huge.scale[0]) == Approx(1).epsilon(0.02));
  CHECK(decoded(huge.codes[3], huge.scale[0]) == 0);
}

TEST_CASE("Row kernels: SwiGLU alone and with its quantization", "[fusion]") {
  const auto device = row_device(simt::ThreadOrder::descending);
  for (const Dtype type : all_of<Dtype>()) {
    for (const int width : {7, 96, 2048}) {
      const RowShape shape = held_by_block({type, 3, width, 64, 4});
      std::mt19937 generator = lab::generator_of(11);
      const auto w = static_cast<std::size_t>(width);
      std::vector<float> both = lab::normal_floats(generator, 6 * w);
      for (float& one : both) one = rounded_to(type, 3 * one);
      const Left left = left_by(*device, shape, kSwiglu, packed(type, both), {}, {});
      const std::vector<float> got = unpacked(type, left.out);
      lab::Closest closest;
      for (std::size_t i = 0; i < 3 * w; ++i) {
        const std::size_t at = i / w * 2 * w + i % w;
        const numeric::Bounded want = reference_swiglu(type, both[at], both[at + w]);
        closest.add(got[i], want.value, want.bound);
      }
      INFO(name_of(type) << " " << width);
      CHECK(closest.ok());
      const Left codes = left_by(*device, shape, kQuantize, left.out, {}, {});
      const Left fused = left_by(*device, shape, kSwigluQuantize, packed(type, both), {}, {});
      CHECK(fused.codes == codes.codes);
      CHECK(fused.scale == codes.scale);
    }
  }
}

TEST_CASE("Row kernels: rows that many threads hold, and few", "[fusion]") {
  const auto device = row_device();
  const RowShape shape{Dtype::bf16, 1, 16384, 512, 4};
  const Inputs in = make_inputs(shape, 5);
  const Left want = left_by(*device, shape, kAddNormQuantize, in.x, in.residual, in.gain);
  const auto x = lab::uploaded(*device, in.x), r = lab::uploaded(*device, in.residual),
             g = lab::uploaded(*device, in.gain);
  for (const int values : kHeldValues) {
    auto sum = lab::unwritten<unsigned char>(*device, 32768);
    auto codes = lab::unwritten<std::uint8_t>(*device, 16384);
    auto scale = lab::unwritten<float>(*device, 1);
    fusion::kernels_of(*device).rows_holding(
        *device, values, shape,
        {x.span(), r.span(), g.span(), sum.span(), {}, codes.span(), scale.span(), {}});
    device->synchronize();
    CHECK(sum.download() == want.sum);
    // Another number of threads adds in another order: a scale may be rounded otherwise, codes by one.
    CHECK(compared_codes(shape, reference_chain(shape, in),
                         {{}, {}, codes.download(), scale.download()})
              .ok());
  }
}

TEST_CASE("Cross entropy of logits of every size against double", "[fusion]") {
  const auto device = row_device(simt::ThreadOrder::shuffled);
  for (const Dtype type : all_of<Dtype>()) {
    for (const int vocabulary : {1, 7, 1000, 4096}) {
      for (const int threads : {32, 256}) {
        std::mt19937 generator = lab::generator_of(vocabulary);
        const auto width = static_cast<std::size_t>(vocabulary);
        std::vector<float> logits = lab::normal_floats(generator, 3 * width);
        for (float& one : logits) one = rounded_to(type, 8 * one);
        for (std::size_t i = 0; i < width; ++i)
          logits[i] = rounded_to(type, logits[i] + 100);  // beyond exp's range
        const std::vector<int> targets = {0, vocabulary / 2, vocabulary - 1};
        const auto in = lab::uploaded(*device, packed(type, logits));
        const auto at = lab::uploaded(*device, targets);
        simt::Buffer<float> loss(*device, 3);
        const std::vector<float> got = lab::result_of(*device, loss, [&] {
          fusion::kernels_of(*device).cross_entropy(*device, {type, 3, vocabulary, threads},
                                                    in.span(), at.span(), loss.span());
        });
        lab::Closest closest;
        for (std::size_t row = 0; row < 3; ++row) {
          const auto one = std::span(logits).subspan(row * width, width);
          closest.add(got[row], reference_loss(one, targets[row]), loss_bound(one, threads));
        }
        INFO(name_of(type) << " " << vocabulary << ", " << threads << " threads");
        CHECK(closest.ok());
      }
    }
  }
}

TEST_CASE("Row kernels: shapes that are not allowed are refused in words", "[fusion]") {
  const auto device = row_device();
  const auto refused = [&](const RowShape& shape, const Parts& parts) {
    return tests::error_of([&] { fusion::kernels_of(*device).rows(*device, shape, parts, {}); });
  };
  CHECK(contains(refused({Dtype::bf16, 0, 8, 32, 1}, kNorm), "rows is 0"));
  CHECK(contains(refused({Dtype::bf16, 1, 0, 32, 1}, kNorm), "width is 0"));
  CHECK(contains(refused({Dtype::bf16, 1, 300000, 32, 0}, kNorm), "1–262144"));
  CHECK(contains(refused({Dtype::bf16, 1, 8, 48, 1}, kNorm), "32, 64"));
  CHECK(contains(refused({Dtype::bf16, 1, 65536, 32, 4}, kNorm), "does not fit"));
  CHECK(contains(refused({Dtype::bf16, 1, 8, 32, 1}, {First::load, false, false}), "not compiled"));
  CHECK(contains(refused({Dtype::bf16, 1, 7, 32, 1, 1, true}, kNorm), "whole packs"));
}

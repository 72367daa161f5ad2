// The masked kernels against double: every method at odd lengths, tiles of all sizes; what is not allowed.

#include "kernels/attention/sparse_attention/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/result.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::sparse_attention;

namespace {

simt::KernelEntry kMasksTable[] = {{"sparse_attention", kernels_emulated}};

std::unique_ptr<simt::Device> masks_device(simt::ThreadOrder order = simt::ThreadOrder::ascending) {
  simt::EmulationOptions options;
  options.order = order;
  return tests::device_under_test(kMasksTable, options);
}

/// A mask's launches, and what they left.
struct Launched {
  Inputs inputs;
  std::vector<int> pairs, kinds;
  std::vector<float> o, lse;

  Launched(simt::Device& device, const MaskShape& shape, Finding finding = Finding::pairs)
      : inputs(make_inputs(shape.length, 1, 8, 3 + shape.length)) {
    const auto q = lab::uploaded(device, inputs.q), k = lab::uploaded(device, inputs.k),
               v = lab::uploaded(device, inputs.v);
    const auto documents = lab::uploaded(device, inputs.documents);
    const auto n = static_cast<std::size_t>(shape.length);
    const auto tiles = static_cast<std::size_t>(tiles_of(shape.length, shape.tile));
    auto its_pairs = lab::unwritten<int>(device, n * n);
    auto its_kinds = lab::unwritten<int>(device, tiles * tiles);
    auto its_o = lab::unwritten<float>(device, n * kValue),
         its_lse = lab::unwritten<float>(device, n);
    const MaskArrays arrays{q.span(),         k.span(),         v.span(),     documents.span(),
                            its_pairs.span(), its_kinds.span(), its_o.span(), its_lse.span()};
    const Kernels& kernels = kernels_of(device);
    kernels.pairs(device, shape, arrays);
    kernels.tiles(device, shape, finding, arrays);
    kernels.attend(device, shape, arrays, {});
    device.synchronize();
    pairs = its_pairs.download();
    kinds = its_kinds.download();
    o = its_o.download();
    lse = its_lse.download();
  }
};

void check_attention(const Launched& done, const MaskShape& shape) {
  lab::Closest o, lse;
  int wrong_rules = 0;
  const auto n = static_cast<std::size_t>(shape.length);
  for (int q = 0; q < shape.length; ++q) {
    const auto row = static_cast<std::size_t>(q);
    std::vector<Scored> scored;
    for (int k = 0; k < shape.length; ++k) {
      const bool seen = sees(shape.method, shape.length, shape.window, done.inputs.documents, q, k);
      wrong_rules += (done.pairs[row * n + static_cast<std::size_t>(k)] != 0) != seen ? 1 : 0;
      if (!seen) continue;
      Scored one{k,
                 reference_score(done.inputs.q.data() + q * kKey, done.inputs.k.data() + k * kKey)};
      if (shape.method == Method::own) {
        one.score.value -= 0.02 * (q - k);
        one.score.bound += 1e-6 * (1 + std::abs(one.score.value) + 0.02 * q);
      }
      scored.push_back(one);
    }
    const auto exact = reference_attention(scored, done.inputs.v.data(), kValue,
                                           tiles_of(shape.length, shape.tile));
    for (std::size_t i = 0; i < kValue; ++i)
      o.add(done.o[row * kValue + i], exact.value[i], exact.bound[i]);
    lse.add(done.lse[row], exact.value[kValue], exact.bound[kValue]);
  }
  CHECK(wrong_rules == 0);
  INFO(o.error() << " of " << o.bound() << ", " << lse.error() << " of " << lse.bound());
  CHECK(o.ok());
  CHECK(lse.ok());
  CHECK(o.bound() < 1e-3);
}

constexpr Method kMasks[] = {Method::causal,       Method::window,    Method::strided,
                             Method::block_sparse, Method::documents, Method::prefix,
                             Method::own};

}  // namespace

TEST_CASE("Sparse attention: every mask at odd lengths, in tiles of all sizes, is double's",
          "[sparse_attention]") {
  const auto device = masks_device();
  tests::Part part("masks and tiles", 2);
  for (const Method method : kMasks) {
    for (const int length : {1, 7, 33, 61}) {
      for (const int tile : {4, 8, 16, 32}) {
        if (part.skips()) continue;
        INFO(name_of(method) << " " << length << " in tiles of " << tile);
        const MaskShape shape{method, length, 6, tile};
        const Launched done(*device, shape);
        check_attention(done, shape);
        const int tiles = tiles_of(length, tile);
        for (int at = 0; at < tiles * tiles; ++at) {
          CHECK(done.kinds[static_cast<std::size_t>(at)] ==
                static_cast<int>(kind_of(done.pairs, length, tile, at / tiles, at % tiles)));
        }
      }
    }
  }
}

TEST_CASE(
    "Sparse attention: any order of threads and any way to find tiles that holds gives the same",
    "[sparse_attention]") {
  for (const auto order : {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    const auto device = masks_device(order);
    for (const Method method : {Method::window, Method::block_sparse, Method::own}) {
      const MaskShape shape{method, 37, 9, 8};
      check_attention(Launched(*device, shape), shape);
      check_attention(Launched(*device, shape, Finding::nothing), shape);
    }
    // Between the corners of a band's tile there is nothing that they do not know.
    for (const Method method : {Method::causal, Method::documents}) {
      const MaskShape shape{method, 37, 9, 8};
      check_attention(Launched(*device, shape, Finding::corners), shape);
    }
  }
}

TEST_CASE("Sparse attention: corners do not know what is between them", "[sparse_attention]") {
  const auto device = masks_device();
  const MaskShape shape{Method::strided, 48, 5, 8};
  const Launched right(*device, shape), guessed(*device, shape, Finding::corners);
  int missed = 0;
  for (std::size_t i = 0; i < right.kinds.size(); ++i)
    missed += right.kinds[i] == 1 && guessed.kinds[i] == 0 ? 1 : 0;
  CHECK(missed > 0);
  CHECK(right.o != guessed.o);
}

TEST_CASE("Sparse attention: what is not allowed is refused by name", "[sparse_attention]") {
  const auto device = masks_device();
  const auto refused = [&](const MaskShape& shape) {
    return tests::error_of([&] { kernels_of(*device).tiles(*device, shape, Finding::pairs, {}); });
  };
  CHECK(tests::contains(refused({Method::causal, 0, 1, 8}), "length"));
  CHECK(tests::contains(refused({Method::causal, 8, 1, 9}), "4, 8, 16, 32"));
  CHECK(tests::contains(refused({Method::dsa, 8, 1, 8}), "dsa"));
  const IndexShape crowded{.length = 8, .heads = 1, .top_k = 8, .tile = 8, .room = 15};
  CHECK(tests::contains(
      tests::error_of([&] { kernels_of(*device).choose(*device, crowded, {}, Break::none, {}); }),
      "room is 15; allowed: 16"));
}

// The indexer's top-k against a full sort, ties and all; attention over what was chosen, by several heads.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/attention/sparse_attention/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"

using namespace tilestep;
using namespace tilestep::sparse_attention;

namespace {

simt::KernelEntry kChoiceTable[] = {{"sparse_attention", kernels_emulated}};

std::unique_ptr<simt::Device> choice_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending) {
  simt::EmulationOptions options;
  options.order = order;
  return tests::device_under_test(kChoiceTable, options);
}

std::vector<int> chosen_by(simt::Device& device, const Inputs& inputs, const IndexShape& shape,
                           Break broken = Break::none) {
  const auto q = lab::uploaded(device, inputs.index_q),
             keys = lab::uploaded(device, inputs.index_keys);
  const auto weights = lab::uploaded(device, inputs.index_weights),
             scales = lab::uploaded(device, inputs.index_scales);
  auto chosen = lab::unwritten<int>(
      device, static_cast<std::size_t>(shape.length) * static_cast<std::size_t>(shape.top_k));
  kernels_of(device).choose(device, shape,
                            {q.span(), weights.span(), keys.span(), scales.span(), chosen.span()},
                            broken, {});
  device.synchronize();
  return chosen.download();
}

/// How many places of all queries differ from a full sort.
int differing(const std::vector<int>& chosen, const Inputs& inputs, int top_k) {
  int wrong = 0;
  for (int q = 0; q < inputs.length; ++q) {
    std::vector<int> right = reference_top_k(reference_index(inputs, q), top_k);
    right.resize(static_cast<std::size_t>(top_k), -1);
    for (int i = 0; i < top_k; ++i) {
      wrong += chosen[static_cast<std::size_t>(q * top_k + i)] != right[static_cast<std::size_t>(i)]
                   ? 1
                   : 0;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("Sparse attention: the streamed top-k is a full sort's, with ties by index",
          "[sparse_attention]") {
  for (const auto order : {simt::ThreadOrder::ascending, simt::ThreadOrder::shuffled}) {
    const auto device = choice_device(order);
    for (const int length : {1, 9, 45}) {
      for (const int top_k : {1, 7, 16}) {
        for (const int tile : {4, 32}) {
          for (const int more : {0, 11}) {
            INFO(length << " tokens, " << top_k << ", tiles of " << tile << ", room " << more);
            const Inputs inputs = make_inputs(length, 3, 8, 11 + length);
            const IndexShape shape{length, 3, top_k, tile, top_k + tile + more};
            CHECK(differing(chosen_by(*device, inputs, shape), inputs, top_k) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("Sparse attention: of tokens that are all equal the first are chosen, or the last",
          "[sparse_attention]") {
  const auto device = choice_device();
  Inputs inputs = make_inputs(40, 2, 8, 5);
  std::fill(inputs.index_q.begin(), inputs.index_q.end(), std::uint8_t{0});  // every score is 0
  const IndexShape shape{40, 2, 6, 8, 14};
  std::vector<int> chosen = chosen_by(*device, inputs, shape);
  CHECK(std::vector<int>(chosen.end() - 6, chosen.end()) == std::vector<int>{0, 1, 2, 3, 4, 5});
  chosen = chosen_by(*device, inputs, shape, Break::topk_ties);
  CHECK(std::vector<int>(chosen.end() - 6, chosen.end()) ==
        std::vector<int>{34, 35, 36, 37, 38, 39});
  // Weights below 0 make scores below 0, which still have an order.
  inputs = make_inputs(40, 2, 8, 5);
  for (float& one : inputs.index_weights) one = -one;
  CHECK(differing(chosen_by(*device, inputs, shape), inputs, 6) == 0);
}

TEST_CASE("Sparse attention: several heads over chosen rows of a paged cache are double's",
          "[sparse_attention]") {
  for (const auto order : {simt::ThreadOrder::ascending, simt::ThreadOrder::descending}) {
    const auto device = choice_device(order);
    for (const int length : {1, 35, 70}) {
      for (const int page : {1, 8, 16}) {
        for (const int top_k : {5, 40}) {
          INFO(length << " tokens, pages of " << page << ", top " << top_k);
          const Inputs inputs = make_inputs(length, 1, page, length);
          constexpr int kHeads = 3;
          std::mt19937 generator = lab::generator_of(length);
          const std::vector<float> q =
              lab::normal_floats(generator, static_cast<std::size_t>(length * kHeads * kKey));
          std::vector<int> chosen(static_cast<std::size_t>(length * top_k), -1);
          for (int i = 0; i < length; ++i) {
            const std::vector<int> its = reference_top_k(reference_index(inputs, i), top_k);
            std::copy(its.begin(), its.end(), chosen.begin() + i * top_k);
          }
          const auto q_there = lab::uploaded(*device, q),
                     cache = lab::uploaded(*device, inputs.cache);
          const auto table = lab::uploaded(*device, inputs.table),
                     list = lab::uploaded(*device, chosen);
          auto o =
              lab::unwritten<float>(*device, static_cast<std::size_t>(length * kHeads * kValue));
          kernels_of(*device).gather(
              *device, {length, kHeads, top_k, page, 1 / std::sqrt(static_cast<float>(kKey))},
              {q_there.span(), cache.span(), table.span(), list.span(), o.span()}, Break::none, {});
          device->synchronize();
          const std::vector<float> got = o.download();
          lab::Closest closest;
          for (int row = 0; row < length * kHeads; ++row) {
            std::vector<Scored> scored;
            for (int i = 0; i < top_k; ++i) {
              const int token = chosen[static_cast<std::size_t>(row / kHeads * top_k + i)];
              if (token >= 0)
                scored.push_back({token, reference_score(q.data() + row * kKey,
                                                         inputs.k.data() + token * kKey)});
            }
            const auto exact = reference_attention(scored, inputs.v.data(), kValue, top_k / 32 + 1);
            for (std::size_t n = 0; n < kValue; ++n)
              closest.add(got[static_cast<std::size_t>(row * kValue) + n], exact.value[n],
                          exact.bound[n]);
          }
          INFO(closest.error() << " of " << closest.bound());
          CHECK(closest.ok());
        }
      }
    }
  }
}

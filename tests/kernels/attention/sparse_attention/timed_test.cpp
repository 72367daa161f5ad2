// The timed kernels at few tokens, held to double: the bench's own comparisons, and shapes that it does not have.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "kernels/attention/sparse_attention/bench/bench.hpp"
#include "kernels/attention/sparse_attention/bench/expected.hpp"
#include "kernels/attention/sparse_attention/kernels.hpp"
#include "kernels/attention/sparse_attention/reference.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::sparse_attention;

namespace {

simt::KernelEntry kTimedTable[] = {{"sparse_attention", kernels_emulated}};

/// With threads in any order.
std::unique_ptr<simt::Device> timed_device() {
  simt::EmulationOptions options;
  options.order = simt::ThreadOrder::shuffled;
  return tests::device_under_test(kTimedTable, options);
}

}  // namespace

TEST_CASE("Sparse attention: the bench compares and times all that it has", "[sparse_attention]") {
  // On a GPU, and under compute-sanitizer there, the same comparisons.
  const char* wanted = std::getenv("TILESTEP_TEST_DEVICE");
  tests::TimedEmulation emulation;
  const auto gpu = wanted != nullptr && std::string_view(wanted) == "cuda"
                       ? simt::make_cuda_device()
                       : std::unique_ptr<simt::Device>();
  simt::Device& device = gpu ? *gpu : emulation;
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  if (gpu) {
    for (const lab::Check& check : report.checks) CHECK(check.ok);
    return;
  }
  tests::check_holds(report);
  const lab::Table& lists = tests::table_in(report, "lists");
  REQUIRE(lists.rows.size() == 4);
  CHECK(tests::number_in(lists, 0, "allowed") == Approx(1));
  CHECK(tests::number_in(lists, 1, "allowed") == Approx(10.0 / 9));
  CHECK(tests::table_in(report, "index").rows.size() == 2);
  CHECK(tests::table_in(report, "decode").rows.size() == 2);
}

TEST_CASE("Sparse attention: lists have each tile of a rule once, partial ones first",
          "[sparse_attention]") {
  const attention::MaskRule rule{attention::Mask::sliding_window, 1000, 300, 0};
  const TileLists lists = lists_of(rule);
  REQUIRE(lists.first.size() == 9);
  for (int tile = 0; tile < 8; ++tile) {
    const auto at = static_cast<std::size_t>(tile);
    const int begin = lists.first[at], end = lists.first[at + 1];
    CHECK(begin < end);
    CHECK(lists.whole[at] >= begin);
    std::vector<int> its(lists.tiles.begin() + begin, lists.tiles.begin() + end);
    std::sort(its.begin(), its.end());
    for (std::size_t i = 0; i < its.size(); ++i)
      CHECK(its[i] == std::max(0, (128 * tile - 299) / 128) + static_cast<int>(i));
    CHECK(its.back() == tile);
  }
  const TileLists lot = lists_by_lot(1000, 0.25, 1);
  CHECK(lot.tiles.size() == 16);
}

TEST_CASE("Sparse attention: the streamed choice of long contexts is a sort's, ties and all",
          "[sparse_attention]") {
  const auto device = timed_device();
  // More tokens than there is room for, and many of the same score.
  const int context = 2500, queries = 2, top_k = 40;
  std::mt19937 generator = lab::generator_of(1);
  std::vector<std::uint8_t> q, keys;
  const auto code = [&](double value) {
    return static_cast<std::uint8_t>(
        numeric::encode(numeric::kE4m3, numeric::round_to(numeric::kE4m3, value)));
  };
  for (int i = 0; i < queries * timed::kHeads * timed::kDim; ++i)
    q.push_back(code(std::floor(3 * lab::uniform(generator)) - 1));
  std::vector<std::uint8_t> words(16 * timed::kDim);
  for (auto& one : words) one = code(std::floor(3 * lab::uniform(generator)) - 1);
  for (int t = 0; t < context; ++t) {
    const auto word = static_cast<std::ptrdiff_t>(lab::uniform(generator) * 16);
    const auto first = words.begin() + word * timed::kDim;
    keys.insert(keys.end(), first, first + timed::kDim);
  }
  std::vector<float> weights(queries * timed::kHeads), scales(context, 0.5f);
  for (float& one : weights) one = static_cast<float>(std::floor(8 * lab::uniform(generator))) / 8;
  const auto q_there = lab::uploaded(*device, q), keys_there = lab::uploaded(*device, keys);
  const auto weights_there = lab::uploaded(*device, weights),
             scales_there = lab::uploaded(*device, scales);
  auto scores = lab::unwritten<float>(*device, static_cast<std::size_t>(queries * context));
  auto chosen = lab::unwritten<int>(*device, static_cast<std::size_t>(queries * top_k));
  const timed::ScoreArrays arrays{q_there.span(),      weights_there.span(), keys_there.span(),
                                  scales_there.span(), scores.span(),        chosen.span()};
  const int slack = GENERATE(0, 60);
  kernels_of(*device).score(*device, {queries, context, 0, 0, 0}, arrays);
  kernels_of(*device).score(*device, {queries, context, top_k, top_k + slack + 2048, slack},
                            arrays);
  device->synchronize();
  const std::vector<float> got = scores.download();
  std::vector<int> taken = chosen.download();
  for (int query = 0; query < queries; ++query) {
    std::vector<double> want;
    for (int t = 0; t <= context - queries + query; ++t) {
      const auto first = keys.begin() + t * timed::kDim;
      const auto its = q.begin() + query * timed::kHeads * timed::kDim;
      const auto exact = expected_score(
          {its, its + timed::kHeads * timed::kDim},
          {weights.begin() + query * timed::kHeads, weights.begin() + (query + 1) * timed::kHeads},
          {first, first + timed::kDim}, 0.5f, 0);
      want.push_back(exact.value);  // sums of few bits: exact
      CHECK(got[static_cast<std::size_t>(query * context + t)] == exact.value);
    }
    const auto first = taken.begin() + query * top_k;
    std::sort(first, first + top_k);
    CHECK(std::vector<int>(first, first + top_k) == reference_top_k(want, top_k));
  }
}

TEST_CASE("Sparse attention: decoding reads the rows of any choice, also of none",
          "[sparse_attention]") {
  const auto device = timed_device();
  constexpr int kBatch = 3, kChosen = 45, kPage = 4, kPages = 20;
  constexpr int kHeads = timed::kHeadsOfBlock, kRow = timed::kRowNumbers;
  std::mt19937 generator = lab::generator_of(2);
  const auto cache = lab::uniform_bf16(generator, std::size_t{kBatch} * kPages * kPage * kRow);
  const auto q = lab::uniform_bf16(generator, std::size_t{kBatch} * kHeads * kRow);
  std::vector<int> pages(kBatch * kPages), chosen(kBatch * kChosen, -1);
  for (int i = 0; i < kBatch * kPages; ++i)
    pages[static_cast<std::size_t>(i)] = (7 * i + 3) % (kBatch * kPages);
  // All places taken, some, and none.
  for (int i = 0; i < kChosen; ++i) chosen[static_cast<std::size_t>(i)] = i + i / 2;
  for (int i = 0; i < 33; ++i) chosen[static_cast<std::size_t>(kChosen + i)] = 2 * i;
  const auto cache_there = lab::uploaded(*device, cache), q_there = lab::uploaded(*device, q);
  const auto pages_there = lab::uploaded(*device, pages), list = lab::uploaded(*device, chosen);
  auto o =
      lab::unwritten<std::uint16_t>(*device, std::size_t{kBatch} * kHeads * timed::kValueNumbers);
  const float scale = 0.07f;
  kernels_of(*device).decode(
      *device, {kBatch, kChosen, kPage, kPages, scale},
      {q_there.span(), cache_there.span(), pages_there.span(), list.span(), o.span()});
  device->synchronize();
  const std::vector<std::uint16_t> got = o.download();
  lab::Closest closest;
  for (int row = 0; row < kBatch * kHeads; ++row) {
    const int request = row / kHeads;
    std::vector<std::vector<std::uint16_t>> rows;
    for (int i = 0; i < kChosen; ++i) {
      const int token = chosen[static_cast<std::size_t>(request * kChosen + i)];
      if (token < 0) continue;
      const int page = pages[static_cast<std::size_t>(request * kPages + token / kPage)];
      const auto first = cache.begin() + std::ptrdiff_t{page * kPage + token % kPage} * kRow;
      rows.emplace_back(first, first + kRow);
    }
    const auto first = q.begin() + std::ptrdiff_t{row} * kRow;
    const auto want = expected_decode({first, first + kRow}, rows, static_cast<double>(scale));
    for (std::size_t n = 0; n < timed::kValueNumbers; ++n) {
      const float its =
          numeric::Bf16::value(got[static_cast<std::size_t>(row) * timed::kValueNumbers + n]);
      closest.add(its, rows.empty() ? 0 : want.value[n], rows.empty() ? 0 : want.bound[n]);
    }
  }
  INFO(closest.error() << " of " << closest.bound());
  CHECK(closest.ok());
  CHECK(tests::contains(tests::error_of([&] {
                          kernels_of(*device).decode(*device, {1, 4000, kPage, kPages, scale}, {});
                        }),
                        "top_k is 4000; allowed: 1–2048"));
}

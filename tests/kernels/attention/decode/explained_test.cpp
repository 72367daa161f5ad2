// The explained kernel against direct softmax in double: schemes, lengths, pages, parts, formats, thread orders.

#include "tests/catch.hpp"
#include "tests/kernels/attention/decode/testing.hpp"

using namespace tilestep;
using namespace tilestep::decode;

namespace {

const std::vector<int> kLengths = {0, 1, 15, 16, 17, 100};

void check(simt::Device& device, const Params& params, const std::vector<int>& contexts) {
  INFO(words(params));
  const Compared c = compared_run(device, params, contexts);
  INFO("O " << c.o.error() << " of " << c.o.bound() << ", log-sum-exp " << c.lse.error() << " of "
            << c.lse.bound());
  CHECK(c.ok());
  for (std::size_t t = 0; t < c.outcome.asked.size(); ++t) {
    INFO("tensor " << t);
    CHECK(c.outcome.asked[t].loaded == c.outcome.formula[t].loaded);
    CHECK(c.outcome.asked[t].stored == c.outcome.formula[t].stored);
  }
}

}  // namespace

TEST_CASE("Decode: every scheme of heads over ragged requests and pages", "[decode]") {
  const auto device = device_under_test();
  for (const Scheme scheme : {Scheme::mha, Scheme::gqa, Scheme::mqa}) {
    for (const PageSize size : {PageSize::p1, PageSize::p16, PageSize::p64, PageSize::p256}) {
      for (const int splits : {0, 1, 3}) {
        check(*device, {.scheme = scheme, .heads = 4, .splits = splits, .page_size = size},
              kLengths);
      }
    }
  }
}

TEST_CASE("Decode: mla over ragged requests, pages, parts and groups of heads", "[decode]") {
  const auto device = device_under_test();
  for (const PageSize size : {PageSize::p1, PageSize::p16, PageSize::p64, PageSize::p256}) {
    for (const int splits : {0, 1, 3}) {
      check(*device, {.scheme = Scheme::mla, .heads = 4, .splits = splits, .page_size = size},
            kLengths);
    }
  }
  // More heads than a block has room for, and a number of them that 32 does not divide.
  check(*device, {.scheme = Scheme::mla, .heads = 48, .head_dim = HeadDim::d128, .splits = 2},
        {40});
  check(*device, {.scheme = Scheme::mla, .heads = 2, .splits = 4}, {1000, 3});
  check(*device, {.scheme = Scheme::mla, .heads = 1, .splits = 0, .page_size = PageSize::p64},
        {32768});
}

TEST_CASE("Decode: a shared prefix is read once for several requests, or by each", "[decode]") {
  const auto device = device_under_test();
  const std::vector<int> lengths = {40, 0, 33, 50, 32, 17, 64};
  for (const Scheme scheme : all_of<Scheme>()) {
    for (const PageSize size : {PageSize::p1, PageSize::p4, PageSize::p16}) {
      for (const int splits : {0, 1, 3}) {
        Params params{.scheme = scheme, .heads = 4, .splits = splits, .page_size = size};
        params.prefix = 33;
        check(*device, params, lengths);
        params.prefix_read = PrefixRead::per_request;
        check(*device, params, lengths);
      }
    }
  }
  // More query rows than a block has room for.
  Params wide{.scheme = Scheme::mqa, .heads = 24, .splits = 2};
  wide.prefix = 32;
  check(*device, wide, lengths);
}

TEST_CASE("Decode: K of a prefix that is read once is asked for once a group", "[decode]") {
  const auto device = device_under_test();
  Params params{.heads = 4, .kv_heads = 2, .splits = 1};
  params.prefix = 32;
  const std::vector<int> lengths = {40, 33, 50, 32};
  const Compared once = compared_run(*device, params, lengths);
  params.prefix_read = PrefixRead::per_request;
  const Compared each = compared_run(*device, params, lengths);
  const std::int64_t row = columns_of(params.head_dim) * 2 * params.kv_heads;
  CHECK(each.outcome.asked[paged::kK].loaded == (40 + 33 + 50 + 32) * row);
  CHECK(once.outcome.asked[paged::kK].loaded == (32 + 8 + 1 + 18 + 0) * row);
}

TEST_CASE("Decode: a long request beside short ones", "[decode]") {
  const auto device = device_under_test();
  check(*device, {.heads = 2, .kv_heads = 1, .splits = 5}, {3, 1000, 40});
  check(*device, {.heads = 2, .kv_heads = 2, .splits = 0, .page_size = PageSize::p4}, {1000});
  check(*device, {.scheme = Scheme::mqa, .heads = 1, .splits = 0, .page_size = PageSize::p64},
        {32768, 9});
}

TEST_CASE("Decode: groups of query heads take one to four strips of rows", "[decode]") {
  const auto device = device_under_test();
  for (const int heads : {1, 8, 9, 16, 17, 32, 33, 64}) {
    check(*device, {.scheme = Scheme::mqa, .heads = heads, .splits = 2}, {33, 5});
  }
}

TEST_CASE("Decode: formats of the cache, scales and head dimensions", "[decode]") {
  const auto device = device_under_test();
  for (const KvType type : all_of<KvType>()) {
    for (const Scales scales : all_of<Scales>()) {
      for (const HeadDim dim : all_of<HeadDim>()) {
        check(*device,
              {.heads = 4, .kv_heads = 2, .head_dim = dim, .kv_dtype = type, .scales = scales},
              {40, 17});
      }
    }
  }
}

TEST_CASE("Decode: no order of the threads changes an answer", "[decode]") {
  const Params params{.heads = 4, .kv_heads = 1, .splits = 3};
  const auto device = device_under_test();
  const Compared first = compared_run(*device, params, {70, 20});
  for (const simt::ThreadOrder order :
       {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    for (const auto completion : {simt::Completion::latest, simt::Completion::seeded}) {
      for (const std::uint64_t seed : {1, 2}) {
        const auto other = device_under_test(order, seed, completion);
        const Compared c = compared_run(*other, params, {70, 20});
        CHECK(c.outcome.o == first.outcome.o);
        CHECK(c.outcome.lse == first.outcome.lse);
      }
    }
  }
}

TEST_CASE("Decode: parts that are not merged, and a stale page, are found", "[decode]") {
  const auto device = device_under_test();
  Params params{.heads = 4, .kv_heads = 1, .splits = 3, .broken = Break::unmerged_splits};
  CHECK_FALSE(compared_run(*device, params, {70, 20}).ok());
  params.broken = Break::repeat_kv;
  const Compared repeated = compared_run(*device, params, {70, 20});
  CHECK(repeated.ok());
  CHECK(repeated.outcome.asked == repeated.outcome.formula);
  params.broken = Break::none;
  const Compared once = compared_run(*device, params, {70, 20});
  CHECK(repeated.outcome.asked[paged::kK].loaded == 4 * once.outcome.asked[paged::kK].loaded);
  // A page of one request in the table of another.
  Inputs inputs = once.inputs;
  inputs.tables[0][2] = inputs.tables[1][0];
  const Cache cache = cache_of(once.inputs, params.kv_dtype, params.scales);
  const Outcome stale = run_explained(*device, params, inputs, cache, {});
  CHECK_FALSE(lab::compared(stale.o, once.exact.o, once.exact.o_bound).ok());
}

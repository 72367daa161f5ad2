// The explained kernel against direct softmax in double: schemes, lengths, pages, parts, formats, thread orders.

#include <cmath>

#include "tests/catch.hpp"
#include "tests/kernels/attention/decode/testing.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::decode;

namespace {

/// mla's kernel has one size.
int head_dim_of(Scheme scheme) {
  return scheme == Scheme::mla ? kLatentHeadDim : kHeadDim;
}

void check(simt::Device& device, const Case& params, const std::vector<int>& contexts) {
  INFO(words(params));
  const Compared c = compared_run(device, params, contexts);
  c.check(c.answer());
  for (std::size_t t = 0; t < c.outcome.asked.size(); ++t) {
    INFO("tensor " << t);
    CHECK(c.outcome.asked[t] == c.outcome.formula[t]);
  }
}

}  // namespace

TEST_CASE("Decode: every scheme over ragged requests, pages, parts and prefixes", "[decode]") {
  const auto device = device_under_test();
  tests::Part part("decode explained", 4);
  for (const Scheme scheme : all_of<Scheme>()) {
    for (const int size : {1, 4, 16, 64, 256}) {
      for (const int splits : {0, 1, 3}) {
        for (const int prefix : {0, 33}) {
          // mla shares no pages, and each of its blocks computes a whole tile of 64 tokens and heads.
          if (scheme == Scheme::mla && (prefix > 0 || size == 4 || size == 256)) continue;
          if (part.skips()) continue;
          check(*device,
                {.scheme = scheme,
                 .heads = 4,
                 .head_dim = head_dim_of(scheme),
                 .splits = splits,
                 .page_size = size,
                 .prefix = prefix},
                {40, 0, 1, 33, 50, 32, 17, 64});
        }
      }
    }
  }
}

TEST_CASE("Decode: as many heads, parts, blocks and formats as there can be", "[decode]") {
  struct Setting {
    Case params;
    std::vector<int> contexts;
  };
  // Groups of query heads take one, two or four strips of rows.
  std::vector<Setting> settings;
  for (const int heads : {1, 16, 17, 32, 33, 64}) {
    settings.push_back({{.scheme = Scheme::mqa, .heads = heads, .splits = 2}, {33, 5}});
  }
  for (const KvType type : all_of<KvType>()) {
    for (const Scales scales : all_of<Scales>()) {
      if (!is_quantized(type) && scales != Scales::token) continue;
      settings.push_back(
          {{.heads = 4, .kv_heads = 2, .kv_dtype = type, .scales = scales}, {40, 17}});
    }
  }
  const Setting others[] = {
      {{.heads = 2, .kv_heads = 1, .splits = 5}, {3, 300, 40}},
      // A block for each of 132 multiprocessors.
      {{.scheme = Scheme::mqa, .heads = 1, .splits = 0, .page_size = 1}, {400, 9}},
      {{.scheme = Scheme::mla, .heads = 1, .head_dim = 128, .splits = 0}, {400}},
      // Several pairs of tiles, and an odd last one; two blocks of a cluster.
      {{.scheme = Scheme::mla, .heads = 2, .head_dim = 128, .splits = 2}, {700, 3}},
      {{.scheme = Scheme::mla, .heads = 100, .head_dim = 128, .splits = 2}, {330, 20}},
      // More query rows than a block has room for, and a number of them that 32 does not divide.
      {{.scheme = Scheme::mqa, .heads = 24, .splits = 2, .prefix = 32}, {40, 0, 33, 50, 32}},
  };
  settings.insert(settings.end(), std::begin(others), std::end(others));
  const auto device = device_under_test();
  for (const Setting& one : settings) check(*device, one.params, one.contexts);
}

TEST_CASE("Decode: K of a prefix is asked for once a group", "[decode]") {
  const auto device = device_under_test();
  const Case params{.heads = 4, .kv_heads = 2, .splits = 1, .prefix = 32};
  const Compared once = compared_run(*device, params, {40, 33, 50, 32});
  const std::int64_t row = params.head_dim * 2 * params.kv_heads;
  CHECK(once.outcome.asked[paged::kK].loaded == (32 + 8 + 1 + 18 + 0) * row);
}

TEST_CASE("Decode: any row and component can be followed", "[decode]") {
  const auto device = device_under_test();
  struct Setting {
    Case params;
    paged::Followed followed;
  };
  const Setting settings[] = {
      {{.heads = 4, .kv_heads = 2, .splits = 1}, {1, 3, 21}},
      {{.scheme = Scheme::mla, .heads = 4, .head_dim = 128, .splits = 1}, {1, 3, 21}},
      {{.scheme = Scheme::mla, .heads = 80, .head_dim = 128, .splits = 1}, {1, 75, 400}}};
  for (const auto& [params, followed] : settings) {
    INFO(words(params));
    const Compared c = compared_run(*device, params, {40, 290}, followed);
    const Row want = exact_row(c.inputs, followed.request, followed.head);
    int tokens = 0;
    for (std::size_t i = 0; i < c.outcome.items.size(); ++i) {
      double m = -INFINITY;
      for (const paged::StepTrace& step : c.outcome.steps_of(i)) {
        CHECK(static_cast<double>(step.m_before) == m);
        m = std::max(m, static_cast<double>(step.tile_max));
        CHECK(static_cast<double>(step.m_after) == m);
        const auto first = want.scores.begin() + tokens;
        tokens += step.tokens;
        double sum = 0;
        for (auto s = first; s < want.scores.begin() + tokens; ++s) sum += std::exp(*s - m);
        CHECK(static_cast<double>(step.tile_sum) == Approx(sum).epsilon(0.01));
      }
      if (c.outcome.steps_of(i).empty()) continue;
      // The last tile of the request's only item with that head.
      const paged::StepTrace& last = c.outcome.steps_of(i).back();
      CHECK(static_cast<double>(last.l) ==
            Approx(std::exp(want.log_sum - static_cast<double>(last.m_after))).epsilon(0.01));
      CHECK(static_cast<double>(last.o / last.l) ==
            Approx(want.o[static_cast<std::size_t>(followed.component)]).margin(0.01));
    }
    CHECK(tokens == 290);
  }
}

TEST_CASE("Decode: no order of the threads changes an answer", "[decode]") {
  const Case params{.heads = 4, .kv_heads = 1, .splits = 3};
  const auto device = device_under_test();
  const Compared first = compared_run(*device, params, {70, 20});
  for (const simt::ThreadOrder order :
       {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    for (const auto completion : {simt::Completion::latest, simt::Completion::seeded}) {
      const Compared c = compared_run(*device_under_test(order, 2, completion), params, {70, 20});
      CHECK(c.outcome.o == first.outcome.o);
      CHECK(c.outcome.lse == first.outcome.lse);
    }
  }
}

TEST_CASE("Decode: parts that are not merged, and a stale page, are found", "[decode]") {
  const auto device = device_under_test();
  Case params{.heads = 4, .kv_heads = 1, .splits = 3, .unmerged = true};
  CHECK_FALSE(compared_run(*device, params, {70, 20}).ok());
  params.unmerged = false;
  params.repeat_kv = true;
  const Compared repeated = compared_run(*device, params, {70, 20});
  CHECK(repeated.ok());
  CHECK(repeated.outcome.asked == repeated.outcome.formula);
  params.repeat_kv = false;
  const Compared once = compared_run(*device, params, {70, 20});
  CHECK(repeated.outcome.asked[paged::kK].loaded == 4 * once.outcome.asked[paged::kK].loaded);
  // A page of one request in the table of another.
  Inputs inputs = once.inputs;
  inputs.tables[0][2] = inputs.tables[1][0];
  const Outcome stale = run_explained(*device, params, inputs, once.cache, {});
  CHECK_FALSE(lab::compared(stale.o, once.exact.o, once.exact.o_bound).ok());
}

// The timed kernels against direct softmax in double: lengths, pages, parts, formats, groups, thread orders. They run
// as the bench launches them, with several teams of warps and rings of stages.

#include <algorithm>
#include <span>

#include "kernels/attention/kv_cache/on_device.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/decode/testing.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::decode;

namespace {

struct How {
  bool balanced = false;
  int parts = 1;  ///< splits, or blocks of balanced pieces
  bool repeat_kv = false, merge_apart = false;
};
paged::WorkPlan cut_into(const paged::Cut& cut, const std::vector<int>& contexts, const How& how) {
  return how.balanced ? paged::balanced_plan(cut, contexts, how.parts)
                      : paged::even_plan(cut, contexts, how.parts);
}

Answer paged_answer(simt::Device& device, const Given& of, const How& how, int launches = 1) {
  const auto& [params, inputs, cache, exact] = of;
  const paged::WorkPlan plan = cut_into(
      {params.heads, params.cached_heads(), inputs.page_size, how.repeat_kv}, inputs.contexts, how);
  paged::Problem problem = paged_problem_of(params, inputs, plan);
  problem.merged_by = how.merge_apart ? paged::MergedBy::other_kernel : paged::MergedBy::last_block;
  OnDevice on(device, inputs, cache, plan, problem.most_rows);
  const paged::Arrays arrays = on.arrays();
  const Kernels& kernels = kernels_of(device);
  for (int i = 0; i < launches; ++i) {
    kernels.attend(device, problem, arrays);
    if (how.merge_apart) kernels.merge(device, problem, arrays);
  }
  return {values_of(on.o.download()), on.lse.download()};
}

/// Shared pages once for groups of at most `most` requests: by one launch, or by one for them and one for the others.
Answer shared_answer(simt::Device& device, const Given& of, int most, bool two) {
  const auto& [params, inputs, cache, exact] = of;
  const paged::Cut cut{params.heads, params.cached_heads(), inputs.page_size};
  const std::vector<int> table = inputs.flat_tables();
  const auto sharing =
      paged::sharing_of(table, inputs.table_pitch(), inputs.contexts, inputs.page_size, most);
  CHECK_FALSE(sharing.empty());
  paged::TwoPlans plans = paged::balanced_plans(cut, inputs.contexts, 3, 4, sharing);
  if (!two) plans.own = paged::balanced_plan(cut, inputs.contexts, 5, sharing);
  const paged::Problem own = paged_problem_of(params, inputs, plans.own);
  OnDevice on(device, inputs, cache, plans.own, own.most_rows);
  const Kernels& kernels = kernels_of(device);
  if (two) {
    const simt::Buffer<paged::WorkItem> items(device, plans.shared.items);
    const simt::Buffer<int> first_item(device, plans.shared.first_item);
    paged::Arrays arrays = on.arrays();
    arrays.items = items.span();
    arrays.first_item = first_item.span();
    kernels.attend(device, paged_problem_of(params, inputs, plans.shared), arrays);
  }
  kernels.attend(device, own, on.arrays());
  return {values_of(on.o.download()), on.lse.download()};
}

Answer latent_answer(simt::Device& device, const Given& of, const How& how) {
  const auto& [params, inputs, cache, exact] = of;
  const int heads = inputs.layer.heads;
  const paged::WorkPlan plan =
      cut_into({heads, latent::lines_of(heads), inputs.page_size}, inputs.contexts, how);
  OnDevice on(device, inputs, cache, plan, latent::heads_of_item(heads));
  kernels_of(device).attend_latent(device, paged_problem_of(params, inputs, plan), on.arrays());
  return {values_of(on.o.download()), on.lse.download()};
}

Case heads_of(Scheme scheme, int heads, int kv_heads, int size = 16, KvType type = KvType::bf16,
              Scales scales = Scales::token) {
  return {.scheme = scheme,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = 128,
          .page_size = size,
          .kv_dtype = type,
          .scales = scales};
}

}  // namespace

TEST_CASE("Timed decode equals double: lengths, pages and cuts", "[decode]") {
  const auto device = device_under_test();
  tests::Part part("decode timed", 2);
  for (const int size : {1, 16, 64, 256}) {
    const Given of(heads_of(Scheme::gqa, 4, 2, size), {0, 1, 15, 16, 17, 150});
    for (const How& how : {How{false, 1}, How{false, 3}, How{true, 1}, How{true, 5},
                           How{false, 3, true}, How{true, 5, false, true}}) {
      if (part.skips()) continue;
      of.check(paged_answer(*device, of, how));
    }
  }
}

TEST_CASE("Timed decode equals double: formats and groups of query heads", "[decode]") {
  const auto device = device_under_test();
  std::vector<Case> settings;
  for (const KvType type : all_of<KvType>()) {
    for (const Scales scales : all_of<Scales>()) {
      if (!is_quantized(type) && scales != Scales::token) continue;
      settings.push_back(heads_of(Scheme::gqa, 8, 2, 16, type, scales));
    }
    // In the narrow kernel, in that of sixteen rows, and in the wide one.
    for (const int heads : {1, 9, 32, 64}) {
      settings.push_back(heads_of(Scheme::mqa, heads, 1, 16, type));
    }
  }
  tests::Part part("decode timed formats", 2);
  for (const Case& params : settings) {
    if (part.skips()) continue;
    const Given of(params, {70, 33});
    of.check(paged_answer(*device, of, {true, 3}));
  }
}

TEST_CASE("Timed decode: a long request in many parts, and one launch after another", "[decode]") {
  const auto device = device_under_test();
  const Given of(heads_of(Scheme::mqa, 2, 1), {500, 3});
  of.check(paged_answer(*device, of, {true, 7}));
  // What counts the parts that have arrived is left as it was found.
  of.check(paged_answer(*device, of, {false, 5}, 3));
}

TEST_CASE("Timed decode: no order of the threads changes an answer", "[decode]") {
  const Given of(heads_of(Scheme::gqa, 4, 2), {150, 20});
  const How how{true, 3};
  const Answer first = paged_answer(*device_under_test(), of, how);
  for (const simt::ThreadOrder order :
       {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    for (const auto completion : {simt::Completion::latest, simt::Completion::seeded}) {
      const auto other = device_under_test(order, 3, completion);
      CHECK(paged_answer(*other, of, how) == first);
    }
  }
}

TEST_CASE("Timed decode reads a shared prefix once for several requests", "[decode]") {
  tests::Part part("decode timed prefix", 4);
  for (const simt::ThreadOrder order :
       {simt::ThreadOrder::ascending, simt::ThreadOrder::shuffled}) {
    const auto device = device_under_test(order, 5);
    for (const int size : {1, 16}) {
      for (const KvType type : {KvType::bf16, KvType::int4}) {
        Case params = heads_of(Scheme::gqa, 8, 2, size, type);
        params.prefix = 32;
        const Given of(params, {50, 32, 97, 20, 3, 64});
        // One launch for all; two over the same slots; groups of as many requests as there is room for, and of two.
        for (const int most : {2, 16}) {
          for (const bool two : {false, true}) {
            if (part.skips()) continue;
            of.check(shared_answer(*device, of, most, two));
          }
        }
      }
    }
  }
}

TEST_CASE("Timed decode refuses what it is not compiled for", "[decode]") {
  const auto device = device_under_test();
  Case params = heads_of(Scheme::gqa, 4, 2);
  params.head_dim = 32;
  const Given of(params, {5});
  CHECK(tests::contains(tests::error_of([&] { paged_answer(*device, of, {false, 1}); }), "128"));
}

TEST_CASE("Latent decode equals double: lengths, pages, parts and heads", "[decode]") {
  const auto device = device_under_test();
  tests::Part part("decode latent", 2);
  for (const int size : {1, 16, 64, 256}) {
    const Given of(heads_of(Scheme::mla, 16, 1, size), {0, 1, 65, 130});
    for (const How& how : {How{false, 1}, How{true, 3}}) {
      if (part.skips()) continue;
      of.check(latent_answer(*device, of, how));
    }
  }
  for (const int heads : {1, 64, 100, 128, 192}) {
    if (part.skips()) continue;
    const Given of(heads_of(Scheme::mla, heads, 1, 64), {70});
    of.check(latent_answer(*device, of, {false, 2}));
  }
}

TEST_CASE("Latent decode: no order of the threads changes an answer", "[decode]") {
  const Given of(heads_of(Scheme::mla, 128, 1, 16), {100, 20});
  const Answer first = latent_answer(*device_under_test(), of, {true, 2});
  for (const simt::ThreadOrder order :
       {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    for (const auto completion : {simt::Completion::latest, simt::Completion::seeded}) {
      const auto other = device_under_test(order, 3, completion);
      CHECK(latent_answer(*other, of, {true, 2}) == first);
    }
  }
}

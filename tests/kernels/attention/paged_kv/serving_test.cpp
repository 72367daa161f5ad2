// The engine that gives pages out, and what a page costs by formula.

#include "kernels/attention/paged_kv/serving.hpp"

#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::paged_kv;

TEST_CASE("Paged cache: the engine never gives a page to two that do not share it", "[paged_kv]") {
  for (const int prefix : {0, 20, 64}) {
    for (const PageSize size : all_of<PageSize>()) {
      for (std::int64_t seed = 0; seed < 8; ++seed) {
        const Params params{.requests = 12, .page_size = size, .prefix = prefix, .seed = seed};
        const Serving serving = serve(params, 32);
        REQUIRE(serving.steps.size() == 32);
        for (const Served& step : serving.steps) {
          CHECK(step.running.size() <= 4);
          CHECK_FALSE(step.running.empty());
          CHECK(static_cast<int>(step.running.size()) + step.waiting + step.finished == 12);
          std::vector<int> named(step.holders.size());
          for (const Running& one : step.running) {
            CHECK(static_cast<int>(one.pages.size()) ==
                  (one.tokens + serving.page_size - 1) / serving.page_size);
            CHECK(one.tokens <= serving.limit);
            for (const int page : one.pages) ++named[static_cast<std::size_t>(page)];
          }
          CHECK(named == step.holders);
        }
        const auto& last = serving.steps.back();
        CHECK(last.tokens() <= serving.pages * serving.page_size);
      }
    }
  }
}

TEST_CASE("Paged cache: a shared prefix is held once", "[paged_kv]") {
  Params params{.requests = 4, .prefix = 48};
  const Serving serving = serve(params, 1);
  int shared = 0;
  for (const int holders : serving.steps.back().holders) shared += holders > 1 ? 1 : 0;
  CHECK(shared > 0);
  params.prefix = 0;
  CHECK(serve(params, 1).steps.back().free_pages() < serving.steps.back().free_pages());
}

TEST_CASE("Paged cache: a page's keys fill their sectors unless they are shorter", "[paged_kv]") {
  const LayerShape layer{Scheme::gqa, 8, 2, row_shape(Scheme::gqa, 32)};
  const Piece one = piece_of(layer, KvType::bf16, 1);
  CHECK(one.bytes == 64);
  CHECK(one.sectors == 2);
  CHECK(one.of_sectors() == 1);
  // A row in INT4 has 16 bytes, and two rows a sector.
  CHECK(piece_of(layer, KvType::int4, 1).of_sectors() == 0.5);
  CHECK(piece_of(layer, KvType::int4, 4).of_sectors() == 1);
  // Latent rows of 144 numbers, 288 bytes: nine sectors.
  const LayerShape latent{Scheme::mla, 8, 1, row_shape(Scheme::mla, 32)};
  const Piece row = piece_of(latent, KvType::bf16, 1);
  CHECK(row.bytes == 288);
  CHECK(row.sectors == 9);
}

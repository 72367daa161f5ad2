// What is asked about a bench of the lesson on a paged cache: only what its tables have, and with their numbers. The
// numbers here are made up.
#include "scenes/shared/measured.hpp"

#include "scenes/attention/paged_kv/scene.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using Bench = tests::MadeUpBench<scenes::PagedKvScene>;

TEST_CASE("Paged cache: a question about pages has the bench's numbers", "[paged_kv_scene]") {
  CHECK(Bench().answer("page") == "not asked");
  lab::Table pages{"page_sizes", "", {whole("page_size", ""), real("bandwidth", "", "GB/s", 0)}};
  pages.add({1, 3000.0});
  pages.add({16, 4000.0});
  CHECK(Bench({pages}).answer("page") == "20 to 50 %");
}

TEST_CASE("Paged cache: a question about prefixes has the bench's numbers", "[paged_kv_scene]") {
  const auto prefixes = [](double each, double once) {
    lab::Table table{"prefixes",
                     "",
                     {whole("prefix"), column("rung", ""), real("dram", "", "MB", 0),
                      real("speedup", "", "", 2)}};
    table.add({4096, "a copy for each request", 1000.0, 1.0});
    table.add({4096, "stored once, read by each", 600.0, each});
    table.add({4096, "stored once, read once for several", 500.0, once});
    return Bench({table});
  };
  CHECK(prefixes(1.5, 1.2).answer("prefix") == "One copy, read by each request");
  CHECK(prefixes(1.2, 1.5).answer("prefix") == "One copy, read once for eight requests");
  CHECK(prefixes(1.5, 1.52).answer("prefix") == "No difference of more than 5 %");
  CHECK(Bench().answer("prefix") == "not asked");
}

// The Measured tab of the lesson on a paged cache, and its questions. Where a bench lacks a table or column, its
// question is omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/attention/paged_kv/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

Role prefix_role(std::string_view pages) {
  return pages == "a copy for each request" ? Role::muted : Role::sky;
}

std::optional<Question> page_question(const lab::Report& bench) {
  const auto rate = [&](const char* size) {
    return number_with(bench, "page_sizes", {{"page_size", size}}, "bandwidth");
  };
  const auto one = rate("1"), sixteen = rate("16");
  if (!one || !sixteen || *sixteen <= 0) return std::nullopt;
  const double ratio = *one / *sixteen;
  const std::vector<std::string> choices = {"Less than 5 %", "5 to 20 %", "20 to 50 %",
                                            "More than half"};
  const double lost = 1 - ratio;
  const std::size_t is = lost < 0.05 ? 0 : lost < 0.2 ? 1 : lost < 0.5 ? 2 : 3;
  return about_view("Pages", "page",
                    ask("Pages of one token waste nothing. How much of the bandwidth of pages of "
                        "16 do they lose?",
                        choices[is], choices,
                        fmt::format("a row of 256 bytes is still whole sectors, but each needs a "
                                    "table look-up ({:.0f} against {:.0f} GB/s, {}).",
                                    *one, *sixteen, measured::where_measured(bench))));
}

/// A prefix stored once: does L2 not read it once already?
std::optional<Question> prefix_question(const lab::Report& bench) {
  const auto number_of = [&](const char* pages, const char* what) {
    return number_with(bench, "prefixes", {{"prefix", "4096"}, {"rung", pages}}, what);
  };
  const char* const each = "stored once, read by each";
  const char* const once = "stored once, read once for several";
  const auto by_each = number_of(each, "speedup"), together = number_of(once, "speedup");
  const auto copies_mb = number_of("a copy for each request", "dram"),
             each_mb = number_of(each, "dram");
  if (!by_each || !together || !copies_mb || !each_mb) return std::nullopt;
  const std::vector<std::string> choices = {"One copy, read by each request",
                                            "One copy, read once for eight requests",
                                            "No difference of more than 5 %"};
  const double ratio = *by_each / *together;
  const std::size_t is = ratio > 1.05 ? 0 : ratio < 1 / 1.05 ? 1 : 2;
  return about_view(
      "Prefix", "prefix",
      ask("Half of each 8192-token context is a prefix that all 64 requests share. Which step is "
          "faster?",
          choices[is], choices,
          fmt::format("L2 already spares DRAM most reads, {:.0f} MB instead of {:.0f}, and the "
                      "queries of eight requests need a kernel with more rows and its own launch "
                      "({:.2f} and {:.2f} times as fast as with copies, {}).",
                      *each_mb, *copies_mb, *by_each, *together, measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> PagedKvScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {page_question(bench), prefix_question(bench)});
}

measured::Spec PagedKvScene::measured_spec() const {
  using namespace measured;
  return {"page_sizes",
          {{.name = "Pages",
            .how = "in shuffled order; the table is read for each page",
            .plots = {Bars{.id = "paged_pages",
                           .unit = "GB/s",
                           .rows = {.table = "page_sizes"},
                           .label = "{page_size} tokens",
                           .value = "bandwidth",
                           .of = "reading alone"}}},
           {.name = "Prefix",
            .how = "time with a prefix copy per request / time",
            .filters = {{"paged_prefix", "prefix", "{}", "7168", "tokens in common"}},
            .plots = {Bars{.id = "paged_prefixes",
                           .unit = "×",
                           .rows = {.table = "prefixes"},
                           .label = "rung",
                           .value = "speedup",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .note = "{dram} MB of DRAM",
                           .role = prefix_role}},
            .needs = "prefixes"}}};
}

}  // namespace tilestep::scenes

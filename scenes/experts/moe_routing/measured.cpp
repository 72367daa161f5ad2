// The Measured tab of the MoE lesson: useful TFLOP/s of each scheme against skew and against the
// number of experts beside cuBLAS called once per expert, the recorded blocks over time, and what
// the hardware counted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

namespace {

/// Adds the routing with its skew as one name, how uneven it is as a number where it has one, and
/// the library's rate on the same routing as rows of their own.
lab::Table with_library(lab::Table rates) {
  const auto routing = [&](std::size_t row) { return text_in(rates, row, "routing"); };
  const std::size_t measured = rates.rows.size();
  std::set<std::string> known;
  for (std::size_t row = 0; row < measured; ++row) {
    const auto library = number_in(rates, row, "cublas_tflops");
    if (!library || !known.insert(filled_in("{routing} {skew} {experts}", rates, row)).second) {
      continue;
    }
    auto peer = rates.rows[row];
    for (std::size_t c = 0; c < rates.columns.size(); ++c) {
      const std::string& id = rates.columns[c].id;
      if (id == "scheme") peer[c] = "cuBLAS loop";
      if (id == "tflops") peer[c] = *library;
      if (id == "p10" || id == "p90" || id == "of_cublas") peer[c] = lab::Cell();
    }
    rates.rows.push_back(std::move(peer));
  }
  add_column(rates, "case", [&](std::size_t row) -> lab::Cell {
    return routing(row) == "skewed" ? filled_in("skewed {skew}", rates, row) : routing(row);
  });
  add_column(rates, "unevenness", [&](std::size_t row) -> lab::Cell {
    if (routing(row) == "balanced") return 0.0;
    const auto skew = number_in(rates, row, "skew");
    return skew && routing(row) == "skewed" ? lab::Cell(*skew) : lab::Cell();
  });
  return rates;
}

/// The rates of one launch and of a loop of calls over the tokens per active expert, which are FLOP per byte of its
/// two-byte weights.
lab::Table by_tokens(lab::Table rates) {
  constexpr double kTokens = 8192;
  rates = with_library(std::move(rates));
  add_column(rates, "tokens", [&](std::size_t row) -> lab::Cell {
    const std::string scheme = text_in(rates, row, "scheme"),
                      routing = text_in(rates, row, "routing");
    const double experts = number_in(rates, row, "experts").value_or(1);
    if (scheme != "packed" && scheme != "cuBLAS loop") return {};
    if (routing == "balanced") return kTokens / experts;
    return routing == "one-hot" && experts > 8 ? lab::Cell(kTokens) : lab::Cell();
  });
  std::stable_sort(rates.rows.begin(), rates.rows.end(),
                   [](const auto& a, const auto& b) { return a.back() < b.back(); });
  return rates;
}

lab::Table with_case(lab::Table gantt) {
  add_column(gantt, "case", [&](std::size_t row) -> lab::Cell {
    return filled_in("{scheme}, {routing}", gantt, row);
  });
  return gantt;
}

lab::Table with_millions(lab::Table counters) {
  add_column(counters, "millions", [&](std::size_t row) -> lab::Cell {
    const auto count = number_in(counters, row, "tensor_instructions");
    return count ? lab::Cell(fmt::format("{:.1f}", *count / 1e6)) : lab::Cell();
  });
  return counters;
}

measured::Bars bars(const char* id, const char* title) {
  return {.id = id,
          .title = title,
          .unit = "TFLOP/s",
          .rows = {.table = "moe_rate", .prepare = with_library},
          .label = "scheme",
          .value = "tflops",
          .fraction = "of_cublas",
          .of = "the loop"};
}

// ---- the recorded blocks over time --------------------------------------------------------------

/// The numbers of the blocks, sorted.
std::vector<int> blocks_of(const lab::Table& spans) {
  std::set<int> blocks;
  for (std::size_t row = 0; row < spans.rows.size(); ++row) {
    blocks.insert(static_cast<int>(number_in(spans, row, "block").value_or(0)));
  }
  return {blocks.begin(), blocks.end()};
}

double time_in(const lab::Table& spans, std::size_t row, const char* id) {
  return number_in(spans, row, id).value_or(0);
}
int expert_in(const lab::Table& spans, std::size_t row) {
  return static_cast<int>(number_in(spans, row, "expert").value_or(0));
}

/// A row per block, in the colours of the experts whose tiles it ran, where these are few enough to have colours.
picture::Picture recorded_blocks(const lab::Table& spans) {
  using namespace picture;
  const std::vector<int> blocks = blocks_of(spans);
  Spans tiles;
  tiles.x = "time";
  tiles.lanes = "block";
  tiles.items = items("recorded_tile", static_cast<int>(spans.rows.size()));
  double busy = 0;
  int experts = 0;
  for (std::size_t row = 0; row < spans.rows.size(); ++row)
    experts = std::max(experts, expert_in(spans, row) + 1);
  for (std::size_t row = 0; row < spans.rows.size(); ++row) {
    const int block = static_cast<int>(number_in(spans, row, "block").value_or(0));
    const auto lane = std::lower_bound(blocks.begin(), blocks.end(), block) - blocks.begin();
    tiles.lane.push_back(static_cast<int>(lane));
    tiles.begin.push_back(time_in(spans, row, "begin_us"));
    tiles.end.push_back(time_in(spans, row, "end_us"));
    tiles.now = std::max(tiles.now, tiles.end.back());
    busy += tiles.end.back() - tiles.begin.back();
    tiles.items.tone.each.push_back(category_tone(expert_in(spans, row), experts));
    tiles.items.names.push_back(fmt::format("E{}", expert_in(spans, row)));
  }
  const auto count = static_cast<std::int64_t>(blocks.size());
  const double all = std::max(tiles.now * static_cast<double>(count), 1e-9);
  std::vector<std::string> names;
  for (const int block : blocks) names.push_back(fmt::format("block {}", block));
  const std::vector<Axis> axes = {
      {.name = "time", .high = std::max(tiles.now, 1e-9), .title = text("µs"), .ticks = true},
      {.name = "block",
       .kind = Axis::band,
       .count = static_cast<int>(count),
       .names = std::move(names),
       .least_slot = 1}};
  Box box = picture::box({"recorded_blocks"}, {tiles});
  box.left = 4;
  return {text(fmt::format("{}: {} recorded, {:.0f} µs, {} of their time in tiles",
                           text_in(spans, 0, "case"), words::counted(count, "block"), tiles.now,
                           words::percent(busy / all))),
          axes, std::move(box)};
}

std::string explain_tile(const lab::Table& spans, const picture::Key& key) {
  if (key.name != picture::Name("recorded_tile")) return {};
  return filled_in(
      "Block {block} multiplied a tile of expert {expert} from {begin_us} to {end_us} µs.", spans,
      static_cast<std::size_t>(key.i));
}

}  // namespace

measured::Spec MoeRoutingScene::measured_spec() const {
  using namespace measured;
  using moe_routing::Routing;
  const std::string how =
      "8192 tokens, 4096 × 4096 experts, top-1, BF16, random data, median; useful: 2 · kept tokens "
      "· 4096² FLOP";
  std::optional<double> here;
  if (params_.routing == Routing::skewed) here = params_.skew;
  if (params_.routing == Routing::balanced) here = 0;
  Bars one_hot = bars("rate_one_hot", "one-hot: all to one expert");
  one_hot.rows.column = "case";
  one_hot.rows.is = "one-hot";
  Bars by_experts = bars("rate_{experts}_experts", "{experts} experts, {case}");
  by_experts.each = "experts";
  return {"moe_rate",
          {{.name = "By skew",
            .how = how,
            .filters = {{"measured_experts", "experts", "{} experts"}},
            .plots = {Lines{.id = "rate_by_skew",
                            .x_label = "skew: exponent of the routing, 0 is balanced",
                            .y_label = "useful TFLOP/s",
                            .rows = by_experts.rows,
                            .x = "unevenness",
                            .series = "scheme",
                            .y = "tflops",
                            .marked_x = here},
                      one_hot}},
           // Few counts were measured: bars side by side show more than a line through two points.
           {.name = "By experts",
            .how = how,
            .filters = {{"measured_routing", "case"}},
            .plots = {by_experts}},
           {.name = "Why grouped",
            .how = how + "; balanced over 64 and 8 experts, and all tokens to one",
            .plots = {Lines{.id = "rate_by_tokens",
                            .x_label = "tokens per expert = FLOP per weight byte",
                            .y_label = "useful TFLOP/s",
                            .x_log = true,
                            .rows = {.table = "moe_rate", .prepare = by_tokens},
                            .x = "tokens",
                            .series = "scheme",
                            .y = "tflops"}}},
           {.name = "Blocks",
            .how = "when each block began and ended its tiles, recorded by the kernel; a row per "
                   "block, in experts' colours",
            .filters = {{"measured_blocks", "case"}},
            .plots = {Pictured{.id = "blocks",
                               .rows = {.table = "gantt", .prepare = with_case},
                               .picture = recorded_blocks,
                               .explain = explain_tile}},
            .needs = "gantt"},
           {.name = "Counters",
            .how = "8 experts, one launch; a padded slot keeps the tensor pipe as busy as a token",
            .plots = {Bars{.id = "tensor_pipe_{routing}",
                           .title = "Tensor pipe active, {routing}",
                           .unit = "%",
                           .rows = {.table = "moe_counters", .prepare = with_millions},
                           .label = "scheme",
                           .value = "tensor_pipe",
                           .note = "{millions} M instructions",
                           .each = "routing"}},
            .needs = "moe_counters",
            .missing = kNoCounters}}};
}

}  // namespace tilestep::scenes

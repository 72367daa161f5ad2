// The Measured tab of the MoE lesson: useful TFLOP/s of each scheme against skew and against the
// number of experts beside cuBLAS called once an expert, the recorded blocks over time, and what
// the hardware counted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/strokes.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/ui/axis.hpp"

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

lab::Table with_case(lab::Table gantt) {
  add_column(gantt, "case", [&](std::size_t row) -> lab::Cell {
    return filled_in("{scheme}, {routing}", gantt, row);
  });
  return gantt;
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

int expert_of(const lab::Table& spans, std::size_t row) {
  if (const auto number = number_in(spans, row, "expert")) return static_cast<int>(*number);
  const std::string label = text_in(spans, row, "expert");  // "E3"
  return label.size() > 1 ? std::atoi(label.c_str() + 1) : 0;
}

void draw_time_ticks(const ui::Axis& axis, float left, float width, float y) {
  const float unit_left = left + width - ui::text_size("µs", Font::note).x - px(8);
  for (const double tick : axis.ticks(6)) {
    const float x = left + width * axis.place(tick);
    const std::string text = ui::tick_text(tick);
    if (x + ui::text_size(text, Font::note).x > unit_left) continue;
    ui::draw_text(at(x, y), text, Font::note, Role::muted, tick == 0 ? Align::left : Align::center);
  }
  ui::draw_text(at(left + width, y), "µs", Font::note, Role::muted, Align::right);
}

/// By tone, from 1 on.
constexpr Role kTones[] = {Role::blue, Role::orange,     Role::green, Role::purple,
                           Role::sky,  Role::vermillion, Role::yellow};

/// A row a block, in the colours of the experts whose tiles it ran.
void draw_blocks(const lab::Table& spans, ImVec2 size) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 max = at(min.x + size.x, min.y + size.y);
  const std::vector<int> blocks = blocks_of(spans);
  const auto time = [&](std::size_t row, const char* id) {
    return number_in(spans, row, id).value_or(0);
  };
  ui::Axis axis;
  double busy = 0;
  axis.high = 0;
  for (std::size_t row = 0; row < spans.rows.size(); ++row) {
    axis.high = std::max(axis.high, time(row, "end_us"));
    busy += time(row, "end_us") - time(row, "begin_us");
  }
  if (blocks.empty() || axis.high <= 0) return;
  const std::string name = text_in(spans, 0, "case");
  const std::string title =
      fmt::format("{}: {} recorded, {:.0f} µs, {} of their time in tiles", name,
                  words::counted(static_cast<std::int64_t>(blocks.size()), "block"), axis.high,
                  words::percent(busy / (axis.high * static_cast<double>(blocks.size()))));
  ui::draw_text(min, ui::fitted(title, Font::body_bold, size.x), Font::body_bold);
  const float top = min.y + height_of(Font::body_bold) + px(6);
  const float bottom = max.y - height_of(Font::note) - px(6);
  const float height = std::max(1.0f, (bottom - top) / static_cast<float>(blocks.size()));
  const float width = size.x - px(4);
  area(at(min.x, top), at(min.x + width, bottom), Role::raised, 0.5f);
  for (std::size_t row = 0; row < spans.rows.size(); ++row) {
    const int block = static_cast<int>(time(row, "block"));
    const auto place = std::lower_bound(blocks.begin(), blocks.end(), block) - blocks.begin();
    const float y = top + height * static_cast<float>(place);
    const ImVec2 from = at(min.x + width * axis.place(time(row, "begin_us")), y);
    const ImVec2 to = at(min.x + width * axis.place(time(row, "end_us")),
                         std::min(y + height - (height > px(4) ? 1.0f : 0.0f), bottom));
    const ImU32 color = ui::color(kTones[expert_tone(expert_of(spans, row)) - 1]);
    draw_list()->AddRectFilled(from, to, color);
    draw_inside(from, to, fmt::format("E{}", expert_of(spans, row)), ui::readable_on(color));
  }
  draw_time_ticks(axis, min.x, width, bottom + px(2));
  ui::map("recorded_blocks", name, fmt::format("{} spans", spans.rows.size()), min, max);
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
  return {
      "moe_rate",
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
       // Few counts were measured: bars side by side say more than a line through two points.
       {.name = "By experts",
        .how = how,
        .filters = {{"measured_routing", "case"}},
        .plots = {by_experts}},
       {.name = "Blocks",
        .how = "when each block began and ended its tiles, recorded by the kernel; a row a "
               "block, in its experts' colours",
        .filters = {{"measured_blocks", "case"}},
        .plots = {Custom{
            .id = "blocks", .rows = {.table = "gantt", .prepare = with_case}, .draw = draw_blocks}},
        .needs = "gantt"},
       {.name = "Counters",
        .plots = {Listing{{.table = "moe_counters"}}},
        .needs = "moe_counters",
        .missing = kNoCounters}}};
}

}  // namespace tilestep::scenes

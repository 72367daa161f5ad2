#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "app/shell/panes.hpp"
#include "kernels/base/lab/assets.hpp"
#include "scenes/shared/guide.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using ui::list;

struct TabName {
  Tab tab;
  const char* id;
  const char* label;
};
constexpr std::array<TabName, 5> kTabs = {{{Tab::predict, "tab_predict", "Predict"},
                                           {Tab::data, "tab_data", "Data"},
                                           {Tab::measured, "tab_measured", "Measured"},
                                           {Tab::kernel, "tab_kernel", "Kernel"},
                                           {Tab::glossary, "tab_glossary", "Glossary"}}};

/// How the names of the tabs are set: smaller and closer where the row is short.
struct TabType {
  Font font = Font::body, chosen = Font::body_bold;
  float padding = 12;  ///< design pixels, on each side
};

float width_of(const TabName& tab, const TabType& type) {
  // The bold width for both, so that choosing a tab does not move its neighbours.
  return std::ceil(ui::text_size(tab.label, type.chosen).x) + 2 * px(type.padding);
}

TabType type_for(float room) {
  const auto fits = [&](const TabType& type) {
    float width = 0;
    for (const TabName& tab : kTabs) width += width_of(tab, type);
    return width <= room;
  };
  for (const TabType& type :
       {TabType{}, TabType{Font::body, Font::body_bold, 7}, TabType{Font::note, Font::note, 6}}) {
    if (fits(type)) return type;
  }
  return {Font::note, Font::note, 2};
}

bool tab_label(const TabName& tab, bool chosen, const TabType& type) {
  const Font font = chosen ? type.chosen : type.font;
  const float height = std::round(px(32)), width = width_of(tab, type);
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 max(min.x + width, min.y + height);
  bool pressed = ImGui::InvisibleButton(tab.id, {width, height});
  pressed = ui::Context::current().focus().control(tab.id, min, max).pressed || pressed;
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  ui::draw_text({(min.x + max.x) / 2, min.y + (height - ui::text_size("x", font).y) / 2}, tab.label,
                font, chosen || hovered ? Role::text : Role::muted, ui::Align::center);
  if (chosen) {
    const float in = px(type.padding);
    list().AddRectFilled({min.x + in, max.y + px(2)}, {max.x - in, max.y + px(4)},
                         ui::color(Role::accent), px(1));
  }
  ui::map(tab.id, tab.label, chosen ? "selected" : "", min, max);
  return pressed;
}

/// The report that the Measured tab shows: a bench of this session before what the run carries.
const lab::Report* measured_report(const LessonState& lesson) {
  const lab::Report* report = lesson.report ? &*lesson.report : nullptr;
  const auto hash_of = [](const lab::Report* of) {
    return of != nullptr && of->kernel ? of->kernel->hash : std::string();
  };
  // What was measured of another kernel is no number of the one on show.
  if (lesson.bench && hash_of(&*lesson.bench) == hash_of(report)) return &*lesson.bench;
  return report;
}

// ---- what stands at the right end of the row of tabs
// ---------------------------------------------

void data_tools(ShellState& state, float room) {
  LessonState& lesson = state.session.lesson();
  if (!lesson.report || lesson.report->tables.empty()) return;
  const auto& tables = lesson.report->tables;
  lesson.table = std::clamp(lesson.table, 0, static_cast<int>(tables.size()) - 1);
  std::vector<std::string> titles;
  float wanted = 0, widest = 0;
  for (const lab::Table& table : tables) {
    titles.push_back(table.title);
    wanted += std::ceil(ui::text_size(table.title).x) + px(24);
    widest = std::max(widest, ui::text_size(table.title).x + px(52));
  }
  const float copy = std::round(px(ui::kControlHeight)) + px(8);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float choice = std::min({wanted, room - copy});
  const bool fits = wanted <= room - copy;
  const float list_width = std::min(room - copy, std::ceil(widest));
  ImGui::SetCursorScreenPos({at.x + room - copy - (fits ? choice : list_width), at.y});
  const auto chosen = fits ? ui::segmented("table", titles, lesson.table)
                           : ui::dropdown("table", "Table", titles, lesson.table, list_width);
  if (chosen) lesson.table = *chosen;
  ImGui::SetCursorScreenPos({at.x + room - copy + px(8), at.y});
  const bool copied = state.copied_s && state.now_s() - *state.copied_s < 2;
  if (ui::button("copy_csv", copied ? "Copied" : "Copy CSV",
                 {.icon = copied ? ui::Icon::check : ui::Icon::copy})) {
    const lab::Table& table = tables[static_cast<std::size_t>(lesson.table)];
    const ui::TableLook look = table_look(*lesson.player, table, lesson.cursor);
    ImGui::SetClipboardText(table_text(table, look.hidden, TableForm::csv).c_str());
    state.copied_s = state.now_s();
  }
}

void measured_tools(ShellState& state, float room) {
  LessonState& lesson = state.session.lesson();
  if (!lesson.report || lesson.report->device.backend != "cuda") return;
  if (!lesson.capsule_day.empty()) return;  // its GPU is perhaps none of this machine's
  const bool busy = lesson.bench_run.has_value();
  const std::string_view begin = !lesson.bench ? "Measure on this GPU" : "Measure all on this GPU";
  std::string label(begin);
  if (busy) {
    label =
        lesson.bench_progress.waiting
            ? "Waits for the run …"
            : fmt::format("Measuring … {:.0f} %", std::floor(100 * lesson.bench_progress.fraction));
  }
  const float stop = busy ? std::round(px(ui::kControlHeight)) + px(8) : 0;
  const float width = std::min(ui::text_size(begin).x + px(24), room - stop);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + room - width - stop, at.y});
  if (ui::button("measure", label, {.primary = !busy, .enabled = !busy, .width = width / px(1)})) {
    state.session.start_bench();
  }
  if (!busy) return;
  ImGui::SetCursorScreenPos({at.x + room - stop + px(8), at.y});
  if (ui::button("stop_measuring", "Stop measuring", {.icon = ui::Icon::cross})) {
    state.session.stop_bench();
  }
}

// ---- the tabs
// ------------------------------------------------------------------------------------

void nothing_yet() {
  ui::empty_state("No numbers yet", "They appear after the first run of the kernel.");
}

void data_tab(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  if (!lesson.report || lesson.report->tables.empty()) return nothing_yet();
  const auto& tables = lesson.report->tables;
  lesson.table = std::clamp(lesson.table, 0, static_cast<int>(tables.size()) - 1);
  const lab::Table& table = tables[static_cast<std::size_t>(lesson.table)];
  const bool clicked = ImGui::IsMouseClicked(ImGuiMouseButton_Left);
  const auto [row, head] = ui::data_table(table, table_look(*lesson.player, table, lesson.cursor));
  if (row >= 0) state.point_at(lesson.scene().subjects_of_row(table.id, row));
  if (head < 0) return;
  const std::string& column = table.columns[static_cast<std::size_t>(head)].id;
  if (const auto subject = lesson.scene().subject_of_column(table.id, column)) {
    state.point_at({*subject});
    if (clicked) state.define(*subject, ImGui::GetIO().MousePos);
  }
}

/// How the last measurement of this session goes or went, where it is not on show.
void measurement_state(const LessonState& lesson) {
  std::string sentence;
  if (lesson.bench_run) {
    const std::string takes =
        !lesson.bench
            ? "about half a minute"
            : fmt::format("at most {} minutes", std::chrono::duration_cast<std::chrono::minutes>(
                                                    ProcessLabOptions().bench_deadline)
                                                    .count());
    sentence = fmt::format(
        "Measuring takes {}. Until then runs wait and the window is idle: move the mouse to update "
        "the progress.{}{}",
        takes, lesson.bench_progress.note.empty() ? "" : " Now: ", lesson.bench_progress.note);
  } else if (lesson.bench_failure) {
    sentence = "The measurement failed: " + failure_sentence(*lesson.bench_failure);
  } else if (lesson.bench_given_up == LabGivenUp::replaced) {
    sentence = "The measurement was cancelled because another one was started.";
  } else if (lesson.bench_given_up == LabGivenUp::cancelled) {
    sentence = "The measurement was stopped.";
  } else {
    return;
  }
  const ImVec2 min = ImGui::GetCursorScreenPos();
  ui::paragraph(sentence, Font::body,
                lesson.bench_run || !lesson.bench_failure ? Role::muted : Role::wrong);
  ui::map("measurement_state", "Measurement", sentence, min, ImGui::GetItemRectMax());
  ui::space(8);
}

void measured_tab(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  const lab::Report* report = measured_report(lesson);
  measurement_state(lesson);
  if (report == nullptr) return nothing_yet();
  lesson.player->draw_measured(*report, [&](const std::string& view) {
    const int item = state.session.predicts() ? lesson.measured_gate.masks(view) : -1;
    if (item < 0) return false;
    state.measured_item = item;
    draw_measured_card(state, item);
    return true;
  });
}

void tab_content(ShellState& state) {
  switch (state.tab) {
    case Tab::predict:
      draw_predict_card(state);
      break;
    case Tab::data:
      data_tab(state);
      break;
    case Tab::measured:
      measured_tab(state);
      break;
    case Tab::kernel:
      draw_kernel_tab(state);
      break;
    case Tab::glossary:
      draw_glossary(state);
      break;
  }
}

void tab_row(ShellState& state) {
  state.kernel_tools_fit = state.form_choice_fits = false;
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float closing = state.staged() ? std::round(px(ui::kControlHeight)) + px(12) : 0;
  const TabType type = type_for(width + px(12) - closing);
  ImGui::SetCursorScreenPos({start.x - px(type.padding), start.y});  // the first one at the edge
  for (std::size_t i = 0; i < kTabs.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, 0);
    if (tab_label(kTabs[i], state.tab == kTabs[i].tab, type) && state.tab != kTabs[i].tab) {
      state.show_tab(kTabs[i].tab);
    }
  }
  const float used = ImGui::GetItemRectMax().x - start.x + px(16);
  float room = width - used;
  if (state.staged()) {
    const float square = std::round(px(ui::kControlHeight));
    ImGui::SetCursorScreenPos({start.x + width - square, start.y});
    if (ui::button("close_tabs", "Close  (Esc)", {.icon = ui::Icon::cross})) state.overlay = false;
    room -= square + px(12);
  }
  if (room > px(80)) {
    ImGui::SetCursorScreenPos({start.x + used, start.y});
    if (state.tab == Tab::data) data_tools(state, room);
    if (state.tab == Tab::measured) measured_tools(state, room);
    if (state.tab == Tab::kernel) state.kernel_tools_fit = draw_kernel_tools(state, room);
  }
  const float bottom = start.y + std::round(px(36));
  list().AddLine({start.x, bottom}, {start.x + width, bottom}, ui::color(Role::border));
  ImGui::SetCursorScreenPos({start.x, bottom + px(4)});
}

}  // namespace

ui::TableLook table_look(const scenes::ScenePlayer& player, const lab::Table& table,
                         scenes::Cursor now) {
  const auto subject_of = [&player, &table](int column) {
    return player.scene().subject_of_column(table.id,
                                            table.columns[static_cast<std::size_t>(column)].id);
  };
  return {
      .current_row = player.scene().table_row(table.id, player.view(now)),
      .lit_row = player.lit_row(table.id),
      .hidden = [&player, &table, now](
                    int row, int column) { return now < player.scene().known(table, row, column); },
      .sign =
          [&player, subject_of](int column) {
            const auto subject = subject_of(column);
            const picture::Symbol* symbol = subject ? player.symbol_of(*subject) : nullptr;
            const bool toned = symbol != nullptr && symbol->tone > 0;
            return toned ? picture::tone_role(symbol->tone) : Role::muted;
          },
      .lit_column =
          [&player, subject_of](int column) {
            const auto subject = subject_of(column);
            return subject && player.is_lit(*subject);
          }};
}

void draw_tabs(ShellState& state, const Layout& layout) {
  const PanelScope panel("tabs", layout.tabs,
                         ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse, 12);
  tab_row(state);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  // A tab of its own keeps its own scroll position.
  const std::string name =
      fmt::format("content_{}_{}", static_cast<int>(state.tab), state.session.chosen());
  const bool scrolls_itself = state.tab == Tab::data || state.tab == Tab::kernel;
  ImGui::BeginChild(
      name.c_str(), {0, 0}, false,
      ImGuiWindowFlags_NoNavInputs |
          (scrolls_itself ? ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse : 0));
  if (!scrolls_itself) ui::scroll_stop("tab");
  tab_content(state);
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

}  // namespace tilestep::app

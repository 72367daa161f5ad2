// Any CUDA file: its source with what its lines move, the costliest requests as pictures, and what was found.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "app/shell/panes.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "scenes/ui/picture_view.hpp"
#include "scenes/ui/roofline.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::list;
using ui::px;
using ui::Role;

/// A rounded panel with a child in it; what is drawn until `end` is inside.
class Pane {
 public:
  Pane(const char* id, ImVec2 min, ImVec2 max) {
    list().AddRectFilled(min, max, ui::color(Role::panel), px(ui::kCorner));
    list().AddRect(min, max, ui::color(Role::border), px(ui::kCorner));
    const float pad = px(12);
    ImGui::SetCursorScreenPos({min.x + pad, min.y + pad});
    ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
    ImGui::BeginChild(
        id, {std::max(max.x - min.x - 2 * pad, 1.0f), std::max(max.y - min.y - 2 * pad, 1.0f)},
        false, ImGuiWindowFlags_NoNavInputs);
    ImGui::PopStyleColor();
  }
  ~Pane() { ImGui::EndChild(); }
  Pane(const Pane&) = delete;
  Pane& operator=(const Pane&) = delete;
};

/// The title of the picture on show, and the cost that it draws.
std::pair<std::string, std::string> title_of(const Inspection& inspection) {
  if (const scenes::InspectedPaths* paths = inspection.chosen_paths()) {
    return {fmt::format("{}, launch {}, {}", paths->kernel, paths->launch, scenes::said_of(*paths)),
            fmt::format("{} lines", paths->lines.size())};
  }
  if (inspection.chosen_request() == nullptr)
    return {"Program, " + scenes::said_of(inspection.timeline()), "calls"};
  const scenes::InspectedRequest& request = *inspection.chosen_request();
  return {
      fmt::format("Line {}, launch {}, {}", request.line, request.launch, scenes::said_of(request)),
      request.shared ? fmt::format("{} of {} turns", request.use, request.moved)
                     : fmt::format("{} of {} sectors", request.use, request.moved)};
}

/// How many times what would do each line moves, in its costliest request.
std::map<int, ui::SourceCost> costs_of(const Inspection& inspection) {
  constexpr float kMuch = 8;  // and more is as hot
  std::map<int, float> worst;
  for (const scenes::InspectedRequest& each : inspection.requests()) {
    const float times =
        static_cast<float>(each.moved) / static_cast<float>(std::max(each.least, 1));
    float& kept = worst[each.line];
    kept = std::max(kept, times);
  }
  std::map<int, ui::SourceCost> costs;
  for (const auto& [line, times] : worst) {
    // Short of the hottest: amber is the line that is chosen, and nothing else.
    const float heat =
        times <= 1 ? 0 : 0.8f * std::clamp(std::log(times) / std::log(kMuch), 0.1f, 1.0f);
    costs[line] = {fmt::format("{:.2g}×", times), heat};
  }
  return costs;
}

void draw_source(Inspection& inspection) {
  ui::text("× the sectors or bank turns that would do", Font::note, Role::muted);
  ui::SourceLook look;
  look.current = inspection.line();
  look.costs = costs_of(inspection);
  if (const lab::Table* findings =
          inspection.report() == nullptr ? nullptr : inspection.report()->table("findings")) {
    for (const auto& row : findings->rows) {
      if (row.size() < 3) continue;
      const auto* line = std::get_if<double>(&row[2]);
      const int number = line == nullptr ? 0 : static_cast<int>(*line);
      auto& marked = look.step_lines;
      if (number > 0 && std::find(marked.begin(), marked.end(), number) == marked.end()) {
        marked.push_back(number);
      }
    }
  }
  ui::LineLinks links;
  ui::source_view("inspected_source", inspection.source(), look, links);
  if (links.clicked > 0) inspection.choose_line(links.clicked);
}

void draw_request(ShellState& state) {
  Inspection& inspection = state.inspection;
  if (inspection.chosen() < 0) {
    ui::empty_state("No access to show",
                    "No kernel of this program has read or written memory that is watched.");
    return;
  }
  const int chosen = inspection.chosen();
  if (ui::button("request_before", "Previous picture  (←)",
                 {.icon = ui::Icon::back, .enabled = chosen > 0}))
    inspection.choose(inspection.chosen() - 1);
  ImGui::SameLine(0, px(4));
  if (ui::button("request_after", "Next picture  (→)",
                 {.icon = ui::Icon::forward, .enabled = chosen + 1 < inspection.pictures()}))
    inspection.choose(inspection.chosen() + 1);
  ImGui::SameLine(0, px(12));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // The picture's own headline, beside the buttons: below it nothing is left to say.
  const auto [title, cost] = title_of(inspection);
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string shown = ui::fitted(title, Font::body_bold, room);
  const ImVec2 drawn = ui::draw_text({at.x, at.y + px(6)}, shown, Font::body_bold);
  ui::map("request", title, cost, at, {at.x + drawn.x, at.y + drawn.y});
  ImGui::NewLine();
  ui::space(4);
  const ImVec2 min = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
  if (size.x < px(80) || size.y < px(60)) return;
  const picture::Area area{min.x, min.y, min.x + size.x, min.y + size.y};
  picture::Picture picture =
      inspection.chosen_request() != nullptr ? scenes::picture_of(*inspection.chosen_request())
      : inspection.chosen_paths() != nullptr ? scenes::picture_of(*inspection.chosen_paths())
                                             : scenes::picture_of(inspection.timeline());
  picture.headline = {};
  const auto shown_picture = ui::laid_out(std::move(picture), area);
  ui::draw(shown_picture->placed);
  ui::map(shown_picture);
  ImGui::Dummy(size);
}

/// The way to the stop of a lesson that explains it.
void draw_lesson_of(ShellState& state, const lab::Table& table, std::size_t row) {
  const std::string id = table.text(row, 6), stop = table.text(row, 7);
  const auto& lessons = state.session.lessons();
  for (std::size_t i = 0; i < lessons.size(); ++i) {
    if (lessons[i].info.id != id) continue;
    const std::string label = fmt::format("Lesson: {}, stop {}", lessons[i].info.title, stop);
    const float width = std::min(ui::text_size(label).x + px(32), ImGui::GetContentRegionAvail().x);
    if (ui::button(fmt::format("finding_{}_lesson", row + 1), label, {.width = width / px(1)})) {
      state.open_lesson(i);
      state.go_to_stop(std::atoi(stop.c_str()) - 1);
    }
  }
}

/// A finding; a press goes to its line.
void draw_finding(ShellState& state, const lab::Table& table, std::size_t row) {
  Inspection& inspection = state.inspection;
  const float width = ImGui::GetContentRegionAvail().x, pad = px(10);
  const bool mistake = table.text(row, 1) == "yes";
  const std::string line = table.text(row, 2);
  std::string title = table.text(row, 0);
  std::replace(title.begin(), title.end(), '_', ' ');
  if (!line.empty()) title += ", line " + line;
  if (!mistake) title += " (slow, not wrong)";
  const std::string text = table.text(row, 5);
  const float height = std::ceil(2 * px(8) + ui::text_size("x", Font::body_bold).y + px(2) +
                                 ui::wrapped_size(text, width - 2 * pad).y);
  const ImVec2 min = ImGui::GetCursorScreenPos(), max(min.x + width, min.y + height);
  const std::string id = fmt::format("finding_{}", row + 1);
  bool pressed = ImGui::InvisibleButton(id.c_str(), {width, height});
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  pressed = ui::Context::current().focus().control(id, min, max).pressed || pressed;
  if (hovered) list().AddRectFilled(min, max, ui::color(Role::raised), px(ui::kControlCorner));
  list().AddRectFilled(min, {min.x + px(3), max.y}, ui::color(mistake ? Role::wrong : Role::muted));
  const ImVec2 head(min.x + pad, min.y + px(8));
  const ImVec2 drawn = ui::draw_text(head, ui::fitted(title, Font::body_bold, width - 2 * pad),
                                     Font::body_bold, mistake ? Role::wrong : Role::text);
  ui::draw_wrapped({head.x, head.y + drawn.y + px(2)}, text, width - 2 * pad);
  ui::map(id, title, text, min, max);
  if (pressed && !line.empty()) inspection.choose_line(std::atoi(line.c_str()));
  draw_lesson_of(state, table, row);
  ui::space(6);
}

/// The task of an exercise, and how the program does.
void draw_step(const Inspection& inspection) {
  if (inspection.exercise().empty()) return;
  const lab::Exercise& exercise = lab::exercise(inspection.exercise());
  if (const StepVerdict* verdict = inspection.verdict()) {
    ui::paragraph(verdict->ok ? "Solved" : verdict->sentence, Font::body_bold,
                  verdict->ok ? Role::good : Role::text);
    ui::map("step_verdict", verdict->ok ? "Solved" : verdict->sentence, verdict->hint,
            ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    if (!verdict->ok && !verdict->hint.empty()) ui::paragraph("Hint: " + verdict->hint);
    ui::space(6);
  }
  ui::paragraph(exercise.task, Font::body, Role::muted);
  ui::map("step_task", exercise.title, exercise.task, ImGui::GetItemRectMin(),
          ImGui::GetItemRectMax());
  ui::space(10);
}

void draw_findings(ShellState& state) {
  draw_step(state.inspection);
  const lab::Table* table = state.inspection.report()->table("findings");
  if (table == nullptr || table->rows.empty() || table->columns.size() < 9) {
    ui::empty_state("No mistake found", "And no request that moves much more than it needs.");
    return;
  }
  for (std::size_t row = 0; row < table->rows.size(); ++row) draw_finding(state, *table, row);
}

/// Tables of a tab; clicking a row selects its line.
void draw_tables(Inspection& inspection, std::initializer_list<const char*> ids) {
  bool any = false;
  for (const char* id : ids) {
    const lab::Table* table = inspection.report()->table(id);
    if (table == nullptr || table->rows.empty()) continue;
    if (any) ui::space(12);
    if (ids.size() > 1) ui::text(table->title, Font::body_bold);
    any = true;
    const ui::TableHover hover = ui::data_table(*table);
    if (hover.row < 0 || !ImGui::IsMouseClicked(ImGuiMouseButton_Left)) continue;
    for (std::size_t column = 0; column < table->columns.size(); ++column) {
      const auto* line =
          std::get_if<double>(&table->rows[static_cast<std::size_t>(hover.row)][column]);
      if (table->columns[column].id == "line" && line != nullptr)
        inspection.choose_line(static_cast<int>(*line));
    }
  }
  if (!any) ui::empty_state("Nothing recorded", "The program did none of that.");
}

std::optional<double> number_in(const lab::Table& table, std::size_t row, std::string_view id) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].id != id) continue;
    const auto* value = std::get_if<double>(&table.rows[row][i]);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  return std::nullopt;
}

/// The launches under the roofline of the chosen GPU: a solid dot was measured, a hollow one is the bound.
void draw_roofline(const lab::Report& report) {
  const lab::Table* table = report.table("roofline");
  const auto gpu = report.trace->find("gpu");
  if (table == nullptr || table->rows.empty() || gpu == report.trace->end()) return;
  const auto peak = [&](const char* id) {
    const auto found = gpu->find(id);
    return found != gpu->end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const double memory = peak("memory_tb_s"), fp32 = peak("fp32_tflops");
  ui::Roofline plot{
      "inspect_roofline", table->title, {{"FP32", fp32, true}}, {{"HBM", memory, true}}, {}};
  std::set<std::string> shown;
  const lab::Table* measured = report.table("measured");
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const double intensity = number_in(*table, row, "intensity").value_or(0);
    const std::string kernel = table->text(row, 1);
    if (intensity <= 0 || !shown.insert(kernel).second) continue;
    ui::RooflineDot dot;
    dot.label = kernel;
    dot.flop_per_byte = intensity;
    dot.tflops = std::min(fp32, intensity * memory);
    dot.provenance = lab::Provenance::derived;
    for (std::size_t i = 0; measured != nullptr && i < measured->rows.size(); ++i) {
      const auto gflop_s = number_in(*measured, i, "gflop_s");
      if (!gflop_s || number_in(*measured, i, "launch") != number_in(*table, row, "launch"))
        continue;
      dot.tflops = *gflop_s * 1e-3;
      dot.provenance = lab::Provenance::measured;
    }
    dot.detail = fmt::format("{}: {:.3g} FLOP per byte", kernel, intensity);
    plot.dots.push_back(std::move(dot));
  }
  if (plot.dots.empty()) return;
  ui::roofline(plot, {ImGui::GetContentRegionAvail().x, std::max(ui::roofline_height(), px(200))});
  ui::space(12);
}

/// How the emulation differs from a GPU for this program.
void draw_differences(const lab::Report& report) {
  const std::vector<std::string> all = scenes::differences_of(report);
  if (all.empty()) return;
  ui::space(12);
  ui::text("Other than on a GPU", Font::body_bold);
  for (const std::string& each : all) ui::paragraph(each);
}

void draw_printed(const lab::Report& report) {
  const auto printed = report.trace->find("printed");
  const std::string text = printed != report.trace->end() && printed->is_string()
                               ? printed->get<std::string>()
                               : std::string();
  if (text.empty())
    return ui::empty_state("Nothing was printed",
                           "Neither on standard output nor on standard error.");
  const ui::FontScope mono(Font::mono);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopTextWrapPos();
}

constexpr const char* kTabs[] = {"Found", "Accesses", "Launches", "Program", "Printed", "Picture"};

/// `with_picture`: there is no room for it above.
void draw_tabs(ShellState& state, bool with_picture) {
  Inspection& inspection = state.inspection;
  const std::vector<std::string> labels(std::begin(kTabs),
                                        std::end(kTabs) - (with_picture ? 0 : 1));
  if (state.inspect_tab >= std::ssize(labels)) state.inspect_tab = 0;
  const float room = ImGui::GetContentRegionAvail().x;
  // A projector's type leaves no room for all of them side by side.
  const auto chosen = ui::segmented_width(labels) <= room
                          ? ui::segmented("inspect_tab", labels, state.inspect_tab, room)
                          : ui::dropdown("inspect_tab", "Shown", labels, state.inspect_tab, room);
  if (chosen) state.inspect_tab = *chosen;
  ui::space(6);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::BeginChild(kTabs[state.inspect_tab], {0, 0}, false,
                    ImGuiWindowFlags_NoNavInputs | ImGuiWindowFlags_HorizontalScrollbar);
  ImGui::PopStyleColor();
  ui::scroll_stop("inspect_rows");
  switch (state.inspect_tab) {
    case 1:
      draw_tables(inspection, {"accesses", "branches"});
      break;
    case 2:
      draw_roofline(*inspection.report());
      draw_tables(inspection, {"launches", "occupancy", "roofline", "measured", "counted"});
      break;
    case 3:
      draw_tables(inspection, {"events"});
      draw_differences(*inspection.report());
      break;
    case 4:
      draw_printed(*inspection.report());
      break;
    case 5:
      draw_request(state);
      break;
    default:
      draw_findings(state);
  }
  ImGui::EndChild();
}

/// The chapter of whole programs: each opens in the user's own folder, to be changed in an editor.
void draw_steps(ShellState& state) {
  ui::space(20);
  ui::text("First steps", Font::body_bold);
  ui::space(4);
  ui::paragraph(
      "Eight programs for those who have never written CUDA, each with one mistake. One opens as a "
      "file in your documents folder; change it in your editor, and it is judged when you save "
      "it.");
  ui::space(8);
  const auto progress = state.progress.lessons.find(std::string(lab::kFirstSteps));
  const float wide = px(300), room = ImGui::GetContentRegionAvail().x;
  const int columns = std::max(1, static_cast<int>(room / (wide + px(8))));
  int at = 0;
  for (const lab::Exercise& each : lab::exercises()) {
    if (each.lesson != lab::kFirstSteps) continue;
    const bool solved =
        progress != state.progress.lessons.end() && progress->second.exercises.count(each.id()) > 0;
    if (at++ % columns != 0) ImGui::SameLine(0, px(8));
    const std::string label = fmt::format("{} {}{}", at, each.title, solved ? "  (solved)" : "");
    if (ui::button(fmt::format("step_{}", at), label, {.width = std::min(wide, room) / px(1)}))
      state.open_step(each);
  }
}

/// Where there is no file yet: its path can be typed, or the file dropped.
void draw_chooser(ShellState& state) {
  ui::text("Any CUDA file", Font::title);
  ui::map("inspect", "Any CUDA file", "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  ui::space(4);
  ui::paragraph(
      "A .cu with its main runs here without a GPU, in a sandbox: its mistakes are named with "
      "their lines, and each line shows "
      "what its accesses cost. Drop a file on the window, or type its path; save it in your "
      "editor, and it runs again.");
  ui::space(12);
  ImGui::SetNextItemWidth(std::min(px(640), ImGui::GetContentRegionAvail().x));
  if (std::exchange(state.inspect_page.types, false)) ImGui::SetKeyboardFocusHere();
  const bool entered = ImGui::InputTextWithHint(
      "##path", "path of a .cu file, then Enter", state.inspect_page.path.data(),
      state.inspect_page.path.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  ui::begin_typing("inspect_path");
  ui::map("inspect_path", "Path of a CUDA file", state.inspect_page.path.data(),
          ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (entered && state.inspect_page.path[0] != '\0') state.inspect(state.inspect_page.path.data());
  if (!state.inspect_refused.empty()) ui::paragraph(state.inspect_refused, Font::body, Role::wrong);
  draw_steps(state);
}

/// Name, what came out, and what can be done.
void draw_head(ShellState& state) {
  Inspection& inspection = state.inspection;
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float buttons = px(236);
  const std::string name = inspection.file().filename().string();
  const ImVec2 title =
      ui::draw_text(at, ui::fitted(name, Font::title, right - at.x - buttons), Font::title);
  const lab::Report* report = inspection.report();
  const std::string said = inspection.running() ? "Compiling and running …"
                           : report != nullptr  ? report->summary
                                                : std::string("It did not run");
  ui::draw_text({at.x, at.y + title.y + px(2)}, ui::fitted(said, Font::body, right - at.x),
                Font::body, Role::muted);
  ui::map("inspect", name, said, at, {right, at.y + title.y + px(2) + ui::text_size("x").y});
  ImGui::SetCursorScreenPos({right - buttons + px(16), at.y});
  if (ui::button("inspect_run", "Run again", {.enabled = !inspection.running(), .width = 100}))
    inspection.run();
  ImGui::SameLine(0, px(8));
  if (ui::button("inspect_other", "Other file", {.width = 100})) state.choose_inspected();
  ImGui::SetCursorScreenPos({at.x, at.y + title.y + ui::text_size("x").y + px(14)});
}

}  // namespace

void draw_inspection(ShellState& state, const Layout& layout, ImVec2 size) {
  const float margin = px(16);
  const ImVec2 from(layout.rail.max.x + margin, px(20)), to(size.x - margin, size.y - margin);
  Inspection& inspection = state.inspection;
  ImGui::SetCursorScreenPos(from);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  const bool chooses = inspection.file().empty();
  // The choice scrolls; the page of a file has panes that do.
  ImGui::BeginChild(
      chooses ? "choice" : "inspection", {to.x - from.x, to.y - from.y}, false,
      ImGuiWindowFlags_NoNavInputs |
          (chooses ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse));
  ImGui::PopStyleColor();
  if (chooses) {
    draw_chooser(state);
    ImGui::EndChild();
    return;
  }
  draw_head(state);
  const float top = ImGui::GetCursorScreenPos().y, gap = px(10);
  const float middle = std::round(from.x + (to.x - from.x) * 0.46f);
  {
    const Pane pane("inspect_source", {from.x, top}, {middle, to.y});
    draw_source(inspection);
  }
  const float left = middle + gap;
  if (inspection.report() == nullptr) {
    const Pane pane("inspect_state", {left, top}, {to.x, to.y});
    if (inspection.running()) {
      ui::empty_state("Running",
                      "The program is compiled for the emulation and runs in the sandbox.");
    } else {
      ui::paragraph(inspection.failure(), Font::body, Role::wrong);
      ui::map("inspect_failure", inspection.failure(), "", ImGui::GetItemRectMin(),
              ImGui::GetItemRectMax());
      if (inspection.needs_trust()) {
        ui::space(8);
        if (ui::button("inspect_trust", "Run it without a sandbox", {.width = 240}))
          inspection.trust();
      }
    }
  } else {
    // The picture needs its lines of type; below it what was found scrolls, or takes turns with it.
    const float split = std::round(top + std::max((to.y - top) * 0.52f, px(320)));
    const bool both = to.y - split >= px(180);
    if (both) {
      const Pane pane("inspect_request", {left, top}, {to.x, split});
      draw_request(state);
    }
    const Pane pane("inspect_tabs", {left, both ? split + gap : top}, {to.x, to.y});
    draw_tabs(state, !both);
  }
  ImGui::EndChild();
}

}  // namespace tilestep::app

#include "app/shell/palette.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>
#include <utility>

#include "app/shell/panes.hpp"
#include "scenes/shared/glossary.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

std::string lower(std::string_view text) {
  std::string all(text);
  std::transform(all.begin(), all.end(), all.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

/// 0: is called so; 1: begins so; 2: a word does; 3: all words of the query stand in it; kNotFound.
constexpr int kNotFound = 4;
int rank_of(const std::string& name, const std::string& query) {
  if (name == query) return 0;
  if (name.starts_with(query)) return 1;
  if (name.find(" " + query) != std::string::npos) return 2;
  std::string_view words(query);
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (name.find(words.substr(0, end)) == std::string::npos) return kNotFound;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return 3;
}

void add_actions(std::vector<Find>& all) {
  using Go = std::function<void(ShellState&)>;
  const std::vector<std::tuple<const char*, const char*, const char*, Go>> actions = {
      {"play", "Play or pause", "Space", [](ShellState& s) { s.session.toggle_play(); }},
      {"next", "Next step", "→", [](ShellState& s) { s.go_on(); }},
      {"back", "Step back", "←", [](ShellState& s) { s.session.step_back(); }},
      {"first", "First step", "Home", [](ShellState& s) { s.session.first(); }},
      {"last", "Last step", "End", [](ShellState& s) { s.session.last(); }},
      {"event", "Next event", "N", [](ShellState& s) { s.session.next_event(); }},
      {"reset", "Reset knobs and step", "R", [](ShellState& s) { s.session.reset(s.now_s()); }},
      {"compare", "Compare with another run", "B", [](ShellState& s) { s.toggle_compare(); }},
      {"reader", "Lesson text", "L", [](ShellState& s) { s.set_reader(!s.reader); }},
      {"presenter", "Presenter mode", "P",
       [](ShellState& s) { s.set_presenter(!s.ui.look().presenter); }},
      {"theme", "Dark or light theme", "T", [](ShellState& s) { s.toggle_theme(); }},
      {"data", "Data", "D", [](ShellState& s) { s.show_tab(Tab::data); }},
      {"measured", "Measured", "M", [](ShellState& s) { s.show_tab(Tab::measured); }},
      {"kernel", "Kernel source", "K", [](ShellState& s) { s.show_tab(Tab::kernel); }},
      {"edit_kernel", "Edit the kernel", "", [](ShellState& s) { s.show_editor(); }},
      {"run_kernel", "Run the edited kernel", "Ctrl+Enter", [](ShellState& s) { s.run_kernel(); }},
      {"trial", "To a setting where the edited kernel is wrong, and back", "F8",
       [](ShellState& s) { s.go_to_trial(); }},
      {"original_kernel", "Back to the original kernel", "",
       [](ShellState& s) { s.leave_kernel(); }},
      {"ptx", "PTX beside the kernel", "S",
       [](ShellState& s) { s.show_assembly(workbench::AssemblyForm::ptx); }},
      {"sass", "SASS beside the kernel", "S",
       [](ShellState& s) { s.show_assembly(workbench::AssemblyForm::sass); }},
      {"no_assembly", "Kernel source only", "S",
       [](ShellState& s) { s.show_assembly(std::nullopt); }},
      {"glossary", "Glossary", "G", [](ShellState& s) { s.show_tab(Tab::glossary); }},
      {"predictions", "Questions on or off", "",
       [](ShellState& s) { s.session.set_predicts(!s.session.predicts()); }},
      {"motion", "Reduce motion on or off", "", [](ShellState& s) { s.toggle_motion(); }},
      {"larger", "Larger text", "",
       [](ShellState& s) { s.set_text_scale(s.ui.look().text_scale + 0.25f); }},
      {"smaller", "Smaller text", "",
       [](ShellState& s) { s.set_text_scale(s.ui.look().text_scale - 0.25f); }},
      {"note", "Note about what is on show", "", [](ShellState& s) { s.open_note(true); }},
      {"keys", "Keys", "?", [](ShellState& s) { s.key_list = true; }},
      {"home", "Home: the course and your progress", "H", [](ShellState& s) { s.show_home(true); }},
      {"coach", "Tour of this window", "",
       [](ShellState& s) {
         s.show_home(false);
         s.coach.begin();
       }},
      {"full_screen", "Full screen", "F11", [](ShellState& s) { s.full_screen_toggle = true; }},
  };
  for (const auto& [id, name, key, go] : actions) {
    all.push_back({fmt::format("find_action_{}", id), name, "action", key, go});
  }
}

/// What can be kept. `shell_state.asked_to_keep` is what the window looks for.
void add_keeping(std::vector<Find>& all) {
  const std::vector<std::tuple<const char*, const char*, const char*, Keep>> kinds = {
      {"capsule", "Save all that is on show (capsule)", "Ctrl+S", Keep::capsule},
      {"picture_png", "Save the picture as PNG", "Ctrl+Shift+S", Keep::picture_png},
      {"picture_svg", "Save the picture as SVG", "", Keep::picture_svg},
      {"table_csv", "Save the table as CSV", "", Keep::table_csv},
      {"table_json", "Save the table as JSON", "", Keep::table_json},
      {"table_copy", "Copy the table", "Ctrl+C", Keep::table_copy},
      {"link", "Copy the link to this place", "", Keep::link},
  };
  for (const auto& [id, name, key, what] : kinds) {
    all.push_back(
        {fmt::format("find_keep_{}", id), name, "action", key, [kind = what](ShellState& s) {
           s.asked_to_keep = KeepRequest{kind, 2};
         }});
  }
}

void add_knobs(const ShellState& state, std::vector<Find>& all) {
  const LessonState& lesson = state.session.lesson();
  for (const lab::Knob& knob : lesson.knobs) {
    all.push_back({"find_knob_" + knob.id, knob.label, "knob", "",
                   [id = knob.id](ShellState& s) { s.session.ask_knob(id); }});
    std::vector<std::pair<std::string, lab::KnobValue>> values;
    if (knob.kind == lab::KnobKind::toggle) values = {{"off", false}, {"on", true}};
    for (const std::string& choice : knob.choices) values.emplace_back(choice, choice);
    for (auto& [words, value] : values) {
      all.push_back(
          {fmt::format("find_knob_{}_{}", knob.id, words), fmt::format("{}: {}", knob.label, words),
           "knob", "",
           [id = knob.id, set = value](ShellState& s) { s.session.set_knob(id, set, s.now_s()); }});
    }
  }
}

void add_sources(const ShellState& state, std::vector<Find>& all) {
  const std::string& lesson = state.session.lesson().info.id;
  for (const std::string& path : workbench::editable_sources(lesson)) {
    const std::string name(workbench::name_of_file(path));
    all.push_back({"find_source_" + name, name, "source", "Under Kernel",
                   [path](ShellState& s) { s.open_source(path); }});
  }
  for (const std::string& path : workbench::shared_headers(lesson)) {
    const std::string name(workbench::name_of_file(path));
    all.push_back({"find_source_" + name, name, "source", "Shared by the lessons' kernels",
                   [path](ShellState& s) { s.open_source(path); }});
  }
}

/// Of this lesson first.
void add_exercises(const ShellState& state, std::vector<Find>& all) {
  const std::string& here = state.session.lesson().info.id;
  for (const bool own : {true, false}) {
    for (const lab::Exercise& each : lab::exercises()) {
      if (each.is_program() || (each.lesson == here) != own) continue;  // the editor has kernels
      const auto done = state.progress.lessons.find(each.lesson);
      const bool solved =
          done != state.progress.lessons.end() && done->second.exercises.count(each.id()) > 0;
      all.push_back({"find_exercise_" + each.id(), "Exercise: " + each.title, "exercise",
                     fmt::format("{}, {}", each.lesson, solved ? "solved" : "open"),
                     [&each](ShellState& s) { s.open_exercise(each); }});
    }
  }
}

void add_labs(const ShellState& state, std::vector<Find>& all) {
  const auto& offers = state.session.offers();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    all.push_back({fmt::format("find_lab_{}", offers[i].id), "Run on: " + offers[i].name, "lab",
                   offers[i].detail, [i](ShellState& s) { s.session.choose_lab(i, s.now_s()); }});
  }
}

/// One line of the list.
bool line(const Find& find, bool selected, float width) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float height = std::round(px(34));
  const ImVec2 max(min.x + width, min.y + height);
  const bool pressed = ImGui::InvisibleButton(find.id.c_str(), {width, height});
  ImDrawList& list = *ImGui::GetWindowDrawList();
  if (selected || ImGui::IsItemHovered()) {
    list.AddRectFilled(min, max, ui::color(Role::raised), px(ui::kControlCorner));
  }
  if (selected) list.AddRectFilled(min, {min.x + px(3), max.y}, ui::color(Role::accent), px(1));
  const float y = min.y + (height - ui::text_size("x").y) / 2;
  const float kind = px(72);
  const std::string name = ui::fitted(find.name, Font::body, (width - kind) * 0.6f);
  const ImVec2 size = ui::draw_text({min.x + px(12), y}, name);
  ui::draw_text({max.x - px(12), y + px(2)}, find.kind, Font::note, Role::muted, ui::Align::right);
  const float left = min.x + px(12) + size.x + px(12), right = max.x - kind - px(12);
  if (right > left + px(24)) {
    ui::draw_text({left, y + px(2)}, ui::fitted(find.note, Font::note, right - left), Font::note,
                  Role::muted);
  }
  if (selected) {
    ImGui::SetScrollHereY(0.7f);
    ui::Context::current().focus().ring(find.id, min, max);
  }
  ui::map(find.id, find.name, selected ? "selected" : "", min, max);
  return pressed;
}

}  // namespace

std::vector<const Find*> found(const std::vector<Find>& all, const std::string& query) {
  std::vector<std::pair<int, const Find*>> ranked;
  const std::string wanted = lower(query);
  for (const Find& find : all) {
    const int rank = wanted.empty() ? 0 : rank_of(lower(find.name), wanted);
    if (rank < kNotFound) ranked.emplace_back(rank, &find);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Find*> finds;
  for (const auto& [rank, find] : ranked) finds.push_back(find);
  return finds;
}

std::vector<Find> finds_of(const ShellState& state) {
  std::vector<Find> all;
  for (std::size_t i = 0; i < state.lessons().size(); ++i) {
    const lab::LessonInfo& info = state.lessons()[i].info;
    all.push_back(
        {"find_lesson_" + info.id, info.title, "lesson", info.takeaway, [i](ShellState& s) {
           s.session.choose(i);
           s.show_home(false);
         }});
  }
  add_actions(all);
  add_keeping(all);
  add_knobs(state, all);
  add_sources(state, all);
  add_exercises(state, all);
  add_labs(state, all);
  for (const scenes::Term& term : scenes::glossary()) {
    std::string name = term.name;
    for (const std::string& alias : term.aliases) name += ", " + alias;
    all.push_back({"find_term_" + term.id, name, "term", term.first_sentence,
                   [id = term.id](ShellState& s) { s.show_term(id); }});
  }
  return all;
}

void Palette::open(std::string_view query) {
  open_ = fresh_ = true;
  selected_ = moved_ = 0;
  chosen_ = false;
  query_.fill('\0');
  query.copy(query_.data(), query_.size() - 1);
}

void Palette::draw(ShellState& state, const std::vector<Find>& all) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(window);
  ImGui::SetNextWindowFocus();
  ImGui::PushStyleColor(ImGuiCol_WindowBg,
                        ui::faded(ui::palette(ui::theme(), Role::background), 0.6f));
  ImGui::Begin("palette", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav);
  ImGui::PopStyleColor();
  const float width = std::min(px(680), window.x - px(32));
  const float height = std::min(px(440), window.y - px(48));
  const ImVec2 min(std::round((window.x - width) / 2),
                   std::round(std::min(px(96), window.y * 0.1f)));
  const ImVec2 max(min.x + width, std::min(min.y + height, window.y - px(16)));
  const Find* wanted = nullptr;
  {
    const PanelScope panel("palette_panel", {min, max},
                           ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse, 12);
    const ui::FontScope body(Font::body);
    if (fresh_) ImGui::SetKeyboardFocusHere();
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(12), px(8)});
    ImGui::SetNextItemWidth(width - px(24));
    const ImVec2 field = ImGui::GetCursorScreenPos();
    ImGui::InputTextWithHint("##query", "A lesson, a knob, a term, an action", query_.data(),
                             query_.size());
    ImGui::PopStyleVar();
    ui::map("palette", "Find", query_.data(), field, ImGui::GetItemRectMax());
    const auto finds = found(all, query_.data());
    constexpr int kMost = 60;
    const int shown = std::min(kMost, static_cast<int>(finds.size()));
    selected_ = std::clamp(selected_, 0, std::max(0, shown - 1));
    if (const int by = std::exchange(moved_, 0); by != 0 && shown > 0) {
      selected_ = ((selected_ + by) % shown + shown) % shown;
      ui::Context::current().focus().show();
    }
    ui::space(4);
    ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
    ImGui::BeginChild("finds");
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    for (int i = 0; i < shown; ++i) {
      const Find* find = finds[static_cast<std::size_t>(i)];
      if (line(*find, i == selected_, ImGui::GetContentRegionAvail().x)) wanted = find;
    }
    ImGui::PopStyleVar();
    if (finds.empty()) ui::paragraph("Nothing found.", Font::body, Role::muted);
    ImGui::EndChild();
    ImGui::PopStyleColor();
    if (std::exchange(chosen_, false) && !finds.empty()) {
      wanted = finds[static_cast<std::size_t>(selected_)];
    }
  }
  fresh_ = false;
  if (ImGui::IsMouseClicked(0) && !ImGui::IsMouseHoveringRect(min, max, false)) close();
  ImGui::End();
  if (wanted == nullptr) return;
  close();
  wanted->go(state);
}

}  // namespace tilestep::app

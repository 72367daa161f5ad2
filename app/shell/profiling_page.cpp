// A trace of another profiler: its lanes over one clock, the longest kernels, and the six questions, each of which leads
// to the part of the timeline that answers it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/panes.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::list;
using ui::px;
using ui::Role;

/// A panel with a child in it that scrolls by itself.
class ProfilePane {
 public:
  ProfilePane(const char* id, ImVec2 min, ImVec2 max) {
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
  ~ProfilePane() { ImGui::EndChild(); }
  ProfilePane(const ProfilePane&) = delete;
  ProfilePane& operator=(const ProfilePane&) = delete;
};

/// A row that is pressed as a whole.
struct Row {
  ImVec2 min, max;
  bool pressed = false, hovered = false;
};
Row press_row(const std::string& id, float height) {
  const float width = ImGui::GetContentRegionAvail().x;
  Row row{ImGui::GetCursorScreenPos(), {}};
  row.max = {row.min.x + width, row.min.y + height};
  row.pressed = ImGui::InvisibleButton(id.c_str(), {std::max(width, 1.0f), height});
  row.hovered = ImGui::IsItemHovered();
  if (row.hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  row.pressed = ui::Context::current().focus().control(id, row.min, row.max).pressed || row.pressed;
  return row;
}

Role tone_role_of(std::uint8_t tone) {
  return tone == 0 ? Role::sky : static_cast<Role>(static_cast<int>(Role::blue) + tone - 1);
}

void draw_questions(Profiling& profiling, const Profiled& shown) {
  ui::text("Six questions", Font::body_bold);
  ui::space(4);
  for (std::size_t i = 0; i < shown.answers.size(); ++i) {
    const profile::Answer& answer = shown.answers[i];
    const bool chosen = profiling.question == static_cast<int>(i);
    const float pad = px(10), width = ImGui::GetContentRegionAvail().x - 2 * pad;
    const std::string record =
        answer.record.empty() ? std::string() : "To know more, record with " + answer.record;
    const float title = ui::text_size("x", Font::body_bold).y,
                text = ui::wrapped_size(answer.text, width).y;
    const float more = record.empty() ? 0 : ui::wrapped_size(record, width, Font::note).y + px(3);
    const Row row = press_row(fmt::format("question_{}", i + 1),
                              std::ceil(2 * px(6) + title + px(2) + text + more));
    if (row.hovered || chosen)
      list().AddRectFilled(row.min, row.max, ui::color(Role::raised), px(ui::kControlCorner));
    list().AddRectFilled(row.min, {row.min.x + px(3), row.max.y},
                         ui::color(chosen         ? Role::accent
                                   : answer.known ? Role::muted
                                                  : Role::border));
    const float left = row.min.x + pad;
    float y = row.min.y + px(6);
    const ImVec2 drawn =
        ui::draw_text({left, y}, fmt::format("{} {}", i + 1, answer.title), Font::body_bold);
    if (!answer.known)
      ui::draw_text({left + drawn.x + px(8), y + px(2)}, "not in this trace", Font::note,
                    Role::muted);
    y += title + px(2);
    ui::draw_wrapped({left, y}, answer.text, width, Font::body,
                     answer.known ? Role::text : Role::muted);
    if (!record.empty())
      ui::draw_wrapped({left, y + text + px(3)}, record, width, Font::note, Role::muted);
    ui::map(fmt::format("question_{}", i + 1), answer.title,
            chosen         ? "selected"
            : answer.known ? "known"
                           : "unknown",
            row.min, row.max);
    if (chosen && profiling.scrolls > 0) {
      --profiling.scrolls;
      ImGui::SetScrollHereY(1);
    }
    if (row.pressed) profiling.ask(static_cast<int>(i));
    ui::space(4);
  }
}

/// The longest kernels as bars of their share of the time.
void draw_kernels(Profiling& profiling, const Profiled& shown) {
  const auto& kernels = shown.numbers.kernels;
  ui::text("Kernels by time", Font::body_bold);
  ui::space(4);
  if (kernels.empty()) return ui::empty_state("No kernel", "The trace has copies and fills alone.");
  const float most = static_cast<float>(kernels.front().ns), height = std::round(px(26));
  for (std::size_t i = 0; i < kernels.size() && i < 40; ++i) {
    const profile::KernelUse& use = kernels[i];
    const Row row = press_row(fmt::format("kernel_{}", i + 1), height);
    const bool lit = profiling.lit == use.name;
    if (row.hovered || lit) list().AddRectFilled(row.min, row.max, ui::color(Role::raised), px(4));
    const std::string& name = shown.timeline.names[static_cast<std::size_t>(use.name)];
    const std::string value =
        fmt::format("{}  {}", profile::time_of(use.ns), profile::percent_of(use.share));
    const float width = row.max.x - row.min.x, numbers = px(150), names = (width - numbers) * 0.5f,
                bars = width - numbers - names - px(16);
    const float middle = (row.min.y + row.max.y) / 2;
    const auto write = [&](float x, const std::string& text, Font font, Role role,
                           ui::Align align) {
      ui::draw_text({x, middle - ui::text_size(text, font).y / 2}, text, font, role, align);
    };
    write(row.min.x + px(6), ui::fitted(name, Font::body, names - px(12)), Font::body, Role::text,
          ui::Align::left);
    const float left = row.min.x + names,
                long_ = std::max(bars * static_cast<float>(use.ns) / std::max(most, 1.0f), px(2));
    list().AddRectFilled({left, middle - px(7)}, {left + long_, middle + px(7)},
                         ui::color(tone_role_of(shown.tone_of(use.name))), px(3));
    write(row.max.x - px(6), value, Font::mono_note, Role::text, ui::Align::right);
    if (row.hovered) {
      ui::show_tooltip(fmt::format(
          "{}\n{} launches, {} on average; {} from CUDA graphs\nwithout it the whole were at most "
          "{:.2f}× as fast",
          shown.trace.names[static_cast<std::size_t>(use.name)], use.launches,
          profile::time_of(use.mean_ns()), use.of_graph, std::min(use.bound(), 999.0)));
    }
    ui::map(fmt::format("kernel_{}", i + 1), name, lit ? "lit" : value, row.min, row.max);
    if (row.pressed) profiling.light(use.name);
  }
}

/// What is pinned or pointed at, below the timeline.
void draw_said(const std::string& said, ImVec2 at, float width) {
  const float line = ui::text_size("x", Font::note).y;
  std::size_t begin = 0;
  for (int i = 0; i < 2 && begin <= said.size(); ++i) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    ui::draw_text({at.x, at.y + static_cast<float>(i) * (line + px(2))},
                  ui::fitted(said.substr(begin, end - begin), Font::note, width), Font::note,
                  i == 0 ? Role::text : Role::muted);
    begin = end + 1;
  }
  ui::map("profile_said", said.substr(0, said.find('\n')), said, at,
          {at.x + width, at.y + 2 * (line + px(2))});
}

void draw_timeline(Profiling& profiling, const Profiled& shown) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float foot = 2 * (ui::text_size("x", Font::note).y + px(2)) + px(6);
  ui::TimelineLook look;
  look.lit_name = profiling.lit;
  if (profiling.question >= 0 && profiling.question < std::ssize(shown.answers)) {
    const profile::Answer& answer = shown.answers[static_cast<std::size_t>(profiling.question)];
    if (answer.shown != shown.numbers.stretch)
      look.shaded.emplace_back(static_cast<double>(answer.shown.from_ns) * 1e-3,
                               static_cast<double>(answer.shown.to_ns) * 1e-3);
  }
  const int event_pinned = profiling.view.lane < 0
                               ? -1
                               : shown.timeline.lanes[static_cast<std::size_t>(profiling.view.lane)]
                                     .spans()[static_cast<std::size_t>(profiling.view.span)]
                                     .id;
  if (event_pinned >= 0) {
    const int call = shown.trace.events[static_cast<std::size_t>(event_pinned)].call;
    if (call >= 0 && shown.places[static_cast<std::size_t>(call)].first >= 0)
      look.linked = shown.places[static_cast<std::size_t>(call)];
  }
  const ui::TimelineEvents events = ui::timeline("profile_timeline", shown.timeline, profiling.view,
                                                 {room.x, std::max(room.y - foot, px(60))}, look);
  if (events.pinned) profiling.pin(profiling.view.lane, profiling.view.span);
  std::string said =
      "Wheel: zoom; drag: pan; click: pin. Among many narrow spans, height is the time's busy "
      "share.\n"
      "Keys: ← → pan, comma and period zoom, Home all of it, N next gap, [ ] questions.";
  if (events.span >= 0) {
    said = shown.said_of(shown.timeline.lanes[static_cast<std::size_t>(events.lane)]
                             .spans()[static_cast<std::size_t>(events.span)]
                             .id);
  } else if (event_pinned >= 0) {
    said = shown.said_of(event_pinned);
  } else if (shown.lanes_left_out > 0) {
    said = fmt::format("{} more lanes are left out. {}", shown.lanes_left_out, said);
  }
  draw_said(said, {at.x, at.y + room.y - foot + px(6)}, room.x);
}

void draw_profile_head(ShellState& state, const Profiled* shown) {
  Profiling& profiling = state.profiling;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = at.x + ImGui::GetContentRegionAvail().x, buttons = px(236);
  const std::string name = profiling.file().filename().string();
  const ImVec2 title =
      ui::draw_text(at, ui::fitted(name, Font::title, right - at.x - buttons), Font::title);
  std::string said = profiling.reading() ? "Reading …"
                     : shown != nullptr  ? shown->summary
                                         : std::string("It cannot be shown");
  if (shown != nullptr && !shown->trace.notes.empty()) said += " " + shown->trace.notes.front();
  ui::draw_text({at.x, at.y + title.y + px(2)}, ui::fitted(said, Font::body, right - at.x),
                Font::body, Role::muted);
  ui::map("profile", name, said, at, {right, at.y + title.y + px(2) + ui::text_size("x").y});
  ImGui::SetCursorScreenPos({right - buttons + px(16), at.y});
  if (ui::button("profile_all", "All of it", {.enabled = shown != nullptr, .width = 100}))
    profiling.show_all();
  ImGui::SameLine(0, px(8));
  if (ui::button("profile_other", "Other file", {.width = 100})) state.choose_profile();
  ImGui::SetCursorScreenPos({at.x, at.y + title.y + ui::text_size("x").y + px(14)});
}

/// Where there is no trace yet: its path can be typed, or the file dropped, or an example opened.
void draw_profile_chooser(ShellState& state) {
  ui::text("Any profiler trace", Font::title);
  ui::map("profile", "Any profiler trace", "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  ui::space(4);
  ui::paragraph(
      "A trace of PyTorch's profiler (.json, .json.gz) or an SQLite export of Nsight Systems shows "
      "where its time went, and "
      "answers six questions: bottleneck, operator, shape, dtype, kernel, system. Drop a file on "
      "the window, or type its path.");
  ui::space(12);
  ImGui::SetNextItemWidth(std::min(px(640), ImGui::GetContentRegionAvail().x));
  if (std::exchange(state.profile_page.types, false)) ImGui::SetKeyboardFocusHere();
  const bool entered = ImGui::InputTextWithHint(
      "##trace", "path of a trace, then Enter", state.profile_page.path.data(),
      state.profile_page.path.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  ui::begin_typing("profile_path");
  ui::map("profile_path", "Path of a trace", state.profile_page.path.data(),
          ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (entered && state.profile_page.path[0] != '\0') state.profile(state.profile_page.path.data());
  ui::space(20);
  ui::text("Examples", Font::body_bold);
  ui::space(4);
  ui::paragraph(
      "Decode steps of the lesson on launches, recorded on an NVIDIA H200 and written in PyTorch's "
      "format.");
  ui::space(8);
  for (const std::string& name : profile_examples()) {
    if (ui::button("example_" + name, name, {.width = 160})) {
      state.profiling.open_example(name);
      break;
    }
    ImGui::SameLine(0, px(8));
  }
}

void draw_panes(ShellState& state, const Profiled& shown, ImVec2 from, ImVec2 to) {
  Profiling& profiling = state.profiling;
  const float gap = px(8), width = to.x - from.x, height = to.y - from.y;
  const bool roomy = height > px(560);  // for kernels below the timeline
  const float side = std::clamp(width * 0.34f, px(280), px(470));
  const float split = to.x - side - gap;
  const float below = roomy ? std::round(height * 0.36f) : 0;
  {
    const ProfilePane pane("profile_lanes", from, {split, to.y - below - (roomy ? gap : 0)});
    draw_timeline(profiling, shown);
  }
  if (roomy) {
    const ProfilePane pane("profile_kernels", {from.x, to.y - below}, {split, to.y});
    ui::scroll_stop("profile_kernel_rows");
    draw_kernels(profiling, shown);
  }
  const ProfilePane pane("profile_side", {split + gap, from.y}, to);
  ui::scroll_stop("profile_side_rows");
  if (!roomy) {
    const std::vector<std::string> labels = {"Questions", "Kernels"};
    const float room = ImGui::GetContentRegionAvail().x;
    const int now = profiling.kernels ? 1 : 0;
    const auto chosen = ui::segmented_width(labels) <= room
                            ? ui::segmented("profile_side_tab", labels, now, room)
                            : ui::dropdown("profile_side_tab", "Shown", labels, now, room);
    if (chosen) profiling.kernels = *chosen == 1;
    ui::space(6);
  }
  if (!roomy && profiling.kernels) return draw_kernels(profiling, shown);
  draw_questions(profiling, shown);
}

}  // namespace

void draw_profile(ShellState& state, const Layout& layout, ImVec2 size) {
  const float margin = px(16), left = layout.rail.max.x + margin, right = size.x - margin;
  ImGui::SetCursorScreenPos({left, margin});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  Profiling& profiling = state.profiling;
  const bool chooses = profiling.file().empty();
  // The choice scrolls; the page of a trace has panes that do.
  ImGui::BeginChild(
      chooses ? "choice" : "profile", {right - left, size.y - (chooses ? 2 : 1) * margin}, false,
      ImGuiWindowFlags_NoNavInputs |
          (chooses ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse));
  ImGui::PopStyleColor();
  if (chooses) {
    draw_profile_chooser(state);
  } else {
    draw_profile_head(state, profiling.shown());
    const Profiled* shown = profiling.shown();  // a button may have closed it
    const ImVec2 from = ImGui::GetCursorScreenPos();
    if (shown != nullptr) {
      draw_panes(state, *shown, from, {right, size.y - margin});
    } else if (!profiling.failure().empty()) {
      ui::paragraph(profiling.failure(), Font::body, Role::wrong);
      ui::map("profile_failure", profiling.failure(), "", ImGui::GetItemRectMin(),
              ImGui::GetItemRectMax());
    }
  }
  ImGui::EndChild();
}

}  // namespace tilestep::app

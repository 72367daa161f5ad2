#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/panes.hpp"

namespace tilestep::app {

using ui::Font;
using ui::px;
using ui::Role;

namespace {

std::string device_of(const lab::Report& report) {
  if (!report.recorded_at.empty()) {
    return fmt::format("Recorded on {}, {}", report.device.name, report.recorded_at);
  }
  if (report.device.backend != "emulated") return report.device.name;
  const std::string emulated =
      report.cuda_refused.empty() ? "Emulated on CPU" : "CUDA refused, emulated on CPU";
  for (const lab::Measurement& each : report.measurements) {
    if (each.provenance != lab::Provenance::recorded || each.device.empty()) continue;
    return fmt::format("{} · throughput recorded on {}{}{}", emulated, each.device,
                       each.recorded_at.empty() ? "" : ", ", each.recorded_at);
  }
  return emulated;
}

}  // namespace

std::string device_sentence(const LessonState& lesson) {
  const lab::Report& report = *lesson.report;
  const std::string device = device_of(report);
  if (!report.kernel) return device;
  const bool opened = !lesson.capsule_day.empty();
  const auto& kernel = lesson.answered_kernel;
  const char* whose = !kernel                            ? "An edited kernel"  // an older capsule's
                      : !kernel->from_capsule()          ? "Your kernel"
                      : opened || !kernel->for_sandbox() ? "The capsule's kernel"
                                                         : "The capsule's kernel, in a sandbox";
  return fmt::format("{} · {}", whose, device);
}

namespace {

/// On a stage: title, device and the way back on one line.
void draw_stage_header(ShellState& state, const Layout& layout) {
  const LessonState& lesson = state.session.lesson();
  const Rect& place = layout.header;
  const float row = std::round(px(ui::kControlHeight));
  const float top = place.min.y + std::round((place.height() - row) / 2);
  float right = place.max.x - row;
  ImGui::SetCursorScreenPos({right, top});
  if (ui::button("presenter", "Leave presenter mode  (P)", {.icon = ui::Icon::screen})) {
    state.set_presenter(false);
  }
  right -= row + px(4);
  ImGui::SetCursorScreenPos({right, top});
  if (ui::button("reader", "Lesson text  (L)",
                 {.icon = ui::Icon::book, .selected = state.reader})) {
    state.set_reader(!state.reader);
  }
  right -= px(12);
  const float left = place.min.x + px(8);
  const std::string title = ui::fitted(lesson.info.title, Font::section, (right - left) * 0.6f);
  const ImVec2 size = ui::text_size(title, Font::section);
  const ImVec2 at(left, top + (row - size.y) / 2);
  ui::draw_text(at, title, Font::section);
  ui::map("title", lesson.info.title, "", at, {at.x + size.x, at.y + size.y});
  if (!lesson.report) return;
  const float room = right - at.x - size.x - px(24);
  const std::string sentence = ui::fitted(device_sentence(lesson), Font::note, room - px(12));
  const ImVec2 words = ui::text_size(sentence, Font::note);
  const ImVec2 from(right - words.x, top + (row - words.y) / 2);
  const bool gpu = lesson.report->device.backend == "cuda";
  ImGui::GetWindowDrawList()->AddCircleFilled({from.x - px(10), from.y + words.y / 2}, px(3.5f),
                                              ui::color(gpu ? Role::good : Role::sky));
  ui::draw_text(from, sentence, Font::note, Role::muted);
  ui::map("device", device_sentence(lesson), "", from, {from.x + words.x, from.y + words.y});
}

}  // namespace

void draw_header(ShellState& state, const Layout& layout) {
  if (ui::presenter()) return draw_stage_header(state, layout);
  const LessonState& lesson = state.session.lesson();
  const Rect& place = layout.header;
  const float title_height = ui::text_size("x", Font::title).y;
  const float line_height = ui::text_size("x", Font::body).y;
  const float top =
      place.min.y + std::round((place.height() - title_height - line_height) / 2 + px(1));
  float right = place.max.x;
  const float square = std::round(px(ui::kControlHeight));
  right -= square;
  ImGui::SetCursorScreenPos({right, top + (title_height - square) / 2});
  if (ui::button("reader", "Lesson text  (L)",
                 {.icon = ui::Icon::book, .selected = state.reader})) {
    state.set_reader(!state.reader);
  }
  right -= square + px(4);
  ImGui::SetCursorScreenPos({right, top + (title_height - square) / 2});
  if (ui::button("find", "Find lessons, knobs, terms, actions  (Ctrl+K)",
                 {.icon = ui::Icon::search})) {
    state.palette.open();
  }
  right -= square + px(4);
  ImGui::SetCursorScreenPos({right, top + (title_height - square) / 2});
  if (ui::button("choose_lab", "Where kernels run",
                 {.icon = ui::Icon::chip, .selected = state.lab_card.has_value()})) {
    if (state.lab_card) {
      state.lab_card.reset();
    } else {
      state.lab_card = {{right + square, top + (title_height + square) / 2 + px(4)}};
    }
  }
  right -= px(12);
  if (lesson.report) {
    const std::string sentence =
        (lesson.capsule_day.empty() ? "" : fmt::format("Capsule of {} · ", lesson.capsule_day)) +
        device_sentence(lesson);
    const float room = place.width() * 0.46f;
    const float width = std::min(room, std::ceil(ui::text_size(sentence, Font::note).x) + px(38));
    right -= width;
    ImGui::SetCursorScreenPos({right, top + (title_height - px(24)) / 2});
    ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
    ImGui::BeginChild("badge", {width, px(26)}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    const bool gpu = lesson.report->device.backend == "cuda";
    ui::badge("device", sentence, gpu ? Role::good : Role::sky);
    if (const std::string& why = lesson.report->cuda_refused; !why.empty()) {
      ui::tooltip(why);
      ui::map("cuda_refused", why, "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    }
    ImGui::EndChild();
    ImGui::PopStyleColor();
    right -= px(ui::kGap);
  }
  const std::string title = ui::fitted(lesson.info.title, Font::title, right - place.min.x);
  const ImVec2 size = ui::draw_text({place.min.x, top}, title, Font::title);
  ui::map("title", lesson.info.title, "", {place.min.x, top}, {place.min.x + size.x, top + size.y});

  const std::string takeaway = ui::fitted(lesson.info.takeaway, Font::body, place.width());
  const ImVec2 at(place.min.x, top + title_height);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy(ui::draw_text(at, takeaway, Font::body, Role::muted));
  if (takeaway != lesson.info.takeaway) ui::tooltip(lesson.info.takeaway);
  ui::map("takeaway", lesson.info.takeaway, "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
}

}  // namespace tilestep::app

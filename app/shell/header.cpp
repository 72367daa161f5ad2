#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/shell_state.hpp"

namespace tilestep::app {

using ui::Font;
using ui::px;
using ui::Role;

std::string device_sentence(const lab::Report& report) {
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

void draw_header(ShellState& state, const Layout& layout) {
  const LessonState& lesson = state.session.lesson();
  const Rect& place = layout.header;
  const float title_height = ui::text_size("x", Font::title).y;
  const float line_height = ui::text_size("x", Font::body).y;
  const float top =
      place.min.y + std::round((place.height() - title_height - line_height) / 2 + px(1));
  float right = place.max.x;
  if (layout.rail_kind == RailKind::none) {  // the way back for a mouse
    const float size = std::round(px(ui::kControlHeight));
    right -= size;
    ImGui::SetCursorScreenPos({right, top + (title_height - size) / 2});
    if (ui::button("presenter", "Leave presenter mode", {.icon = ui::Icon::screen})) {
      state.set_presenter(false);
    }
    right -= px(8);
  }
  if (lesson.report) {
    const std::string sentence =
        (lesson.capsule_day.empty() ? "" : fmt::format("Capsule of {} · ", lesson.capsule_day)) +
        device_sentence(*lesson.report);
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

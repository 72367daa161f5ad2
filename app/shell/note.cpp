#include <imgui.h>

#include <algorithm>
#include <cstring>

#include "app/shell/panes.hpp"

namespace tilestep::app {

using ui::Font;
using ui::px;
using ui::Role;

void ShellState::open_note(bool to_edit) {
  note = NoteCard{};
  note->edits = to_edit;
  note->grabs = to_edit;
  const std::string& text = session.lesson().notes;
  const std::size_t length = std::min(text.size(), note->text.size() - 1);
  std::copy_n(text.begin(), length, note->text.begin());
  ui.request_redraw();
}

namespace {

void edit(ShellState& state, ImVec2 room) {
  ShellState::NoteCard& note = *state.note;
  const ui::FontScope body(Font::body);
  ImGui::PushStyleColor(ImGuiCol_FrameBg, ui::color(Role::panel));
  if (std::exchange(note.grabs, false)) ImGui::SetKeyboardFocusHere();
  if (ImGui::InputTextMultiline("##note", note.text.data(), note.text.size(), room)) {
    state.session.lesson().notes = note.text.data();
  }
  ui::map("note_text", "Note", note.text.data(), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  ImGui::PopStyleColor();
}

}  // namespace

void draw_note(ShellState& state, const Layout& layout) {
  if (!state.note) return;
  const Rect& place = layout.picture;
  const ImVec2 size(std::min(px(380), place.width() - px(16)),
                    std::min(px(220), place.height() - px(16)));
  const ImVec2 min(place.max.x - size.x - px(8), place.max.y - size.y - px(8));
  const CardScope card("note", min, size);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, row = std::round(px(ui::kControlHeight));
  ui::draw_text({at.x, at.y + (row - ui::text_size("x", Font::body_bold).y) / 2}, "Note",
                Font::body_bold);
  const std::string action = state.note->edits ? "Done" : "Edit";
  const float wide = ui::text_size(action).x + px(24);
  ImGui::SetCursorScreenPos({at.x + width - row - px(8) - wide, at.y});
  if (ui::button("edit_note", action, {.width = wide / px(1)})) {
    state.note->edits = state.note->grabs = !state.note->edits;
  }
  ImGui::SetCursorScreenPos({at.x + width - row, at.y});
  const bool closed = ui::button("close_note", "Close  (Esc)", {.icon = ui::Icon::cross});
  ImGui::SetCursorScreenPos({at.x, at.y + row + px(8)});
  const std::string& text = state.session.lesson().notes;
  if (state.note->edits) {
    edit(state, ImGui::GetContentRegionAvail());
  } else {
    ui::paragraph(text.empty() ? "No note yet. Notes are saved with the capsule (Ctrl+S)." : text,
                  Font::body, text.empty() ? Role::muted : Role::text);
  }
  ui::map("note", "Note", text, min, {min.x + size.x, min.y + size.y});
  if (closed) state.note.reset();
}

}  // namespace tilestep::app

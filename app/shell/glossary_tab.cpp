#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/panes.hpp"
#include "scenes/shared/glossary.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

bool term_row(const scenes::Term& term, bool chosen) {
  const float width = ImGui::GetContentRegionAvail().x, height = std::round(px(28));
  const ImVec2 min = ImGui::GetCursorScreenPos(), max(min.x + width, min.y + height);
  const bool pressed = ImGui::InvisibleButton(term.id.c_str(), {width, height});
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  if (chosen || hovered) {
    ImGui::GetWindowDrawList()->AddRectFilled(min, max, ui::color(Role::raised),
                                              px(ui::kControlCorner));
  }
  const Font font = chosen ? Font::body_bold : Font::body;
  ui::draw_text({min.x + px(8), min.y + (height - ui::text_size("x").y) / 2},
                ui::fitted(term.name, font, width - px(16)), font,
                chosen || hovered ? Role::text : Role::muted);
  ui::map("term_" + term.id, term.name, chosen ? "selected" : "", min, max);
  return pressed;
}

/// The list is one stop of the focus, in which ↑ and ↓ choose.
void choose_by_keys(ShellState& state, const std::vector<const scenes::Term*>& terms) {
  if (terms.empty()) return;
  const ImVec2 min = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const ui::Focused keys = ui::Context::current().focus().control(
      "terms", min, {min.x + size.x, min.y + size.y}, ui::Takes::down);
  if (keys.down == 0) return;
  const auto now = std::find_if(terms.begin(), terms.end(), [&](const scenes::Term* term) {
    return term->id == state.glossary.term;
  });
  const auto at = now == terms.end() ? 0 : now - terms.begin() + keys.down;
  const auto to = std::clamp<std::ptrdiff_t>(at, 0, std::ssize(terms) - 1);
  state.glossary.term = terms[static_cast<std::size_t>(to)]->id;
  state.glossary.scrolls = true;
}

void term_text(ShellState& state, const scenes::Term& term) {
  ui::paragraph(term.name, Font::section);
  if (!term.aliases.empty()) {
    std::string also;
    for (const std::string& alias : term.aliases) also += (also.empty() ? "" : ", ") + alias;
    ui::paragraph("also: " + also, Font::note, Role::muted);
  }
  ui::space(6);
  const ui::MarkdownEvents events = ui::markdown(term.text, {.id = "term", .max_characters = 80});
  ui::space(8);
  constexpr std::string_view kTerm = "term:";
  if (events.clicked.starts_with(kTerm)) state.glossary.term = events.clicked.substr(kTerm.size());
  const auto& lessons = state.lessons();
  for (std::size_t i = 0; i < lessons.size(); ++i) {
    const std::string& id = lessons[i].info.id;
    if (std::find(term.lessons.begin(), term.lessons.end(), id) == term.lessons.end()) continue;
    if (i == state.session.chosen()) continue;
    if (ui::button("go_" + id, "Seen in: " + lessons[i].info.title)) state.session.choose(i);
  }
}

}  // namespace

void draw_glossary(ShellState& state) {
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float left = std::clamp(room.x * 0.3f, px(150), px(260)), gap = px(20);
  const std::string query(state.glossary.query.data());
  const auto terms = scenes::find_terms(query);
  const ui::FontScope body(Font::body);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(10), px(5)});
  ImGui::SetNextItemWidth(left);
  if (ImGui::InputTextWithHint("##search", "Search", state.glossary.query.data(),
                               state.glossary.query.size())) {
    const auto now = scenes::find_terms(state.glossary.query.data());
    if (!now.empty()) state.glossary.term = now.front()->id;
  }
  ImGui::PopStyleVar();
  ui::begin_typing("glossary_search");
  ui::map("glossary_search", "Search the glossary", query, at, ImGui::GetItemRectMax());
  const float below = ImGui::GetCursorScreenPos().y;
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::BeginChild("terms", {left, std::max(at.y + room.y - below, px(40))});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  choose_by_keys(state, terms);
  for (const scenes::Term* term : terms) {
    const bool chosen = term->id == state.glossary.term;
    if (term_row(*term, chosen)) state.glossary.term = term->id;
    if (chosen && state.glossary.scrolls) {
      ImGui::SetScrollHereY(0.3f);
      state.glossary.scrolls = false;
    }
  }
  if (terms.empty()) ui::paragraph("No such term.", Font::body, Role::muted);
  ImGui::PopStyleVar();
  ImGui::EndChild();
  ImGui::SetCursorScreenPos({at.x + left + gap, at.y});
  ImGui::BeginChild("term", {room.x - left - gap, room.y});
  const scenes::Term* term = scenes::term_of(state.glossary.term);
  if (term == nullptr && !scenes::glossary().empty()) term = &scenes::glossary().front();
  ui::scroll_stop("term");
  if (term != nullptr) term_text(state, *term);
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

}  // namespace tilestep::app

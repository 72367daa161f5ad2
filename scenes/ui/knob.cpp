#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "scenes/ui/context.hpp"
#include "scenes/ui/control_parts.hpp"

namespace tilestep::ui {
namespace {

using lab::Knob;
using lab::KnobKind;
using lab::KnobValue;

/// What a number field keeps while its user types.
struct Field {
  std::array<char, 4096> text{};  ///< room for 256 moves of tokens
  bool editing = false;
  std::string note;  ///< why the value is another one than was typed
};

double number_of(const KnobValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value);
  return real == nullptr ? 0 : *real;
}

KnobValue value_of(const Knob& knob, double number) {
  if (!knob.zero_word.empty() && number < knob.min / 2) return 0.0;
  const double inside = std::clamp(number, knob.min, knob.max);
  if (knob.kind == KnobKind::integer) {
    return std::clamp<std::int64_t>(std::llround(inside), std::llround(knob.min),
                                    std::llround(knob.max));
  }
  return inside;
}

/// A range that starts at 0 cannot be cut into decades; its slider begins one step above.
double log_start(const Knob& knob) {
  return knob.min > 0 ? knob.min : 1;
}

float share_of(const Knob& knob, double number) {
  if (knob.max <= knob.min) return 0;
  // The word for zero stands at the slider's left end.
  if (!knob.zero_word.empty()) return static_cast<float>(number / knob.max);
  if (knob.logarithmic && knob.max > log_start(knob)) {
    const double start = log_start(knob);
    const double place = std::log(std::max(number, start) / start) / std::log(knob.max / start);
    return static_cast<float>(place);
  }
  return static_cast<float>((number - knob.min) / (knob.max - knob.min));
}

double number_at(const Knob& knob, float share) {
  if (knob.logarithmic && knob.max > log_start(knob)) {
    if (share <= 0) return knob.min;
    const double start = log_start(knob);
    const double exact = start * std::pow(knob.max / start, static_cast<double>(share));
    // Two digits are what a hand can choose; the ends stay exact.
    if (share >= 1 || exact < 100) return exact;
    const double step = std::pow(10.0, std::floor(std::log10(exact)) - 1);
    return std::round(exact / step) * step;
  }
  const double low = knob.zero_word.empty() ? knob.min : 0;
  const double exact = low + (knob.max - low) * static_cast<double>(share);
  if (knob.kind == KnobKind::integer) return exact;
  const double step = std::pow(10.0, std::floor(std::log10(knob.max - knob.min)) - 2);
  return std::round(exact / step) * step;
}

std::string label_of(const Knob& knob) {
  return knob.unit.empty() ? knob.label : fmt::format("{} ({})", knob.label, knob.unit);
}

/// Takes over what was typed: the knob's own rules first, the nearest allowed number otherwise.
std::optional<KnobValue> typed_value(const Knob& knob, Field& field) {
  const std::string_view typed(field.text.data());
  try {
    field.note.clear();
    return knob.parsed(typed);
  } catch (const Error&) {
    field.note = fmt::format("Allowed: {}", knob.allowed());
  }
  if (knob.kind == KnobKind::text) return std::nullopt;
  double number = 0;
  const auto [end, failed] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  if (failed == std::errc{} && end != typed.data() && std::isfinite(number)) {
    return value_of(knob, number);
  }
  return std::nullopt;
}

/// What ← and → make of a number: the next one for a slider of hundredths.
KnobValue nudged(const Knob& knob, const KnobValue& value, int by) {
  if (knob.kind == KnobKind::integer && !knob.logarithmic) {
    return value_of(knob, number_of(value) + by);
  }
  constexpr int kPlaces = 100;
  const float from = share_of(knob, number_of(value));
  KnobValue now = value;
  for (int place = 1; place <= kPlaces; ++place) {
    const float share = from + static_cast<float>(by * place) / kPlaces;
    now = value_of(knob, number_at(knob, std::clamp(share, 0.0f, 1.0f)));
    if (now != value || share <= 0 || share >= 1) break;
  }
  return now;
}

/// The slider of a number: dragged, or moved by keys.
std::optional<KnobValue> number_slider(const Knob& knob, const KnobValue& value, float width) {
  const SliderMove move = slider("slider_" + knob.id, share_of(knob, number_of(value)), width);
  KnobValue wanted = value;
  if (move.to) wanted = value_of(knob, number_at(knob, *move.to));
  if (move.nudges != 0) wanted = nudged(knob, value, move.nudges);
  map("slider_" + knob.id, knob.label, lab::to_text(value), ImGui::GetItemRectMin(),
      ImGui::GetItemRectMax());
  tooltip(fmt::format("{} Allowed: {}.", knob.help, knob.allowed()));
  if (!move.to && move.nudges == 0) return std::nullopt;
  Context::current().kept<Field>(kept_name("field", knob.id)).note.clear();
  return wanted == value ? std::nullopt : std::optional(wanted);
}

std::optional<KnobValue> typed_field(const Knob& knob, const KnobValue& value, float width) {
  Field& field = Context::current().kept<Field>(kept_name("field", knob.id));
  if (!field.editing) {
    const std::string text = knob.text(value);
    const std::size_t count = std::min(text.size(), field.text.size() - 1);
    std::memcpy(field.text.data(), text.data(), count);
    field.text[count] = '\0';
  }
  std::optional<KnobValue> changed;
  {
    const FontScope mono(Font::mono_note);
    const float pad = (std::round(px(28)) - font_pixels(Font::mono_note)) / 2;
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(kGapSmall), pad});
    ImGui::SetNextItemWidth(width);
    ImGui::InputText("##number", field.text.data(), field.text.size(),
                     knob.kind == KnobKind::text || !knob.zero_word.empty()
                         ? ImGuiInputTextFlags_AutoSelectAll
                         : ImGuiInputTextFlags_AutoSelectAll | ImGuiInputTextFlags_CharsScientific);
    ImGui::PopStyleVar();
  }
  const bool was_editing = field.editing;
  field.editing = ImGui::IsItemActive();
  begin_typing("knob_" + knob.id);
  if (was_editing && !field.editing && ImGui::IsItemDeactivatedAfterEdit()) {
    changed = typed_value(knob, field);
  }
  map("knob_" + knob.id, knob.label, lab::to_text(value), ImGui::GetItemRectMin(),
      ImGui::GetItemRectMax());
  if (changed && *changed == value) changed.reset();
  return changed;
}

std::optional<KnobValue> number_knob(const Knob& knob, const KnobValue& value) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float field_width = std::round(std::min(px(96), width * 0.4f));
  const float row = std::round(px(28));
  const std::string label = fitted(label_of(knob), Font::body, width - field_width - px(8));
  draw_text({at.x, at.y + (row - text_size(label).y) / 2}, label);
  ImGui::InvisibleButton("label", {std::max(width - field_width - px(8), 1.0f), row});
  tooltip(knob.help);
  ImGui::SetCursorScreenPos({at.x + width - field_width, at.y});
  std::optional<KnobValue> changed = typed_field(knob, value, field_width);

  ImGui::SetCursorScreenPos({at.x, at.y + row + px(2)});
  if (const auto moved = number_slider(knob, value, width)) changed = moved;
  const Field& field = Context::current().kept<Field>(kept_name("field", knob.id));
  if (!field.note.empty()) paragraph(field.note, Font::note, Role::wrong);
  return changed;
}

std::optional<KnobValue> text_knob(const Knob& knob, const KnobValue& value) {
  text(label_of(knob));
  tooltip(fmt::format("{} Allowed: {}.", knob.help, knob.allowed()));
  std::optional<KnobValue> changed = typed_field(knob, value, ImGui::GetContentRegionAvail().x);
  tooltip(fmt::format("{} Allowed: {}.", knob.help, knob.allowed()));
  const Field& field = Context::current().kept<Field>(kept_name("field", knob.id));
  if (!field.note.empty()) paragraph(field.note, Font::note, Role::wrong);
  return changed;
}

std::optional<KnobValue> toggle_knob(const Knob& knob, bool on) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float row = std::round(px(28)), room = std::round(px(40));
  const std::string label = fitted(label_of(knob), Font::body, width - room - px(8));
  draw_text({at.x, at.y + (row - text_size(label).y) / 2}, label);
  bool pressed = ImGui::InvisibleButton("label", {std::max(width - room - px(8), 1.0f), row});
  use_hand();
  tooltip(knob.help);
  ImGui::SetCursorScreenPos({at.x + width - room, at.y + px(2)});
  pressed = toggle_switch("knob_" + knob.id, on) || pressed;
  map("knob_" + knob.id, knob.label, on ? "true" : "false", ImGui::GetItemRectMin(),
      ImGui::GetItemRectMax());
  if (pressed) return KnobValue(!on);
  return std::nullopt;
}

std::optional<KnobValue> choice_knob(const Knob& knob, const std::string& chosen) {
  text(label_of(knob));
  tooltip(knob.help);
  const float width = ImGui::GetContentRegionAvail().x;
  float wanted = 0;
  for (const std::string& choice : knob.choices) wanted += text_size(choice).x + px(24);
  const auto at = std::find(knob.choices.begin(), knob.choices.end(), chosen);
  const int selected = static_cast<int>(at - knob.choices.begin());
  std::optional<int> index;
  if (knob.choices.size() > 3 || wanted > width) {
    index = dropdown("knob_" + knob.id, knob.label, knob.choices, selected, width);
    tooltip(knob.help);
  } else {
    const ImVec2 min = ImGui::GetCursorScreenPos();
    index =
        segmented("knob_" + knob.id, knob.choices, selected, width / Context::current().scale());
    map("knob_" + knob.id, knob.label, chosen, min, ImGui::GetItemRectMax());
  }
  if (!index) return std::nullopt;
  return KnobValue(knob.choices[static_cast<std::size_t>(*index)]);
}

}  // namespace

std::optional<KnobValue> knob(const Knob& knob, const KnobValue& value) {
  ImGui::PushID(knob.id.c_str());
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(kGapSmall), px(4)});
  std::optional<KnobValue> changed;
  switch (knob.kind) {
    case KnobKind::integer:
    case KnobKind::real:
      changed = number_knob(knob, value);
      break;
    case KnobKind::toggle:
      changed = toggle_knob(knob, std::get<bool>(value));
      break;
    case KnobKind::choice:
      changed = choice_knob(knob, std::get<std::string>(value));
      break;
    case KnobKind::text:
      changed = text_knob(knob, value);
      break;
  }
  ImGui::PopStyleVar();
  ImGui::PopID();
  return changed;
}

std::optional<KnobValue> knob_line(const Knob& knob, const KnobValue& value, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float row = std::round(px(kControlHeight)), gap = px(8);
  const std::string label = fitted(knob.label, Font::note, width * 0.5f);
  const float label_width = std::ceil(text_size(label, Font::note).x) + gap;
  ImGui::PushID(knob.id.c_str());
  draw_text({at.x, at.y + (row - text_size(label, Font::note).y) / 2}, label, Font::note,
            Role::muted);
  ImGui::InvisibleButton("label", {std::max(label_width - gap, 1.0f), row});
  tooltip(knob.help);
  const float left = at.x + label_width, room = std::max(width - label_width, px(40));
  ImGui::SetCursorScreenPos({left, at.y});
  std::optional<KnobValue> changed;
  if (knob.kind == KnobKind::choice) {
    const auto found =
        std::find(knob.choices.begin(), knob.choices.end(), std::get<std::string>(value));
    const auto index = dropdown("knob_" + knob.id, knob.label, knob.choices,
                                static_cast<int>(found - knob.choices.begin()), room);
    if (index) changed = KnobValue(knob.choices[static_cast<std::size_t>(*index)]);
  } else if (knob.kind == KnobKind::toggle) {
    const bool on = std::get<bool>(value);
    ImGui::SetCursorScreenPos({left, at.y + (row - std::round(px(24))) / 2});
    if (toggle_switch("knob_" + knob.id, on)) changed = KnobValue(!on);
    map("knob_" + knob.id, knob.label, on ? "true" : "false", ImGui::GetItemRectMin(),
        ImGui::GetItemRectMax());
  } else {
    const std::string shown = knob.text(value);
    const float number = std::ceil(
        std::max(text_size(shown, Font::mono_note).x, text_size("00000", Font::mono_note).x));
    ImGui::SetCursorScreenPos({left, at.y + (row - std::round(px(24))) / 2});
    const float track = std::max(room - number - gap, px(48));
    changed = number_slider(knob, value, track);
    draw_text({left + track + gap, at.y + (row - text_size("0", Font::mono_note).y) / 2}, shown,
              Font::mono_note);
  }
  ImGui::PopID();
  return changed;
}

}  // namespace tilestep::ui

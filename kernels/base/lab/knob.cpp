#include "kernels/base/lab/knob.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/number.hpp"

namespace tilestep::lab {
namespace {

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:g}", value);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += ", ";
    text += words[i];
  }
  return text;
}

/// Offers the end of the range nearest to a number, otherwise the default.
[[noreturn]] void refuse(const Knob& knob, std::string_view given) {
  KnobValue works = knob.initial;
  const std::optional<double> number = number_of<double>(given);
  if (number && !std::isnan(*number)) {
    const double nearest = std::clamp(*number, knob.min, knob.max);
    if (knob.kind == KnobKind::integer) works = static_cast<std::int64_t>(nearest);
    if (knob.kind == KnobKind::real) works = nearest;
  }
  const auto retired = knob.retired.find(given);
  throw Refused(
      retired == knob.retired.end()
          ? fmt::format("knob '{}' cannot be '{}'; allowed: {}", knob.id, given, knob.allowed())
          : fmt::format("knob '{}' no longer has '{}': {}; allowed: {}", knob.id, given,
                        retired->second, knob.allowed()),
      fix_to(knob.id, works));
}

bool within(const Knob& knob, double value) {
  if (value == 0 && !knob.zero_word.empty()) return true;
  return std::isfinite(value) && value >= knob.min && value <= knob.max;
}

}  // namespace

std::string Knob::idle(const Settings& settings) const {
  std::string others;
  for (const Together& each : works_with) {
    const std::string value = to_text(settings.at(each.knob));
    if (std::find(each.values.begin(), each.values.end(), value) != each.values.end()) return {};
    std::string values;
    for (std::size_t i = 0; i < each.values.size(); ++i) {
      values += (i == 0 ? "" : i + 1 < each.values.size() ? ", " : " or ") + each.values[i];
    }
    others += fmt::format("{}{} = {}", others.empty() ? "" : "; ", each.knob, values);
  }
  return others.empty() ? others : "works with " + others;
}

std::string Knob::allowed() const {
  switch (kind) {
    case KnobKind::integer:
    case KnobKind::real:
      return (zero_word.empty() ? "" : zero_word + " or ") + number_text(min) + "–" +
             number_text(max) + (kind == KnobKind::integer ? " (a whole number)" : "");
    case KnobKind::toggle:
      return "true or false";
    case KnobKind::choice:
      return "one of " + joined(choices);
    case KnobKind::text:
      return form;
  }
  return "";
}

KnobValue Knob::checked(const KnobValue& value) const {
  switch (kind) {
    case KnobKind::integer:
      if (const auto* v = std::get_if<std::int64_t>(&value)) {
        if (within(*this, static_cast<double>(*v))) return value;
      } else if (const auto* real = std::get_if<double>(&value)) {
        // JSON writers may spell a whole number as 4.0.
        if (within(*this, *real) && *real == std::floor(*real)) {
          return static_cast<std::int64_t>(*real);
        }
      }
      break;
    case KnobKind::real: {
      double number = std::nan("");
      if (const auto* v = std::get_if<double>(&value)) number = *v;
      if (const auto* v = std::get_if<std::int64_t>(&value)) number = static_cast<double>(*v);
      if (const auto* v = std::get_if<std::string>(&value)) {
        if (!zero_word.empty() && *v == zero_word) number = 0;
      }
      if (within(*this, number)) return number;
      break;
    }
    case KnobKind::toggle:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case KnobKind::choice:
      if (!std::holds_alternative<bool>(value)) {
        // A choice such as "4" may come from JSON as a number.
        const std::string given = to_text(value);
        for (const std::string& name : choices) {
          if (name == given) return given;
        }
      }
      break;
    case KnobKind::text:
      if (const auto* v = std::get_if<std::string>(&value)) {
        if (fits == nullptr || fits(*v)) return value;
      }
      break;
  }
  refuse(*this, to_text(value));
}

KnobValue Knob::parsed(std::string_view text) const {
  switch (kind) {
    case KnobKind::integer:
      if (const auto value = number_of<std::int64_t>(text)) return checked(*value);
      break;
    case KnobKind::real:
      if (!zero_word.empty() && text == zero_word) return 0.0;
      if (const auto value = number_of<double>(text)) return checked(*value);
      break;
    case KnobKind::toggle:
      if (text == "true" || text == "on" || text == "1") return true;
      if (text == "false" || text == "off" || text == "0") return false;
      break;
    case KnobKind::choice:
    case KnobKind::text:
      return checked(std::string(text));
  }
  refuse(*this, text);
}

std::string Knob::text(const KnobValue& value) const {
  const auto* number = std::get_if<double>(&value);
  if (!zero_word.empty() && number != nullptr && *number == 0) return zero_word;
  return to_text(value);
}

std::string label_of(std::string_view id) {
  std::string label(id);
  std::replace(label.begin(), label.end(), '_', ' ');
  if (!label.empty() && label[0] >= 'a' && label[0] <= 'z') {
    label[0] = static_cast<char>(label[0] - 'a' + 'A');
  }
  return label;
}

std::string to_text(const KnobValue& value) {
  if (const auto* v = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *v);
  if (const auto* v = std::get_if<double>(&value)) return fmt::format("{}", *v);
  if (const auto* v = std::get_if<bool>(&value)) return *v ? "true" : "false";
  return std::get<std::string>(value);
}

Fix fix_to(std::string_view id, const KnobValue& value) {
  std::string name(id);
  std::replace(name.begin(), name.end(), '_', ' ');
  const std::string text = to_text(value);
  return {text.empty() ? fmt::format("Clear {}", name) : fmt::format("Set {} to {}", name, text),
          {{std::string(id), value}}};
}

std::optional<Fix> fix_of(const Error& error) {
  const auto* refused = dynamic_cast<const Refused*>(&error);
  return refused == nullptr ? std::nullopt : refused->fix();
}

void refuse_with(std::string_view id, const KnobValue& value, std::string_view with,
                 std::string_view allowed, const KnobValue& works) {
  throw Refused(fmt::format("{} is {}, but with {} the allowed values are {}", id, to_text(value),
                            with, allowed),
                fix_to(id, works));
}

const Knob& Knobs::at(std::string_view id) const {
  std::vector<std::string> ids;
  for (const Knob& knob : knobs_) {
    if (knob.id == id) return knob;
    ids.push_back(knob.id);
  }
  for (const RetiredKnob& knob : retired_) {
    if (knob.id != id) continue;
    throw Error(fmt::format("there is no longer a knob '{}': {}; the knobs are: {}", id,
                            knob.instead, joined(ids)));
  }
  throw Error(fmt::format("there is no knob '{}'; the knobs are: {}", id, joined(ids)));
}

Settings Knobs::defaults() const {
  Settings settings;
  for (const Knob& knob : knobs_) settings[knob.id] = knob.initial;
  return settings;
}

Settings Knobs::completed(const Settings& settings) const {
  Settings all = defaults();
  for (const auto& [id, value] : settings) {
    if (!stands_still(id, value)) all[id] = at(id).checked(value);
  }
  return all;
}

bool Knobs::stands_still(std::string_view id, const KnobValue& value) const {
  return std::any_of(retired_.begin(), retired_.end(), [&](const RetiredKnob& knob) {
    return knob.id == id && to_text(knob.stands_at) == to_text(value);
  });
}

void Knobs::set(Settings& settings, std::string_view assignment) const {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    const std::vector<Knob>& knobs = all();
    const auto meant = std::find_if(knobs.begin(), knobs.end(),
                                    [&](const Knob& knob) { return knob.id == assignment; });
    const Knob* as = meant != knobs.end() ? &*meant : knobs.empty() ? nullptr : &knobs.front();
    throw Error(fmt::format("'{}' is not of the form knob=value, as in {}", assignment,
                            as == nullptr ? "keys=16" : as->id + "=" + as->text(as->initial)));
  }
  const Knob& knob = at(assignment.substr(0, equals));
  settings[knob.id] = knob.parsed(assignment.substr(equals + 1));
}

}  // namespace tilestep::lab

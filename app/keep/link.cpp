#include "app/keep/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "kernels/catalog.hpp"

namespace tilestep::app {

std::string shell_word(std::string_view text) {
  static constexpr std::string_view kPlain = "-_./=,:+@%";
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != kPlain.npos;
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string link_of(std::string_view lesson, const lab::Settings& settings, int step,
                    std::optional<int> phase) {
  const lab::Knobs& knobs = tilestep::lesson(lesson).knobs();
  const lab::Settings all = knobs.completed(settings);
  std::string link = fmt::format("tilestep open {}", lesson);
  for (const lab::Knob& knob : knobs) {
    const lab::KnobValue& value = all.at(knob.id);
    if (value == knob.checked(knob.initial)) continue;
    link += " --set " + shell_word(knob.id + "=" + knob.text(value));
  }
  if (step > 0 || phase) link += fmt::format(" --step {}", step);
  if (phase) link += fmt::format(" --phase {}", *phase);
  return link;
}

}  // namespace tilestep::app

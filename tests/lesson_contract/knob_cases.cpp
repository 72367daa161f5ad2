#include "tests/lesson_contract/knob_cases.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "tests/part.hpp"
#include "tests/reports.hpp"

namespace tilestep::contract {
namespace {

using lab::Knob;
using lab::KnobKind;
using lab::KnobValue;
using lab::Settings;

/// Where the most that a knob allows takes longer than a test may.
struct Limit {
  std::string_view lesson, knob;
  double most;
};
constexpr Limit kLimits[] = {
    {"coalescing", "elements", 1 << 16}, {"moe-routing", "tokens", 8192}, {"hopper-gemm", "m", 512},
    {"hopper-gemm", "n", 512},           {"hopper-gemm", "k", 512},
};

double most_of(const lab::Lesson& lesson, const Knob& knob) {
  for (const Limit& limit : kLimits) {
    if (limit.lesson == lesson.info().id && limit.knob == knob.id) {
      return std::min(knob.max, limit.most);
    }
  }
  return knob.max;
}

std::vector<KnobValue> ends_of(const lab::Lesson& lesson, const Knob& knob) {
  std::vector<KnobValue> ends;
  switch (knob.kind) {
    case KnobKind::integer:
      ends = {static_cast<std::int64_t>(knob.min),
              static_cast<std::int64_t>(most_of(lesson, knob))};
      break;
    case KnobKind::real:
      ends = {knob.min, most_of(lesson, knob)};
      if (!knob.zero_word.empty()) ends.emplace_back(0.0);
      break;
    case KnobKind::toggle:
      ends = {false, true};
      break;
    case KnobKind::choice:
      for (const std::string& choice : knob.choices) ends.emplace_back(choice);
      break;
    case KnobKind::text:
      ends = {knob.initial};
      break;
  }
  return ends;
}

/// A value near the default, so that any mixture of them runs fast.
KnobValue small_value(const Knob& knob, std::mt19937& random) {
  const auto below = [&](std::size_t count) { return random() % count; };
  switch (knob.kind) {
    case KnobKind::integer: {
      const auto least = static_cast<std::int64_t>(knob.min);
      const auto most = std::min(static_cast<std::int64_t>(knob.max),
                                 std::max(least + 3, std::get<std::int64_t>(knob.initial)));
      return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(most - least + 1)));
    }
    case KnobKind::real:
      return knob.min + (knob.max - knob.min) * 0.125 * static_cast<double>(below(9));
    case KnobKind::toggle:
      return below(2) == 1;
    case KnobKind::choice:
      return knob.choices[below(knob.choices.size())];
    case KnobKind::text:
      return knob.initial;
  }
  return knob.initial;
}

/// `settings`, or, if the lesson refuses these, with the first other end that makes it take them.
Settings made_to_fit(const lab::Lesson& lesson, const Settings& settings) {
  if (takes(lesson, settings)) return settings;
  for (const Knob& partner : lesson.knobs()) {
    if (settings.count(partner.id) > 0) continue;
    for (const KnobValue& end : ends_of(lesson, partner)) {
      Settings both = settings;
      both[partner.id] = end;
      if (takes(lesson, both)) return both;
    }
  }
  throw Error("no other knob makes the lesson take " + to_text(settings));
}

}  // namespace

bool takes(const lab::Lesson& lesson, const lab::Settings& settings) {
  // What a lesson refuses it refuses before anything runs: a run that is given up at once says as much as a whole one.
  class GivenUp final : public lab::Progress {
   public:
    void report(double /*fraction*/, std::string_view /*note*/) override {}
    bool cancelled() const override { return true; }
  } given_up;
  try {
    lesson.run(settings, tests::device_at_hand(), given_up);
    return true;
  } catch (const Cancelled&) {
    return true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) throw;
    return false;
  }
}

const std::vector<Settings>& knob_ends(const lab::Lesson& lesson) {
  static std::map<std::string, std::vector<Settings>> known;
  std::vector<Settings>& cases = known[lesson.info().id];
  if (!cases.empty()) return cases;
  for (const Knob& knob : lesson.knobs()) {
    for (const KnobValue& end : ends_of(lesson, knob)) {
      if (end != knob.initial) cases.push_back(made_to_fit(lesson, {{knob.id, end}}));
    }
  }
  return cases;
}

const std::vector<Settings>& some_knob_ends(const lab::Lesson& lesson) {
  static std::map<std::string, std::vector<Settings>> known;
  std::vector<Settings>& cases = known[lesson.info().id];
  if (!cases.empty()) return cases;
  tests::Part part("knob ends of " + lesson.info().id, 12);
  for (const Settings& settings : knob_ends(lesson)) {
    if (!part.skips()) cases.push_back(settings);
  }
  return cases;
}

std::vector<Settings> knob_mixtures(const lab::Lesson& lesson, int count) {
  std::mt19937 random(2024);
  std::vector<Settings> cases;
  for (int i = 0; i < count; ++i) {
    Settings settings;
    for (const Knob& knob : lesson.knobs()) settings[knob.id] = small_value(knob, random);
    cases.push_back(std::move(settings));
  }
  return cases;
}

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [id, value] : settings) text += id + "=" + lab::to_text(value) + " ";
  return text;
}

}  // namespace tilestep::contract

#include "app/keep/quiz.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "app/keep/guided.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

/// Runs that questions are taken from, and of each trace so many places.
constexpr int kRuns = 10, kPlaces = 24;
constexpr std::size_t kMostRows = 4;

/// One of `count`, by the generator's bits alone.
std::size_t pick(std::mt19937& random, std::size_t count) {
  return static_cast<std::size_t>(random()) % std::max<std::size_t>(count, 1);
}

template <class T>
void shuffle(std::vector<T>& items, std::mt19937& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[pick(random, i)]);
}

/// Other choices and switches than the defaults, one or two at a time, and other random data. Sizes stay:
/// a sheet shows what fits a page.
lab::Settings mixture(const lab::Knobs& knobs, std::mt19937& random) {
  lab::Settings settings;
  std::vector<const lab::Knob*> turned;
  for (const lab::Knob& knob : knobs) {
    if (knob.id == "seed") settings[knob.id] = static_cast<std::int64_t>(pick(random, 1000));
    if (knob.kind == lab::KnobKind::choice || knob.kind == lab::KnobKind::toggle) {
      turned.push_back(&knob);
    }
  }
  shuffle(turned, random);
  turned.resize(std::min<std::size_t>(turned.size(), 1 + pick(random, 2)));
  for (const lab::Knob* knob : turned) {
    if (knob->kind == lab::KnobKind::toggle) {
      settings[knob->id] = pick(random, 2) == 1;
    } else {
      settings[knob->id] = knob->choices[pick(random, knob->choices.size())];
    }
  }
  return settings;
}

/// Without a seed where nothing random is in the run: a sheet names the knobs that make it.
lab::Report run_of(std::string_view lesson, lab::Settings settings) {
  lab::Report report = emulated_report(lesson, settings);
  if (settings.erase("seed") == 0) return report;
  lab::Report same = emulated_report(lesson, settings);
  return same.trace == report.trace ? same : report;
}

/// What kind of question it is: its id, or its words without the numbers in them.
std::string kind_of(const scenes::Question& question) {
  if (!question.id.empty()) return question.id;
  std::string kind;
  for (const char c : question.text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) kind += c;
  }
  return kind;
}

/// The rows of the table of steps that are known at `told`, the last few, with what is still to come left out.
lab::Table evidence_of(const scenes::Scene& scene, scenes::Cursor told) {
  const lab::Table* table = scene.report()->table(scene.steps().table);
  if (table == nullptr) return {};
  lab::Table rows = *table;
  rows.rows.clear();
  const int last = scene.table_row(table->id, {told});
  const int first = std::max(0, last + 1 - static_cast<int>(kMostRows));
  for (int row = first; row <= last && row < std::ssize(table->rows); ++row) {
    std::vector<lab::Cell> cells = table->rows[static_cast<std::size_t>(row)];
    for (int column = 0; column < std::ssize(cells); ++column) {
      if (told < scene.known(*table, row, column)) cells[static_cast<std::size_t>(column)] = {};
    }
    rows.rows.push_back(std::move(cells));
  }
  return rows;
}

/// The questions of one run, at places that the generator picks.
void add_questions(const std::shared_ptr<const lab::Report>& report, std::mt19937& random,
                   std::vector<QuizItem>& all) {
  const auto scene = scene_of(*report);
  const scenes::StepAxis axis = scene->steps();
  std::vector<int> steps;
  for (int step = 0; step < axis.tiles; ++step) steps.push_back(step);
  shuffle(steps, random);
  steps.resize(std::min<std::size_t>(steps.size(), kPlaces));
  for (const int step : steps) {
    const scenes::Cursor asked{step, axis.last_phase(step)},
        told{step + 1, axis.last_phase(step + 1)};
    auto question = scene->question({asked});
    if (!question) continue;
    all.push_back({report, std::move(*question), false, asked, told, evidence_of(*scene, told)});
  }
}

void add_measured(std::string_view lesson, std::vector<QuizItem>& all) {
  const lab::Recording* recording = lab::recording(lesson);
  if (recording == nullptr) return;
  const auto bench = std::make_shared<const lab::Report>(recording->bench);
  for (auto& scene : scenes::make_scenes()) {
    if (scene->lesson() != lesson) continue;
    for (scenes::Question& question : scene->measured_questions(*bench)) {
      all.push_back({bench, std::move(question), true, {}, {}, {}});
    }
  }
}

}  // namespace

std::vector<QuizItem> make_quiz(std::string_view lesson, std::int64_t seed, std::size_t most) {
  std::mt19937 random = lab::generator_of(seed);
  const lab::Knobs& knobs = tilestep::lesson(lesson).knobs();
  std::vector<QuizItem> all;
  for (int run = 0; run < kRuns; ++run) {
    const lab::Settings settings = run == 0 ? lab::Settings{} : mixture(knobs, random);
    try {
      add_questions(std::make_shared<const lab::Report>(run_of(lesson, settings)), random, all);
    } catch (const Error&) {  // knobs that do not go together
    }
  }
  add_measured(lesson, all);
  shuffle(all, random);

  // One of each kind first, then a second of each, and so on.
  std::map<std::string, int> asked;
  std::set<std::string> texts;
  std::vector<std::pair<int, QuizItem>> rounds;
  for (QuizItem& item : all) {
    const std::string kind = kind_of(item.question);
    if (!texts.insert(item.question.text).second) continue;
    rounds.emplace_back(asked[kind]++, std::move(item));
  }
  std::stable_sort(rounds.begin(), rounds.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<QuizItem> quiz;
  for (auto& [round, item] : rounds) {
    if (quiz.size() < most) quiz.push_back(std::move(item));
  }
  return quiz;
}

}  // namespace tilestep::app

#include "app/keep/quiz.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "app/keep/guided.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/questions.hpp"

namespace tilestep::app {
namespace {

/// Runs that questions are taken from, and of each trace so many places.
constexpr int kRuns = 10, kPlaces = 24;
constexpr int kMostRows = 4, kRowsBefore = 2;
constexpr int kAttempts = 6;
constexpr std::size_t kSheet = 8;  ///< questions

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

/// A run that is asked about, and its scene.
struct Run {
  lab::Settings settings;
  std::shared_ptr<const lab::Report> report;
  std::unique_ptr<scenes::Scene> scene;
};

/// Runs of one lesson, each made once.
class Runs {
 public:
  explicit Runs(std::string_view lesson) : lesson_(lesson) {}

  /// Null for knobs that do not go together.
  const Run* of(const lab::Settings& settings) {
    const auto [at, fresh] = all_.try_emplace(settings);
    if (!fresh) return at->second.get();
    try {
      auto report = std::make_shared<const lab::Report>(emulated_report(lesson_, settings));
      auto scene = scene_of(*report);
      at->second = std::make_unique<Run>(Run{settings, std::move(report), std::move(scene)});
    } catch (const Error&) {
    }
    return at->second.get();
  }

 private:
  std::string lesson_;
  std::map<lab::Settings, std::unique_ptr<Run>> all_;
};

struct Candidate {
  const Run* run = nullptr;  ///< null: about a bench
  QuizItem item;
  bool simple = false;  ///< no knob is turned that it does not depend on
};

/// What kind of question it is: its id, or its words without the numbers in them.
std::string kind_of(const scenes::Question& question) {
  if (!question.id.empty()) return question.id;
  std::string kind;
  for (const char c : question.text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) kind += c;
  }
  return kind;
}

/// Rows of the table of steps round the question: the last that are known when it is `asked`, and the first of those that
/// come by `told`, with what is still to come left out.
lab::Table evidence_of(const scenes::Scene& scene, scenes::Cursor asked, scenes::Cursor told) {
  const lab::Table* table = scene.report()->table(scene.steps().table);
  if (table == nullptr) return {};
  lab::Table rows = *table;
  rows.rows.clear();
  const int before = asked.tile == 0 ? -1 : scene.table_row(table->id, {asked});
  const int first = std::max(0, before + 1 - kRowsBefore);
  const int last = std::min({scene.table_row(table->id, {told}), first + kMostRows - 1,
                             static_cast<int>(table->rows.size()) - 1});
  for (int row = first; row <= last; ++row) {
    std::vector<lab::Cell> cells = table->rows[static_cast<std::size_t>(row)];
    for (int column = 0; column < std::ssize(cells); ++column) {
      if (told < scene.known(*table, row, column)) cells[static_cast<std::size_t>(column)] = {};
    }
    rows.rows.push_back(std::move(cells));
  }
  return rows;
}

/// The axis that a number is to be set on.
std::string scale_of(const scenes::Scene& scene, const scenes::Question& question,
                     scenes::Cursor asked) {
  if (!question.choices.empty()) return {};
  for (const picture::Axis& axis : scene.picture(scene.extent(), {asked}).axes) {
    if (axis.name == question.axis) return fmt::format("{:g}–{:g}", axis.low, axis.high);
  }
  return {};
}

/// The questions of one run, at places that the generator picks.
void add_questions(const Run& run, std::mt19937& random, std::vector<Candidate>& all) {
  const scenes::StepAxis axis = run.scene->steps();
  std::vector<int> steps;
  for (int step = 0; step < axis.tiles; ++step) steps.push_back(step);
  shuffle(steps, random);
  steps.resize(std::min<std::size_t>(steps.size(), kPlaces));
  for (const int step : steps) {
    const scenes::Cursor asked{step, axis.last_phase(step)},
        told{step + 1, axis.last_phase(step + 1)};
    auto question = run.scene->question({asked});
    if (!question) continue;
    all.push_back({&run, {run.report, std::move(*question), false, asked, told}});
  }
}

bool same_question(const scenes::Question& a, const scenes::Question& b) {
  return a.text == b.text && a.because == b.because && answer_text(a) == answer_text(b) &&
         std::is_permutation(a.choices.begin(), a.choices.end(), b.choices.begin(),
                             b.choices.end());
}

/// Turns every knob back that the question does not depend on.
void simplify(Candidate& one, Runs& runs) {
  for (const auto& [knob, value] : lab::Settings(one.run->settings)) {
    lab::Settings fewer = one.run->settings;
    fewer.erase(knob);
    const Run* simpler = runs.of(fewer);
    if (simpler == nullptr || simpler->scene->steps().tiles < one.item.told.tile) continue;
    const auto question = simpler->scene->question({one.item.asked});
    if (!question || !same_question(*question, one.item.question)) continue;
    one.run = simpler;
    one.item.report = simpler->report;
    one.item.question = *question;
  }
  one.item.evidence = evidence_of(*one.run->scene, one.item.asked, one.item.told);
  one.item.scale = scale_of(*one.run->scene, one.item.question, one.item.asked);
}

void add_words(std::string_view text, std::set<std::string>& words) {
  std::string word;
  for (const char c : std::string(text) + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
}

/// The words and numbers that stand in a box.
void add_words(const picture::Box& box, std::set<std::string>& words) {
  add_words(picture::plain(box.label.full), words);
  add_words(picture::plain(box.value.full), words);
  for (const picture::Mark& mark : box.marks) {
    if (const auto* lines = std::get_if<picture::Lines>(&mark)) {
      for (const picture::Text& row : lines->rows) add_words(picture::plain(row.full), words);
    }
    const picture::Items* items = picture::items_of(mark);
    for (int i = 0; items != nullptr && i < items->count; ++i) {
      const auto item = static_cast<std::size_t>(i);
      if (item < items->names.size()) add_words(items->names[item], words);
      if (item < items->value.each.size())
        words.insert(fmt::format("{:g}", items->value.each[item]));
    }
  }
  for (const picture::Box& inner : box.boxes) add_words(inner, words);
}

/// Whether the picture that `other` is asked with says what `one` asks: it stands behind the step, there the answer is the
/// same, and its words are in it.
bool tells(const Candidate& other, const Candidate& one) {
  if (one.run == nullptr || other.run == nullptr || other.item.asked < one.item.told) return false;
  const auto there = other.run->scene->question({one.item.asked});
  const std::string answer = answer_text(one.item.question);
  if (!there || kind_of(*there) != kind_of(one.item.question) || answer_text(*there) != answer) {
    return false;
  }
  const picture::Picture picture =
      other.run->scene->picture(other.run->scene->extent(), {other.item.asked});
  std::set<std::string> shown, asked;
  add_words(picture::plain(picture.headline.full), shown);
  add_words(picture.root, shown);
  add_words(answer, asked);
  return std::includes(shown.begin(), shown.end(), asked.begin(), asked.end());
}

/// Up to `most` of them, the first ones first, none of which tells another.
std::vector<Candidate> chosen_of(std::vector<std::pair<int, Candidate>>& rounds, std::size_t most,
                                 Runs& runs) {
  std::vector<Candidate> chosen;
  for (auto& [round, one] : rounds) {
    if (chosen.size() == most) break;
    if (one.run != nullptr && !std::exchange(one.simple, true)) simplify(one, runs);
    const bool told = std::any_of(
        chosen.begin(), chosen.end(),
        [&, &next = one](const auto& other) { return tells(other, next) || tells(next, other); });
    if (!told) chosen.push_back(one);
  }
  return chosen;
}

void add_measured(std::string_view lesson, std::vector<Candidate>& all) {
  const lab::Recording* recording = lab::recording(lesson);
  if (recording == nullptr) return;
  const auto bench = std::make_shared<const lab::Report>(recording->bench);
  for (auto& scene : scenes::make_scenes()) {
    if (scene->lesson() != lesson) continue;
    for (scenes::Question& question : scene->measured_questions(*bench)) {
      all.push_back({nullptr, {bench, std::move(question), true}});
    }
  }
}

}  // namespace

std::vector<QuizItem> make_quiz(std::string_view lesson, std::int64_t seed, std::size_t most) {
  std::mt19937 random = lab::generator_of(seed);
  const lab::Knobs& knobs = tilestep::lesson(lesson).knobs();
  Runs runs(lesson);
  std::vector<Candidate> all;
  for (int i = 0; i < kRuns; ++i) {
    const Run* run = runs.of(i == 0 ? lab::Settings{} : mixture(knobs, random));
    if (run != nullptr) add_questions(*run, random, all);
  }
  add_measured(lesson, all);
  shuffle(all, random);

  // One of each kind first, then a second of each, and so on.
  std::map<std::string, int> asked;
  std::set<std::string> texts;
  std::vector<std::pair<int, Candidate>> rounds;
  for (Candidate& one : all) {
    const std::string kind = kind_of(one.item.question);
    if (!texts.insert(one.item.question.text).second) continue;
    rounds.emplace_back(asked[kind]++, std::move(one));
  }
  // What is chosen first may rule out much: another order gives a whole sheet, as a rule.
  std::vector<Candidate> chosen;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) shuffle(rounds, random);
    std::stable_sort(rounds.begin(), rounds.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Candidate> some = chosen_of(rounds, most, runs);
    if (some.size() > chosen.size()) chosen = std::move(some);
    if (chosen.size() >= std::min(most, kSheet)) break;
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Candidate& a, const Candidate& b) {
    const auto hard = [](const Candidate& one) {
      const std::size_t turned = one.run == nullptr ? 0 : one.run->settings.size();
      return std::tuple(one.item.measured, turned, one.item.asked);
    };
    return hard(a) < hard(b);
  });
  std::vector<QuizItem> quiz;
  for (Candidate& one : chosen) quiz.push_back(std::move(one.item));
  return quiz;
}

}  // namespace tilestep::app

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/keep/guided.hpp"
#include "app/shell/shell_state.hpp"
#include "app/shell/steps.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

/// Settings that the lesson has most to say about, those that its path goes to last.
std::vector<lab::Settings> new_settings(const LessonState& lesson, std::mt19937& random) {
  const scenes::Guide guide = guide_of(lesson.info.id);
  std::set<lab::Settings> known = {lesson.knobs.defaults()};
  for (const auto& stop : guide.stops) known.insert(lesson.knobs.completed(stop.settings));
  std::vector<lab::Settings> all;
  for (const lab::Telling& telling : tilestep::lesson(lesson.info.id).telling()) {
    all.push_back(lesson.knobs.completed(telling.settings));
  }
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  std::stable_partition(all.begin(), all.end(),
                        [&](const auto& settings) { return known.count(settings) == 0; });
  return all;
}

/// Where to ask: of the kinds that were never answered right, if there are some. −1: nothing is asked in this run.
int asking_step(const LessonState& lesson, const Progress& progress, std::int64_t seed) {
  const scenes::StepAxis axis = lesson.scene().steps();
  const auto done = progress.lessons.find(lesson.info.id);
  std::vector<int> all, open;
  for (int step = 0; step < axis.tiles; ++step) {
    const auto question = lesson.scene().question({at_step(axis, step)});
    if (!question) continue;
    all.push_back(step);
    const bool right = done != progress.lessons.end() && done->second.right.count(question->id) > 0;
    if (!right) open.push_back(step);
  }
  const std::vector<int>& from = open.empty() ? all : open;
  return from.empty() ? -1 : from[lab::generator_of(seed)() % from.size()];
}

}  // namespace

std::vector<Recall::Visit> recall_before(const std::vector<LessonState>& lessons,
                                         std::size_t target, std::int64_t seed) {
  if (target == 0) return {};
  std::mt19937 random = lab::generator_of(seed + static_cast<std::int64_t>(target));
  // The lesson before, and one that lies further back.
  const std::size_t last = target - 1, further = last == 0 ? 0 : random() % last;
  std::vector<Recall::Visit> visits;
  for (const std::size_t index : {further, last}) {
    for (const lab::Settings& settings : new_settings(lessons[index], random)) {
      const bool taken = std::any_of(visits.begin(), visits.end(), [&](const auto& each) {
        return each.lesson == index && each.settings == settings;
      });
      if (taken) continue;
      visits.push_back({index, settings});
      break;
    }
  }
  return visits;
}

bool ShellState::start_recall(std::size_t target) {
  const auto& read = progress.lessons[session.lessons()[target].info.id].stops;
  if (!session.predicts() || !read.empty()) return false;
  // Who has been elsewhere is asked elsewhere: neighbours in a class, and who begins again.
  recall_seed = 0;
  for (const auto& [id, done] : progress.lessons) {
    recall_seed += static_cast<std::int64_t>(done.stops.size() + done.asked.size());
  }
  Recall wanted{recall_before(session.lessons(), target, recall_seed), target};
  if (wanted.visits.empty()) return false;
  recall = std::move(wanted);
  set_reader(false);
  show_home(false);
  visit();
  return true;
}

void ShellState::visit() {
  const Recall::Visit& there = recall->visits[recall->now];
  session.choose(there.lesson);
  const LessonState& lesson = session.lesson();
  recall->before = lesson.settings;
  recall->step = session.step();
  recall->asks = true;
  session.stand(
      there.settings, [](const scenes::StepAxis& axis) { return at_step(axis, 0); }, now_s());
}

/// The lesson that was asked about stands as it did.
void ShellState::put_back() {
  LessonState& lesson = session.lessons()[recall->visits[recall->now].lesson];
  lesson.settings = recall->before;
  lesson.due_s = now_s();
  lesson.wanted = [step = recall->step](const scenes::StepAxis& axis) {
    return at_step(axis, step);
  };
  lesson.gate.close();
}

void ShellState::go_on_recalling() {
  put_back();
  if (++recall->now < recall->visits.size()) return visit();
  const std::size_t target = recall->target;
  recall.reset();
  open_lesson(target);
}

void ShellState::follow_recall() {
  if (!recall) return;
  const Recall::Visit& there = recall->visits[recall->now];
  const LessonState& lesson = session.lesson();
  const bool left = home || session.chosen() != there.lesson;
  if (left) put_back();
  if (left || lesson.settings != there.settings) return recall.reset();  // the user has other plans
  if (lesson.failure) return go_on_recalling();
  if (!lesson.report || lesson.outdated() || session.moving()) return;
  if (std::exchange(recall->asks, false)) {
    const int step = asking_step(lesson, progress, recall_seed);
    if (step >= 0) session.go(at_step(session.axis(), step));
    if (step < 0 || !session.ask()) go_on_recalling();
  } else if (!lesson.gate.card()) {
    go_on_recalling();
  }
}

std::string ShellState::recall_words() const {
  if (!recall) return {};
  const auto& lessons = session.lessons();
  return fmt::format("{} of {} before {}: from {}, with other settings", recall->now + 1,
                     recall->visits.size(), lessons[recall->target].info.title,
                     lessons[recall->visits[recall->now].lesson].info.title);
}

}  // namespace tilestep::app

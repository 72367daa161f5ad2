#include "app/shell/gate.hpp"

#include <algorithm>
#include <utility>

#include "app/shell/steps.hpp"
#include "scenes/shared/questions.hpp"

namespace tilestep::app {

// ---- before the next step ------------------------------------------------------------------------

std::optional<scenes::Question> Gate::asks(const scenes::Scene& scene,
                                           const scenes::View& view) const {
  const scenes::StepAxis axis = scene.steps();
  const int step = completed_steps(axis, view.cursor);
  // Inside a step the question would be answered by the picture.
  if (view.cursor != at_step(axis, step) || passed_.count(step) > 0) return std::nullopt;
  return scene.question(view);
}

bool Gate::open(const scenes::Scene& scene, const scenes::View& view) {
  auto question = asks(scene, view);
  if (!question) return false;
  step_ = completed_steps(scene.steps(), view.cursor);
  passed_.insert(step_);
  card_ = Card{std::move(*question), std::nullopt, false};
  return true;
}

void Gate::answer(const scenes::Guess& guess) {
  if (!card_ || card_->revealed) return;
  card_->guess = guess;
  guesses_[step_] = guess;
}

void Gate::count_hand(int choice, int hands, scenes::Cursor asked) {
  if (!card_ || card_->revealed) return;
  card_->hands.resize(card_->question.choices.size(), 0);
  int& count = card_->hands.at(static_cast<std::size_t>(choice));
  count = std::max(count + hands, 0);
  const auto most = std::max_element(card_->hands.begin(), card_->hands.end());
  if (*most > 0) answer({asked, static_cast<int>(most - card_->hands.begin()), 0});
}

void Gate::skip() {
  if (!waits()) return;
  judge(Outcome::skipped);
  card_.reset();
}

void Gate::reveal(const scenes::Scene& scene, const std::map<picture::Name, int>& picks,
                  const scenes::StepAxis& axis, int step) {
  const bool gone_back = card_ && (card_->revealed ? step <= step_ : step < step_);
  if (gone_back) card_.reset();
  if (card_ && step > step_) {
    if (!card_->guess) {
      skip();
    } else if (step == step_ + 1) {
      card_->revealed = true;
    } else {
      card_.reset();
    }
  }
  for (auto guess = guesses_.begin(); guess != guesses_.end() && guess->first < step;) {
    if (const auto question = scene.question({at_step(axis, guess->first), picks})) {
      const bool right = scenes::is_answer(*question, guess->second);
      judge(right ? Outcome::right : Outcome::wrong);
      judged_.push_back({question->id, right});
    }
    guess = guesses_.erase(guess);
  }
}

std::optional<scenes::Guess> Gate::guess() const {
  return card_ ? card_->guess : std::nullopt;
}

void Gate::forget() {
  card_.reset();
  guesses_.clear();
  passed_.clear();
}

// ---- before measurements -------------------------------------------------------------------------

void MeasuredGate::renew(const scenes::Scene& scene, const lab::Report& report) {
  const lab::Report* bench =
      scenes::measured::bench_of(report, scene.lesson(), scene.measured_spec().needs);
  std::vector<Item> items;
  if (bench != nullptr) {
    for (scenes::Question& question : scene.measured_questions(*bench)) {
      Item item{std::move(question), std::nullopt, false};
      for (const Item& before : items_) {
        if (before.question.id != item.question.id || before.question.text != item.question.text ||
            before.question.choices != item.question.choices) {
          continue;
        }
        item.guess = before.guess;
        item.skipped = before.skipped;
        item.seen = before.seen;
      }
      items.push_back(std::move(item));
    }
  }
  items_ = std::move(items);
}

int MeasuredGate::masks(const std::string& view) const {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const auto& masked = items_[i].question.masks;
    if (items_[i].seen) continue;
    if (std::find(masked.begin(), masked.end(), view) != masked.end()) return static_cast<int>(i);
  }
  return -1;
}

int MeasuredGate::waiting() const {
  const auto found =
      std::find_if(items_.begin(), items_.end(), [](const Item& item) { return item.waits(); });
  return found == items_.end() ? -1 : static_cast<int>(found - items_.begin());
}

void MeasuredGate::answer(int item, const scenes::Guess& guess) {
  Item& one = items_.at(static_cast<std::size_t>(item));
  if (!one.waits()) return;
  one.guess = guess;
  judged_.push_back({one.question.id, scenes::is_answer(one.question, guess)});
}

void MeasuredGate::skip(int item) {
  Item& one = items_.at(static_cast<std::size_t>(item));
  one.skipped = one.seen = true;
}

void MeasuredGate::see(int item) {
  items_.at(static_cast<std::size_t>(item)).seen = true;
}

std::vector<Outcome> MeasuredGate::score() const {
  std::vector<Outcome> score;
  for (const Item& item : items_) {
    if (item.waits()) continue;
    score.push_back(item.skipped                                    ? Outcome::skipped
                    : scenes::is_answer(item.question, *item.guess) ? Outcome::right
                                                                    : Outcome::wrong);
  }
  return score;
}

}  // namespace tilestep::app

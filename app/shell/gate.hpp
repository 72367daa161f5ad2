#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenes/shared/scene.hpp"

/// Prediction: what is asked before something is shown, and what was said to it.
namespace tilestep::app {

/// How one question ended.
enum class Outcome { right, wrong, skipped };

/// A question that was answered.
struct Judged {
  std::string kind;
  bool right = false;
};

/// What is asked before the next step of a trace.
class Gate {
 public:
  /// A question with what was said to it.
  struct Card {
    scenes::Question question;
    std::optional<scenes::Guess> guess;
    bool revealed = false;        ///< its step is on show
    std::vector<int> hands = {};  ///< a class's, for each choice
  };

  /// What there is to ask at `view` and was not asked before.
  std::optional<scenes::Question> asks(const scenes::Scene& scene, const scenes::View& view) const;
  /// Asks what there is to ask at `view`. False: nothing, or it was asked before.
  bool open(const scenes::Scene& scene, const scenes::View& view);
  /// The question is open and waits.
  bool waits() const { return card_ && !card_->guess && !card_->revealed; }
  /// The question that is asked, or that has just been answered by its step.
  const std::optional<Card>& card() const { return card_; }
  void answer(const scenes::Guess& guess);
  /// One more hand of the class for a choice, or one less: what most say is the guess.
  void count_hand(int choice, int hands, scenes::Cursor asked);
  /// The open question is not answered; it is not asked again in this run.
  void skip();
  void close() { card_.reset(); }
  /// The window is at `step` now: what was guessed before it is judged, once.
  void reveal(const scenes::Scene& scene, const std::map<picture::Name, int>& picks,
              const scenes::StepAxis& axis, int step);
  /// The guess whose answer comes next, or has just come.
  std::optional<scenes::Guess> guess() const;
  /// Another run: what was guessed no longer belongs to it. The score stays.
  void forget();
  const std::vector<Outcome>& score() const { return score_; }
  /// What was answered since the last call.
  std::vector<Judged> take_judged() { return std::exchange(judged_, {}); }

 private:
  void judge(Outcome outcome) { score_.push_back(outcome); }

  std::optional<Card> card_;
  int step_ = 0;  ///< that the card was asked at
  std::map<int, scenes::Guess> guesses_;
  std::set<int> passed_;  ///< steps that were asked at, or gone over
  std::vector<Outcome> score_;
  std::vector<Judged> judged_;
};

/// What is asked before views of the Measured tab are shown.
class MeasuredGate {
 public:
  struct Item {
    scenes::Question question;
    std::optional<scenes::Guess> guess;
    bool skipped = false;
    bool seen = false;  ///< how it ended has been read
    bool waits() const { return !guess && !skipped; }
  };
  /// What there is to ask of the bench that `report` brings or is. What was said stays.
  void renew(const scenes::Scene& scene, const lab::Report& report);
  const std::vector<Item>& items() const { return items_; }
  /// The first question that still hides the view; −1: none.
  int masks(const std::string& view) const;
  /// Any that waits; −1: none.
  int waiting() const;
  void answer(int item, const scenes::Guess& guess);
  void skip(int item);
  void see(int item);
  std::vector<Outcome> score() const;
  std::vector<Judged> take_judged() { return std::exchange(judged_, {}); }

 private:
  std::vector<Item> items_;
  std::vector<Judged> judged_;
};

}  // namespace tilestep::app

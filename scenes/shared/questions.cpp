#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "scenes/shared/measured.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

constexpr std::size_t kMostChoices = 4;

/// SplitMix64 (Steele, Lea & Flood, 2014), started from the words (FNV-1a).
class Shuffler {
 public:
  explicit Shuffler(const std::string& words) {
    for (const char c : words) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
  }
  /// 0 … count − 1, each as likely.
  std::size_t next(std::size_t count) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>((z ^ (z >> 31)) % count);
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

std::string number_text(double value) {
  return words::significant(value, 3);
}

void add(std::vector<std::string>& choices, const std::string& choice) {
  const bool known = std::find(choices.begin(), choices.end(), choice) != choices.end();
  if (!known && choices.size() < kMostChoices) choices.push_back(choice);
}

}  // namespace

Question ask(std::string text, std::string answer, const std::vector<std::string>& others,
             std::string because) {
  Question question;
  question.choices = {answer};
  for (const std::string& other : others) add(question.choices, other);
  Shuffler shuffler(text + answer);
  for (std::size_t i = question.choices.size(); i > 1; --i) {
    std::swap(question.choices[i - 1], question.choices[shuffler.next(i)]);
  }
  const auto place = std::find(question.choices.begin(), question.choices.end(), answer);
  question.answer = static_cast<int>(place - question.choices.begin());
  question.text = std::move(text);
  question.because = std::move(because);
  return question;
}

Question ask_number(std::string text, double answer, const std::vector<double>& others,
                    const std::function<std::string(double)>& say, std::string because,
                    double least) {
  std::vector<std::string> words;
  for (const double other : others) {
    if (other >= least) words.push_back(say(other));
  }
  const std::array makeshift = {2 * answer, answer + 1, 4 * answer, answer + 2, answer + 3};
  for (const double other : makeshift) words.push_back(say(other));
  Question question = ask(std::move(text), say(answer), words, std::move(because));
  const auto number_of = [&](const std::string& choice) {
    if (choice == say(answer)) return answer;
    const auto said = [&](double other) { return other >= least && say(other) == choice; };
    const auto given = std::find_if(others.begin(), others.end(), said);
    if (given != others.end()) return *given;
    return *std::find_if(makeshift.begin(), makeshift.end(),
                         [&](double other) { return say(other) == choice; });
  };
  for (const std::string& choice : question.choices) {
    question.values.push_back(number_of(choice));
  }
  return question;
}

Question ask_count(std::string text, std::int64_t answer, const std::vector<std::int64_t>& others,
                   std::string because) {
  const auto say = [](double count) { return std::to_string(static_cast<std::int64_t>(count)); };
  return ask_number(std::move(text), static_cast<double>(answer), {others.begin(), others.end()},
                    say, std::move(because), 0);
}

Question ask_to_set(std::string text, picture::Key box, picture::Name axis, double truth,
                    double tolerance, std::string because) {
  Question question;
  question.text = std::move(text);
  question.because = std::move(because);
  question.where = {box};
  question.axis = axis;
  question.values = {truth};
  question.tolerance = tolerance;
  return question;
}

Question ask_ratio(std::string text, double answer, const std::vector<double>& others,
                   std::string because) {
  constexpr double kApart = 1.25;
  std::vector<double> given = {answer};
  std::vector<std::string> words;
  const auto say = [](double ratio) {
    return fmt::format("{:.{}f}×", ratio, ratio < 0.1 ? 2 : ratio < 10 ? 1 : 0);
  };
  for (const double other : others) {
    const bool near = std::any_of(given.begin(), given.end(), [&](double one) {
      return other < one * kApart && one < other * kApart;
    });
    if (near) continue;
    given.push_back(other);
    words.push_back(say(other));
  }
  return ask(std::move(text), say(answer), words, std::move(because));
}

Question of_kind(std::string id, Question question) {
  question.id = std::move(id);
  return question;
}

Question about_view(std::vector<std::string> views, const char* kind, Question question) {
  question = of_kind(kind, std::move(question));
  question.masks = std::move(views);
  return question;
}

std::optional<Question> ask_faster(const lab::Report& bench, std::vector<std::string> views,
                                   const char* kind, const Faster& rates, std::string text,
                                   const std::vector<double>& others, std::string_view why) {
  if (!rates.fast || !rates.slow || *rates.slow <= 0) return std::nullopt;
  return about_view(std::move(views), kind,
                    ask_ratio(std::move(text), *rates.fast / *rates.slow, others,
                              fmt::format("{} ({:.{}f} against {:.{}f} {}, {}).", why, *rates.fast,
                                          rates.decimals, *rates.slow, rates.decimals, rates.unit,
                                          measured::where_measured(bench))));
}

Question shuffled(Question question, const lab::Report& run) {
  std::string seed = question.text;
  for (const auto& [id, value] : run.params) seed += id + lab::to_text(value);
  Shuffler shuffler(seed);
  const std::size_t count = question.choices.size();
  for (std::size_t i = count; i > 1; --i) {
    const std::size_t a = i - 1, b = shuffler.next(i);
    std::swap(question.choices[a], question.choices[b]);
    if (question.values.size() == count) std::swap(question.values[a], question.values[b]);
    if (question.where.size() == count) std::swap(question.where[a], question.where[b]);
    const auto answer = static_cast<std::size_t>(question.answer);
    if (answer == a || answer == b) question.answer = static_cast<int>(a + b - answer);
  }
  return question;
}

namespace {

picture::Box* find_box(picture::Box& box, const picture::Key& key) {
  if (box.key == key) return &box;
  for (picture::Box& inner : box.boxes) {
    if (picture::Box* found = find_box(inner, key)) return found;
  }
  return nullptr;
}
/// A box that holds marks: a frame can stand in any.
picture::Box& leaf_of(picture::Box& box) {
  return box.boxes.empty() ? box : leaf_of(box.boxes.front());
}
bool holds(const picture::Box& box, const picture::Key& key) {
  for (const picture::Mark& mark : box.marks) {
    if (picture::has(mark, key)) return true;
  }
  return std::any_of(box.boxes.begin(), box.boxes.end(),
                     [&](const picture::Box& inner) { return holds(inner, key); });
}

}  // namespace

std::vector<Question> asked_of(const lab::Report& bench,
                               const std::vector<std::optional<Question>>& questions) {
  std::vector<Question> all;
  for (const auto& each : questions) {
    if (each) all.push_back(shuffled(*each, bench));
  }
  return all;
}

std::optional<Question> placed(std::optional<Question> question, const lab::Report& run,
                               picture::Key where) {
  if (!question) return question;
  Question asked = shuffled(std::move(*question), run);
  return asked.choices.empty() ? asked : about(where, std::move(asked));
}

Question about(picture::Key where, Question question) {
  question.where = {where};
  return question;
}

Question about(picture::Key box, picture::Name axis, Question question) {
  question.where = {box};
  question.axis = axis;
  return question;
}

Question about_each(const std::function<picture::Key(const std::string&)>& thing,
                    Question question) {
  for (const std::string& choice : question.choices) question.where.push_back(thing(choice));
  return question;
}

bool is_answer(const Question& question, const Guess& guess) {
  if (!question.choices.empty()) return guess.choice == question.answer;
  return !question.values.empty() &&
         std::abs(guess.value - question.values.front()) <= question.tolerance;
}

std::string answer_text(const Question& question) {
  if (!question.choices.empty()) {
    return question.choices.at(static_cast<std::size_t>(question.answer));
  }
  return question.values.empty() ? std::string() : number_text(question.values.front());
}

std::string lowered(std::string words) {
  const auto letter = [&](std::size_t at) {
    return at < words.size() ? static_cast<unsigned char>(words[at]) : 0;
  };
  if (std::isupper(letter(0)) != 0 && std::islower(letter(1)) != 0) {
    words[0] = static_cast<char>(std::tolower(letter(0)));
  }
  return words;
}

std::string verdict(const Question& question, const Guess& guess) {
  const std::string answer = answer_text(question), said = number_text(guess.value);
  std::string text = (is_answer(question, guess) ? "Right: " : "No: ") + lowered(answer);
  if (question.choices.empty() && said != answer) text += fmt::format(" (you said {})", said);
  return text;
}

void add_guess(picture::Picture& picture, const Question& question, const Guess& guess) {
  const bool set = question.choices.empty();
  const auto chosen = static_cast<std::size_t>(std::max(guess.choice, 0));
  if (!set && (guess.choice < 0 || chosen >= question.choices.size())) return;
  const picture::Key key{"guess"};
  const std::string said = set ? number_text(guess.value) : question.choices[chosen];
  const picture::Text label = picture::text("your guess: " + said, "your guess");
  std::optional<double> value;
  if (set) value = guess.value;
  if (!set && chosen < question.values.size()) value = question.values[chosen];
  const bool on_axis =
      value &&
      std::any_of(picture.axes.begin(), picture.axes.end(), [&](const picture::Axis& axis) {
        return axis.name == question.axis && axis.low <= *value && *value <= axis.high;
      });
  std::vector<picture::Key> where = question.where;
  if (where.empty()) where = {picture.root.key};
  picture::Box* box = find_box(picture.root, where.front());
  if (on_axis && box != nullptr && box->boxes.empty()) {
    box->marks.emplace_back(
        picture::Rule{key, question.axis, *value, picture::State::predicted, label});
    return;
  }
  const picture::Key about = where[!set && where.size() == question.choices.size() ? chosen : 0];
  if (find_box(picture.root, about) == nullptr && !holds(picture.root, about)) return;
  leaf_of(picture.root)
      .marks.emplace_back(picture::Frame{key, {about}, picture::State::predicted, label});
}

}  // namespace tilestep::scenes

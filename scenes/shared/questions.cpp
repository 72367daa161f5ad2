#include "scenes/shared/questions.hpp"

#include <algorithm>
#include <utility>

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
  for (const double other : {2 * answer, answer + 1, 4 * answer, answer + 2, answer + 3}) {
    words.push_back(say(other));
  }
  return ask(std::move(text), say(answer), words, std::move(because));
}

Question ask_count(std::string text, std::int64_t answer, const std::vector<std::int64_t>& others,
                   std::string because) {
  const auto say = [](double count) { return std::to_string(static_cast<std::int64_t>(count)); };
  return ask_number(std::move(text), static_cast<double>(answer), {others.begin(), others.end()},
                    say, std::move(because), 0);
}

Question ask_scale(std::string text, std::vector<std::string> choices, int answer,
                   std::string because) {
  Question question;
  question.text = std::move(text);
  question.choices = std::move(choices);
  question.answer = answer;
  question.because = std::move(because);
  return question;
}

}  // namespace tilestep::scenes

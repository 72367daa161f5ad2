#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/picture/view.hpp"

/// How scenes ask questions. Seeing one question must not reveal the position of the next one's answer.
namespace tilestep::scenes {

/// `answer` among up to three of `others`: the first ones that differ from it and from each other.
/// The order depends only on the words: the same question always looks the same, and over many
/// questions the answer is at every position equally often.
Question ask(std::string text, std::string answer, const std::vector<std::string>& others,
             std::string because = {});

/// The same with numbers, written by `say` and kept in `values`; `others` below `least` are omitted, and multiples of
/// the answer replace missing ones.
Question ask_number(std::string text, double answer, const std::vector<double>& others,
                    const std::function<std::string(double)>& say, std::string because = {},
                    double least = -1e300);
/// Counts: whole numbers from 0.
Question ask_count(std::string text, std::int64_t answer, const std::vector<std::int64_t>& others,
                   std::string because = {});

/// A number to set on an axis of a box: a guess within `tolerance` of `truth` is right.
Question ask_to_set(std::string text, picture::Key box, picture::Name axis, double truth,
                    double tolerance, std::string because);
/// A ratio: "1.2×". Those of `others` that could be confused with the answer are omitted.
Question ask_ratio(std::string text, double answer, const std::vector<double>& others,
                   std::string because);

/// The same question, of a kind: Question::id.
Question of_kind(std::string id, Question question);
/// The same question, of a kind and about views of the Measured tab: they are covered until the answer.
Question about_view(std::vector<std::string> views, const char* kind, Question question);
inline Question about_view(const char* view, const char* kind, Question question) {
  return about_view(std::vector<std::string>{view}, kind, std::move(question));
}
/// How many times as fast one number of a bench is as another: asked if both exist; `why` is followed by both.
struct Faster {
  std::optional<double> fast, slow;
  const char* unit;
  int decimals = 0;
};
std::optional<Question> ask_faster(const lab::Report& bench, std::vector<std::string> views,
                                   const char* kind, const Faster& rates, std::string text,
                                   const std::vector<double>& others, std::string_view why);
/// The same question with its choices in an order derived from this run, so that over many runs the
/// answer is at every position equally often.
Question shuffled(Question question, const lab::Report& run);

/// The questions that a bench can answer, shuffled by it; those it cannot answer are nothing.
std::vector<Question> asked_of(const lab::Report& bench,
                               const std::vector<std::optional<Question>>& questions);

/// The question as a scene asks it, shuffled by its run; a guess among choices is written at `where`, a number is drawn
/// on its axis.
std::optional<Question> placed(std::optional<Question> question, const lab::Report& run,
                               picture::Key where);

/// The same question, about a thing of the picture or a box.
Question about(picture::Key where, Question question);
/// The same question, with a thing for each choice, in the choices' order.
Question about_each(const std::function<picture::Key(const std::string& choice)>& thing,
                    Question question);
/// The same question, about a number on an axis of a box: a guess is drawn as a line there.
Question about(picture::Key box, picture::Name axis, Question question);

/// Whether a guess is right: the answer's choice, or a number near enough.
bool is_answer(const Question& question, const Guess& guess);
/// The right answer in words: "four", "0.37".
std::string answer_text(const Question& question);

/// The verdict on a guess: "No: they shrink". The sentence continues with ", because" and the question's clause.
std::string verdict(const Question& question, const Guess& guess);
/// A sentence lowered to follow a colon or a comma: "they shrink". Names and formulas keep their capitals.
std::string lowered(std::string words);

/// Adds the guess to a picture, in state `predicted`: a line at the number, or a frame around the thing
/// named. Adds nothing if the picture has neither.
void add_guess(picture::Picture& picture, const Question& question, const Guess& guess);

}  // namespace tilestep::scenes

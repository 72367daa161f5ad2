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

/// How scenes ask. Who has seen one question must not know the place of the next one's answer.
namespace tilestep::scenes {

/// `answer` among up to three of `others`, those that differ from it and from each other, the first
/// ones first. The order hangs on the words alone: the same question always looks the same, and over
/// many the answer is at every place equally often.
Question ask(std::string text, std::string answer, const std::vector<std::string>& others,
             std::string because = {});

/// The same with numbers, written by `say` and kept in `values`; `others` below `least` are left out, and multiples of
/// the answer make up for missing ones.
Question ask_number(std::string text, double answer, const std::vector<double>& others,
                    const std::function<std::string(double)>& say, std::string because = {},
                    double least = -1e300);
/// Counts: whole numbers from 0.
Question ask_count(std::string text, std::int64_t answer, const std::vector<std::int64_t>& others,
                   std::string because = {});

/// A number to be set on an axis of a box: a guess within `tolerance` of `truth` is right.
Question ask_to_set(std::string text, picture::Key box, picture::Name axis, double truth,
                    double tolerance, std::string because);
/// How many times as much: "1.2×". Of `others` those that could be taken for the answer are left out.
Question ask_ratio(std::string text, double answer, const std::vector<double>& others,
                   std::string because);

/// The same question, of a kind: Question::id.
Question of_kind(std::string id, Question question);
/// The same question, of a kind and about what views of the Measured tab show: they are covered until the answer.
Question about_view(std::vector<std::string> views, const char* kind, Question question);
inline Question about_view(const char* view, const char* kind, Question question) {
  return about_view(std::vector<std::string>{view}, kind, std::move(question));
}
/// How many times as fast one of a bench's numbers is as another: asked where both are there, `why` with both behind it.
struct Faster {
  std::optional<double> fast, slow;
  const char* unit;
  int decimals = 0;
};
std::optional<Question> ask_faster(const lab::Report& bench, std::vector<std::string> views,
                                   const char* kind, const Faster& rates, std::string text,
                                   const std::vector<double>& others, std::string_view why);
/// The same question with its choices in the order that this run gives them, so that over many runs
/// the answer is at every place equally often.
Question shuffled(Question question, const lab::Report& run);

/// The questions that a bench can answer, shuffled by it: one that it cannot is nothing.
std::vector<Question> asked_of(const lab::Report& bench,
                               const std::vector<std::optional<Question>>& questions);

/// The same question as a scene asks it, shuffled by its run; a guess among choices is written at `where`, a number stands
/// on its axis.
std::optional<Question> placed(std::optional<Question> question, const lab::Report& run,
                               picture::Key where);

/// The same question, about a thing of the picture or a box.
Question about(picture::Key where, Question question);
/// About a thing for each choice, in the choices' order.
Question about_each(const std::function<picture::Key(const std::string& choice)>& thing,
                    Question question);
/// About a number on an axis of a box: a guess is drawn as a line there.
Question about(picture::Key box, picture::Name axis, Question question);

/// Whether a guess is right: the answer's choice, or a number near enough.
bool is_answer(const Question& question, const Guess& guess);
/// "four", "0.37": what is right, in words.
std::string answer_text(const Question& question);

/// What became of a guess: "No: they shrink". The sentence goes on with ", because" and the question's own clause.
std::string verdict(const Question& question, const Guess& guess);
/// A sentence to go on with after a colon or a comma: "they shrink". Names and formulas keep their capitals.
std::string lowered(std::string words);

/// Adds to a picture what was guessed, in state `predicted`: a line at the number, or a frame round the
/// thing that was named. Nothing where the picture has neither.
void add_guess(picture::Picture& picture, const Question& question, const Guess& guess);

}  // namespace tilestep::scenes

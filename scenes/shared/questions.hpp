#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

/// The same question, about a thing of the picture or a box.
Question about(picture::Key where, Question question);
/// About a number on an axis of a box: a guess is drawn as a line there.
Question about(picture::Key box, picture::Name axis, Question question);

/// Adds to a picture what was guessed, in state `predicted`: a line at the number, or a frame round the
/// thing that was named. Nothing where the picture has neither.
void add_guess(picture::Picture& picture, const Question& question, int choice);

/// Choices that have an order of their own, as "never, sometimes, always": they keep it.
Question ask_scale(std::string text, std::vector<std::string> choices, int answer,
                   std::string because = {});

}  // namespace tilestep::scenes

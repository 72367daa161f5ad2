#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/lesson.hpp"

namespace tilestep::contract {

/// Every knob at each of its ends, the others at their defaults: all choices, both positions, the
/// least and the most (or what the tests have time for). Where the lesson takes an end only together
/// with another knob (query 1023 needs queries 1024), that one is at its end as well.
const std::vector<lab::Settings>& knob_ends(const lab::Lesson& lesson);
/// One in three of them, for what is drawn: the kernels run at all. The same ones for all that a process asks of a
/// lesson, so that each run is made once.
const std::vector<lab::Settings>& some_knob_ends(const lab::Lesson& lesson);

/// Settings in which all knobs are turned at once, numbers staying small; the same in every run. Some
/// may be of those that the lesson refuses.
std::vector<lab::Settings> knob_mixtures(const lab::Lesson& lesson, int count);

/// Whether the lesson takes them: what else it throws goes through.
bool takes(const lab::Lesson& lesson, const lab::Settings& settings);

std::string to_text(const lab::Settings& settings);

}  // namespace tilestep::contract

#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "app/keep/capsule.hpp"

namespace tilestep::app {

/// A question with all that it is asked and answered from.
struct QuizItem {
  std::shared_ptr<const lab::Report> report;  ///< of a run, or of a bench
  scenes::Question question;
  bool measured = false;      ///< about a bench: nothing was stepped through
  scenes::Cursor asked = {};  ///< the cursor when it is asked
  scenes::Cursor told = {};   ///< the cursor that shows the answer
  /// Rows of the table of the steps: the last before the question, and the first that say the answer.
  lab::Table evidence = {};
  std::string scale = {};  ///< of a number to be set: "0–100"
};

/// Up to `most` questions about a lesson, the same for the same seed on every machine: of as many kinds as the
/// lesson has, over its choices, switches and random data, with no knob turned that the question does not depend on. None
/// asks the same twice, and no picture that another is asked with says an answer. Easy ones first: about the defaults, the
/// first steps; about measurements last.
std::vector<QuizItem> make_quiz(std::string_view lesson, std::int64_t seed, std::size_t most);

}  // namespace tilestep::app

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scenes/shared/questions.hpp"

namespace tilestep::scenes {

/// A kind of question before steps, as data: `ask` gives the question before a step, counted from 0, or nothing where
/// there is no occasion for it.
struct Occasion {
  const char* kind;  ///< Question::id
  std::function<std::optional<Question>(int step)> ask;
  int most = 1;  ///< times that it is asked: at its first occasions
};

/// The questions before `steps` steps, at most one before each: of the first kind that has an occasion there. Their
/// choices are shuffled by `run`.
inline std::map<int, Question> asked_before(int steps, std::vector<Occasion> kinds,
                                            const lab::Report& run) {
  std::map<int, Question> all;
  for (int step = 0; step < steps; ++step) {
    for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
      std::optional<Question> asked = kind->ask(step);
      if (!asked) continue;
      all.emplace(step, shuffled(of_kind(kind->kind, std::move(*asked)), run));
      if (--kind->most == 0) kinds.erase(kind);
      break;
    }
  }
  return all;
}

}  // namespace tilestep::scenes

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/shell/session.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/ui/ui.hpp"

/// Where the user stands in a lesson's text, and in questions about earlier lessons.
namespace tilestep::app {

/// Where the reader of a lesson's text is.
struct Reading {
  std::optional<scenes::Guide> guide;  ///< once a run has said the names of the phases
  std::string problem;                 ///< why there is none
  /// Terms of the glossary that stretch `i` of the text uses first: the introduction, the stops, more.
  std::vector<std::vector<ui::MarkdownTerm>> terms;
  int stop = -1;        ///< among the guide's; −1: before the first
  bool tries = false;   ///< an experiment has taken the scene away from the stop
  bool scrolls = true;  ///< brings the stop into sight
  float width = 0;      ///< of the text when it was drawn last, in its own units
  bool tells = false;   ///< figures too that are still asked about
  bool asks = false;    ///< the question of the stop comes first
  bool shot = false;    ///< the picture shows what the stop is about, not the step
  bool whole = false;   ///< it shows everything
  /// What a stretch of the text took of room, and how it was set then.
  struct Stretch {
    float height = 0, width = 0, scale = 0;
    bool waits = false;
  };
  std::set<int> asked;             ///< stops whose question has been dealt with
  std::vector<Stretch> stretches;  ///< as `terms`
};

/// Questions of earlier lessons before one begins, each in its own scene.
struct Recall {
  struct Visit {
    std::size_t lesson = 0;
    lab::Settings settings;  ///< complete
  };
  std::vector<Visit> visits;
  std::size_t target = 0;  ///< the lesson that is to begin
  std::size_t now = 0;     ///< of the visits
  bool asks = false;       ///< once its run is there
  /// How the lesson that is visited stood before.
  lab::Settings before = {};
  int step = 0;
};
/// One of the lesson before `target` and one from further back, where there is one, at settings that their paths do not
/// go to; the same for the same seed.
std::vector<Recall::Visit> recall_before(const std::vector<LessonState>& lessons,
                                         std::size_t target, std::int64_t seed);

}  // namespace tilestep::app

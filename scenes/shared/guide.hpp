#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/knob.hpp"
#include "scenes/picture/view.hpp"

/// \file
/// The guided path in a lesson's Markdown. A stop is a heading with a comment on its own line right before
/// it, which sets the scene for the text below:
///
///     <!-- stop: step=2 phase=rescale preset=rising tile_width=4 light=m,score_5 kind=surprise -->
///     ## The maximum moves, and the past shrinks
///
/// `step` is the number of completed coarse steps (default 0; beyond the last: the last), `phase` the name
/// or number of a phase in it (default: the last; `_` stands for a blank in a name), `light` keys of the
/// picture, `kind` and `tab` one of `guide_kinds` and `guide_tabs`; all others are knobs. `view` names the
/// chart under Measured that the text discusses and `filter=id:value` sets one of its filters (`_` stands
/// for a blank in either); `tab=measured` opens it. `ask` is the kind of the question before that step: it is asked
/// first, and the text follows. Text before the first stop is the introduction, text after `<!-- more -->` needs no
/// scene. In the introduction, `<!-- before: … -->` and `<!-- after: … -->` give the course's prerequisites and goals.
///
/// Inside a stop `[stride 32](try:stride=32)` is a chip that sets knobs on top of the stop's (several:
/// `try:stride=32&element_bytes=1`), and `[m](light:m)` lights a thing while the user points at it.
namespace tilestep::scenes {

/// An experiment: its chip's label, and the knobs it sets on top of its stop's.
struct Try {
  std::string label;
  lab::Settings settings;
  bool operator==(const Try&) const = default;
};

/// A stop of the guided path, and the state of the scene while it is read.
struct GuideStop {
  std::string title;               ///< the heading, without its #
  std::string text;                ///< Markdown below the heading
  lab::Settings settings;          ///< the knobs that it names; the others are at their defaults
  int step = 0;                    ///< completed coarse steps; may be beyond the last: the last
  std::string phase;               ///< name or number of one inside that step; empty: the last
  std::vector<std::string> light;  ///< keys of the picture, as picture::to_text writes them
  std::string kind;                ///< "misconception", "surprise", "limits" or empty
  std::string tab;                 ///< "data", "measured", "kernel" or empty: that overlay opens
  std::string view;  ///< of the Measured tab, by name; empty: the one that was chosen last
  std::string filter,
      filtered;     ///< a filter of that view by id, and its value; empty: unchanged
  std::string ask;  ///< kind of the question before `step`; empty: none
  /// Axes with numbers whose ends are not those of the stop before: the text says so at its end.
  std::vector<std::string> rescales;
  std::string says_new_ranges() const;
  std::vector<Try> tries;  ///< the chips of `text`, in its order
  /// Its subject: the things it lights and those its text can light.
  std::vector<std::string> subject() const;
};

/// A lesson's text. Without stops it is all `intro` and `more`.
struct Guide {
  std::string before;  ///< prerequisites, from `<!-- before: … -->`; empty: not given
  std::string after;   ///< learning goals, from `<!-- after: … -->`
  std::string intro;   ///< Markdown before the first stop, the title included
  std::vector<GuideStop> stops;
  std::string more;  ///< Markdown after `<!-- more -->`
};

/// The allowed values of `kind` and `tab`.
const std::vector<std::string>& guide_kinds();
const std::vector<std::string>& guide_tabs();

/// Reads the guided path of a lesson with these knobs. Throws Error naming the line and the allowed
/// values for: a stop without a heading or with an unknown word, a value that its knob refuses, a link of
/// an unknown kind, a chip or a light outside a stop.
Guide parse_guide(std::string_view markdown, const lab::Knobs& knobs);

/// The phase of a stop among those of a trace, since steps of other settings may have other phases. Throws Error with
/// the allowed values for a phase that does not exist or whose name is ambiguous.
int phase_of(const GuideStop& stop, const std::vector<std::string>& phase_names);
/// The cursor at which the question of a stop is asked: the end of the step before.
Cursor asked_at(const GuideStop& stop, const StepAxis& steps);
/// The cursor of a stop in a trace with these steps; the beginning of its step if its phase does not exist.
Cursor cursor_at(const GuideStop& stop, const StepAxis& steps);

/// The Markdown of a lesson, as built into the program: assets/lessons/<chapter>/<lesson>.md. Throws Error
/// (unavailable) if it was not built in.
std::string_view lesson_text(std::string_view lesson);

/// A link in Markdown; links in code do not count.
struct GuideLink {
  std::string label;  ///< as written
  std::string target;
  int line = 1;  ///< 1-based, where it begins
};
std::vector<GuideLink> links_of(std::string_view markdown);

/// The knobs of a link's target: "try:stride=32&element_bytes=1". Throws Error as `parse_guide` does,
/// without the line.
lab::Settings try_settings(std::string_view target, const lab::Knobs& knobs);

}  // namespace tilestep::scenes

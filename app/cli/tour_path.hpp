#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenes/shared/guide.hpp"
#include "scenes/shared/scene.hpp"

/// A lesson's guided path as HTML: stop by stop, a picture with the text beside it.
namespace tilestep::app {

/// A stop as the page shows it.
struct PathView {
  scenes::GuideStop stop;
  std::string lesson;
  std::string dark_file, light_file;    ///< pictures beside the page; empty: none
  std::string alt;                      ///< what the picture shows
  std::string chart_dark, chart_light;  ///< the chart that the text speaks of; empty: none
  std::string chart_alt;
  std::string missing;                       ///< why there is none
  std::string link;                          ///< the command line that opens the window there
  std::optional<scenes::Question> question;  ///< the question asked there
  scenes::SourceMark source;                 ///< the kernel's lines of the step
};

/// All stops, of which one is shown: the arrow keys go from stop to stop, without a script.
std::string path_html(const std::vector<PathView>& views);
/// Which stop is shown, as CSS.
std::string path_style(std::size_t stops);
/// Text of the guide outside of stops.
std::string guide_text_html(std::string_view markdown);

}  // namespace tilestep::app

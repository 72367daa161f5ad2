#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/cli/tour_path.hpp"
#include "kernels/base/lab/lesson.hpp"

/// The tour's pages: HTML that needs nothing but itself and the pictures beside it.
namespace tilestep::app {

struct TourPicture {
  std::string file;   ///< beside the page
  std::string label;  ///< "tile 2"
  std::string alt;    ///< a description, for readers who cannot see it
};

/// Everything a lesson's page shows.
struct TourStop {
  lab::LessonInfo info;
  lab::Report report;
  std::vector<TourPicture> pictures;  ///< in step order, dark
  std::string light_file;             ///< the last step in the light theme; empty if not drawn
  std::string missing;                ///< why there are no pictures; empty if there are
  std::vector<PathView> path;         ///< the guided path; empty if the lesson has none
  std::string intro, more;            ///< Markdown before and after it
};

/// Path of a lesson's page inside the tour: "online-softmax/index.html".
std::string page_path(const lab::LessonInfo& info);
std::string lesson_page(const TourStop& stop);
std::string index_page(const std::vector<TourStop>& stops);

/// A page in the tour's dress, with `style` added; `body` is HTML.
std::string page(std::string_view title, std::string_view style, std::string_view body);
/// The first rows of a table.
std::string table_html(const lab::Table& table);

}  // namespace tilestep::app

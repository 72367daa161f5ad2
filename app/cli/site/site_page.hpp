#pragma once

#include <string>
#include <vector>

#include "app/cli/site/lesson_site.hpp"
#include "kernels/base/lab/lesson.hpp"

/// The pages of the course. Each is one file that asks for no other: style, script and data are in it, and its
/// Content-Security-Policy lets nothing else run.
namespace tilestep::app {

struct SiteLesson {
  lab::LessonInfo info;
  std::string body, card;  ///< as in LessonSite
};

/// Where the course is published: "https://example.org/kernels/"; empty: nowhere in particular.
/// Throws Error for what is no such address.
std::string checked_base_url(const std::string& url);

/// The course's first page: all lessons with their pictures, and the glossary. `whole`: the lessons too.
std::string course_page(const std::vector<SiteLesson>& lessons, bool whole,
                        const std::string& base_url);
/// A lesson's page, `<id>/index.html`.
std::string lesson_page(const SiteLesson& lesson, const std::string& base_url);

}  // namespace tilestep::app

#include "scenes/shared/course.hpp"

#include <cmath>
#include <sstream>

#include "kernels/base/workbench/exercise.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/guide.hpp"

namespace tilestep::scenes {
namespace {

int words_of(const std::string& text) {
  std::istringstream words(text);
  int count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

CourseRow row_of(const lab::Lesson& lesson) {
  constexpr double kWordsAMinute = 180, kMinutesAStop = 0.5;
  const lab::LessonInfo& info = lesson.info();
  const Guide guide = parse_guide(lesson_text(info.id), lesson.knobs());
  CourseRow row{info.id, info.chapter, info.title, guide.before, guide.after, 0, {}, {}};
  int words = words_of(guide.intro);
  for (const GuideStop& stop : guide.stops) {
    row.stops.push_back(stop.title);
    words += words_of(stop.text);
  }
  row.minutes = static_cast<int>(
      std::ceil(words / kWordsAMinute + kMinutesAStop * static_cast<double>(guide.stops.size())));
  for (const lab::Exercise& exercise : lab::exercises()) {
    if (exercise.lesson == info.id) row.exercises.push_back(exercise.id());
  }
  return row;
}

}  // namespace

const std::vector<CourseRow>& course() {
  static const std::vector<CourseRow> rows = [] {
    std::vector<CourseRow> all;
    for (const lab::Lesson* lesson : lessons()) all.push_back(row_of(*lesson));
    return all;
  }();
  return rows;
}

lab::Table course_table() {
  lab::Table table{"course",
                   "The course",
                   {lab::column("lesson", "lesson"), lab::column("chapter", "chapter"),
                    lab::whole("minutes", "minutes, about"), lab::whole("stops", "stops"),
                    lab::whole("exercises", "exercises"), lab::column("before", "before"),
                    lab::column("after", "afterwards you can")},
                   {}};
  for (const CourseRow& row : course()) {
    table.rows.push_back({row.lesson, row.chapter, static_cast<double>(row.minutes),
                          static_cast<double>(row.stops.size()),
                          static_cast<double>(row.exercises.size()), row.before, row.after});
  }
  return table;
}

}  // namespace tilestep::scenes

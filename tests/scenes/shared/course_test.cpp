#include "scenes/shared/course.hpp"

#include "kernels/catalog.hpp"
#include "tests/catch.hpp"

using namespace tilestep;

TEST_CASE("the course says of every lesson what it needs and gives", "[scenes_shared]") {
  const auto& course = scenes::course();
  REQUIRE(course.size() == lessons().size());
  for (std::size_t i = 0; i < course.size(); ++i) {
    const scenes::CourseRow& row = course[i];
    INFO(row.lesson);
    CHECK(row.lesson == lessons()[i]->info().id);
    CHECK(row.before.ends_with('.'));
    CHECK(row.after.ends_with('.'));
    CHECK(row.before.size() <= 80);
    CHECK(row.after.size() <= 120);
    CHECK(row.minutes >= 5);
    CHECK(row.minutes <= 45);
    CHECK(row.stops.size() >= 5);
    CHECK_FALSE(row.exercises.empty());
  }
}

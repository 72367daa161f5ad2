// Nothing that is to come is on screen: a trace with another future from a cursor on draws the same
// picture there. What comes when is said by the lesson's Fields<Trace> (base/lab/known.hpp).

#include "lesson_headers.hpp"
#include "tests/lesson_contract/future.hpp"
#include "tests/lesson_contract/knob_cases.hpp"

using namespace tilestep;

namespace {

void check_future(const lab::Lesson& lesson, contract::OtherFuture other_future,
                  contract::TablesOf tables_of) {
  contract::Futures futures([&] { return tests::scene_of(lesson.info().id); }, other_future,
                            tables_of);
  const auto check = [&](const lab::Settings& settings, int cursors, int seeds, bool hovered) {
    INFO(contract::to_text(settings));
    CHECK(futures.compare(settings, cursors, seeds, hovered) == std::vector<std::string>());
  };
  check({}, tests::kSweptSizes.size() < 3 ? 16 : 256, 3, false);  // fewer under a sanitizer
  check({}, 4, 1, true);
  CHECK(futures.changed() > 0.25);  // there is a future
  for (const lab::Settings& settings : contract::some_knob_ends(lesson))
    check(settings, 4, 1, false);
}

}  // namespace

#define LESSON(chapter, id, title)                                                   \
  TEST_CASE(title ": nothing ahead of the cursor is on screen", "[" #id "_scene]") { \
    check_future(id::lesson(), id::other_future, contract::tables_from<id::Trace>);  \
  }
#include "kernels/lessons.def"

#include "tests/lesson_contract/future.hpp"

#include "kernels/attention/online_softmax/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

using namespace tilestep;

namespace {

/// Shows how it all ends.
class Peeks final : public scenes::SceneOf<online_softmax::Trace> {
 public:
  picture::Picture picture(const picture::Extent&, const scenes::View& view) const override {
    const int known = view.cursor.tile - (view.cursor.phase == 3 ? 0 : 1);
    const int shown = known + (ahead ? 1 : 0);
    picture::Picture made;
    made.root = picture::box({"all"}, {});
    if (shown > 0) {
      const auto& step = trace_.steps.at(static_cast<std::size_t>(shown) - 1);
      made.headline = picture::text(std::to_string(step.output));
    }
    return made;
  }
  std::vector<scenes::Readout> readouts(const scenes::View&) const override { return {}; }
  scenes::SourceMark source(const scenes::View&) const override { return {}; }
  std::optional<scenes::Question> question(const scenes::View&) const override {
    return std::nullopt;
  }
  scenes::StepAxis loaded(const online_softmax::Trace& trace) override {
    static_cast<void>(trace);
    return {trace_.tiles(), 4, "tile", {"maximum", "rescale", "weights", "accumulate"}, ""};
  }

  scenes::Cursor known(const lab::Table& table, int row, int column) const override {
    return tables_ahead ? scenes::Cursor{} : Scene::known(table, row, column);
  }

  static inline bool ahead = false, tables_ahead = false;
};

}  // namespace

TEST_CASE("a scene that shows what is to come is caught", "[scenes_shared]") {
  for (const int peeks : {0, 1, 2}) {
    Peeks::ahead = peeks == 1;
    Peeks::tables_ahead = peeks == 2;
    contract::Futures futures([] { return std::make_unique<Peeks>(); },
                              online_softmax::other_future,
                              contract::tables_from<online_softmax::Trace>);
    CHECK(futures.compare({}, 24, 3, false).empty() == (peeks == 0));
  }
}

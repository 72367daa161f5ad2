#pragma once

#include <string>
#include <vector>

#include "app/shell/session.hpp"
#include "scenes/shared/scene.hpp"

/// A scene of four steps with an empty picture.
namespace tilestep::tests {

inline const scenes::StepAxis kAxis{4, 3, "tile", {"load", "max", "add"}};

class FakeScene : public scenes::Scene {
 public:
  std::string_view lesson() const override { return "fake"; }
  std::unique_ptr<Scene> blank() const override { return std::make_unique<FakeScene>(); }
  void load(const lab::Report& report) override {
    if (report.summary == "bad") throw Error("the trace has no tiles");
  }
  const lab::Report* report() const override { return nullptr; }
  scenes::StepAxis steps() const override { return kAxis; }
  picture::Picture picture(const picture::Extent&, const scenes::View&) const override {
    return {};
  }
  std::vector<scenes::Readout> readouts(const scenes::View&) const override { return {}; }
  int table_row(std::string_view, const scenes::View& view) const override {
    return view.cursor.tile - 1;
  }
  scenes::SourceMark source(const scenes::View&) const override { return {}; }
  std::optional<scenes::Question> question(const scenes::View& view) const override {
    if (view.cursor.tile >= kAxis.tiles) return std::nullopt;
    return scenes::Question{"What comes next?", {"this", "that"}, 0, "It always does."};
  }
};

/// The one place where a session's lessons are run.
inline std::vector<app::LabOffer> offer_of(std::string backend) {
  return {{backend, "", "", backend, 0}};
}

}  // namespace tilestep::tests

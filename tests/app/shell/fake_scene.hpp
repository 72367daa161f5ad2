#pragma once

#include <utility>

#include "scenes/scene.hpp"

/// A scene of four steps that draws nothing.
namespace tilestep::tests {

inline const scenes::StepAxis kAxis{4, 3, "tile", {"load", "max", "add"}};

class FakeScene final : public scenes::Scene {
 public:
  std::string_view lesson() const override { return "fake"; }
  void load(const lab::Report& report) override {
    if (report.summary == "bad") throw Error("the trace has no tiles");
  }
  scenes::StepAxis steps() const override { return kAxis; }
  void draw_picture(scenes::Cursor) override {}
  void draw_readouts(scenes::Cursor) override {}
  void draw_measured(const lab::Report&) override {}
  int table_row(std::string_view, scenes::Cursor cursor) const override { return cursor.tile - 1; }
  void hover_row(std::string_view, int) override {}
  scenes::SourceMark source(scenes::Cursor) const override { return {}; }
  std::optional<scenes::Question> question(scenes::Cursor) const override { return std::nullopt; }
  std::optional<lab::Settings> take_request() override {
    return std::exchange(wanted, std::nullopt);
  }
  std::optional<lab::Settings> wanted;  ///< as if the picture itself had been changed
};

}  // namespace tilestep::tests

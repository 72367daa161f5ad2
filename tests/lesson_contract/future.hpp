#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/lab/known.hpp"
#include "tests/scenes/scene_frame.hpp"

namespace tilestep::contract {

/// A lesson's other_future().
using OtherFuture = nlohmann::json (*)(const nlohmann::json& trace, const lab::Change& by);

/// Two scenes of a kind, one with a report as it is, one with another future. What is on screen at a
/// cursor must not tell them apart.
class Futures {
 public:
  using MakeScene = std::function<std::unique_ptr<scenes::Scene>()>;
  Futures(const MakeScene& make, OtherFuture other_future);

  /// Compares the two at some cursors before the end, in pictures and readouts, and where `hovered`
  /// also with the pointer on each part. Returns what tells them apart.
  std::vector<std::string> compare(const lab::Settings& settings, int cursors, int seeds,
                                   bool hovered);
  /// The share of comparisons in which the future really was another.
  double changed() const { return static_cast<double>(changed_) / compared_; }

 private:
  void compare_at(const lab::Report& report, scenes::Cursor now, std::mt19937& random);
  void compare_hovered(scenes::Cursor now);
  void same(const std::string& what, scenes::Cursor now, ImVec2 size,
            void (scenes::ScenePlayer::*draw)(scenes::Cursor));

  OtherFuture other_future_;
  tests::SceneFrame frame_;
  scenes::ScenePlayer true_, other_;
  std::vector<std::string> faults_;
  int compared_ = 0, changed_ = 0;
};

}  // namespace tilestep::contract

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/lab/known.hpp"
#include "scenes/shared/scene_of.hpp"
#include "tests/scenes/scene_frame.hpp"

namespace tilestep::contract {

/// A lesson's other_future().
using OtherFuture = nlohmann::json (*)(const nlohmann::json& trace, const lab::Change& by);

/// The tables of a report that follow from its trace; none for a lesson without a tables_of().
using TablesOf = std::vector<lab::Table> (*)(const nlohmann::json& trace);
template <class Trace>
std::vector<lab::Table> tables_from(const nlohmann::json& trace) {
  if constexpr (requires(const Trace& of) { tables_of(of); }) {
    return tables_of(scenes::OwnerOf<Trace>::kRead(trace));
  } else {
    return {};
  }
}

struct Ink;

/// Two scenes of a kind, one with a report as it is, one with another future. What is on screen at a
/// cursor must not tell them apart.
class Futures {
 public:
  using MakeScene = std::function<std::unique_ptr<scenes::Scene>()>;
  Futures(const MakeScene& make, OtherFuture other_future, TablesOf tables_of);

  /// Compares the two at some cursors before the end, in pictures, readouts and tables, and where `hovered`
  /// also with the pointer on each part. Returns what tells them apart.
  std::vector<std::string> compare(const lab::Settings& settings, int cursors, int seeds,
                                   bool hovered);
  /// Compares the two at the cursors where something is asked; by the question's kind, how often it was asked
  /// and how often another future had another answer.
  struct Asked {
    int times = 0, open = 0;
  };
  std::vector<std::string> compare_asked(const lab::Settings& settings, int seeds,
                                         std::map<std::string, Asked>& asked);
  /// The share of comparisons in which the future really was another.
  double changed() const { return static_cast<double>(changed_) / compared_; }

 private:
  void compare_at(const lab::Report& report, scenes::Cursor now, std::mt19937& random);
  void compare_hovered(scenes::Cursor now);
  lab::Report with_other_future(const lab::Report& report, scenes::Cursor now,
                                std::mt19937& random) const;
  void same(const std::string& what, scenes::Cursor now, ImVec2 size,
            const std::function<void(scenes::ScenePlayer&)>& draw);

  void same_events(scenes::Cursor now);
  void same_details(scenes::Cursor now);
  void same_tables(std::size_t count, scenes::Cursor now);
  void tell(const std::string& what, scenes::Cursor now, const Ink& of_true, const Ink& of_other);

  OtherFuture other_future_;
  TablesOf tables_of_;
  tests::SceneFrame frame_;
  scenes::ScenePlayer true_, other_;
  std::vector<std::string> faults_;
  int compared_ = 0, changed_ = 0;
};

}  // namespace tilestep::contract

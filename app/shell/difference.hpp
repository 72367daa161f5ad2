#pragma once

#include <optional>
#include <string>

#include "scenes/shared/scene.hpp"

namespace tilestep::app {

/// The first place at which two runs of a lesson say something else.
struct FirstDifference {
  scenes::Cursor at;
  std::string what;  ///< "tile max is 4.0, and was 3.5"
};

/// Looks through the tables of `run`'s report, each cell at the place from which on it is known, for what `other` says
/// otherwise. Nothing: the tables are the same.
std::optional<FirstDifference> first_difference(const scenes::Scene& run, const lab::Report& other);

}  // namespace tilestep::app

#pragma once

#include <functional>
#include <vector>

#include "scenes/shared/measured.hpp"
#include "scenes/ui/ui.hpp"

/// From the declared plots to those that scenes/ui draws.
namespace tilestep::scenes::measured {

/// The rows of a plot before any filter; none if the bench has not got them.
lab::Table rows_of(const Rows& rows, const lab::Report& bench);
const Rows& rows_of(const Plot& plot);

/// What of these a plot shows, for the legend.
struct Looks {
  bool measured = false, expected = false, peer = false, reference = false;
};

/// A plot that is ready to be drawn, with the least height that keeps it legible, in real pixels.
struct Drawable {
  std::string id;
  float least_height = 0;
  std::function<void(ImVec2 size)> draw;
  ui::BarPlot bars = {};  ///< what it draws, if it is one of bars
  Looks looks = {};
};

/// The same numbers of another device, to be seen beside: rows as filtered as those of the plot.
struct Reference {
  lab::Table rows;
  std::string device;
};

/// What `plot` shows of `rows`: nothing, one, or several where it has one for each value of a
/// column. Bars and lines have the reference beside them. The plot and the rows must outlive the result.
std::vector<Drawable> drawables(const Plot& plot, const lab::Table& rows, const lab::Report& bench,
                                const Reference* reference = nullptr);

/// Curves that a logarithmic axis has no place for, since they are 0 throughout: their labels.
std::vector<std::string> zero_curves(const Plot& plot, const lab::Table& rows);

}  // namespace tilestep::scenes::measured

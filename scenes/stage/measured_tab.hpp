#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/shared/measured.hpp"

namespace tilestep::scenes::measured {

class Controls;

/// Draws in place of a view that is not to be seen yet; false: it is.
using Mask = std::function<bool(const std::string& view)>;

/// Draws a lesson's Measured tab and keeps what was chosen in it.
class Tab {
 public:
  /// Chooses a view by its name.
  void show(std::string_view view);
  /// Chooses a value of one of the filters, by its id.
  void choose(const std::string& filter, const std::string& value) { chosen_[filter] = value; }
  /// Fills the width of the current window; as high as the plots need.
  void draw(const Spec& spec, const lab::Report& report, std::string_view lesson,
            const Mask& mask = {});

 private:
  /// A plot's rows, before the filters and after.
  struct Shown {
    const Plot* plot;
    lab::Table rows;
    lab::Table reference;  ///< of what was recorded, beside a bench that was measured
  };

  /// False if the bench has nothing for it.
  bool draw_view(const View& view, const lab::Report& bench, Controls& controls);
  void filter(const View& view, std::vector<Shown>& shown, Controls& controls);
  std::optional<std::string> choice(const Filter& filter, const std::vector<std::string>& values,
                                    Controls& controls);

  std::string view_;                           ///< the chosen one's name; empty: the first
  std::map<std::string, std::string> chosen_;  ///< by the filters' ids
};

}  // namespace tilestep::scenes::measured

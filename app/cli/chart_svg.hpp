#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenes/shared/guide.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::app {

/// A view of the Measured tab as a page has it.
struct Chart {
  std::string svg;
  std::string alt;  ///< a description, for readers who cannot see it
};

/// The view that `stop` names, with its filter, of the bench that `report` is or that was recorded of `lesson`; nothing
/// where it names none, or there are no numbers for it.
std::optional<Chart> chart_of(const scenes::measured::Spec& spec, const lab::Report& report,
                              std::string_view lesson, const scenes::GuideStop& stop,
                              ui::ThemeKind theme);

}  // namespace tilestep::app

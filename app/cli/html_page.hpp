#pragma once

#include <string>
#include <string_view>

#include "kernels/base/lab/report.hpp"

/// A page of HTML that needs nothing but itself.
namespace tilestep::app {

/// A page in tilestep's dress, with `style` added; `body` is HTML.
std::string page(std::string_view title, std::string_view style, std::string_view body);
/// The first rows of a table.
std::string table_html(const lab::Table& table);

}  // namespace tilestep::app

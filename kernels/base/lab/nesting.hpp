#pragma once

#include <string_view>

namespace tilestep::lab {

/// Objects and lists inside each other in a JSON text from outside: many more than a trace has, and few enough
/// for what copies or writes JSON, which calls itself for each.
inline constexpr int kMostNesting = 100;
/// Whether more of them are open at once anywhere in `text`, be it JSON or not.
bool nested_too_deep(std::string_view text);

}  // namespace tilestep::lab

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tilestep::lab {

/// The most characters that a sentence shows of a value from outside …
inline constexpr std::size_t kMostShownValue = 200;
/// … and in total.
inline constexpr std::size_t kMostShown = 1600;

/// A sentence made safe for a terminal, a log or a window, whatever values it contains: UTF-8, without
/// control characters (so on one line and without escape sequences: "\x1b" is spelled out), text 'in
/// quotes' cut to kMostShownValue characters and all of it to kMostShown, by omitting the middle.
/// Every error text of tilestep goes through this, on standard error and in JSON.
std::string shown(std::string_view sentence);
/// The same for a value alone, without quotes: at most kMostShownValue characters.
std::string shown_value(std::string_view value);
/// The same for a text of any length that may have several lines.
std::string printable(std::string_view text);
/// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text);
/// Without leading and trailing blanks, tabs and line ends.
std::string_view trimmed(std::string_view text);

}  // namespace tilestep::lab

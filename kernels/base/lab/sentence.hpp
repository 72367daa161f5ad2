#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tilestep::lab {

/// The most that a sentence shows of a value that came from outside, in characters …
inline constexpr std::size_t kMostShownValue = 200;
/// … and of everything.
inline constexpr std::size_t kMostShown = 1600;

/// A sentence as a terminal, a log or a window may have it, whatever was put into it: UTF-8, without
/// control characters (so on one line and without escape sequences: "\x1b" is spelled out), what stands
/// 'in quotes' at most kMostShownValue characters long, all of it at most kMostShown, the middle left out.
/// Everything that tilestep says of an error goes through here, on standard error and in JSON.
std::string shown(std::string_view sentence);
/// The same of a value alone, without quotes: at most kMostShownValue characters.
std::string shown_value(std::string_view value);
/// A text of any length and of several lines, otherwise as it may be shown.
std::string printable(std::string_view text);
/// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text);
/// Without blanks, tabs and ends of lines around it.
std::string_view trimmed(std::string_view text);

}  // namespace tilestep::lab

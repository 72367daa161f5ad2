#pragma once

#include <string>
#include <string_view>
#include <vector>

/// How text is laid out for a terminal.
namespace tilestep::app {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};
/// COLUMNS and LINES; otherwise the size of the terminal on standard output; otherwise 80x24.
TerminalSize terminal_size();

/// The columns that UTF-8 text takes: 0 for a combining mark, 2 for East Asian wide signs and
/// emoji, 1 for everything else, such as · × ℓ.
std::size_t display_width(std::string_view text);
/// `text` and spaces up to `width` columns.
std::string padded(std::string_view text, std::size_t width, bool right = false);

/// The words of `text` on lines of at most `width` columns, at least one line; a word that is
/// longer is cut.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width);
/// The same as one text: each line ends in a newline, all but the first begin with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);
/// The same to the width of the terminal that standard output is, or of COLUMNS; for a program that reads it, a line.
std::string for_reader(std::string_view text, std::size_t indent);

}  // namespace tilestep::app

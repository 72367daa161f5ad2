#include "app/cli/fitted_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "app/cli/terminal.hpp"

namespace tilestep::app {
namespace {

constexpr std::size_t kIndent = 2, kGap = 2;
/// A column of words is not wrapped to less than this.
constexpr std::size_t kNarrowestWords = 16;

using Widths = std::vector<std::size_t>;

bool holds_words(const lab::Table& table, std::size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(), [column](const auto& row) {
    return std::holds_alternative<std::string>(row.at(column));
  });
}

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    longest = std::max(longest, display_width(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

std::size_t widest_cell(const lab::Table& table, std::size_t column, std::size_t rows) {
  std::size_t widest = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    widest = std::max(widest, display_width(table.text(r, column)));
  }
  return widest;
}

/// The widths of the first `count` columns with nothing wrapped.
Widths natural_widths(const lab::Table& table, std::size_t count, std::size_t rows) {
  Widths widths;
  for (std::size_t c = 0; c < count; ++c) {
    widths.push_back(
        std::max(widest_cell(table, c, rows), display_width(heading(table.columns[c]))));
  }
  return widths;
}

/// How narrow they may become: numbers and the words of a heading stay whole.
Widths narrowest_widths(const lab::Table& table, std::size_t count, std::size_t rows) {
  Widths widths;
  for (std::size_t c = 0; c < count; ++c) {
    std::size_t cells = widest_cell(table, c, rows);
    if (holds_words(table, c)) cells = std::min(cells, kNarrowestWords);
    widths.push_back(std::max(cells, longest_word(heading(table.columns[c]))));
  }
  return widths;
}

std::size_t line_width(const Widths& widths) {
  return std::accumulate(widths.begin(), widths.end(), kIndent) +
         kGap * (widths.size() - std::min<std::size_t>(widths.size(), 1));
}

/// Takes what is too much from the columns that are widest beyond their narrowest width.
Widths shrunk(Widths widths, const Widths& narrowest, std::size_t room) {
  while (line_width(widths) > room) {
    std::size_t widest = widths.size();
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] > narrowest[c] && (widest == widths.size() || widths[c] > widths[widest])) {
        widest = c;
      }
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

/// The lines of one row of cells, each cell wrapped to its column.
template <class CellText>
std::vector<std::string> row_lines(const Widths& widths, const std::vector<bool>& words,
                                   CellText&& cell) {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    cells.push_back(wrapped_lines(cell(c), std::max<std::size_t>(widths[c], 1)));
    height = std::max(height, cells.back().size());
  }
  std::vector<std::string> lines;
  for (std::size_t l = 0; l < height; ++l) {
    std::string line(kIndent, ' ');
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      line += padded(l < cells[c].size() ? cells[c][l] : "", widths[c], !words[c]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string rule(std::size_t width) {
  std::string rule;
  for (std::size_t i = 0; i < width; ++i) rule += "─";
  return rule;
}

/// Heading, rule, and as many rows as there are lines for.
FittedTable laid_out(const lab::Table& table, const Widths& widths, int lines) {
  FittedTable result;
  std::vector<bool> words;
  for (std::size_t c = 0; c < widths.size(); ++c) words.push_back(holds_words(table, c));
  const auto add = [&result](const std::vector<std::string>& more) {
    for (const std::string& line : more) result.text += line + '\n';
    result.lines += static_cast<int>(more.size());
  };
  add(row_lines(widths, words, [&](std::size_t c) { return heading(table.columns[c]); }));
  add(row_lines(widths, words, [&](std::size_t c) { return rule(widths[c]); }));
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto row = row_lines(widths, words, [&](std::size_t c) { return table.text(r, c); });
    if (r > 0 && result.lines + static_cast<int>(row.size()) > lines) {
      result.rows_left_out = table.rows.size() - r;
      break;
    }
    add(row);
  }
  return result;
}

}  // namespace

std::string heading(const lab::Column& column) {
  return column.unit.empty() ? column.label : fmt::format("{} ({})", column.label, column.unit);
}

std::string aligned(const lab::Table& table) {
  const Widths widths = natural_widths(table, table.columns.size(), table.rows.size());
  return laid_out(table, widths, std::numeric_limits<int>::max()).text;
}

FittedTable fitted(const lab::Table& table, std::size_t width, int lines) {
  // Rows far below what fits must not widen the columns of those that are shown.
  const std::size_t rows =
      std::min(table.rows.size(), static_cast<std::size_t>(std::max(lines, 1)));
  std::size_t count = table.columns.size();
  while (count > 1 && line_width(narrowest_widths(table, count, rows)) > width) --count;
  const Widths narrowest = narrowest_widths(table, count, rows);
  FittedTable result =
      laid_out(table, shrunk(natural_widths(table, count, rows), narrowest, width), lines);
  for (std::size_t c = count; c < table.columns.size(); ++c) {
    result.columns_left_out.push_back(heading(table.columns[c]));
  }
  return result;
}

}  // namespace tilestep::app

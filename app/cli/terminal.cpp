#include "app/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tilestep::app {
namespace {

constexpr int kNarrowest = 20, kWidest = 10'000;

/// A variable that holds a whole number within bounds, else 0.
int from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  const std::string_view digits = text;
  int value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size()) return 0;
  return value > 0 && value <= kWidest ? value : 0;
}

/// The code point at the front of `text`, which loses it. Bytes that are no UTF-8 stand for
/// themselves.
char32_t take_code_point(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t point = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  const std::size_t taken = std::min(length, text.size());
  for (std::size_t i = 1; i < taken; ++i) {
    point = (point << 6) | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  }
  text.remove_prefix(taken);
  return point;
}

std::size_t columns_of(char32_t point) {
  const auto within = [point](char32_t first, char32_t last) {
    return point >= first && point <= last;
  };
  if (within(0x0300, 0x036F) || within(0x20D0, 0x20FF) || within(0x200B, 0x200F)) return 0;
  const bool wide = within(0x1100, 0x115F) || within(0x2E80, 0xA4CF) || within(0xAC00, 0xD7A3) ||
                    within(0xF900, 0xFAFF) || within(0xFE30, 0xFE6F) || within(0xFF00, 0xFF60) ||
                    within(0xFFE0, 0xFFE6) || within(0x1F300, 0x1F64F) ||
                    within(0x1F900, 0x1F9FF) || within(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

/// The longest beginning of `text` that takes at most `width` columns, but at least one sign.
std::string_view beginning(std::string_view text, std::size_t width) {
  std::string_view rest = text;
  std::size_t used = columns_of(take_code_point(rest));
  while (!rest.empty()) {
    std::string_view after = rest;
    used += columns_of(take_code_point(after));
    if (used > width) break;
    rest = after;
  }
  return text.substr(0, text.size() - rest.size());
}

}  // namespace

TerminalSize terminal_size() {
  TerminalSize size;
  ::winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    if (window.ws_col > 0) size.columns = window.ws_col;
    if (window.ws_row > 0) size.rows = window.ws_row;
  }
  if (const int columns = from_environment("COLUMNS")) size.columns = columns;
  if (const int rows = from_environment("LINES")) size.rows = rows;
  size.columns = std::max(size.columns, kNarrowest);
  return size;
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) columns += columns_of(take_code_point(text));
  return columns;
}

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return {std::string(text)};
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return lines;
    std::string_view word = text.substr(0, text.find(' '));
    if (used > 0 && used + 1 + display_width(word) > width) {
      lines.emplace_back();
      used = 0;
    }
    word = used == 0 ? beginning(word, width) : word;
    if (used > 0) lines.back() += ' ', ++used;
    lines.back() += word;
    used += display_width(word);
    text.remove_prefix(word.size());
    if (!text.empty() && text.front() != ' ') lines.emplace_back(), used = 0;
  }
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string all;
  for (const std::string& line : wrapped_lines(text, width - std::min(width - 1, indent))) {
    if (!all.empty()) all.append(indent, ' ');
    all += line + '\n';
  }
  return all;
}

std::string for_reader(std::string_view text, std::size_t indent) {
  if (::isatty(STDOUT_FILENO) == 0 && std::getenv("COLUMNS") == nullptr)
    return std::string(text) + "\n";
  const auto columns = static_cast<std::size_t>(std::max(terminal_size().columns, 0));
  return wrapped(text, std::max(columns, indent + 24), indent);
}

}  // namespace tilestep::app

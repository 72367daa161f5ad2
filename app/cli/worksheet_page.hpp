#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/lab/lesson.hpp"

/// The three pages of a worksheet, each as Markdown and as HTML that prints on A4.
namespace tilestep::app {

/// A question as printed.
struct SheetItem {
  std::string about;  ///< the run or the bench that it is asked of, in words
  std::string text;
  std::vector<std::string> choices;  ///< none: the answer is a number
  std::string answer;                ///< "B" or a number
  std::string scale;                 ///< of a number: "0–100"
  double value = 0, tolerance = 0;   ///< of a number: what is right, and how near is near enough
  std::string because;
  std::string before, after;  ///< pictures beside the page; empty: none
  std::string link;           ///< the command line that comes to where it is asked
  lab::Table evidence;        ///< rows that say the answer; none: no rows
};

struct Worksheet {
  lab::LessonInfo info;
  std::int64_t seed = 0;
  std::vector<SheetItem> items;
};

/// `sheet`: what a student gets, without any answer; `key`: the answers; `evidence`: where they are seen.
enum class SheetPage { sheet, key, evidence };
std::string sheet_markdown(const Worksheet& worksheet, SheetPage page);
std::string sheet_html(const Worksheet& worksheet, SheetPage page);

/// The questions in GIFT, for a question bank of Moodle; `svg_of` gives a picture by its name, to be put into the text.
std::string sheet_gift(const Worksheet& worksheet,
                       const std::function<std::string(const std::string& name)>& svg_of);

}  // namespace tilestep::app

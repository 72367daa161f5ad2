#include "kernels/base/lab/meant.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace tilestep::lab {
namespace {

/// How many letters are added, left out, changed or swapped with the next (optimal string alignment; Damerau, 1964).
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3>
      rows;  // of the letter before the last, the last, this one
  for (auto& row : rows) row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[1][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    rows[2][0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = rows[1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[2][j] = std::min({rows[1][j] + 1, rows[2][j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[2][j] = std::min(rows[2][j], rows[0][j - 2] + 1);
    }
    std::rotate(rows.begin(), rows.begin() + 1, rows.end());
  }
  return rows[1][b.size()];
}

bool is_word_of(std::string_view word, const std::string& name) {
  const std::string parts = "-" + name + "-", wanted = "-" + std::string(word) + "-";
  return word.size() > 1 && parts.find(wanted) != parts.npos;
}

}  // namespace

std::string meant(std::string_view word, const std::vector<std::string>& names) {
  std::vector<std::string> words;
  std::copy_if(names.begin(), names.end(), std::back_inserter(words),
               [&](const std::string& name) { return is_word_of(word, name); });
  if (words.size() == 1) return words.front();
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  bool several = false;
  for (const std::string& name : names) {
    const std::size_t far = distance(word, name);
    several = far == least || (far > least && several);
    if (far < least) least = far, nearest = name;
  }
  return several || 3 * least > word.size() ? std::string() : nearest;
}

}  // namespace tilestep::lab

#include "kernels/base/lab/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::lab {

SourceMarks::SourceMarks(std::string_view path, std::string_view text) : path_(path) {
  int line = 1;
  std::size_t counted = 0;  // up to here the line ends were counted
  for (std::size_t at = text.find(kStepMark); at != text.npos; at = text.find(kStepMark, at + 1)) {
    const auto from = text.begin() + static_cast<std::ptrdiff_t>(counted);
    line +=
        static_cast<int>(std::count(from, text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted = at;
    const std::size_t begin = at + kStepMark.size();
    const std::size_t end = text.find_first_of("]\n", begin);
    if (end == text.npos || text[end] != ']') {
      throw Error(fmt::format("{}:{}: the mark '{}' has no end ']'", path, line, kStepMark));
    }
    const std::string step(text.substr(begin, end - begin));
    const auto [first, fresh] = lines_.emplace(step, line);
    if (!fresh) {
      throw Error(fmt::format("{} marks the step '{}' twice, in lines {} and {}", path, step,
                              first->second, line));
    }
  }
}

int SourceMarks::line(std::string_view step) const {
  const auto found = lines_.find(step);
  if (found == lines_.end()) {
    throw Error(fmt::format("{} has no line with the mark '{}{}]'", path_, kStepMark, step));
  }
  return found->second;
}

SourceMarks source_marks(std::string_view path) {
  return {path, asset(path)};
}

}  // namespace tilestep::lab

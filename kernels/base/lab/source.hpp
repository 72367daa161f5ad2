#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Kernel sources as the program shows them. A comment `// [step: load]` marks its own line as the line
/// of that step, whatever else changes in the file.
namespace tilestep::lab {

inline constexpr std::string_view kStepMark = "// [step: ";

class SourceMarks {
 public:
  /// The marks of `text`. Throws Error naming `path` for a duplicate or unterminated mark.
  SourceMarks(std::string_view path, std::string_view text);

  /// 1-based line of a step. Throws Error naming the file if it has no such mark.
  int line(std::string_view step) const;
  /// The same for several steps.
  template <std::size_t kSteps>
  std::array<int, kSteps> lines(const std::string_view (&steps)[kSteps]) const {
    std::array<int, kSteps> all;
    for (std::size_t i = 0; i < kSteps; ++i) all[i] = line(steps[i]);
    return all;
  }
  const std::map<std::string, int, std::less<>>& all() const { return lines_; }

 private:
  std::string path_;
  std::map<std::string, int, std::less<>> lines_;
};

/// The marks of a kernel source built into this program ("kernels/…/access.cu"): line numbers of
/// another build's source, which a recording may contain, are never shown.
SourceMarks source_marks(std::string_view path);

/// Lines `first` to `last` of a source, counted from 1.
struct LineRange {
  int first = 0, last = 0;
  friend bool operator==(const LineRange&, const LineRange&) = default;
};
/// The statements of a source that only record data for the picture (`tape.note(…);`, `witness.end(…);`,
/// `if (tape.…) …`), in order; consecutive ones as one range. A statement with a step's mark is not included.
std::vector<LineRange> recorder_lines(std::string_view text);

}  // namespace tilestep::lab

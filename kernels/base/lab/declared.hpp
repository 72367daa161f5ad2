#pragma once

#include <string_view>

/// Declarations of the lesson kit that a lesson's headers name without using. An edited kernel source is
/// compiled with this instead of the kit's headers, which would take longer to parse than the kernel.
namespace tilestep::lab {

struct Change;
class Lesson;
class Progress;
struct Report;
struct Table;
template <class Params>
class KnobTable;

/// A lesson's entry in lessons.def; see kernels/lessons.hpp.
struct LessonName {
  std::string_view id;       ///< "online-softmax"
  std::string_view title;    ///< "Online softmax"
  std::string_view chapter;  ///< "Attention"
};

}  // namespace tilestep::lab

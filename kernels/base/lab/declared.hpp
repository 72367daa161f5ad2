#pragma once

#include <string_view>

/// What of the lesson kit a lesson's headers name without using it. A kernel source that a user edited is
/// compiled with this in place of the kit's headers, which take longer to read than the kernel.
namespace tilestep::lab {

struct Change;
class Lesson;
class Progress;
struct Report;
struct Table;
template <class Params>
class KnobTable;

/// What lessons.def says of a lesson; see kernels/lessons.hpp.
struct LessonName {
  std::string_view id;       ///< "online-softmax"
  std::string_view title;    ///< "Online softmax"
  std::string_view chapter;  ///< "Attention"
};

}  // namespace tilestep::lab

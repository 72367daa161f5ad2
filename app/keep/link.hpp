#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/lab/knob.hpp"

namespace tilestep::app {

/// The command line that comes back to this place: "tilestep open coalescing --set stride=8 --step 3". Knobs
/// at their defaults are left out, and so is the phase that completes the step (nothing).
/// Throws Error for a lesson or knobs that there are not.
std::string link_of(std::string_view lesson, const lab::Settings& settings, int step,
                    std::optional<int> phase = {});

/// A word for a POSIX shell: quoted if necessary.
std::string shell_word(std::string_view text);

}  // namespace tilestep::app

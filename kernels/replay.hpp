#pragma once

#include "kernels/base/lab/compare.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep {

/// Runs under emulation what `recorded` ran, with its knobs, and compares the two as the lesson's
/// `replay` says; see lab::compare for `same_build`. Throws Error for a lesson or knobs that there are not, and for a trace that the
/// lesson does not read.
lab::Comparison replayed(const lab::Report& recorded, bool same_build, lab::Progress& progress);

}  // namespace tilestep

#pragma once

#include <string>
#include <string_view>

#include "kernels/base/lab/lesson.hpp"

namespace tilestep {

/// A run of an edited kernel, and what the lesson has read of its device (simt/emulator/evidence.hpp).
struct Witnessed {
  lab::Report report;
  std::string evidence;  ///< empty where it is too much, and a check has failed anyway
};
/// Answers a request for the run of an edited kernel under emulation; `auto` means that too. Throws Error for another
/// request, for too much evidence, and as `answer` does.
Witnessed answer_with_evidence(const lab::Request& request, lab::Progress& progress);

/// The report of the same request, made of the evidence alone: no kernel runs, and the request need have none. Everything
/// that the lesson computes, references, tolerances and checks, it computes here; what only the run itself can tell (two
/// threads that race, values that were watched) is not in it. Throws Error where the evidence is not what the lesson reads.
lab::Report answer_from_evidence(const lab::Request& request, std::string_view evidence,
                                 lab::Progress& progress);

}  // namespace tilestep

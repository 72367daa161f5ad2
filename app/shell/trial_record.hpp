#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/shell/owned_kernel.hpp"
#include "app/worker/lab_client.hpp"
#include "kernels/base/workbench/trials.hpp"

namespace tilestep::app {

/// What is known of the user's kernel at the lesson's trial settings, which are run beside all else once it is right
/// with the knobs on show.
struct TrialRecord {
  std::optional<OwnedKernel> of;  ///< asked about; nothing: none was
  std::optional<Ticket> ticket;   ///< waits or is under way
  LabProgress progress;
  std::vector<workbench::Trial> all;  ///< once it is answered
  std::string sentence;               ///< the same: what came of them, or why nothing did
};

}  // namespace tilestep::app

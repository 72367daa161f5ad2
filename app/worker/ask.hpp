#pragma once

#include <memory>
#include <string>

#include "app/worker/lab_client.hpp"

namespace tilestep::app {

/// The lab at an address, for who can wait for it: at `here` runs answer inside `submit`, in this process,
/// unless this machine's GPU may be asked. What happens there must be able to be ended, so that is a
/// worker's. `program`: path of tilestep itself.
std::unique_ptr<LabClient> make_lab(const LabAddress& address, const std::string& program);

/// Asks a lab that has nothing else to do, and waits for the answer. Throws Error with the failure's
/// sentences and code, Cancelled as soon as `progress` says so.
lab::Report ask(LabClient& lab, const lab::Request& request, lab::Progress& progress);

}  // namespace tilestep::app

#pragma once

#include <memory>
#include <string>

#include "app/worker/lab_client.hpp"

namespace tilestep::app {

/// The lab at an address, for who can wait for it. Null at `here` where there is no GPU: what is emulated
/// can be ended at any time and needs no worker. `program`: path of tilestep itself.
std::unique_ptr<LabClient> make_lab(const LabAddress& address, const std::string& program);

/// The same, and always in a process of its own: what a user wrote may do anything to it.
std::unique_ptr<LabClient> make_process_lab_at(const LabAddress& address,
                                               const std::string& program);

/// Asks a lab that has nothing else to do, and waits for the answer; null: answers in this thread. Throws
/// Error with the failure's sentences and code, Cancelled as soon as `progress` says so.
lab::Report ask(LabClient* lab, const lab::Request& request, lab::Progress& progress);
/// The same with its evidence, or from it (LabClient::submit_evidence). Gives the update with the report.
LabUpdate ask_evidence(LabClient& lab, const lab::Request& request, std::string evidence,
                       lab::Progress& progress);

}  // namespace tilestep::app

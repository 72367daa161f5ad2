#include "app/worker/lab_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <variant>

#include "app/worker/sandbox.hpp"

namespace tilestep::app {

Ticket LabClient::submit_evidence(const lab::Request&, std::string) {
  throw Error("this lab has no evidence of its runs", ExitCode::unavailable);
}

Ticket LabClient::submit_others(const lab::Request&) {
  throw Error(fmt::format("This kernel is not run: {}.", LabClient::why_no_sandbox()),
              ExitCode::unavailable);
}

std::string LabClient::why_no_sandbox() const {
  return "others' kernels run only in a sandbox, and there is none here";
}

std::string LabSet::why_no_sandbox() const {
  return make_sandbox_ ? sandbox_status().reason : LabClient::why_no_sandbox();
}

Ticket LabSet::submit_others(const lab::Request& request) {
  const lab::Request asked = request_for_sandbox(request);
  if (const std::string why = why_no_sandbox(); !why.empty()) {
    throw Error(fmt::format("Others' kernels run only in a sandbox, and {}. Trust the kernel, or "
                            "start with --trust, and it runs without one.",
                            why),
                ExitCode::unavailable);
  }
  if (!sandbox_) {
    labs_.push_back(make_sandbox_());
    sandbox_ = labs_.size() - 1;
  }
  return submit_to(*sandbox_, asked);
}

Ticket LabSet::submit_to(std::size_t lab, const lab::Request& request) {
  assert(lab < labs_.size());
  return named({lab, labs_[lab]->submit(request)});
}

Ticket LabSet::submit_assembly(std::size_t lab, const workbench::AssemblyRequest& request) {
  assert(lab < labs_.size());
  return named({lab, labs_[lab]->submit_assembly(0, request)});
}

/// Gives one of a lab's tickets a name of our own.
Ticket LabSet::named(Theirs theirs) {
  open_.emplace(++last_, theirs);
  names_.emplace(theirs, last_);
  return last_;
}

std::optional<LabUpdate> LabSet::poll() {
  for (std::size_t lab = 0; lab < labs_.size(); ++lab) {
    while (auto update = labs_[lab]->poll()) {
      if (update->ticket == 0) return update;  // about the lab itself
      const auto name = names_.find({lab, update->ticket});
      if (name == names_.end()) continue;
      update->ticket = name->second;
      if (!std::holds_alternative<LabProgress>(update->what)) {
        open_.erase(name->second);
        names_.erase(name);
      }
      return update;
    }
  }
  return std::nullopt;
}

void LabSet::cancel(Ticket ticket) {
  const auto theirs = open_.find(ticket);
  if (theirs != open_.end()) labs_[theirs->second.lab]->cancel(theirs->second.ticket);
}

bool LabSet::busy() const {
  return std::any_of(labs_.begin(), labs_.end(), [](const auto& lab) { return lab->busy(); });
}

std::unique_ptr<LabClient> make_labs(const ProcessLabOptions& options,
                                     const std::vector<LabAddress>& elsewhere) {
  std::vector<std::unique_ptr<LabClient>> labs;
  labs.push_back(make_process_lab(options));
  for (const LabAddress& address : elsewhere) {
    ProcessLabOptions there = options;
    there.address = address;
    labs.push_back(make_process_lab(std::move(there)));
  }
  return std::make_unique<LabSet>(std::move(labs), [options] { return make_sandbox_lab(options); });
}

}  // namespace tilestep::app

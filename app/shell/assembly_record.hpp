#pragma once

#include <deque>
#include <optional>

#include "app/worker/lab_client.hpp"

namespace tilestep::app {

/// What of a lesson's assembly was asked, what came of it, and what is kept: an answer belongs to one text of one
/// source, one form and one compute capability, at one lab, and is shown for no other.
class AssemblyRecord {
 public:
  using Request = workbench::AssemblyRequest;
  struct Kept {
    Request request;
    std::size_t lab = 0;
    LabAssembly assembly;
  };
  /// The state of the newest request.
  enum class Stand { none, under_way, answered, failed, given_up };

  /// It was asked just now, in place of what was asked before.
  void begin(Request request, std::size_t lab, Ticket ticket);
  /// The lab's answer to `ticket()`.
  void take(const LabUpdate& update);
  std::optional<Ticket> ticket() const { return ticket_; }

  /// The answer to exactly this; nullptr: there is none.
  const workbench::Assembly* answer(const Request& request, std::size_t lab) const;
  /// The newest answer that is about another text of the same source; nullptr: there is none.
  const Kept* of_other_text(const Request& request, std::size_t lab) const;
  /// The state of the newest request, if it was this one.
  Stand stand(const Request& request, std::size_t lab) const;
  const LabProgress& progress() const { return progress_; }
  /// The error of the newest request, if it failed.
  const std::optional<LabFailure>& failure() const { return failure_; }
  /// The newest question; nothing: none, or another lesson's took its place.
  const std::optional<Request>& asked() const { return asked_; }

 private:
  std::optional<Request> asked_;
  std::size_t lab_ = 0;
  std::optional<Ticket> ticket_;
  LabProgress progress_;
  std::optional<LabFailure> failure_;
  bool given_up_ = false;
  std::deque<Kept> kept_;  ///< the newest first
};

}  // namespace tilestep::app

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "app/worker/process_lab.hpp"
#include "kernels/base/lab/sentence.hpp"

// The caller's side of a process lab: orders in, updates out.
namespace tilestep::app {
namespace {

/// What a worker, or a command that should lead to one, has said may be anything.
void make_shown(LabUpdate& update) {
  if (auto* failure = std::get_if<LabFailure>(&update.what)) {
    failure->sentence = lab::shown(failure->sentence);
    if (failure->fix) failure->fix->label = lab::shown_value(failure->fix->label);
  } else if (auto* progress = std::get_if<LabProgress>(&update.what)) {
    progress->note = lab::shown_value(progress->note);
  }
}

}  // namespace

Kind ProcessLab::Order::kind() const {
  const auto* asked = std::get_if<lab::Request>(&request);
  if (asked == nullptr) return Kind::assembly;
  constexpr Kind kKinds[] = {Kind::run, Kind::bench, Kind::trials};  // as Action counts
  return kKinds[static_cast<std::size_t>(asked->action)];
}

const std::string& ProcessLab::Order::lesson() const {
  return std::visit([](const auto& each) -> const std::string& { return each.lesson; }, request);
}

std::string ProcessLab::Order::line() const {
  if (const auto* asked = std::get_if<lab::Request>(&request)) {
    return protocol::line_of(protocol::Work{ticket, *asked, evidence});
  }
  return protocol::line_of(
      protocol::AssemblyWork{ticket, std::get<workbench::AssemblyRequest>(request)});
}

std::string_view ProcessLab::Order::source() const {
  if (const auto* asked = std::get_if<lab::Request>(&request)) {
    return asked->kernel ? std::string_view(asked->kernel->text) : std::string_view();
  }
  return std::get<workbench::AssemblyRequest>(request).kernel.text;
}

Ticket ProcessLab::submit(const lab::Request& request) {
  return submit(Order{0, request});
}

Ticket ProcessLab::submit_assembly(std::size_t, const workbench::AssemblyRequest& request) {
  return submit(Order{0, request});
}

Ticket ProcessLab::submit_evidence(const lab::Request& request, std::string evidence) {
  return submit(Order{0, request, std::move(evidence)});
}

Ticket ProcessLab::submit(Order order) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    order.ticket = ticket = ++last_ticket_;
    give_up([&](const auto&, Kind kind) { return kind == order.kind(); }, LabGivenUp::replaced);
    waiting_.push_back(std::move(order));
    push_waiting(waiting_.back());
  }
  wake_io();
  wake_caller();
  return ticket;
}

std::optional<LabUpdate> ProcessLab::poll() {
  const std::lock_guard lock(mutex_);
  if (updates_.empty()) return std::nullopt;
  LabUpdate update = std::move(updates_.front());
  updates_.pop_front();
  return update;
}

void ProcessLab::cancel(Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    give_up([&](Ticket each, Kind) { return each == ticket; }, LabGivenUp::cancelled);
  }
  wake_io();
  wake_caller();
}

bool ProcessLab::busy() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty() || (active_ && !active_->given_up);
}

/// Gives up every order for which `which(ticket, kind)` is true.
template <class Which>
void ProcessLab::give_up(Which which, LabGivenUp why) {
  std::erase_if(waiting_, [&](const Order& order) {
    if (!which(order.ticket, order.kind())) return false;
    push({order.ticket, why});
    return true;
  });
  if (!active_ || active_->given_up || !which(active_->ticket, active_->kind)) return;
  push({active_->ticket, why});
  active_->given_up = true;
}

void ProcessLab::push(LabUpdate update) {
  make_shown(update);
  if (std::holds_alternative<LabProgress>(update.what)) {
    // Of progress only the newest counts: the queue stays short, however much a worker talks.
    const auto older = std::find_if(updates_.begin(), updates_.end(), [&](const LabUpdate& each) {
      return each.ticket == update.ticket && std::holds_alternative<LabProgress>(each.what);
    });
    if (older != updates_.end()) {
      *older = std::move(update);
      return;
    }
  }
  updates_.push_back(std::move(update));
}

/// Says what an order waits for, if there is something.
void ProcessLab::push_waiting(const Order& order) {
  if (!active_ || active_->given_up) return;
  push({order.ticket, LabProgress{0,
                                  fmt::format("waits for the {} of {} to end",
                                              words_of(active_->kind), active_->lesson),
                                  true}});
}

void ProcessLab::wake_caller() const {
  if (options_.wake) options_.wake();
}

void ProcessLab::wake_io() const {
  const std::uint64_t one = 1;
  // Only a full counter makes this fail, and then the thread is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

}  // namespace tilestep::app

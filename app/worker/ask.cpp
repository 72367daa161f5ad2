#include "app/worker/ask.hpp"

#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include "kernels/answer.hpp"
#include "kernels/base/simt/backends.hpp"

namespace tilestep::app {
namespace {

/// What a person does not notice, and a processor neither.
constexpr std::chrono::milliseconds kPause{2};

[[noreturn]] void fail(const LabFailure& failure) {
  std::string sentence = failure.sentence;
  // `next` is about a lab that goes on: this one is asked once.
  if (sentence.ends_with('.')) sentence.pop_back();
  if (!failure.diagnostics.empty()) {
    throw lab::SourceError(sentence, failure.diagnostics, failure.code);
  }
  throw Error(sentence, failure.code);
}

/// The update with the report of what was submitted.
LabUpdate wait_for(LabClient* lab, Ticket ticket, lab::Progress& progress) {
  for (;;) {
    while (auto update = lab->poll()) {
      if (const auto* failure = std::get_if<LabFailure>(&update->what)) {
        if (update->ticket == ticket) fail(*failure);
      } else if (std::holds_alternative<lab::Report>(update->what)) {
        if (update->ticket == ticket) return std::move(*update);
      } else if (const auto* told = std::get_if<LabProgress>(&update->what)) {
        told->waiting ? progress.wait(told->note) : progress.report(told->fraction, told->note);
      }
    }
    if (progress.cancelled()) {
      lab->cancel(ticket);
      throw Cancelled();
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

std::unique_ptr<LabClient> make_lab(const LabAddress& address, const std::string& program) {
  if (!address.elsewhere() && !simt::cuda_status().available) return nullptr;
  return make_process_lab_at(address, program);
}

std::unique_ptr<LabClient> make_process_lab_at(const LabAddress& address,
                                               const std::string& program) {
  ProcessLabOptions options;
  options.program = program;
  options.address = address;
  return make_process_lab(std::move(options));
}

lab::Report ask(LabClient* lab, const lab::Request& request, lab::Progress& progress) {
  if (lab == nullptr) return answer(request, progress);
  return std::get<lab::Report>(wait_for(lab, lab->submit(request), progress).what);
}

LabUpdate ask_evidence(LabClient& lab, const lab::Request& request, std::string evidence,
                       lab::Progress& progress) {
  return wait_for(&lab, lab.submit_evidence(request, std::move(evidence)), progress);
}

}  // namespace tilestep::app

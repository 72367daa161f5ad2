#include "app/shell/assembly_record.hpp"

#include <algorithm>
#include <utility>

namespace tilestep::app {
namespace {

/// Some hundred kilobytes each; both forms of a few texts.
constexpr std::size_t kMostKept = 8;

bool differ_in_text_alone(AssemblyRecord::Request a, const AssemblyRecord::Request& b) {
  if (a.kernel.text == b.kernel.text) return false;
  a.kernel.text = b.kernel.text;
  return a == b;
}

}  // namespace

void AssemblyRecord::begin(Request request, std::size_t lab, Ticket ticket) {
  asked_ = std::move(request);
  lab_ = lab;
  ticket_ = ticket;
  progress_ = {};
  failure_.reset();
  given_up_ = false;
}

void AssemblyRecord::take(const LabUpdate& update) {
  if (const auto* progress = std::get_if<LabProgress>(&update.what)) {
    progress_ = *progress;
    return;
  }
  ticket_.reset();
  if (const auto* assembly = std::get_if<LabAssembly>(&update.what)) {
    kept_.push_front({*asked_, lab_, *assembly});
    if (kept_.size() > kMostKept) kept_.pop_back();
  } else if (const auto* failure = std::get_if<LabFailure>(&update.what)) {
    failure_ = *failure;
  } else if (const auto* why = std::get_if<LabGivenUp>(&update.what)) {
    given_up_ = true;
    // Another lesson's question took its place, nobody stopped it: it may be asked again.
    if (*why == LabGivenUp::replaced) asked_.reset();
  }
}

const workbench::Assembly* AssemblyRecord::answer(const Request& request, std::size_t lab) const {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) {
    return each.lab == lab && each.request == request;
  });
  return found == kept_.end() ? nullptr : found->assembly.get();
}

const AssemblyRecord::Kept* AssemblyRecord::of_other_text(const Request& request,
                                                          std::size_t lab) const {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) {
    return each.lab == lab && differ_in_text_alone(each.request, request);
  });
  return found == kept_.end() ? nullptr : &*found;
}

AssemblyRecord::Stand AssemblyRecord::stand(const Request& request, std::size_t lab) const {
  if (!asked_ || lab_ != lab || *asked_ != request) return Stand::none;
  return ticket_     ? Stand::under_way
         : failure_  ? Stand::failed
         : given_up_ ? Stand::given_up
                     : Stand::answered;
}

}  // namespace tilestep::app

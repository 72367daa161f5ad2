#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/worker/lab_client.hpp"

namespace tilestep::app {

/// Several labs behind one: the first is what `submit` asks. Each has a queue of its own, so that a run
/// here does not wait for a measurement elsewhere. One thread uses it.
class LabSet final : public LabClient {
 public:
  /// `sandbox`: makes the lab of others' kernels, once there are some.
  explicit LabSet(std::vector<std::unique_ptr<LabClient>> labs,
                  std::function<std::unique_ptr<LabClient>()> sandbox = {})
      : labs_(std::move(labs)), make_sandbox_(std::move(sandbox)) {}

  Ticket submit(const lab::Request& request) override { return submit_to(0, request); }
  Ticket submit_to(std::size_t lab, const lab::Request& request) override;
  Ticket submit_assembly(std::size_t lab, const workbench::AssemblyRequest& request) override;
  Ticket submit_others(const lab::Request& request) override;
  std::string why_no_sandbox() const override;
  std::optional<LabUpdate> poll() override;
  void cancel(Ticket ticket) override;
  bool busy() const override;

 private:
  struct Theirs {
    std::size_t lab = 0;
    Ticket ticket = 0;
    auto operator<=>(const Theirs&) const = default;
  };

  Ticket named(Theirs theirs);

  std::vector<std::unique_ptr<LabClient>> labs_;
  std::function<std::unique_ptr<LabClient>()> make_sandbox_;
  std::optional<std::size_t> sandbox_;  ///< its place among the labs, once it is made
  Ticket last_ = 0;
  std::map<Ticket, Theirs> open_;   ///< without a last update so far
  std::map<Theirs, Ticket> names_;  ///< the other way round
};

/// Worker processes here, as `options` says, and at each of `elsewhere`; others' kernels in a sandbox here.
std::unique_ptr<LabClient> make_labs(const ProcessLabOptions& options,
                                     const std::vector<LabAddress>& elsewhere);

}  // namespace tilestep::app

#pragma once

#include <memory>
#include <string>

#include "kernels/attention/shared/task.hpp"
#include "kernels/base/lab/ladder.hpp"
#include "kernels/base/lab/peer_process.hpp"

namespace tilestep::attention {

/// PyTorch's attention, in a process of its own: assets/peers/attention.py as built in, or that of the folder
/// TILESTEP_PEERS, by the Python that TILESTEP_PYTHON names (else python3).
class TorchPeers {
 public:
  /// Starts it where `asked`, and asks it for a small attention. Where that fails, `reason` says why.
  explicit TorchPeers(bool asked);

  bool available() const { return process_ != nullptr; }
  const std::string& reason() const { return reason_; }
  /// What it last said that it cannot do; empty: nothing. Such a peer is not timed.
  const std::string& complaint() const { return *complaint_; }
  /// "PyTorch 2.11.0, cuDNN 9.19.0"; backend "cudnn" or "flash".
  std::string name(const std::string& backend) const;

  /// A peer whose times the process takes. `pass` as the script has it: "forward", "backward".
  lab::Rung rung(const std::string& backend, const Task& task, const std::string& pass) const;

 private:
  std::shared_ptr<lab::PeerProcess> process_;
  std::shared_ptr<std::string> complaint_ = std::make_shared<std::string>();
  std::string reason_, cudnn_, flash_;
};

}  // namespace tilestep::attention

#include "kernels/attention/shared/bench/peers.hpp"

#include <nlohmann/json.hpp>

namespace tilestep::attention {
namespace {

nlohmann::json request_of(const std::string& backend, const Task& task, const std::string& pass,
                          const lab::Pace& pace) {
  return {{"backend", backend},
          {"pass", pass},
          {"length", task.length()},
          {"heads", task.heads},
          {"kv_heads", task.kv_heads},
          {"head_dim", task.head_dim},
          {"causal", task.rule.mask == Mask::causal},
          {"dtype", "bf16"},
          {"settle_ms", pace.settle_ms},
          {"samples", pace.samples}};
}

}  // namespace

TorchPeers::TorchPeers(bool asked) {
  if (!asked) {
    reason_ = "PyTorch was not asked";
    return;
  }
  try {
    process_ = std::make_shared<lab::PeerProcess>(lab::peer_command("attention.py"));
    const Task small{{Mask::none, 128, 0, 0}, 1, 1, 64, ScoreMod::none};
    const auto name_of_backend = [&](const char* backend) {
      return process_->ask(request_of(backend, small, "forward", {1, 1, 1, 1}))
          .value("name", std::string("PyTorch"));
    };
    cudnn_ = name_of_backend("cudnn");
    flash_ = name_of_backend("flash");
  } catch (const std::exception& error) {
    process_.reset();
    reason_ = error.what();
  }
}

std::string TorchPeers::name(const std::string& backend) const {
  return backend == "cudnn" ? cudnn_ : flash_;
}

lab::Rung TorchPeers::rung(const std::string& backend, const Task& task,
                           const std::string& pass) const {
  lab::Rung peer;
  peer.name = name(backend);
  peer.why = "a peer";
  peer.rate_id = "library_" + backend;
  peer.cells = {{"what_changed", peer.why}, {"backend", backend}};
  const auto times = [process = process_, complaint = complaint_, backend, task,
                      pass](const lab::Pace& pace) -> std::vector<double> {
    try {
      return process->ask(request_of(backend, task, pass, pace))
          .at("ms")
          .get<std::vector<double>>();
    } catch (const std::exception& error) {  // without memory, or without such an attention
      *complaint = error.what();
      return {};
    }
  };
  peer.configurations = {{.name = peer.name, .make = [times]() -> lab::Runnable {
                            return {{}, {}, times};
                          }}};
  return peer;
}

}  // namespace tilestep::attention

#pragma once

#include <string>
#include <vector>

#include "kernels/attention/shared/bench/peers.hpp"
#include "kernels/base/lab/bench.hpp"

namespace tilestep::attention {

/// Durations of the ladders of attention.
struct BenchPace {
  int rounds = 2;
  /// At this length, where a ladder is compared with its peers, there are more.
  int compared_length = 16384, compared_rounds = 3;
  double settle_ms = 600;  ///< of a kernel in a round, before its times count
  bool peers = true;       ///< whether PyTorch is timed
};

/// Common base of the benches of all lessons on attention: BF16, batch 1, PyTorch's attention as a peer.
class AttentionBench : public lab::Bench {
 protected:
  AttentionBench(const lab::Bench& start, const BenchPace& pace)
      : lab::Bench(start), torch_(pace.peers), pace_(pace) {}

  /// Calls act(task, share of all) for each head dimension with its heads, each length, without a mask and with a causal
  /// one.
  template <class Act>
  static void for_each_task(const std::vector<int>& head_dims, const std::vector<int>& heads,
                            const std::vector<int>& lengths, const Act& act) {
    const double share = 0.5 / static_cast<double>(head_dims.size() * lengths.size());
    for (std::size_t i = 0; i < head_dims.size(); ++i) {
      for (const int length : lengths) {
        for (const Mask mask : {Mask::none, Mask::causal}) {
          act({{mask, length, 0, 0}, heads[i], heads[i], head_dims[i], ScoreMod::none}, share);
        }
      }
    }
  }
  /// "128 causal 4096".
  static std::string words_of(const Task& task);
  /// A ladder on the task; `pass` is before its words.
  lab::LadderPlan plan_for(const Task& task, double bytes, double flops, const char* pass) const;
  /// PyTorch's attentions by these names; `suffix` is behind the id of their rates.
  std::vector<lab::Rung> torch_peers(const Task& task, const std::string& pass,
                                     const std::string& suffix,
                                     std::vector<std::string> backends = {"cudnn", "flash"}) const;
  /// Keeps what was timed, each beside PyTorch's FlashAttention 2.
  void keep(lab::Climb climb);
  /// The table of the rungs: rung, what changed, head dimension, mask, length, configuration, rates, fractions; and
  /// the peers'.
  void add_rates(const std::string& id, const std::string& title, const std::string& peers_id,
                 const std::string& peers_title, bool with_time = false);
  /// "; …" for each missing peer.
  std::string missing_peers(const std::string& library = {}) const;

  TorchPeers torch_;
  std::vector<lab::Timed> rows_, peers_, configurations_;

 private:
  BenchPace pace_;
};

}  // namespace tilestep::attention

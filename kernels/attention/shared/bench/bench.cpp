#include "kernels/attention/shared/bench/bench.hpp"

#include <fmt/format.h>

namespace tilestep::attention {

using lab::column, lab::real, lab::whole;

std::string AttentionBench::words_of(const Task& task) {
  return fmt::format("{} {} {}", task.head_dim, task.rule.mask == Mask::causal ? "causal" : "full",
                     task.length());
}

lab::LadderPlan AttentionBench::plan_for(const Task& task, double bytes, double flops,
                                         const char* pass) const {
  lab::LadderPlan plan;
  plan.rate = lab::Rate::tflop_per_s;
  plan.work = {.bytes_read = bytes, .flops = flops};
  plan.shape = fmt::format("{}{} heads of {}, {}, length {}", pass, task.heads, task.head_dim,
                           name_of(task.rule.mask), task.length());
  plan.cells = {{"head_dim", lab::Cell(task.head_dim)},
                {"mask", lab::Cell(task.rule.mask)},
                {"length", lab::Cell(task.length())}};
  plan.rounds = task.length() == pace_.compared_length ? pace_.compared_rounds : pace_.rounds;
  plan.turn = {pace_.settle_ms, 14, 8, 20};
  plan.flush_l2 = false;  // products take longer than the bytes do, and the load must not pause
  return plan;
}

std::vector<lab::Rung> AttentionBench::torch_peers(const Task& task, const std::string& pass,
                                                   const std::string& suffix,
                                                   std::vector<std::string> backends) const {
  std::vector<lab::Rung> peers;
  if (!torch_.available()) return peers;
  for (const std::string& backend : backends) {
    lab::Rung peer = torch_.rung(backend, task, pass);
    peer.rate_id += suffix;
    peer.variant = fmt::format("{} {}", peer.name, words_of(task));
    peers.push_back(std::move(peer));
  }
  return peers;
}

void AttentionBench::keep(lab::Climb climb) {
  const lab::Timed* flash = nullptr;
  for (const lab::Timed& peer : climb.peers) {
    if (peer.timed() && std::get<std::string>(peer.cells.at("backend")) == "flash") flash = &peer;
  }
  for (lab::Timed& timed : climb.rungs) {
    if (!timed.timed()) continue;
    if (flash != nullptr && flash->rate.stable() && timed.rate.stable()) {
      const double fraction = timed.rate.median / flash->rate.median;
      timed.cells["torch_fraction"] = fraction;
      report.add(lab::derived("fraction_of_torch", timed.variant, fraction, "",
                              fmt::format("{:.4g} / {:.4g} TFLOP/s of {}, timed in turn",
                                          timed.rate.median, flash->rate.median, flash->name)));
    }
  }
  for (lab::Timed& timed : climb.rungs) {
    if (timed.timed()) rows_.push_back(std::move(timed));
  }
  for (lab::Timed& timed : climb.peers) {
    if (timed.timed()) peers_.push_back(std::move(timed));
  }
  lab::append(configurations_, std::move(climb.configurations));
}

void AttentionBench::add_rates(const std::string& id, const std::string& title,
                               const std::string& peers_id, const std::string& peers_title,
                               bool with_time) {
  const lab::Column head_dim = whole("head_dim", "head dimension"), mask{"mask", "mask"};
  const lab::Column length = whole("length"), rate{"tflops", "rate"};
  const lab::Column p10 = real("p10", "", "TFLOP/s", 2), p90 = real("p90", "", "TFLOP/s", 2);
  std::vector<lab::Column> columns = {"rung",   column("what_changed", "what changed"),
                                      head_dim, mask,
                                      length,   "configuration",
                                      rate,     p10,
                                      p90};
  if (with_time) columns.push_back({"time", "time"});
  columns.push_back(real("fraction", "of cuDNN", "", 3));
  columns.push_back(real("torch_fraction", "of PyTorch's FlashAttention 2", "", 3));
  add_table(id, fmt::format("{} on {}: BF16, batch 1", title, device.info().name), columns, rows_);
  add_table(peers_id, peers_title,
            {lab::Column{"rung", "peer"}, head_dim, mask, length, "configuration", rate, p10, p90},
            peers_);
}

std::string AttentionBench::missing_peers(const std::string& library) const {
  std::string text;
  for (const std::string& why :
       {library, torch_.available() ? std::string() : torch_.reason(), torch_.complaint()}) {
    if (!why.empty()) text += "; " + why;
  }
  return text;
}

}  // namespace tilestep::attention

#include "kernels/attention/kv_cache/bench/cache_bench.hpp"

#include <fmt/format.h>

#include "kernels/base/simt/counters.hpp"

namespace tilestep::kv_cache {

std::string CacheBench::words_of(const Step& step) {
  return fmt::format("{} {} requests, {} tokens, pages of {}", name_of(step.type), step.batch,
                     step.context, step.page_size);
}

lab::LadderPlan CacheBench::plan_for(const Step& step, bool side) const {
  lab::LadderPlan plan;
  plan.rate = lab::Rate::gb_per_s;
  plan.work = {.bytes_read = least_bytes(step)};
  plan.shape = words_of(step);
  plan.flush_l2 = true;  // between two steps of decoding a model reads all of its weights
  plan.rounds = side ? patience_.side_rounds : patience_.rounds;
  if (side) plan.turn = {patience_.side_settle_ms, 25, 20, 20};
  if (!side) plan.turn.settle_ms = patience_.settle_ms;
  return plan;
}

lab::Rung CacheBench::made(std::string name, std::string check, BenchProblem& problem,
                           const Launching& how) {
  lab::Rung rung;
  rung.name = std::move(name);
  rung.variant = fmt::format("{} {}", rung.name, words_of(problem.step()));
  rung.check = std::move(check);
  rung.check_detail = kWhatIsCompared;
  rung.configurations = {{.name = fmt::format("pages of {}", problem.step().page_size),
                          .make = [&problem, how] { return problem.runnable(how); }}};
  return rung;
}

lab::Rung CacheBench::reading(BenchProblem& problem) {
  lab::Rung peer;
  peer.name = "read";
  peer.why = "adds up the bytes of K and V, in order";
  peer.variant = fmt::format("read {}", words_of(problem.step()));
  peer.rate_id = "read_bandwidth";
  peer.check = "read";
  peer.check_detail = "The sum of all words, modulo 2^32, is exact.";
  peer.cells = {{"what_changed", peer.why}};
  for (const int blocks : {2, 4, 8, 16}) {
    peer.configurations.push_back({.name = fmt::format("{} blocks a multiprocessor", blocks),
                                   .make = [&problem, blocks] { return problem.read(blocks); }});
  }
  return peer;
}

void CacheBench::keep(std::vector<lab::Timed>& rows, lab::Climb climb) {
  for (lab::Timed& timed : climb.rungs) {
    if (timed.timed()) rows.push_back(std::move(timed));
  }
}

std::vector<lab::Column> CacheBench::timed_columns(std::vector<lab::Column> varied,
                                                   const std::vector<lab::Column>& more) {
  for (lab::Column column : {lab::Column{"time", "time"}, lab::Column{"bandwidth", "bandwidth"},
                             lab::real("p10", "", "GB/s", 0), lab::real("p90", "", "GB/s", 0)}) {
    varied.push_back(std::move(column));
  }
  varied.insert(varied.end(), more.begin(), more.end());
  return varied;
}

lab::Counter dram_bytes() {
  namespace metric = simt::metric;
  return {"dram", "MB", {{metric::kDramBytesRead, metric::kDramBytesWritten}}, 1e-6};
}

}  // namespace tilestep::kv_cache

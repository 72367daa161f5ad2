// A decode step by PyTorch, which assets/peers/launches.py runs in a process of its own: operation by operation, compiled,
// and compiled into a CUDA graph; how long a shape's first result takes; and what a head dimension costs its attention.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/scripted_rungs.hpp"
#include "kernels/systems/launches/bench/bench.hpp"
#include "kernels/systems/launches/reference.hpp"

namespace tilestep::launches {
namespace {

using lab::real, lab::whole;

struct Way {
  const char* rung;  ///< as the script has it
  const char* name;
  const char* why;
};
constexpr Way kWays[] = {
    {"eager", "PyTorch eager", "any shape at once: each operation is looked up and launched"},
    {"compile", "torch.compile", "one shape is compiled, and then launched kernel by kernel"},
    {"graphs", "torch.compile, graph", "the compiled kernels are captured once per shape"}};

constexpr int kLength = 4096, kHeads = 32;  ///< of attention with each head dimension

/// The sample that a rung is compared on: small, and other numbers than those that are timed.
class Sample {
 public:
  Sample() : weights_(make_weights(shape_, 7)) {
    const auto width = static_cast<std::size_t>(shape_.width);
    for (const int token : tokens_) {
      const auto first = weights_.table.begin() + static_cast<std::ptrdiff_t>(width) * token;
      h_.insert(h_.end(), first, first + shape_.width);
    }
  }
  nlohmann::json request(const char* rung) const {
    return {{"rung", rung},
            {"width", shape_.width},
            {"check",
             {{"h", h_},
              {"gains", weights_.gains},
              {"gate", weights_.gate},
              {"up", weights_.up},
              {"down", weights_.down}}}};
  }
  /// PyTorch rounds what it stores to BF16, eight times a layer.
  lab::Closest compared(const nlohmann::json& answer) const {
    const std::vector<double> exact = reference_step(shape_, weights_, tokens_);
    double largest = 1;
    for (const double one : exact) largest = std::max(largest, std::abs(one));
    const std::vector<double> got = lab::numbers_of(answer, "h", exact.size());
    lab::Closest closest;
    for (std::size_t i = 0; i < exact.size(); ++i)
      closest.add(got[i], exact[i], 8 * shape_.layers * largest * 0x1p-8);
    return closest;
  }

 private:
  StepShape shape_{.width = 64, .inner = 128, .batch = 2, .layers = 2};
  std::vector<int> tokens_{5, 11};
  Weights weights_;
  std::vector<float> h_;
};

}  // namespace

void add_compilers(lab::Bench& bench, const BenchSizes& sizes, double share) {
  lab::Table missing{"compilers_missing", "Rungs that were not measured", {"why"}};
  std::vector<lab::Timed> rows;
  if (sizes.peers) {
    const auto request = [&](const char* rung, const StepShape& shape) {
      return nlohmann::json{{"rung", rung},
                            {"width", shape.width},
                            {"inner", shape.inner},
                            {"layers", shape.layers},
                            {"batch", 1}};
    };
    nlohmann::json first = request("eager", {.width = 16, .inner = 16, .layers = 1});
    first["settle_ms"] = first["samples"] = 1;
    lab::ScriptedRungs script(
        "launches.py", "a Python with PyTorch, named by TILESTEP_PYTHON, and a GPU that it may use",
        first);
    const Sample sample;
    if (script.available()) {
      lab::LadderPlan plan;
      const StepShape& shape = sizes.model;
      plan.work = {.bytes_read = 6.0 * shape.layers * shape.width * shape.inner};
      plan.flush_l2 = false;  // its weights are more than L2 holds
      for (const Way& way : kWays) {
        lab::Rung rung =
            script.rung(way.name, request(way.rung, shape), sample.request(way.rung),
                        [&](const nlohmann::json& answer) { return sample.compared(answer); });
        rung.check = "compilers";
        rung.check_detail = "h of a small step against double: BF16 between operations.";
        plan.rungs.push_back(std::move(rung));
      }
      rows = bench.climb(plan, share).rungs;
      std::erase_if(rows, [](const lab::Timed& one) { return !one.timed(); });
      for (lab::Timed& row : rows) {
        for (const auto& [id, cell] : script.cells(row.name)) row.cells[id] = cell;
        row.cells["each"] = row.time_ms.median * 1e3;
        for (const Way& way : kWays) {
          if (row.name == way.name) row.cells["why"] = std::string(way.why);
        }
      }
    }
    if (!script.missing().empty()) missing.add({script.missing()});
  } else {
    missing.add({"PyTorch was not asked."});
  }
  bench.add_table("compilers", "The same step by PyTorch, one token",
                  {lab::Column{"rung", "run by"}, whole("kernels"), real("each", "time", "µs", 1),
                   lab::Column{"bandwidth", "weights read"}, real("p10", "", "GB/s", 0),
                   real("p90", "", "GB/s", 0), real("first_s", "until the first result", "s", 2),
                   real("again_s", "with a token more", "s", 2), lab::Column{"version", "version"},
                   lab::Column{"why", "why"}},
                  rows);
  bench.report.add(std::move(missing));
}

void add_head_dims(lab::Bench& bench, const BenchSizes& sizes, double share) {
  std::vector<lab::Timed> rows;
  if (sizes.peers) {
    const auto request = [](int dim, int length) {
      return nlohmann::json{{"backend", "flash"}, {"pass", "forward"},  {"length", length},
                            {"heads", kHeads},    {"kv_heads", kHeads}, {"head_dim", dim},
                            {"causal", true},     {"dtype", "bf16"}};
    };
    nlohmann::json first = request(64, 128);
    first["settle_ms"] = first["samples"] = 1;
    lab::ScriptedRungs script("attention.py",
                              "a Python with PyTorch, named by TILESTEP_PYTHON, and a GPU", first);
    for (const int dim : {64, 72, 80, 96, 112, 128}) {
      if (!script.available()) break;
      lab::LadderPlan plan;
      plan.work = {.flops = 2.0 * kLength * kLength * kHeads * dim};
      plan.rate = lab::Rate::tflop_per_s;
      plan.flush_l2 = false;
      plan.rungs.push_back(script.rung(std::to_string(dim), request(dim, kLength)));
      std::vector<lab::Timed> timed = bench.climb(plan, share / 6).rungs;
      if (!timed.front().timed()) continue;
      for (const auto& [id, cell] : script.cells(timed.front().name))
        timed.front().cells[id] = cell;
      timed.front().cells["dim"] = dim;
      timed.front().cells["each"] = timed.front().time_ms.median * 1e3;
      rows.push_back(std::move(timed.front()));
    }
    for (lab::Timed& row : rows)
      row.cells["of_last"] = row.time_ms.median / rows.back().time_ms.median;
  }
  bench.add_table(
      "head_dims",
      fmt::format("Causal attention of {} heads over {} tokens by PyTorch, BF16", kHeads, kLength),
      {whole("dim", "head dimension"), real("each", "time", "µs", 0),
       real("of_last", "of the largest's time", "", 2), lab::Column{"version"}},
      rows);
}

}  // namespace tilestep::launches

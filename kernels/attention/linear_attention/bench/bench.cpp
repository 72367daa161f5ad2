// What the lesson times: linear attention token by token and by chunks, over lengths, beside flash-3 on the same Q, K and
// V with a causal mask; and chunks of all sizes at one length.

#include "kernels/attention/linear_attention/bench/bench.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>

#include "kernels/attention/flash_attention_3/kernels.hpp"
#include "kernels/attention/flash_attention_3/run/run.hpp"
#include "kernels/attention/linear_attention/run/run.hpp"
#include "kernels/attention/shared/bench/forward_problem.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"

namespace tilestep::linear_attention {
namespace {

using lab::real, lab::whole;

/// The pace of a point of a curve.
constexpr lab::Pace kPoint{150, 14, 7, 20};
/// ln of the bench's gates, on average. What is older than the window has decayed to exp(−40) or less.
constexpr float kLogGate = -0.2f;
constexpr int kWindow = 400, kCompared = 64;
constexpr const char* kDetail =
    "The last 64 outputs of the first head and the last against double, of the 400 tokens before "
    "them: gates have let the others fade. The bound is that of BF16 between the products.";

attention::Task task_of(int heads, int dim, int length) {
  return {{attention::Mask::causal, length, 0, 0}, heads, heads, dim, attention::ScoreMod::none};
}

/// Q, K and V as flash-3 gets them, and all that the rules need beside them.
class Problem {
 public:
  Problem(simt::Device& device, int heads, int dim, int length)
      : device_(device),
        heads_(heads),
        dim_(dim),
        length_(length),
        attention(device, task_of(heads, dim, length)),
        q_(device, numbers()),
        k_(device, numbers()),
        o_(device, numbers()),
        values_(device, numbers()),
        readers_(device, numbers()),
        states_(device, static_cast<std::size_t>(heads * chunks_of({.tokens = length})) *
                            static_cast<std::size_t>(dim * dim)),
        state_(device, static_cast<std::size_t>(heads * dim * dim)),
        decays_(device, rows()),
        log_gates_(lab::uploaded(device, random(rows(), 7, kLogGate / 2, kLogGate))),
        betas_(lab::uploaded(device, random(rows(), 8, 0.5f, 0.5f))) {
    const auto omega = lab::unwritten<float>(device, 1);
    const FeatureShape unit{heads * length, dim, Feature::none, true};
    kernels_of(device).features(device, unit, attention.q(), omega.span(), q_.span());
    kernels_of(device).features(device, unit, attention.k(), omega.span(), k_.span());
    device.synchronize();
  }

  lab::Runnable chunked(Rule rule, int chunk) {
    const Shape shape{length_, heads_, dim_, rule, chunk};
    return judged(rule, [this, shape] {
      kernels_of(device_).chunked(device_, shape, arrays(), Break::none, {});
    });
  }
  lab::Runnable recurrent(Rule rule) {
    const Shape shape{length_, heads_, dim_, rule, 16};
    return judged(rule, [this, shape] {
      kernels_of(device_).recurrent(device_, shape, arrays(), false, {}, {});
    });
  }
  lab::Runnable flash() {
    flash_attention_3::Problem problem;
    problem.head_dim = dim_;
    problem.heads = problem.kv_heads = heads_;
    problem.rule = attention.task().rule;
    const auto launch = [this, problem] {
      flash_attention_3::kernels_of(device_).run(
          device_, problem,
          {attention.q(), attention.k(), attention.v(), attention.o(), attention.lse()});
    };
    return attention.judged(launch, "flash-3", roundings_of(flash_attention_3::OutputOf::timed));
  }
  /// Q, K, V and O once.
  double bytes() const { return 8 * static_cast<double>(numbers()); }

 private:
  std::size_t rows() const {
    return static_cast<std::size_t>(heads_) * static_cast<std::size_t>(length_);
  }
  std::size_t numbers() const { return rows() * static_cast<std::size_t>(dim_); }
  /// From `middle` − `spread` to `middle` + `spread`.
  static std::vector<float> random(std::size_t count, std::int64_t seed, float spread,
                                   float middle) {
    std::mt19937 generator = lab::generator_of(seed);
    std::vector<float> all = lab::uniform_floats(generator, count);
    for (float& one : all) one = middle + spread * one;
    return all;
  }
  Arrays arrays() {
    return {.q = std::as_const(q_).span(),
            .k = std::as_const(k_).span(),
            .v = attention.v(),
            .log_gates = std::as_const(log_gates_).span(),
            .betas = std::as_const(betas_).span(),
            .o = o_.span(),
            .state = state_.span(),
            .decays = decays_.span(),
            .states = states_.span(),
            .values = values_.span(),
            .readers = readers_.span()};
  }

  lab::Runnable judged(Rule rule, std::function<void()> launch) {
    return lab::judged(device_, o_, std::move(launch), [this, rule] { return compared(rule); });
  }
  /// The end of a head from the host's side.
  struct Window {
    std::size_t first, count;  ///< rows
  };
  Window window(int head) const {
    const int count = std::min(kWindow, length_);
    return {static_cast<std::size_t>((head + 1) * length_ - count),
            static_cast<std::size_t>(count)};
  }
  const ReferenceHead& reference(Rule rule, int head) {
    const auto found = references_.find({rule, head});
    if (found != references_.end()) return found->second;
    const Window at = window(head);
    const auto dim = static_cast<std::size_t>(dim_);
    const auto words = [&](const simt::Buffer<std::uint16_t>& from) {
      return from.download(at.first * dim, at.count * dim);
    };
    const Words q = words(q_), k = words(k_);
    Words v;
    const std::vector<double> all_v = attention.numbers_of_head(head).v;
    const std::size_t before = (static_cast<std::size_t>(length_) - at.count) * dim;
    for (std::size_t i = before; i < all_v.size(); ++i)
      v.push_back(numeric::Bf16::bits(static_cast<float>(all_v[i])));
    const std::vector<float> gates = log_gates_.download(at.first, at.count),
                             betas = betas_.download(at.first, at.count);
    return references_
        .emplace(std::pair{rule, head},
                 reference_head({q, k, v, gates, betas}, dim_, rule, Way::chunked))
        .first->second;
  }
  lab::Closest compared(Rule rule) {
    lab::Closest closest;
    const auto dim = static_cast<std::size_t>(dim_);
    for (const int head : {0, heads_ - 1}) {
      const Window at = window(head);
      const ReferenceHead& exact = reference(rule, head);
      const std::size_t some = std::min<std::size_t>(kCompared, at.count);
      const std::size_t skipped = (at.count - some) * dim;
      const Words o = o_.download(at.first * dim + skipped, some * dim);
      for (std::size_t i = 0; i < o.size(); ++i)
        closest.add(numeric::Bf16::value(o[i]), exact.o.value[skipped + i],
                    exact.o.bound[skipped + i]);
    }
    return closest;
  }

  simt::Device& device_;
  int heads_, dim_, length_;

 public:
  attention::ForwardProblem attention;

 private:
  simt::Buffer<std::uint16_t> q_, k_, o_, values_, readers_, states_;
  simt::Buffer<float> state_, decays_, log_gates_, betas_;
  std::map<std::pair<Rule, int>, ReferenceHead> references_;
};

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes) : lab::Bench(start), sizes_(sizes) {}

  void run() {
    if (sizes_.quick) lab::leave_out(report, {"other lengths", "chunks of all sizes"});
    const double share = 0.8 / static_cast<double>(sizes_.lengths.size());
    for (const int length : sizes_.lengths) time_length(length, share);
    add_table("timed_lengths",
              fmt::format("{} heads of {} numbers, causal, batch 1", sizes_.heads, sizes_.dim),
              {whole("length", "length", "tokens"), lab::Column{"rung", "kernel"},
               real("time", "time", "ms", 3), real("times", "times as fast as flash-3", "", 2),
               lab::Column{"bandwidth", "bandwidth"}, lab::Column{"configuration", "configuration"},
               lab::Column{"why", "why"}},
              rows_);
    if (!sizes_.chunks.empty()) time_chunks();
    report.summary = summary();
  }

 private:
  bool has_flash() const {
    const int capability = device.info().compute_capability;
    return sizes_.flash && (capability == 0 || capability / 10 == 9);
  }
  lab::LadderPlan plan_for(const Problem& problem, int length) const {
    lab::LadderPlan plan;
    plan.work = {.bytes_read = 0.75 * problem.bytes(), .bytes_written = 0.25 * problem.bytes()};
    plan.turn = kPoint;
    plan.shape = fmt::format("{} tokens, {} heads of {}", length, sizes_.heads, sizes_.dim);
    plan.cells = {{"length", length}};
    return plan;
  }
  static lab::Rung rung(const char* name, const char* why) {
    lab::Rung made{.name = name, .why = why, .configurations = {}};
    made.check = name;
    made.check_detail = kDetail;
    return made;
  }

  void time_length(int length, double share) {
    Problem problem(device, sizes_.heads, sizes_.dim, length);
    lab::LadderPlan plan = plan_for(problem, length);
    lab::Rung recurrent = rung("recurrent", "Token by token: no product that a tensor core takes.");
    recurrent.configurations = {
        {"a block per head", [&] { return problem.recurrent(Rule::gate); }}};
    if (length <= sizes_.longest_recurrent) plan.rungs.push_back(std::move(recurrent));
    lab::Rung gated =
        rung("chunked, gate", "By chunks: products on tensor cores, a state between.");
    for (const int chunk : {64, 128})
      gated.configurations.push_back({fmt::format("chunks of {}", chunk), [&problem, chunk] {
                                        return problem.chunked(Rule::gate, chunk);
                                      }});
    plan.rungs.push_back(std::move(gated));
    lab::Rung delta =
        rung("chunked, gated delta", "A chunk's values are solved for first, in FP32.");
    for (const int chunk : {32, 64})
      delta.configurations.push_back({fmt::format("chunks of {}", chunk), [&problem, chunk] {
                                        return problem.chunked(Rule::gated_delta, chunk);
                                      }});
    plan.rungs.push_back(std::move(delta));
    if (has_flash()) {
      lab::Rung flash{.name = "flash-3",
                      .why = "Softmax over all keys so far.",
                      .configurations = {{"as timed", [&] { return problem.flash(); }}}};
      flash.check = "flash-3";
      flash.check_detail = "Some queries against double.";
      plan.peers = {std::move(flash)};
    }
    plan.time_id = length == sizes_.lengths.back() || length == 16384 ? "time" : "";
    for (lab::Rung& one : plan.rungs) one.variant = fmt::format("{} {}", one.name, length);
    lab::Climb climbed = climb(plan, share);
    const double flash_ms =
        !climbed.peers.empty() && climbed.peers[0].timed() ? climbed.peers[0].time_ms.median : 0;
    for (std::vector<lab::Timed>* some : {&climbed.peers, &climbed.rungs}) {
      for (lab::Timed& timed : *some) {
        if (!timed.timed()) continue;
        if (flash_ms > 0) timed.cells["times"] = flash_ms / timed.time_ms.median;
        if (timed.name == "chunked, gate") headline_ = timed;
        rows_.push_back(std::move(timed));
      }
    }
  }

  /// The same result by chunks of all sizes, each a rung of its own.
  void time_chunks() {
    Problem problem(device, sizes_.heads, sizes_.dim, sizes_.chunk_length);
    lab::LadderPlan plan = plan_for(problem, sizes_.chunk_length);
    for (const int chunk : sizes_.chunks) {
      for (const Rule rule : {Rule::gate, Rule::gated_delta}) {
        if (corrects(rule) && chunk > 64) continue;
        lab::Rung one = rung(corrects(rule) ? "chunked, gated delta" : "chunked, gate", "");
        one.variant = fmt::format("{} by {}", one.name, chunk);
        one.cells = {{"chunk", chunk}, {"rule", std::string(name_of(rule))}};
        one.configurations = {{fmt::format("chunks of {}", chunk),
                               [&problem, rule, chunk] { return problem.chunked(rule, chunk); }}};
        plan.rungs.push_back(std::move(one));
      }
    }
    add_table("chunk_sizes",
              fmt::format("{} tokens, {} heads of {} numbers", sizes_.chunk_length, sizes_.heads,
                          sizes_.dim),
              {lab::Column{"rule", "rule"}, whole("chunk", "chunk", "tokens"),
               real("time", "time", "ms", 3), lab::Column{"bandwidth", "bandwidth"}},
              climb(plan, 0.2).rungs);
  }

  std::string summary() const {
    if (!headline_.timed()) return "Nothing was timed.";
    const std::string time = fmt::format("By chunks, {:.0f} tokens take {:.3f} ms",
                                         *headline_.number("length"), headline_.time_ms.median);
    const auto times = headline_.number("times");
    return times ? fmt::format("{}, {:.2f} times as fast as flash-3 on {}.", time, *times,
                               device.info().name)
                 : fmt::format("{} on {}; flash-3, which needs a Hopper GPU, was not timed.", time,
                               device.info().name);
  }

  const BenchSizes& sizes_;
  std::vector<lab::Timed> rows_;
  lab::Timed headline_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  simt::require_capability(device.info(), "linear-attention", 80);
  progress.report(0, "making heads");
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::linear_attention

// Sampling: one kernel beside a read of its logits, and beside a kernel for each step.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"
#include "kernels/systems/fusion/bench/bench.hpp"
#include "kernels/systems/fusion/reference.hpp"

namespace tilestep::fusion {
namespace {

using lab::real, lab::whole;

/// Logits as a language model's: most are alike, a few stand out. One that repeats after a prime number of them.
std::vector<unsigned char> model_logits(Dtype type) {
  constexpr std::size_t kLogits = 1000003, kApart = 4099;
  std::mt19937 generator = lab::generator_of(7);
  std::vector<float> logits = lab::normal_floats(generator, kLogits);
  for (std::size_t i = 0; i < kLogits; ++i) logits[i] = 2.5f * logits[i] + (i % kApart ? 0 : 12);
  return packed(type, logits);
}

class SamplingBench {
 public:
  SamplingBench(lab::Bench& bench, Dtype type, std::size_t logits, int rows)
      : bench_(bench),
        type_(type),
        logits_(bench.device, logits * static_cast<std::size_t>(bytes_of(type)),
                model_logits(type)),
        scratch_(bench.device, logits + static_cast<std::size_t>(rows)),
        tokens_(bench.device, static_cast<std::size_t>(rows)) {}

  void time(int rows, int vocabulary, const SampleRule& rule, const char* name, double share,
            std::vector<lab::Timed>& all) {
    const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocabulary) *
                             static_cast<std::size_t>(bytes_of(type_));
    const simt::Span<const unsigned char> logits{logits_.span().data, size};
    lab::LadderPlan plan;
    plan.work = {.bytes_read = static_cast<double>(size)};
    plan.turn = kPoint;
    plan.flush_l2 = true;
    plan.shape = fmt::format("{} x {} {}", rows, vocabulary, name_of(type_));
    plan.note = name;
    plan.cells = {{"rule", name},
                  {"rows", rows},
                  {"vocabulary", vocabulary},
                  {"format", std::string(name_of(type_))},
                  {"bytes", bytes_of(type_)}};
    plan.peers = {read(logits)};
    lab::Rung fused = rung("one kernel"), apart = rung("a kernel for each step");
    for (const int cluster : {1, 2, 4, 8}) {
      for (const int threads : {256, 512}) {
        const int numbers = cluster * threads * 8;
        if (numbers > vocabulary && cluster * threads > 256) continue;
        // Blocks for all multiprocessors, but not many times as many as they have room for.
        const bool few =
            cluster < 8 && rows * cluster<128, many = cluster> 1 && rows * cluster > 1024;
        if (2 * numbers <= vocabulary && (few || many)) continue;
        const SampleShape shape{rows, vocabulary, threads, cluster};
        fused.configurations.push_back(
            {.name =
                 fmt::format("{} of {} threads",
                             cluster == 1 ? "a block" : fmt::format("{} blocks", cluster), threads),
             .make = [this, shape, rule, logits] {
               return runnable(shape, rule, [this, shape, rule, logits] {
                 kernels_of(bench_.device)
                     .sample(bench_.device, type_, shape, rule, logits, tokens_.span());
               });
             }});
      }
    }
    plan.rungs = {fused};
    if (!rule.greedy()) {
      const SampleShape shape{rows, vocabulary};
      apart.configurations = {{.name = "a block per row", .make = [this, shape, rule, logits] {
                                 return runnable(shape, rule, [this, shape, rule, logits] {
                                   kernels_of(bench_.device)
                                       .sample_apart(bench_.device, type_, shape, rule, logits,
                                                     scratch_.span(), tokens_.span());
                                 });
                               }}};
      plan.rungs.push_back(apart);
    }
    std::vector<lab::Timed> timed = bench_.climb(plan, share).rungs;
    if (timed.size() > 1 && timed[0].timed() && timed[1].timed()) {
      timed[0].cells["apart"] = timed[1].time_ms.median * 1e3;
      timed[0].cells["times"] = timed[1].time_ms.median / timed[0].time_ms.median;
      // Scaled logits and probabilities go out and come back; the threshold and the pick read them once more.
      timed[0].cells["bytes_apart"] = bytes_of(type_) + 5 * 4;
    }
    timed.resize(1);
    lab::append(all, std::move(timed));
  }

 private:
  static lab::Rung rung(const char* name) {
    lab::Rung rung{.name = name, .why = "", .configurations = {}};
    rung.check = "tokens";
    rung.check_detail = "Tokens of some rows against sorted logits and sums in double.";
    return rung;
  }
  lab::Rung read(simt::Span<const unsigned char> logits) {
    lab::Rung rung{.name = "a read of the logits", .why = "", .configurations = {}};
    simt::Device& device = bench_.device;
    const simt::Span<const std::uint32_t> words{reinterpret_cast<const std::uint32_t*>(logits.data),
                                                logits.count / 16 * 4};
    for (const int blocks : {2, 8}) {
      const auto threads =
          static_cast<std::size_t>(256 * blocks * std::max(device.info().multiprocessors, 1));
      const auto sums = std::make_shared<simt::Buffer<std::uint32_t>>(device, threads);
      rung.configurations.push_back({.name = fmt::format("{} blocks a multiprocessor", blocks),
                                     .make = [&device, words, sums]() -> lab::Runnable {
                                       return {[&device, words, sums] {
                                                 low_bit::kernels_of(device).add_up(device, words,
                                                                                    sums->span());
                                               },
                                               {}};
                                     }});
    }
    return rung;
  }
  lab::Runnable runnable(const SampleShape& shape, const SampleRule& rule,
                         std::function<void()> launch) {
    return lab::judged(bench_.device, tokens_, std::move(launch), [this, shape, rule] {
      lab::Closest closest;
      const auto size =
          static_cast<std::size_t>(shape.vocabulary) * static_cast<std::size_t>(bytes_of(type_));
      for (const int row : {0, shape.rows / 2, shape.rows - 1}) {
        const auto at = static_cast<std::size_t>(row);
        const std::string wrong =
            wrong_token(unpacked(type_, logits_.values(at * size, size)), rule,
                        static_cast<std::uint32_t>(row), tokens_.download(at, 1).front());
        closest.add(wrong.empty() ? 0 : 1, 0, 0, [&] { return wrong; });
      }
      return closest;
    });
  }

  lab::Bench& bench_;
  Dtype type_;
  lab::Repeated<unsigned char> logits_;
  simt::Buffer<float> scratch_;
  simt::Buffer<int> tokens_;
};

}  // namespace

void time_sampling(lab::Bench& bench, const BenchSizes& sizes, double share) {
  struct Named {
    const char* name;
    SampleRule rule;
  };
  const std::vector<Named> rules = {{"top-k 50, top-p 0.9", {1, 50, 0.9f}},
                                    {"the largest", {0}},
                                    {"temperature 1", {}},
                                    {"top-k 50", {1, 50}},
                                    {"top-p 0.9", {1, 0, 0.9f}}};
  const std::vector<int>& vocabularies = sizes.sampled;
  const int rows = sizes.sampled_rows, main = vocabularies[vocabularies.size() / 2];
  const std::size_t points = 2 * (rules.size() + vocabularies.size() + 1);
  const double each = share / static_cast<double>(sizes.quick ? 1 : points);
  const auto most = static_cast<std::size_t>(vocabularies.back()) * static_cast<std::size_t>(rows);
  std::vector<lab::Timed> all;
  for (const Dtype type : {Dtype::bf16, Dtype::fp32}) {
    SamplingBench one(bench, type, most, rows);
    one.time(rows, main, rules[0].rule, rules[0].name, each, all);
    if (sizes.quick) break;
    for (std::size_t i = 1; i < rules.size(); ++i) {
      one.time(rows, main, rules[i].rule, rules[i].name, each, all);
    }
    for (const int vocabulary : vocabularies) {
      if (vocabulary != main) {
        one.time(rows, vocabulary, rules[0].rule, rules[0].name, each, all);
      }
    }
    for (const int few : {1, std::max(rows / 8, 1)}) {
      one.time(few, main, rules[0].rule, rules[0].name, each, all);
    }
  }
  bench.add_table(
      "sampling", "Tokens from logits, each read once, L2 cold",
      {lab::Column{"rule", "rule"}, lab::Column{"format", "format"}, whole("rows"),
       whole("vocabulary"), lab::Column{"time", "time"}, lab::Column{"bandwidth", "bandwidth"},
       real("p10", "", "GB/s", 0), real("p90", "", "GB/s", 0), real("fraction", "of a read", "", 3),
       real("apart", "apart", "µs", 1), real("times", "times as fast", "", 2),
       real("bytes_apart", "bytes apart", "B", 0), real("bytes", "together", "B", 0)},
      all);
}

}  // namespace tilestep::fusion

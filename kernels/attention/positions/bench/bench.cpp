// What the lesson times: one launch that norms, turns and stores, beside the four that it replaces and a copy of its
// bytes, for few tokens and many; and what a launch of one token costs beside one that does nothing.

#include "kernels/attention/positions/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/positions/run/run.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::positions {
namespace {

using lab::real, lab::whole;

constexpr std::size_t kPeriod = 1000003;  // a prime: tokens differ
/// The pace of a point of a curve.
constexpr lab::Pace kPoint{150, 14, 7, 20};

std::vector<std::uint16_t> random_words(std::size_t count, std::int64_t seed, float scale,
                                        float offset) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<std::uint16_t> words;
  for (const float one : lab::uniform_floats(generator, count))
    words.push_back(numeric::Bf16::bits(offset + scale * one));
  return words;
}
/// The last positions of a million.
std::vector<int> far_positions(int tokens) {
  std::vector<int> all;
  for (int t = 0; t < tokens; ++t) all.push_back(kMostPosition - tokens + 1 + t);
  return all;
}
std::vector<int> scattered_slots(int tokens) {
  const int pages = (tokens + kPageSize - 1) / kPageSize;
  std::vector<int> all;
  for (int t = 0; t < tokens; ++t)
    all.push_back((pages - 1 - t / kPageSize) * kPageSize + t % kPageSize);
  return all;
}

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        sizes_(sizes),
        most_(*std::max_element(sizes.tokens.begin(), sizes.tokens.end())),
        turning_{.dim = sizes.dim},
        qkv_(device, words(rows(), most_), random_words(kPeriod, 3, 4, 0)),
        gain_host_(random_words(static_cast<std::size_t>(sizes.dim), 5, 0.25f, 1)),
        gain_(device, gain_host_),
        q_(device, words(sizes.heads, most_)),
        keys_(device, words(sizes.kv_heads, most_)),
        k_cache_(device, words(sizes.kv_heads, room())),
        v_cache_(device, words(sizes.kv_heads, room())),
        positions_(device, far_positions(most_)),
        slots_(device, scattered_slots(most_)),
        rates_(device, rates_of(turning_)) {}

  void run() {
    if (sizes_.quick) lab::leave_out(report, {"other numbers of tokens"});
    time_launches();
    time_fusion();
    report.summary = fmt::format(
        "Norm, rotation and the cache's write in one kernel reach {} on {}; a copy reaches {}.",
        lab::headline(report.measurement("heads_bandwidth", "together"), 0), device.info().name,
        headline("copy_bandwidth", "", 0));
  }

 private:
  int rows() const { return sizes_.heads + 2 * sizes_.kv_heads; }
  int room() const { return (most_ + kPageSize - 1) / kPageSize * kPageSize; }
  std::size_t words(int rows, int tokens) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(tokens) *
           static_cast<std::size_t>(sizes_.dim);
  }
  HeadsShape shape(int tokens) const {
    return {.tokens = tokens,
            .heads = sizes_.heads,
            .kv_heads = sizes_.kv_heads,
            .dim = sizes_.dim,
            .page_size = kPageSize};
  }
  /// Of `tokens` tokens from `first` on.
  HeadsArrays arrays(int first, int tokens) {
    const auto part = [&](auto span, std::size_t each) {
      span.data += static_cast<std::size_t>(first) * each;
      span.count = static_cast<std::size_t>(tokens) * each;
      return span;
    };
    HeadsArrays all;
    all.qkv = part(qkv_.span(), words(rows(), 1));
    all.q = part(q_.span(), words(sizes_.heads, 1));
    all.keys = part(keys_.span(), words(sizes_.kv_heads, 1));
    all.k_cache = k_cache_.span();
    all.v_cache = v_cache_.span();
    all.q_gain = all.k_gain = std::as_const(gain_).span();
    all.positions = part(std::as_const(positions_).span(), 1);
    all.slots = part(std::as_const(slots_).span(), 1);
    all.rates = std::as_const(rates_).span();
    return all;
  }
  /// Bytes of a launch that reads all heads of a token and writes them elsewhere.
  lab::Work work(double tokens) const {
    const double bytes = 2 * static_cast<double>(words(rows(), 1)) * tokens;
    return {.bytes_read = bytes, .bytes_written = bytes};
  }

  /// Some heads of some tokens, as the launches left them, against double.
  lab::Closest compared_heads(int tokens, bool apart) const {
    lab::Closest closest;
    const std::vector<int> positions = positions_.download(), slots = slots_.download();
    const auto dim = static_cast<std::size_t>(sizes_.dim);
    const auto look = [&](const Words& got, const numeric::AllBounded& exact) {
      for (std::size_t i = 0; i < dim; ++i)
        closest.add(numeric::Bf16::value(got[i]), exact.value[i], exact.bound[i]);
    };
    for (const int token : {0, tokens / 2, tokens - 1}) {
      const int position = positions[static_cast<std::size_t>(token)];
      const std::size_t from = words(rows(), token);
      const auto head = [&](int row) {
        return reference_head(qkv_.values(from + words(row, 1), dim), gain_host_, turning_,
                              Pairs::half_split, position, apart);
      };
      const int last = sizes_.heads - 1;
      look(q_.download(words(sizes_.heads, token) + words(last, 1), dim), head(last));
      const int slot = slots[static_cast<std::size_t>(token)];
      const int line = slot / kPageSize * sizes_.kv_heads * kPageSize + slot % kPageSize;
      look(k_cache_.download(words(line, 1), dim), head(sizes_.heads));
      const Words value = v_cache_.download(words(line, 1), dim),
                  came = qkv_.values(from + words(sizes_.heads + sizes_.kv_heads, 1), dim);
      for (std::size_t i = 0; i < dim; ++i)
        closest.add(numeric::Bf16::value(value[i]), numeric::Bf16::value(came[i]), 0.0);
    }
    return closest;
  }
  lab::Runnable runnable(std::function<void()> launch, int tokens, bool apart) {
    const auto verify = [this, launch, tokens, apart] {
      for (simt::Buffer<std::uint16_t>* one : {&q_, &keys_, &k_cache_, &v_cache_}) one->fill(0xFF);
      launch();
      device.synchronize();
      return compared_heads(tokens, apart);
    };
    return {std::move(launch), verify};
  }

  // ---- launches of one token --------------------------------------------------------------------

  lab::Rung rung_of_launches(const char* name, const char* why, bool graph,
                             std::function<void()> once) {
    lab::Rung rung{.name = name, .why = why, .configurations = {}};
    rung.cells = {{"way", graph ? "in a graph" : "one by one"}};
    const auto many = [this, once] {
      for (int i = 0; i < sizes_.repeats; ++i) once();
    };
    rung.configurations = {{.name = fmt::format("{} launches", sizes_.repeats),
                            .make = [this, many, graph]() -> lab::Runnable {
                              if (!graph) return {many, {}};
                              return {device.graph_of(many), {}};
                            }}};
    return rung;
  }
  void time_launches() {
    HeadsShape one = shape(1);
    one.rows_each = 1;
    HeadsShape early = one;
    early.early = true;
    const auto fused = [this](const HeadsShape& shape) {
      return [this, shape] { kernels_of(device).heads(device, Stage::fused, shape, arrays(0, 1)); };
    };
    const auto apart = [this, one] {
      for (const Stage stage : kApart) kernels_of(device).heads(device, stage, one, arrays(0, 1));
    };
    const int capability = device.info().compute_capability;
    std::vector<lab::Timed> all;
    for (const bool graph : {false, true}) {
      lab::LadderPlan plan;
      plan.work = work(sizes_.repeats);
      plan.turn = kPoint;
      plan.flush_l2 = false;
      plan.rungs = {rung_of_launches("empty", "a kernel that does nothing", graph,
                                     [this] { kernels_of(device).nothing(device); }),
                    rung_of_launches("together", "norm, rotation and store", graph, fused(one)),
                    rung_of_launches("apart", "a launch for each of the four", graph, apart)};
      if (capability == 0 || capability >= 90)
        plan.rungs.push_back(rung_of_launches("together, early",
                                              "a launch may begin before the one ahead has ended",
                                              graph, fused(early)));
      std::vector<lab::Timed> rows = climb(plan, 0.1).rungs;
      const double empty = rows[0].timed() ? rows[0].time_ms.median : 0;
      for (lab::Timed& timed : rows) {
        if (!timed.timed()) continue;
        timed.cells["each"] = timed.time_ms.median * 1e3 / sizes_.repeats;
        if (empty > 0) timed.cells["times"] = timed.time_ms.median / empty;
      }
      lab::append(all, std::move(rows));
    }
    add_table("launches",
              fmt::format("A token's {} heads of {} numbers, L2 warm", rows(), sizes_.dim),
              {lab::Column{"rung", "kernels"}, lab::Column{"way", "launched"},
               real("each", "per token", "µs", 2), real("times", "of an empty kernel", "", 2),
               lab::Column{"why", "why"}},
              all);
  }

  // ---- few tokens and many ------------------------------------------------------------------------

  lab::Rung rung(bool fused, int tokens, int slices) {
    lab::Rung rung{.name = fused ? "together" : "apart", .why = "", .configurations = {}};
    rung.check = "heads";
    rung.check_detail =
        "Some heads against double, at positions up to 1,048,576: half a spacing of BF16.";
    for (const int threads : {128, 192, 384}) {
      for (const int each : {1, 2, 3, 4}) {
        HeadsShape some = shape(tokens);
        some.threads = threads;
        some.rows_each = each;
        const auto start = [this, some, fused, slices] {
          for (int slice = slices - 1; slice >= 0; --slice) {
            const HeadsArrays its = arrays(slice * some.tokens, some.tokens);
            if (fused) {
              kernels_of(device).heads(device, Stage::fused, some, its);
              continue;
            }
            for (const Stage stage : kApart) kernels_of(device).heads(device, stage, some, its);
          }
        };
        rung.configurations.push_back(
            {.name = fmt::format("{} threads, {} heads each", threads, each),
             .make = [this, start, some, fused, slices] {
               return runnable(slices > 1 ? device.graph_of(start) : start, some.tokens, !fused);
             }});
      }
    }
    return rung;
  }

  void time_fusion() {
    std::vector<lab::Timed> all;
    const double share = 0.8 / static_cast<double>(sizes_.tokens.size());
    for (const int tokens : sizes_.tokens) {
      const int slices = std::clamp(most_ / tokens, 1, sizes_.launches);
      const bool main = tokens == most_;
      lab::LadderPlan plan;
      plan.work = work(static_cast<double>(tokens) * slices);
      plan.turn = main ? lab::kTurn : kPoint;
      plan.flush_l2 = true;
      plan.shape = fmt::format("{} tokens of {} heads, {} each", tokens, rows(), sizes_.dim);
      plan.note = slices > 1 ? fmt::format("one of {} in a CUDA graph", slices) : "";
      plan.cells = {{"tokens", tokens}};
      plan.rate_id = main ? "heads_bandwidth" : "";
      plan.rungs = {rung(false, tokens, slices), rung(true, tokens, slices)};
      plan.peers = {lab::device_copy(device, "the device's own copy", copied_.span().data,
                                     qkv_.span().data,
                                     static_cast<std::size_t>(plan.work.bytes() / 2))};
      plan.peers[0].rate_id = main ? "copy_bandwidth" : "";
      add_pair(all, climb(plan, share).rungs, slices);
    }
    add_table("fusion", "Norm, rotation and store: four launches and one, L2 cold",
              {whole("tokens"), real("apart", "apart", "µs", 2),
               real("together", "together", "µs", 2), real("times", "times as fast", "", 2),
               real("byte_ratio", "ratio of bytes", "", 2), lab::Column{"bandwidth", "bandwidth"},
               real("p10", "", "GB/s", 0), real("p90", "", "GB/s", 0),
               real("fraction", "of copy", "", 3), lab::Column{"configuration", "configuration"}},
              all);
  }
  /// A row from the two rungs.
  void add_pair(std::vector<lab::Timed>& all, std::vector<lab::Timed> pair, int slices) {
    if (pair.size() < 2 || !pair[0].timed() || !pair[1].timed()) return;
    const auto each = [&](const lab::Timed& timed) { return timed.time_ms.median * 1e3 / slices; };
    lab::Timed row = pair[1];
    row.cells["apart"] = each(pair[0]);
    row.cells["together"] = each(pair[1]);
    row.cells["times"] = each(pair[0]) / each(pair[1]);
    // Apart, queries are moved twice, keys three times and values once.
    row.cells["byte_ratio"] = static_cast<double>(2 * sizes_.heads + 4 * sizes_.kv_heads) / rows();
    all.push_back(std::move(row));
  }

  const BenchSizes& sizes_;
  int most_;
  Turning turning_;
  lab::Repeated<std::uint16_t> qkv_;
  Words gain_host_;
  simt::Buffer<std::uint16_t> gain_, q_, keys_, k_cache_, v_cache_;
  simt::Buffer<int> positions_, slots_;
  simt::Buffer<std::uint64_t> rates_;
  simt::Buffer<std::uint16_t> copied_ = simt::Buffer<std::uint16_t>(device, words(rows(), most_));
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  simt::require_capability(device.info(), "positions", 80);
  progress.report(0, "making heads");
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::positions

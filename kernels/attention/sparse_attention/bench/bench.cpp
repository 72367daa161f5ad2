// What the lesson times: a window and blocks by lot beside the same kernel with all its tiles; the indexer in FP8 with and
// without its top-k beside cuBLASLt; decoding over chosen rows beside reading as many bytes.

#include "kernels/attention/sparse_attention/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/shared/bench/forward_problem.hpp"
#include "kernels/attention/sparse_attention/bench/expected.hpp"
#include "kernels/attention/sparse_attention/kernels.hpp"
#include "kernels/attention/sparse_attention/reference.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::sparse_attention {
namespace {

using lab::real, lab::whole;

constexpr std::size_t kPeriod = 1000003;  // a prime: rows differ

std::size_t elements(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

std::vector<std::uint8_t> codes(std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<std::uint8_t> all;
  for (const float one : lab::normal_floats(generator, kPeriod)) {
    const double rounded = numeric::round_to(numeric::kE4m3, 4 * static_cast<double>(one));
    all.push_back(static_cast<std::uint8_t>(numeric::encode(numeric::kE4m3, rounded)));
  }
  return all;
}
std::vector<float> positive(std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<float> all = lab::uniform_floats(generator, 10007);
  for (float& one : all) one = 0.5f + 0.4f * one;
  return all;
}

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes) : lab::Bench(start), sizes_(sizes) {}

  void run() {
    if (sizes_.quick) lab::leave_out(report, {"other shares of tiles", "other contexts"});
    time_window();
    time_blocks();
    add_table("lists", "The same kernel with fewer tiles in its lists",
              {lab::Column{"rung", "lists"}, real("share", "tiles computed", "%", 1),
               lab::column("time", "time"), real("times", "times as fast", "", 2),
               real("allowed", "by its tiles", "", 2), real("fraction_of", "of that", "", 3)},
              lists_);
    for (const int context : sizes_.contexts) time_index(context);
    add_table(
        "index",
        fmt::format("Index scores of {} queries, 64 heads of 128 numbers in E4M3", sizes_.queries),
        {whole("context"), lab::Column{"rung", "kernel"}, lab::Column{"tflops", "rate"},
         real("p10", "", "TFLOP/s", 1), real("p90", "", "TFLOP/s", 1), lab::column("time", "time"),
         lab::Column{"fraction", "of cuBLASLt"}, real("more", "more than scores alone", "%", 1)},
        index_);
    time_decode();
    report.summary = fmt::format(
        "A window of {} in {} tokens is {:.1f} times as fast as causal attention on {}; chosen "
        "rows are read at {}.",
        sizes_.window, sizes_.length, window_times_, device.info().name,
        headline("gather_bandwidth", "chosen rows", 0));
  }

 private:
  // ---- lists ------------------------------------------------------------------------------------------

  /// A problem's launches with one set of lists.
  struct Listed {
    TileLists lists;
    simt::Buffer<int> first, whole, tiles;
    Listed(simt::Device& device, TileLists of)
        : lists(std::move(of)),
          first(lab::uploaded(device, lists.first)),
          whole(lab::uploaded(device, lists.whole)),
          tiles(lab::uploaded(device, lists.tiles)) {}
  };
  lab::Rung listed_rung(const std::string& name, attention::ForwardProblem& problem,
                        const std::shared_ptr<Listed>& its, const attention::MaskRule& rule) {
    lab::Rung rung{.name = name, .why = "", .configurations = {}};
    rung.check = "lists";
    rung.check_detail = "O of some queries against double, over the listed tiles.";
    const auto launch = [this, &problem, its, rule] {
      kernels_of(device).attend_listed(
          device, {problem.task().heads, problem.task().length(), rule},
          {problem.q(), problem.k(), problem.v(), problem.o(), problem.lse(),
           std::as_const(its->first).span(), std::as_const(its->whole).span(),
           std::as_const(its->tiles).span()});
    };
    const auto verify = [this, &problem, its, rule, launch] {
      launch();
      device.synchronize();
      attention::Task task = problem.task();
      task.rule = rule;
      lab::Closest closest;
      const int length = task.length(), head = task.heads - 1;
      const attention::Numbers numbers = problem.numbers_of_head(head);
      attention::Task one = task;
      one.heads = one.kv_heads = 1;
      for (const int query : {0, length / 2, length - 1}) {
        const attention::Reference want = expected_listed(one, its->lists, numbers, 0, query);
        const std::size_t row = elements(head, length) + static_cast<std::size_t>(query);
        const auto dim = static_cast<std::size_t>(task.head_dim);
        const std::vector<std::uint16_t> got = problem.output(row * dim, dim);
        for (std::size_t n = 0; n < dim; ++n)
          closest.add(numeric::Bf16::value(got[n]), want.o.value[n], want.o.bound[n]);
      }
      return closest;
    };
    rung.configurations = {{.name = "128 × 128, pipelined", .make = [launch, verify] {
                              return lab::Runnable{launch, verify};
                            }}};
    return rung;
  }
  /// Times lists beside all tiles, which come first, and keeps a row of each.
  double time_lists(attention::ForwardProblem& problem,
                    const std::vector<std::pair<std::string, TileLists>>& all,
                    const std::vector<attention::MaskRule>& rules, double share) {
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.bytes_read = problem.bytes(), .flops = problem.flops()};
    plan.flush_l2 = false;
    std::vector<double> counts;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto listed = std::make_shared<Listed>(device, all[i].second);
      counts.push_back(listed->lists.count());
      plan.rungs.push_back(listed_rung(all[i].first, problem, listed, rules[i]));
    }
    std::vector<lab::Timed> rows = climb(plan, share).rungs;
    const double tiles =
        std::pow(std::ceil(static_cast<double>(problem.task().length()) / timed::kListRows), 2);
    double times = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lab::Timed& row = rows[i];
      row.cells["share"] = 100 * counts[i] / tiles;
      if (!row.timed() || !rows[0].timed()) continue;
      times = rows[0].time_ms.median / row.time_ms.median;
      row.cells["times"] = times;
      row.cells["allowed"] = counts[0] / counts[i];
      row.cells["fraction_of"] = times / (counts[0] / counts[i]);
    }
    lab::append(lists_, std::move(rows));
    return times;
  }
  void time_window() {
    const attention::MaskRule causal{attention::Mask::causal, sizes_.length, 0, 0};
    const attention::MaskRule window{attention::Mask::sliding_window, sizes_.length, sizes_.window,
                                     0};
    attention::ForwardProblem problem(
        device, {causal, sizes_.heads, sizes_.heads, 128, attention::ScoreMod::none});
    window_times_ = time_lists(problem,
                               {{fmt::format("causal, {}", sizes_.length), lists_of(causal)},
                                {fmt::format("window {}", sizes_.window), lists_of(window)}},
                               {causal, window}, 0.25);
  }
  void time_blocks() {
    const attention::MaskRule none{attention::Mask::none, sizes_.block_length, 0, 0};
    attention::ForwardProblem problem(
        device, {none, sizes_.block_heads, sizes_.block_heads, 128, attention::ScoreMod::none});
    std::vector<std::pair<std::string, TileLists>> all = {
        {fmt::format("all blocks, {}", sizes_.block_length), lists_of(none)}};
    for (const double share : sizes_.shares) {
      all.emplace_back(fmt::format("{:.0f} % of the blocks", 100 * share),
                       lists_by_lot(sizes_.block_length, share, 7));
    }
    time_lists(problem, all, std::vector<attention::MaskRule>(all.size(), none), 0.3);
  }

  // ---- the indexer --------------------------------------------------------------------------------------

  struct Indexing {
    int context;
    lab::Repeated<std::uint8_t> q, keys;
    lab::Repeated<float> weights, scales;
    simt::Buffer<float> scores;
    simt::Buffer<int> chosen;
    Indexing(simt::Device& device, const BenchSizes& sizes, int its)
        : context(its),
          q(device, elements(sizes.queries, timed::kHeads * timed::kDim), codes(3)),
          keys(device, elements(its, timed::kDim), codes(4)),
          weights(device, elements(sizes.queries, timed::kHeads), positive(5)),
          scales(device, static_cast<std::size_t>(its), positive(6)),
          scores(device, elements(sizes.queries, its)),
          chosen(device, elements(sizes.queries, sizes.top_k)) {}
  };
  void score(Indexing& of, bool chooses) {
    const timed::ScoreShape shape{sizes_.queries, of.context, chooses ? sizes_.top_k : 0,
                                  chooses ? sizes_.room : 0, chooses ? sizes_.slack : 0};
    kernels_of(device).score(device, shape,
                             {of.q.span(), of.weights.span(), of.keys.span(), of.scales.span(),
                              of.scores.span(), of.chosen.span()});
  }
  /// Some scores against double.
  lab::Closest compared_scores(Indexing& of) {
    lab::Closest closest;
    const double unit = std::ldexp(1, device.info().compute_capability == 0 ? -23 : -13);
    for (const int query : {0, sizes_.queries - 1}) {
      const int last = of.context - sizes_.queries + query;
      const auto codes_of =
          of.q.values(elements(query, timed::kHeads * timed::kDim), timed::kHeads * timed::kDim);
      const auto weights = of.weights.values(elements(query, timed::kHeads), timed::kHeads);
      for (int i = 0; i < 16; ++i) {
        const int token = static_cast<int>(std::int64_t{last} * i / 15);
        const auto want = expected_score(
            codes_of, weights, of.keys.values(elements(token, timed::kDim), timed::kDim),
            of.scales.values(static_cast<std::size_t>(token), 1)[0], unit);
        const std::size_t at = elements(query, of.context) + static_cast<std::size_t>(token);
        closest.add(of.scores.download(at, 1)[0], want.value, want.bound);
      }
    }
    return closest;
  }
  /// Two queries' choices against a sort of the scores that the same products gave.
  lab::Closest compared_choice(Indexing& of) {
    lab::Closest closest;
    for (const int query : {0, sizes_.queries - 1}) {
      const auto seen = static_cast<std::size_t>(of.context - sizes_.queries + query + 1);
      const std::vector<float> row = of.scores.download(elements(query, of.context), seen);
      std::vector<int> got =
          of.chosen.download(elements(query, sizes_.top_k), static_cast<std::size_t>(sizes_.top_k));
      got.erase(std::remove(got.begin(), got.end(), -1), got.end());
      std::sort(got.begin(), got.end());
      const std::vector<int> right = reference_top_k({row.begin(), row.end()}, sizes_.top_k);
      closest.add(got == right ? 0 : 1, 0, 0);
    }
    return closest;
  }
  lab::Rung index_rung(const std::shared_ptr<Indexing>& of, bool chooses) {
    lab::Rung rung{
        .name = chooses ? "scores and top-k" : "scores", .why = "", .configurations = {}};
    rung.check = chooses ? "choice" : "scores";
    rung.check_detail = chooses ? "The same tokens as a sort of all scores, equal ones by index."
                                : "Some scores against double: what the tensor cores cut off.";
    const auto verify = [this, of, chooses] {
      of->scores.fill(0xFF);
      score(*of, false);
      if (chooses) score(*of, true);
      device.synchronize();
      return chooses ? compared_choice(*of) : compared_scores(*of);
    };
    rung.configurations = {
        {.name = "2 queries of 64 heads × 128 tokens", .make = [this, of, chooses, verify] {
           return lab::Runnable{[this, of, chooses] { score(*of, chooses); }, verify};
         }}};
    return rung;
  }
  /// The same products by cuBLASLt, which stores each head's.
  std::vector<lab::Rung> library_peers(const std::shared_ptr<Indexing>& of) {
    const simt::LibraryStatus library = kernels_of(device).library();
    if (!library.available) return {};
    simt::LibraryProduct product{
        .m = sizes_.queries * timed::kHeads, .n = of->context, .k = timed::kDim};
    product.type = simt::LibraryProduct::Type::e4m3;
    product.fast_accumulation = true;
    const auto c =
        std::make_shared<simt::Buffer<std::uint16_t>>(device, elements(product.m, product.n));
    const auto arrays = [of, c] {
      return simt::LibraryArrays{of->q.span().data, of->keys.span().data, c->span().data};
    };
    lab::Rung rung{.name = library.name + " FP8", .why = "the peer", .configurations = {}};
    rung.rate_id = "index_library_rate";
    const int count = kernels_of(device).library_algorithms(product, arrays());
    for (int i = 0; i < count; ++i) {
      rung.configurations.push_back({.name = fmt::format("algorithm {} of {}", i + 1, count),
                                     .make = [this, product, arrays, i] {
                                       return lab::Runnable{[this, product, arrays, i] {
                                                              kernels_of(device).library_multiply(
                                                                  product, i, arrays());
                                                            },
                                                            {}};
                                     }});
    }
    if (rung.configurations.empty()) return {};
    return {rung};
  }
  void time_index(int context) {
    const auto of = std::make_shared<Indexing>(device, sizes_, context);
    const bool main = context == sizes_.contexts.back();
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.bytes_read = static_cast<double>(of->q.bytes() + of->keys.bytes()),
                 .flops = 2.0 * timed::kHeads * timed::kDim * context * sizes_.queries};
    plan.flush_l2 = false;
    plan.cells = {{"context", context}};
    plan.rate_id = main ? "index_rate" : "";
    plan.fraction_id = main ? "index_of_cublas" : "";
    plan.rungs = {index_rung(of, false), index_rung(of, true)};
    plan.peers = library_peers(of);
    for (lab::Rung& peer : plan.peers) {
      if (!main) peer.rate_id = "";
    }
    lab::Climb found = climb(plan, 0.3 / static_cast<double>(sizes_.contexts.size()));
    if (found.rungs.size() == 2 && found.rungs[0].timed() && found.rungs[1].timed()) {
      found.rungs[1].cells["more"] =
          100 * (found.rungs[1].time_ms.median / found.rungs[0].time_ms.median - 1);
    }
    lab::append(index_, std::move(found.rungs));
    lab::append(index_, std::move(found.peers));
  }

  // ---- decoding over chosen rows --------------------------------------------------------------------------

  void time_decode() {
    const int batch = sizes_.batch, pages = sizes_.decode_context / sizes_.page_size + 1;
    const int top_k = std::min(sizes_.top_k, sizes_.decode_context / 2);
    std::mt19937 generator = lab::generator_of(9);
    std::vector<int> table(elements(batch, pages)), chosen;
    std::iota(table.begin(), table.end(), 0);
    for (std::size_t i = table.size() - 1; i > 0; --i)
      std::swap(
          table[i],
          table[static_cast<std::size_t>(lab::uniform(generator) * static_cast<double>(i + 1))]);
    for (int request = 0; request < batch; ++request) {
      std::vector<int> all(static_cast<std::size_t>(sizes_.decode_context));
      std::iota(all.begin(), all.end(), 0);
      for (int i = 0; i < top_k; ++i) {
        const double rest = sizes_.decode_context - i;
        std::swap(all[static_cast<std::size_t>(i)],
                  all[static_cast<std::size_t>(i + lab::uniform(generator) * rest)]);
      }
      std::sort(all.begin(), all.begin() + top_k);
      chosen.insert(chosen.end(), all.begin(), all.begin() + top_k);
    }
    const std::size_t numbers = table.size() * elements(sizes_.page_size, timed::kRowNumbers);
    const lab::Repeated<std::uint16_t> cache(device, numbers,
                                             lab::uniform_bf16(generator, kPeriod));
    const lab::Repeated<std::uint16_t> q(device,
                                         elements(batch, timed::kHeadsOfBlock * timed::kRowNumbers),
                                         lab::uniform_bf16(generator, 10007));
    simt::Buffer<std::uint16_t> o(device,
                                  elements(batch, timed::kHeadsOfBlock * timed::kValueNumbers));
    const auto table_there = lab::uploaded(device, table), list = lab::uploaded(device, chosen);
    const timed::DecodeShape shape{batch, top_k, sizes_.page_size, pages,
                                   static_cast<float>(1 / std::sqrt(192.0))};
    const auto launch = [&] {
      kernels_of(device).decode(
          device, shape, {q.span(), cache.span(), table_there.span(), list.span(), o.span()});
    };
    const auto verify = [&] {
      lab::Closest closest;
      for (const int request : {0, batch - 1}) {
        const int head = request % timed::kHeadsOfBlock;
        std::vector<std::vector<std::uint16_t>> rows;
        for (int i = 0; i < top_k; ++i) {
          const int token = chosen[elements(request, top_k) + static_cast<std::size_t>(i)];
          const int page =
              table[elements(request, pages) + static_cast<std::size_t>(token / sizes_.page_size)];
          const int line = page * sizes_.page_size + token % sizes_.page_size;
          rows.push_back(cache.values(elements(line, timed::kRowNumbers), timed::kRowNumbers));
        }
        const std::size_t at =
            elements(request, timed::kHeadsOfBlock) + static_cast<std::size_t>(head);
        const auto want = expected_decode(q.values(at * timed::kRowNumbers, timed::kRowNumbers),
                                          rows, static_cast<double>(shape.scale));
        const auto got = o.download(at * timed::kValueNumbers, timed::kValueNumbers);
        for (std::size_t n = 0; n < got.size(); ++n)
          closest.add(numeric::Bf16::value(got[n]), want.value[n], want.bound[n]);
      }
      return closest;
    };
    lab::LadderPlan plan;
    plan.work.bytes_read = 2.0 * batch * top_k * timed::kRowNumbers;
    plan.shape = fmt::format("{} requests, {} of {} rows of 1152 bytes, 16 heads", batch, top_k,
                             sizes_.decode_context);
    plan.rate_id = "gather_bandwidth";
    plan.fraction_id = "gather_of_read";
    plan.flush_l2 = true;
    lab::Rung rung{.name = "chosen rows", .why = "", .configurations = {}};
    rung.check = "decode";
    rung.check_detail = "O of a head of two requests against double: weights and O in BF16.";
    rung.configurations = {{.name = "tiles of 32 rows, 2 blocks a multiprocessor",
                            .make = [&] { return lab::judged(device, o, launch, verify); }}};
    plan.rungs = {rung};
    simt::Buffer<unsigned> sum(device, 1);
    lab::Rung read{.name = "reading as many bytes", .why = "the peer", .configurations = {}};
    read.rate_id = "read_bandwidth";
    const auto half = static_cast<std::size_t>(plan.work.bytes_read / 2) / 16 * 16;
    for (const int blocks : {2, 4, 8}) {
      read.configurations.push_back(
          {.name = fmt::format("{} blocks a multiprocessor", blocks), .make = [&, half, blocks] {
             return lab::Runnable{
                 [&, half, blocks] {
                   const auto* bytes = reinterpret_cast<const std::uint8_t*>(cache.span().data);
                   decode::kernels_of(device).read(device, {bytes, half}, {bytes + half, half},
                                                   sum.span(), blocks);
                 },
                 {}};
           }});
    }
    plan.peers = {read};
    const lab::Climb found = climb(plan, 0.15);
    std::vector<lab::Timed> rows = found.rungs;
    lab::append(rows, found.peers);
    add_table("decode", plan.shape,
              {lab::Column{"rung", "kernel"}, lab::Column{"bandwidth", "bandwidth"},
               real("p10", "", "GB/s", 0), real("p90", "", "GB/s", 0), lab::column("time", "time"),
               lab::Column{"fraction", "of reading"}},
              rows);
  }

  const BenchSizes& sizes_;
  double window_times_ = 0;
  std::vector<lab::Timed> lists_, index_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  const int capability = device.info().compute_capability;
  if (capability != 0 && capability / 10 != 9) {
    simt::refuse_device(device.info(), "The bench of sparse-attention",
                        "compute capability 9.0 (Hopper)");
  }
  progress.report(0, "making Q, K and V");
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::sparse_attention

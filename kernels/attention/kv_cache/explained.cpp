// Runs the explained kernels and downloads their output.

#include "kernels/attention/kv_cache/explained.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/attention/kv_cache/on_device.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"

namespace tilestep::kv_cache {

int tokens_of(const paged::WorkItem& item, int page_size, int context) {
  const int first = item.first_page * page_size;
  return std::max(std::min(first + item.pages * page_size, context) - first, 0);
}

namespace {

using lab::unwritten;

int most_tiles(const paged::WorkPlan& plan, const Inputs& inputs, int tile) {
  int most = 1;
  for (const paged::WorkItem& item : plan.items) {
    const int context = inputs.contexts[static_cast<std::size_t>(item.request)];
    most = std::max(most, (tokens_of(item, inputs.page_size, context) + tile - 1) / tile);
  }
  return most;
}

/// The item with this entry of the followed request's table, for the followed head.
int item_with(const paged::WorkPlan& plan, const paged::Followed& followed, int page) {
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const paged::WorkItem& item = plan.items[i];
    if (paged::row_with(item, followed.request, followed.head) >= 0 &&
        page < item.first_page + std::max(item.pages, 1)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

/// Room for an item's look-ups and copies.
std::size_t tape_entries(const Outcome& outcome, const Inputs& inputs, int tile) {
  constexpr int kMostLookUps = 8, kCopyBytes = 16;
  const int row = inputs.layer.row.key * paged::bits_of(outcome.problem.cache) / 8;
  const int tokens = outcome.problem.followed.step_pitch * tile;
  return static_cast<std::size_t>(tokens) *
         static_cast<std::size_t>(kMostLookUps + 2 * row / kCopyBytes);
}

std::vector<std::uint64_t> key_bytes_of(const simt::Trace::Log& log) {
  std::vector<std::uint64_t> bytes;
  for (const simt::TraceRecord& record : log.records) {
    if (record.site == static_cast<std::uint32_t>(paged::kK)) bytes.push_back(record.byte_offset);
  }
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

paged::WorkPlan cut_into(const Inputs& inputs, const paged::Cut& cut, int splits,
                         const std::vector<paged::Sharing>& sharing) {
  if (splits > 0) return paged::even_plan(cut, inputs.contexts, splits, sharing);
  std::int64_t pages = 0;
  for (const auto& table : inputs.tables) pages += static_cast<std::int64_t>(table.size());
  for (const paged::Sharing& group : sharing) {
    pages -= std::int64_t{group.requests - 1} * group.pages;
  }
  pages *= cut.lines();
  // A few pages for each block, so that it has a sequence of tiles.
  constexpr std::int64_t kPages = 3;
  const auto blocks = std::clamp<std::int64_t>(pages / kPages, 1, kMultiprocessors);
  return paged::balanced_plan(cut, inputs.contexts, static_cast<int>(blocks), sharing);
}

paged::WorkPlan plan_of(const Inputs& inputs, const Case& of, const Way& way) {
  const auto sharing =
      paged::sharing_of(inputs.flat_tables(), inputs.table_pitch(), inputs.contexts,
                        inputs.page_size, way.room / way.cut.rows());
  paged::WorkPlan plan = cut_into(inputs, way.cut, of.splits, sharing);
  if (inputs.layer.row.latent > 0) {
    for (paged::WorkItem& item : plan.items) item.kv_head = 0;
  }
  return plan;
}

/// The exact bytes of an explained launch's accesses, its merge included: an item loads the keys and values of its
/// tokens once, whatever the number of query heads, and looks each `look_up` tokens up in the table. For mla it loads
/// one latent row for both.
Ledger ledger_of(const paged::Problem& problem, const paged::WorkPlan& plan,
                 const std::vector<int>& contexts, const RowShape& shape, int look_up) {
  constexpr std::int64_t kWord = 2, kFloat = 4, kEntry = 4;
  Ledger all{};
  const std::int64_t row = std::int64_t{shape.key} * paged::bits_of(problem.cache) / 8;
  const bool scaled = paged::has_scales(problem.cache);
  for (const paged::WorkItem& item : plan.items) {
    const std::int64_t tokens =
        tokens_of(item, problem.page_size, contexts[static_cast<std::size_t>(item.request)]);
    const std::int64_t rows = paged::rows_of(item);
    const std::int64_t queries = rows * shape.key, numbers = rows * shape.value;
    // The latent kernel fetches no queries for an item without tokens.
    if (shape.latent == 0 || tokens > 0) all[paged::kQ].loaded += queries * kWord;
    all[paged::kK].loaded += tokens * row;
    if (shape.latent == 0) all[paged::kV].loaded += tokens * row;
    all[paged::kTable].loaded += (tokens + look_up - 1) / look_up * kEntry;
    if (scaled && problem.k_channels) all[paged::kScales].loaded += (tokens + queries) * kFloat;
    if (scaled && !problem.k_channels) all[paged::kScales].loaded += tokens * 2 * kFloat;
    if (paged::is_split(item)) {
      const std::int64_t part = (numbers + 2 * rows) * kFloat;
      all[paged::kParts].stored += part;
      all[paged::kParts].loaded += part;
    }
    if (item.split == 0) {
      all[paged::kO].stored += numbers * kWord;
      all[paged::kLse].stored += rows * kFloat;
    }
  }
  return all;
}

}  // namespace

Way way_of(simt::Device& device, const PagedKernels& kernels, const Case& of,
           const Inputs& inputs) {
  return {
      .cut = {inputs.layer.heads, inputs.layer.cached_heads, inputs.page_size, of.repeat_kv},
      .launch = [&](const paged::Problem& problem, const paged::Arrays& arrays,
                    const simt::Tape& tape) { kernels.explain(device, problem, arrays, tape); }};
}

paged::Problem paged_problem_of(const Case& of, const Inputs& inputs, const paged::WorkPlan& plan) {
  paged::Problem problem;
  problem.cache = cache_format(of.kv_dtype);
  problem.head_dim = inputs.layer.row.key;
  problem.heads = inputs.layer.heads;
  problem.kv_heads = inputs.layer.cached_heads;
  problem.page_size = inputs.page_size;
  problem.table_pitch = inputs.table_pitch();
  problem.most_rows = 1;
  for (const paged::WorkItem& item : plan.items) {
    problem.most_rows = std::max(problem.most_rows, item.heads);
    problem.most_requests = std::max(problem.most_requests, item.requests);
  }
  problem.k_channels = is_quantized(of.kv_dtype) && of.scales == Scales::channel;
  if (of.unmerged) problem.merging = paged::Merging::first_only;
  return problem;
}

Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const paged::Followed& followed, const Way& way,
                      int traced_page) {
  Outcome outcome;
  outcome.plan = plan_of(inputs, of, way);
  outcome.problem = paged_problem_of(of, inputs, outcome.plan);
  paged::Followed& follows = outcome.problem.followed;
  follows = followed;
  follows.step_pitch = most_tiles(outcome.plan, inputs, way.tile);
  follows.traced_item = item_with(outcome.plan, followed, traced_page);
  OnDevice on(device, inputs, cache, outcome.plan, outcome.problem.most_rows);
  const std::size_t count = outcome.plan.items.size();
  const std::size_t all_steps = count * static_cast<std::size_t>(follows.step_pitch);
  auto items = unwritten<paged::ItemTrace>(device, count);
  auto steps = unwritten<paged::StepTrace>(device, all_steps);
  auto outputs = unwritten<float>(device, all_steps);
  simt::Buffer<unsigned long long> asked(device, 2 * paged::kTensors);
  asked.fill(0);
  auto weights = unwritten<float>(device, on.cut.part_m.count());
  simt::Trace trace(device, tape_entries(outcome, inputs, way.tile));
  const simt::Tape tape = trace.tape()
                              .keep(paged::kItems, items.span())
                              .keep(paged::kSteps, steps.span())
                              .keep(paged::kOutputs, outputs.span())
                              .keep(paged::kAsked, asked.span())
                              .keep(paged::kWeights, weights.span());
  way.launch(outcome.problem, on.arrays(), tape);
  device.synchronize();
  outcome.o = values_of(on.o.download());
  outcome.lse = on.lse.download();
  outcome.items = items.download();
  outcome.steps = steps.download();
  const std::vector<float> o = outputs.download();
  for (std::size_t i = 0; i < o.size(); ++i) outcome.steps[i].o = o[i];
  outcome.part_o = on.cut.part_o.download();
  outcome.part_m = on.cut.part_m.download();
  outcome.part_l = on.cut.part_l.download();
  outcome.weights = weights.download();
  const auto counted = asked.download();
  for (std::size_t t = 0; t < outcome.asked.size(); ++t) {
    outcome.asked[t] = {static_cast<std::int64_t>(counted[2 * t]),
                        static_cast<std::int64_t>(counted[2 * t + 1])};
  }
  outcome.key_bytes = key_bytes_of(trace.download());
  if (device.can_time()) {
    // Once more for the clocks, with the kernel already loaded and without addresses, which would slow their item.
    paged::Problem again = outcome.problem;
    again.followed.traced_item = -1;
    way.launch(again, on.arrays(), tape);
    device.synchronize();
    outcome.items = items.download();
  }
  outcome.formula =
      ledger_of(outcome.problem, outcome.plan, inputs.contexts, inputs.layer.row, way.look_up);
  return outcome;
}

std::span<const paged::StepTrace> Outcome::steps_of(std::size_t item) const {
  const int row =
      paged::row_with(plan.items[item], problem.followed.request, problem.followed.head);
  if (row < 0) return {};
  const int pitch = problem.followed.step_pitch;
  const auto all =
      std::span(steps).subspan(item * static_cast<std::size_t>(pitch),
                               static_cast<std::size_t>(std::clamp(items[item].tiles, 0, pitch)));
  const auto recorded = std::ranges::count_if(all, [](const paged::StepTrace& step) {
    return step.tokens > 0 && std::bit_cast<std::uint32_t>(step.o) != 0xFFFFFFFFu;
  });
  if (recorded < std::ssize(all)) {
    simt::refuse_unrecorded("the chosen head's tiles", static_cast<std::size_t>(recorded),
                            all.size());
  }
  return all;
}

// ---- results -----------------------------------------------------------------------------------------

Inputs as_cached(const Inputs& inputs, const Cache& cache) {
  Inputs kept = inputs;
  kept.k = cache.k.values;
  kept.v = cache.v.values;
  return kept;
}

void require_items(const Outcome& shown) {
  const auto items = std::ranges::count_if(shown.items, [](const paged::ItemTrace& item) {
    return item.block >= 0 && item.end > 0 && item.end >= item.begin;
  });
  if (items < std::ssize(shown.items)) {
    simt::refuse_unrecorded("the work items", static_cast<std::size_t>(items), shown.items.size());
  }
}

int wrong_numbers(const Outcome& shown, const Reference& exact) {
  int wrong = 0;
  for (std::size_t i = 0; i < exact.o.size(); ++i) {
    wrong += std::abs(static_cast<double>(shown.o[i]) - exact.o[i]) <= exact.o_bound[i] ? 0 : 1;
  }
  return wrong;
}

namespace {

lab::Check check_ledger(const Outcome& sound) {
  std::int64_t wrong = 0;
  for (std::size_t t = 0; t < sound.asked.size(); ++t) {
    wrong += sound.asked[t] == sound.formula[t] ? 0 : 1;
  }
  return lab::none_wrong("asked_bytes", wrong,
                         "Tensors of which the kernel asked other bytes than the formula says.");
}

/// Each page of every request belongs to exactly one item per K/V head.
lab::Check check_items(const Inputs& inputs, const Outcome& sound) {
  std::int64_t wrong = 0;
  for (int request = 0; request < inputs.batch(); ++request) {
    const std::size_t pages = inputs.tables[static_cast<std::size_t>(request)].size();
    for (int head = 0; head < inputs.layer.heads; ++head) {
      std::vector<int> taken(pages);
      for (const paged::WorkItem& item : sound.plan.items) {
        if (paged::row_with(item, request, head) < 0) continue;
        for (int page = item.first_page; page < item.first_page + item.pages; ++page) {
          ++taken[static_cast<std::size_t>(page)];
        }
      }
      wrong += std::count_if(taken.begin(), taken.end(), [](int times) { return times != 1; });
    }
  }
  return lab::none_wrong("items", wrong,
                         "Pages that a query head does not see, or sees more than once.");
}

}  // namespace

void add_checks(lab::Report& report, const Inputs& inputs, const Outcome& sound,
                const Reference& exact) {
  constexpr const char* kTolerance =
      "Against direct softmax in double over the gathered tokens; tolerance: products and sums in "
      "FP32, exp, and weights and O in 16 bits.";
  report.add(lab::compared(sound.o, exact.o, exact.o_bound).check("result", kTolerance));
  report.add(lab::compared(sound.lse, exact.lse, exact.lse_bound).check("log_sum_exp", kTolerance));
  report.add(check_ledger(sound));
  report.add(check_items(inputs, sound));
}

}  // namespace tilestep::kv_cache

// Runs the explained kernels and downloads their output.

#include "kernels/attention/kv_cache/explained/run_explained.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"

namespace tilestep::kv_cache {
namespace {

using lab::unwritten, lab::uploaded;

template <class T>
simt::Buffer<T> zeros(simt::Device& device, std::size_t count) {
  simt::Buffer<T> buffer(device, count);
  buffer.fill(0);
  return buffer;
}
std::size_t longest_table(const Inputs& inputs) {
  std::size_t most = 1;
  for (const auto& table : inputs.tables) most = std::max(most, table.size());
  return most;
}

/// Rows of equal length; missing entries name a page that does not exist.
std::vector<int> flat_tables(const Inputs& inputs) {
  const std::size_t pitch = longest_table(inputs);
  std::vector<int> flat(pitch * inputs.tables.size(), -1);
  for (std::size_t row = 0; row < inputs.tables.size(); ++row) {
    std::copy(inputs.tables[row].begin(), inputs.tables[row].end(),
              flat.begin() + static_cast<std::ptrdiff_t>(row * pitch));
  }
  return flat;
}

int most_tiles(const paged::WorkPlan& plan, const Inputs& inputs) {
  int most = 1;
  for (const paged::WorkItem& item : plan.items) {
    const int context = inputs.contexts[static_cast<std::size_t>(item.request)];
    most = std::max(most, paged::explained_tiles(tokens_of(item, inputs.page_size, context)));
  }
  return most;
}

/// The item with this entry of the chosen request's table, for the chosen head.
int item_with(const paged::WorkPlan& plan, const Chosen& chosen, int page) {
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const paged::WorkItem& item = plan.items[i];
    if (paged::row_with(item, chosen.request, chosen.head) >= 0 &&
        page < item.first_page + std::max(item.pages, 1)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

/// Room for an item's look-ups and copies.
std::size_t tape_entries(const Outcome& outcome, const Inputs& inputs) {
  constexpr int kMostLookUps = 8, kCopyBytes = 16;
  const int row = inputs.layer.row.key * paged::bits_of(outcome.problem.cache) / 8;
  const int tokens = outcome.step_pitch * paged::kExplainedTile;
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

}  // namespace

Way way_of(simt::Device& device, const PagedKernels& kernels, const Case& of,
           const Inputs& inputs) {
  const paged::Cut cut{inputs.layer.heads, inputs.layer.cached_heads, inputs.page_size,
                       of.repeat_kv};
  return {cut, paged::kMostRows,
          [&](const Outcome& outcome, const paged::Arrays& arrays, const paged::Explanation& what) {
            kernels.explain(device, outcome.problem, arrays, what);
          }};
}

paged::WorkPlan plan_of(const Inputs& inputs, const Case& of, const Way& way) {
  const auto sharing =
      paged::sharing_of(flat_tables(inputs), static_cast<int>(longest_table(inputs)),
                        inputs.contexts, inputs.page_size, way.room / way.cut.rows());
  paged::WorkPlan plan = cut_into(inputs, way.cut, of.splits, sharing);
  if (inputs.layer.row.latent > 0) {
    for (paged::WorkItem& item : plan.items) item.kv_head = 0;
  }
  return plan;
}

paged::Problem paged_problem_of(const Case& of, const Inputs& inputs, const paged::WorkPlan& plan) {
  paged::Problem problem;
  problem.cache = cache_format(of.kv_dtype);
  problem.head_dim = inputs.layer.row.key;
  problem.heads = inputs.layer.heads;
  problem.kv_heads = inputs.layer.cached_heads;
  problem.page_size = inputs.page_size;
  problem.table_pitch = static_cast<int>(longest_table(inputs));
  problem.most_rows = 1;
  for (const paged::WorkItem& item : plan.items) {
    problem.most_rows = std::max(problem.most_rows, item.heads);
    problem.most_requests = std::max(problem.most_requests, item.requests);
  }
  problem.k_channels = is_quantized(of.kv_dtype) && of.scales == Scales::channel;
  if (of.unmerged) problem.merging = paged::Merging::first_only;
  return problem;
}

namespace {

/// Which block did which item when, by the clock of a launch with the kernel already loaded and without recorded
/// addresses, which would slow the traced item.
std::vector<paged::Visit> clocked_visits(simt::Device& device, const Outcome& outcome,
                                         const Way& way, const paged::Arrays& arrays,
                                         paged::Explanation what) {
  auto visits = unwritten<paged::Visit>(device, outcome.plan.items.size());
  what.visits = visits.span();
  what.traced_item = -1;
  way.explain(outcome, arrays, what);
  device.synchronize();
  return visits.download();
}

}  // namespace

Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const Chosen& chosen, const Way& way, int traced_page) {
  Outcome outcome;
  outcome.plan = plan_of(inputs, of, way);
  outcome.problem = paged_problem_of(of, inputs, outcome.plan);
  outcome.step_pitch = most_tiles(outcome.plan, inputs);
  const paged::WorkPlan& plan = outcome.plan;
  const auto rows = static_cast<std::size_t>(plan.slots * outcome.problem.most_rows);
  const auto columns = static_cast<std::size_t>(inputs.layer.row.value);
  const auto lines = inputs.contexts.size() * static_cast<std::size_t>(inputs.layer.heads);
  const auto q = uploaded(device, words_of(inputs.q));
  const auto k = uploaded(device, cache.k.bytes), v = uploaded(device, cache.v.bytes);
  const auto k_scales = uploaded(device, cache.k.scales),
             v_scales = uploaded(device, cache.v.scales);
  const auto table = uploaded(device, flat_tables(inputs));
  const auto context = uploaded(device, inputs.contexts);
  const auto items = uploaded(device, plan.items);
  const auto first_item = uploaded(device, plan.first_item), parts = uploaded(device, plan.parts);
  auto o = unwritten<std::uint16_t>(device, lines * columns);
  auto lse = unwritten<float>(device, lines);
  auto part_o = unwritten<float>(device, rows * columns);
  auto part_m = unwritten<float>(device, rows), part_l = unwritten<float>(device, rows);
  auto weights = unwritten<float>(device, rows);
  auto arrived = zeros<int>(device, static_cast<std::size_t>(plan.slots));
  auto visits = unwritten<paged::Visit>(device, plan.items.size());
  auto steps = unwritten<paged::StepRecord>(
      device, plan.items.size() * static_cast<std::size_t>(outcome.step_pitch));
  auto asked = zeros<unsigned long long>(device, 2 * paged::kTensors);
  const paged::Arrays arrays{q.span(),          k.span(),      v.span(),       k_scales.span(),
                             v_scales.span(),   table.span(),  context.span(), items.span(),
                             first_item.span(), o.span(),      lse.span(),     part_o.span(),
                             part_m.span(),     part_l.span(), arrived.span(), parts.span()};
  outcome.traced_item = item_with(plan, chosen, traced_page);
  simt::Trace tape(device, tape_entries(outcome, inputs));
  const paged::Explanation what{
      chosen.request, chosen.head,  chosen.component, outcome.step_pitch,  visits.span(),
      steps.span(),   asked.span(), weights.span(),   outcome.traced_item, tape.tape()};
  way.explain(outcome, arrays, what);
  device.synchronize();
  outcome.o = values_of(o.download());
  outcome.lse = lse.download();
  outcome.visits = visits.download();
  outcome.steps = steps.download();
  outcome.part_o = part_o.download();
  outcome.part_m = part_m.download();
  outcome.part_l = part_l.download();
  outcome.weights = weights.download();
  const auto counted = asked.download();
  for (std::size_t t = 0; t < outcome.asked.size(); ++t) {
    outcome.asked[t] = {static_cast<std::int64_t>(counted[2 * t]),
                        static_cast<std::int64_t>(counted[2 * t + 1])};
  }
  outcome.key_bytes = key_bytes_of(tape.download());
  if (device.can_time()) {
    outcome.visits = clocked_visits(device, outcome, way, arrays, what);
  }
  outcome.formula = ledger_of(outcome.problem, plan, inputs.contexts, inputs.layer.row);
  return outcome;
}

// ---- results -----------------------------------------------------------------------------------------

Inputs as_cached(const Inputs& inputs, const Cache& cache) {
  Inputs kept = inputs;
  kept.k = cache.k.values;
  kept.v = cache.v.values;
  return kept;
}

void require_items(const Outcome& shown) {
  const auto items =
      std::count_if(shown.visits.begin(), shown.visits.end(), [](const paged::Visit& visit) {
        return visit.block >= 0 && visit.end > 0 && visit.end >= visit.begin;
      });
  if (items < std::ssize(shown.visits)) {
    simt::refuse_unrecorded("the work items", static_cast<std::size_t>(items), shown.visits.size());
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

// Runs the engine, then the explained kernel on the pages that it handed out, and assembles their output.

#include "kernels/attention/paged_kv/run/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "kernels/attention/paged_kv/kernels.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::paged_kv {
namespace {

constexpr paged::Followed kChosen{};

/// The requests still running at the end of `serving`.
Inputs inputs_of(const Params& params, const Serving& serving) {
  std::vector<int> contexts;
  std::vector<std::vector<int>> tables;
  for (const Running& one : serving.steps.back().running) {
    contexts.push_back(one.tokens);
    tables.push_back(one.pages);
  }
  return make_inputs(params.of(), serving.pages, std::move(contexts), std::move(tables));
}

/// A table with an entry for a page that the request does not own.
struct Stale {
  int request = -1;  ///< an index among the running ones; −1: none has a page
  int entry = 0, page = 0;
};
Stale stale_of(const Inputs& inputs, const Served& moment) {
  Stale stale;
  stale.request = kChosen.request;
  const std::vector<int>& table = inputs.tables[static_cast<std::size_t>(stale.request)];
  if (table.empty()) return {};
  stale.entry = static_cast<int>(table.size()) / 2;
  // A page that another request has now, or otherwise one that is free again.
  stale.page = -1;
  for (int page = 0; page < inputs.pages; ++page) {
    if (std::find(table.begin(), table.end(), page) != table.end()) continue;
    if (stale.page < 0) stale.page = page;
    if (moment.holders[static_cast<std::size_t>(page)] > 0) {
      stale.page = page;
      break;
    }
  }
  return stale.page < 0 ? Stale{} : stale;
}

// ---- the trace --------------------------------------------------------------------------------------

/// Whether a launch's item is one that the picture shows.
bool is_shown(const paged::WorkItem& item) {
  return item.kv_head == 0 && item.pages > 0;
}

void add_items(Trace& trace, const Outcome& shown, const Inputs& inputs) {
  require_items(shown);
  std::vector<int> order;
  for (std::size_t i = 0; i < shown.plan.items.size(); ++i) {
    if (is_shown(shown.plan.items[i])) order.push_back(static_cast<int>(i));
  }
  const auto item = [&](int i) -> const paged::WorkItem& {
    return shown.plan.items[static_cast<std::size_t>(i)];
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::tuple(item(a).request, item(a).first_page) <
           std::tuple(item(b).request, item(b).first_page);
  });
  for (const int i : order) {
    if (i == shown.problem.followed.traced_item)
      trace.traced_item = static_cast<int>(trace.items.size());
    const int context = inputs.contexts[static_cast<std::size_t>(item(i).request)];
    trace.items.push_back({item(i).request, item(i).requests, item(i).first_page, item(i).pages,
                           kv_cache::tokens_of(item(i), inputs.page_size, context)});
  }
}

/// The sources of the traced item's copies of K, page by page; `owned` by the allocator's table.
std::vector<GatherTrace> gathers_of(const Outcome& shown, const Inputs& inputs) {
  constexpr std::uint64_t kCopy = 16, kSector = 32;
  const paged::WorkItem& item = shown.traced();
  const auto row =
      static_cast<std::uint64_t>(inputs.layer.row.key * paged::bits_of(shown.problem.cache) / 8);
  const std::uint64_t page_bytes = row * static_cast<std::uint64_t>(inputs.page_size) *
                                   static_cast<std::uint64_t>(inputs.layer.cached_heads);
  const auto& table = inputs.tables[static_cast<std::size_t>(item.request)];
  std::vector<GatherTrace> gathers;
  std::set<std::uint64_t> sectors;
  for (const std::uint64_t at : shown.key_bytes) {
    const auto page = static_cast<int>(at / page_bytes);
    if (gathers.empty() || gathers.back().page != page) {
      gathers.push_back(
          {page, 0, 0, 0, std::find(table.begin(), table.end(), page) != table.end()});
      sectors.clear();
    }
    GatherTrace& here = gathers.back();
    here.bytes += static_cast<int>(kCopy);
    sectors.insert(at / kSector);
    here.sectors = static_cast<int>(sectors.size());
    here.tokens = here.bytes / static_cast<int>(row);
  }
  return gathers;
}

/// In the order of the request's tokens; a page that it does not own is at the stale entry's place.
void sort_by_table(std::vector<GatherTrace>& gathers, const std::vector<int>& table) {
  const auto place = [&](const GatherTrace& one) {
    return std::find(table.begin(), table.end(), one.page) - table.begin();
  };
  std::stable_sort(gathers.begin(), gathers.end(),
                   [&](const GatherTrace& a, const GatherTrace& b) { return place(a) < place(b); });
}

/// `inputs`: with the tables that the kernel had.
Trace trace_of(const Run& run, const Outcome& shown, const Inputs& inputs) {
  const Params& part = run.excerpt.params;
  Trace trace;
  trace.shape = {inputs.layer.cached_heads,
                 inputs.layer.row.key,
                 inputs.page_size,
                 part.kv_dtype,
                 part.prefix,
                 run.excerpt.cut};
  trace.broken = part.broken;
  trace.pool = run.serving.pages;
  trace.limit = run.serving.limit;
  trace.stride = run.serving.stride;
  trace.coming = part.requests;
  trace.most_running = part.batch;
  trace.serving = run.serving.steps;
  trace.requests = run.serving.steps.back().running;
  for (std::size_t r = 0; r < trace.requests.size(); ++r)
    trace.requests[r].pages = inputs.tables[r];
  add_items(trace, shown, inputs);
  trace.gathers = gathers_of(shown, run.inputs);
  sort_by_table(trace.gathers, inputs.tables[static_cast<std::size_t>(kChosen.request)]);
  return trace;
}

BrokenResult result_of(const Run& run, const Outcome& shown, const Stale& stale) {
  BrokenResult result;
  result.elements = static_cast<int>(run.exact.o.size());
  result.wrong = wrong_numbers(shown, run.exact);
  result.stale_request = stale.request;
  result.stale_page = stale.request < 0 ? -1 : stale.page;
  result.outcome =
      stale.request < 0
          ? "there is no page that could be stale"
          : fmt::format("page {} is read for a request that does not have it", stale.page);
  return result;
}

/// The most that one run explains: pages of a pool and requests that can be drawn, tokens of a request, and of a batch.
bool fits(const Params& params) {
  constexpr std::int64_t kMostPages = 288, kMostTokens = 420, kMostBatchTokens = 6400;
  return pool_tokens(params) <= tokens_of(params.page_size) * kMostPages &&
         params.context <= kMostTokens &&
         std::int64_t{params.batch} * params.context <= kMostBatchTokens;
}

}  // namespace

Excerpt excerpt_of(const Params& params) {
  constexpr int kMostShownBatch = 8, kMostShownRequests = 64;
  Excerpt excerpt{params, {}};
  Params& part = excerpt.params;
  part.batch = std::min(params.batch, kMostShownBatch);
  part.requests = std::min(params.requests, kMostShownRequests);
  while (part.batch > 2 && !fits(part)) part.batch /= 2;
  while (!fits(part) && part.context > 1) part.context /= 2;
  part.prefix = std::min(part.prefix, part.context);
  std::vector<std::string> parts;
  if (part.batch < params.batch) {
    parts.push_back(fmt::format("{} of {} requests together", part.batch, params.batch));
  }
  if (part.context < params.context) {
    parts.push_back(
        fmt::format("about {} of {} each", lab::plural(part.context, "token"), params.context));
  }
  if (part.requests < params.requests) {
    parts.push_back(fmt::format("{} of {} that come", part.requests, params.requests));
  }
  if (!parts.empty())
    excerpt.cut = fmt::format("one run explains a part: {}", fmt::join(parts, ", "));
  return excerpt;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  run.excerpt = excerpt_of(params);
  const Params& part = run.excerpt.params;
  progress.report(0.05, "serving requests");
  run.serving = serve(part);
  run.inputs = inputs_of(part, run.serving);
  const Cache cache = cache_of(run.inputs, part.kv_dtype, Scales::token);
  progress.check();
  progress.report(0.2, "running the explained kernel");
  const Case of = part.of();
  const auto explained = [&](const Inputs& inputs, int traced_page) {
    return run_explained(device, of, inputs, cache, kChosen,
                         way_of(device, kernels_of(device), of, inputs), traced_page);
  };
  run.sound = explained(run.inputs, 0);
  progress.check();
  progress.report(0.6, "comparing with the reference");
  run.exact =
      reference_attention(as_cached(run.inputs, cache), roundings_of(part.kv_dtype, Scales::token));
  progress.check();
  if (part.broken == Break::none) {
    run.trace = trace_of(run, run.sound, run.inputs);
    return run;
  }
  progress.report(0.8, "running with a stale page");
  Inputs inputs = run.inputs;
  const Stale stale = stale_of(run.inputs, run.serving.steps.back());
  if (stale.request >= 0) {
    inputs.tables[static_cast<std::size_t>(stale.request)][static_cast<std::size_t>(stale.entry)] =
        stale.page;
  }
  const Outcome shown = explained(inputs, stale.entry);
  run.trace = trace_of(run, shown, inputs);
  run.trace.result = result_of(run, shown, stale);
  return run;
}

}  // namespace tilestep::paged_kv

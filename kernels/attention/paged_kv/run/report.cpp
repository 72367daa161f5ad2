// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kernels/attention/paged_kv/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::paged_kv {
namespace {

using lab::real, lab::whole;

// ---- tables of the trace ------------------------------------------------------------------------------

std::string pages_text(const std::vector<int>& pages) {
  return fmt::format("{}", fmt::join(pages, " "));
}

std::string event_text(const Happened& one) {
  const std::string pages = lab::plural(one.pages, "page");
  switch (one.what) {
    case Happening::admitted:
      return fmt::format("R{} admitted with {}", one.request, pages);
    case Happening::shared:
      return fmt::format("R{} admitted with {} of its own and a shared prefix", one.request, pages);
    case Happening::waits:
      return fmt::format("R{} waits for {}", one.request, pages);
    case Happening::finished:
      return fmt::format("R{} finished, {} free again", one.request, pages);
    case Happening::preempted:
      break;
  }
  return fmt::format("R{} preempted, {} free again", one.request, pages);
}

std::string events_text(const Served& moment) {
  std::vector<std::string> texts;
  for (const Happened& one : moment.events) texts.push_back(event_text(one));
  return texts.empty() ? "all go on" : fmt::format("{}", fmt::join(texts, "; "));
}

/// "R3", or "R3, R4, R5".
std::string requests_text(const Trace& trace, const ItemTrace& item) {
  std::string text;
  for (int row = item.row; row < item.row + item.rows; ++row) {
    fmt::format_to(std::back_inserter(text), "{}R{}", text.empty() ? "" : ", ",
                   trace.requests[static_cast<std::size_t>(row)].request);
  }
  return text;
}

lab::Table step_table(const Trace& trace) {
  lab::Table table{"steps",
                   "The engine's steps, then the kernel's reads",
                   {whole("step"), "act", lab::column("what", "what happens"), whole("running"),
                    whole("free_pages", "free pages"), whole("tokens", "tokens stored"),
                    whole("pages", "pages read")}};
  int step = 0;
  for (const Served& moment : trace.serving) {
    table.add({++step,
               Act::serve,
               events_text(moment),
               moment.running.size(),
               moment.free_pages(),
               moment.tokens(),
               {}});
  }
  for (const ItemTrace& item : trace.items) {
    const std::string what =
        fmt::format("{} of {} {} read", lab::plural(item.pages, "page"), requests_text(trace, item),
                    item.pages == 1 ? "is" : "are");
    table.add({++step, Act::read, what, trace.requests.size(), {}, {}, item.pages});
  }
  return table;
}

lab::Table request_table(const Trace& trace) {
  lab::Table table{
      "requests",
      "The requests of the launch and their block tables",
      {"request", whole("tokens"), whole("pages"), whole("empty", "empty slots"),
       whole("unused", "unused, if contiguous", "tokens"), lab::column("table", "block table")}};
  for (const Running& one : trace.requests) {
    const auto pages = static_cast<int>(one.pages.size());
    table.add({fmt::format("R{}", one.request), one.tokens, pages,
               pages * trace.shape.page_size - one.tokens, trace.limit - one.tokens,
               pages_text(one.pages)});
  }
  return table;
}

lab::Table gather_table(const Trace& trace) {
  lab::Table table{"gathers",
                   "Where the first request's keys were found",
                   {whole("place"), whole("page"), whole("tokens"), whole("bytes", "", "B"),
                    whole("sectors"), real("used", "used of sectors", "%", 1), "whose"}};
  for (std::size_t i = 0; i < trace.gathers.size(); ++i) {
    const GatherTrace& one = trace.gathers[i];
    table.add({i, one.page, one.tokens, one.bytes, one.sectors,
               one.sectors > 0 ? 100.0 * one.bytes / (32.0 * one.sectors) : 0.0,
               one.owned ? "its own" : "not its own"});
  }
  return table;
}

/// Pages of each size, by formula.
lab::Table page_size_table(const Run& run) {
  lab::Table table{
      "page_sizes",
      "Keys of one head in a page, by its size",
      {whole("page_size", "tokens per page"), whole("bytes", "contiguous", "B"),
       real("sectors", "", "", 2), real("used", "used of sectors", "%", 1),
       whole("lookups", "look-ups for 16 tokens"), real("waste", "empty on average", "tokens", 1)}};
  for (const PageSize size : all_of<PageSize>()) {
    const int tokens = tokens_of(size);
    const Piece piece = piece_of(run.params.layer(), run.params.kv_dtype, tokens);
    table.add({tokens, static_cast<std::int64_t>(piece.bytes), piece.sectors,
               100 * piece.of_sectors(), std::max(1, paged::kExplainedTile / tokens),
               (tokens - 1) / 2.0});
  }
  return table;
}

// ---- checks ---------------------------------------------------------------------------------------------

lab::Check check_pool(const Run& run) {
  std::int64_t wrong = 0;
  for (const Served& moment : run.serving.steps) {
    std::vector<int> named(static_cast<std::size_t>(run.serving.pages));
    for (const Running& one : moment.running) {
      for (const int page : one.pages) ++named[static_cast<std::size_t>(page)];
    }
    wrong += lab::differing(named, moment.holders);
  }
  return lab::none_wrong("pages", wrong,
                         "Pages in more or fewer block tables than the pool counts, at some step.");
}

/// The addresses of the sound kernel's copies are in pages of the request, each token once.
lab::Check check_gathers(const Run& run) {
  const Outcome& sound = run.sound;
  const paged::WorkItem& item = sound.traced();
  const auto& table = run.inputs.tables[static_cast<std::size_t>(item.request)];
  const int row_bytes = run.inputs.layer.row.key * paged::bits_of(sound.problem.cache) / 8;
  std::vector<std::uint64_t> want;
  const int context = run.inputs.contexts[static_cast<std::size_t>(item.request)];
  const int first = item.first_page * run.inputs.page_size;
  for (int t = first; t < first + kv_cache::tokens_of(item, run.inputs.page_size, context); ++t) {
    const int page = table[static_cast<std::size_t>(t / run.inputs.page_size)];
    const std::size_t at = run.inputs.key_at(page, item.kv_head, t % run.inputs.page_size) /
                           static_cast<std::size_t>(run.inputs.layer.row.key) *
                           static_cast<std::size_t>(row_bytes);
    for (int byte = 0; byte < row_bytes; byte += 16) {
      want.push_back(at + static_cast<std::size_t>(byte));
    }
  }
  std::sort(want.begin(), want.end());
  return lab::none_wrong(
      "gathered", lab::differing(sound.key_bytes, want),
      "Addresses of the traced item's copies of K that are not the block table's.");
}

/// The comparison has to find what was broken.
std::optional<lab::Check> check_found(const Trace& trace) {
  if (trace.broken == Break::stale_page && trace.result.stale_page >= 0) {
    const bool named = std::any_of(trace.gathers.begin(), trace.gathers.end(),
                                   [](const GatherTrace& one) { return !one.owned; });
    return lab::none_wrong(
        "stale_page_found", named ? 0 : 1,
        "The kernel's own addresses are in a page that the allocator did not give the request.");
  }
  return std::nullopt;
}

// ---- measurements, summary -----------------------------------------------------------------------------

void add_measurements(lab::Report& report, const Run& run) {
  const Served& last = run.serving.steps.back();
  const LayerShape layer = run.params.layer();
  const KvType type = run.params.kv_dtype;
  const double scales = scale_bytes(layer, type, Scales::token);
  report.add(lab::derived("token_bytes", "", token_bytes(layer, type) + scales, "B",
                          fmt::format("{} cached heads · {} numbers · {} bits/8{} per layer",
                                      layer.cached_heads, layer.row.stored, bits_of(type),
                                      scales > 0 ? fmt::format(" + {} B of scales", scales) : "")));
  const auto asked = [&](paged::Tensor tensor) {
    return run.sound.asked[static_cast<std::size_t>(tensor)].loaded;
  };
  report.add(lab::traced("cache_read", "", asked(paged::kK) + asked(paged::kV), "B",
                         "K and V bytes requested by all blocks of the launch"));
  report.add(lab::traced("table_read", "", asked(paged::kTable), "B",
                         "block tables, looked up for each token"));
  const int held = run.serving.pages - last.free_pages();
  report.add(lab::traced("held_pages", "", held, "pages",
                         fmt::format("of {} after the engine's last step", run.serving.pages)));
  report.add(lab::traced("page_waste", "",
                         static_cast<double>(held) * run.serving.page_size - last.tokens(),
                         "tokens", "slots of held pages without a token"));
  const auto running = static_cast<int>(last.running.size());
  int tokens = 0;
  for (const Running& one : last.running) tokens += one.tokens;
  report.add(lab::derived(
      "reserved_waste", "", static_cast<double>(running) * run.serving.limit - tokens, "tokens",
      fmt::format("{} · {} reserved − {} tokens, with a contiguous cache for each", running,
                  run.serving.limit, tokens)));
  report.add(
      lab::derived("contiguous_requests", "", run.serving.contiguous_requests(), "requests",
                   fmt::format("⌊{} pages · {} / {} tokens⌋: running together, contiguous each",
                               run.serving.pages, run.serving.page_size, run.serving.limit)));
}

std::string summary_of(const Run& run) {
  const Trace& trace = run.trace;
  if (trace.broken != Break::none) {
    std::string text = fmt::format("{}: {}", name_of(trace.broken), trace.result.outcome);
    if (trace.result.wrong > 0) {
      text += fmt::format(", {} of {} numbers of O are wrong", trace.result.wrong,
                          trace.result.elements);
    }
    return text + ".";
  }
  const Served& last = run.serving.steps.back();
  const int held = run.serving.pages - last.free_pages();
  std::string text = fmt::format(
      "{} in {} of {} pages of {}, {} of their slots empty; contiguous, the pool had room for {}",
      lab::plural(static_cast<std::int64_t>(trace.requests.size()), "request"), held, trace.pool,
      lab::plural(trace.shape.page_size, "token"), held * run.serving.page_size - last.tokens(),
      run.serving.contiguous_requests());
  if (!trace.shape.cut.empty()) text += "; " + trace.shape.cut;
  return text + ".";
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {step_table(trace), request_table(trace), gather_table(trace)};
}

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary = summary_of(run);
  for (lab::Table& table : tables_of(run.trace)) report.add(std::move(table));
  report.add(page_size_table(run));
  add_measurements(report, run);
  add_checks(report, run.inputs, run.sound, run.exact);
  report.add(check_pool(run));
  report.add(check_gathers(run));
  if (auto found = check_found(run.trace)) report.add(std::move(*found));
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::paged_kv

// The trace as JSON.

#include <nlohmann/json.hpp>

#include "kernels/attention/paged_kv/lesson.hpp"
#include "kernels/base/lab/fields.hpp"

namespace tilestep::paged_kv {
namespace {

constexpr int kMostPool = 1 << 16;
constexpr int kMostTokens = 1 << 20;

lab::Fields<Shape> shape_fields() {
  return lab::Fields<Shape>()
      .whole(TILESTEP_MEMBERS(Shape, cached_heads, key), 1, 1024)
      .whole("page_size", &Shape::page_size, 1, 256)
      .name("kv_dtype", &Shape::kv_dtype)
      .whole("prefix", &Shape::prefix, 0, kMostContext)
      .text("cut", &Shape::cut);
}

lab::Fields<Happened> happened_fields() {
  return lab::Fields<Happened>()
      .name("what", &Happened::what)
      .whole("request", &Happened::request, 0, kMostRequests)
      .whole("pages", &Happened::pages, 0, kMostPool);
}

lab::Fields<Running> running_fields(const Trace& trace) {
  return lab::Fields<Running>()
      .whole("request", &Running::request, 0, kMostRequests)
      .whole("tokens", &Running::tokens, 0, kMostTokens)
      .wholes("pages", &Running::pages, lab::kAnyCount, 0, trace.pool - 1);
}

lab::Fields<Served> moment_fields(const Trace& trace) {
  return lab::Fields<Served>()
      .list("events", &Served::events, happened_fields())
      .list("running", &Served::running, running_fields(trace))
      .wholes("owner", &Served::owner, trace.pool, -1, kMostRequests)
      .wholes("holders", &Served::holders, trace.pool, 0, kMostBatch)
      .wholes("filled", &Served::filled, trace.pool, 0, trace.shape.page_size)
      .whole(TILESTEP_MEMBERS(Served, waiting, finished), 0, kMostRequests);
}

lab::Fields<ItemTrace> item_fields(const Trace& trace) {
  const auto rows = static_cast<std::int64_t>(trace.requests.size());
  return lab::Fields<ItemTrace>()
      .from_here(lab::kAhead)
      .whole("row", &ItemTrace::row, 0, rows - 1)
      .whole("rows", &ItemTrace::rows, 1, [rows](const ItemTrace& item) { return rows - item.row; })
      .whole(TILESTEP_MEMBERS(ItemTrace, first_page, pages), 0, kMostPool)
      .whole("tokens", &ItemTrace::tokens, 0, kMostTokens);
}

lab::Fields<GatherTrace> gather_fields(const Trace& trace) {
  return lab::Fields<GatherTrace>()
      .whole("page", &GatherTrace::page, 0, trace.pool - 1)
      .whole("tokens", &GatherTrace::tokens, 0, kMostTokens)
      .whole(TILESTEP_MEMBERS(GatherTrace, bytes, sectors), 0, lab::kMostCount)
      .flag("owned", &GatherTrace::owned);
}

lab::Fields<BrokenResult> result_fields() {
  return lab::Fields<BrokenResult>()
      .text("outcome", &BrokenResult::outcome)
      .whole(TILESTEP_MEMBERS(BrokenResult, wrong, elements), 0, lab::kMostCount)
      .whole("stale_request", &BrokenResult::stale_request, -1, kMostBatch)
      .whole("stale_page", &BrokenResult::stale_page, -1, kMostPool);
}

/// The launch's requests are those that run after the engine's last step.
lab::When when_launched(const Trace& trace, std::size_t) {
  return {trace.engine_steps(), 0};
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .object("shape", &Trace::shape, shape_fields())
      .name("broken", &Trace::broken)
      .whole("pool", &Trace::pool, 1, kMostPool)
      .whole(TILESTEP_MEMBERS(Trace, limit, stride), 1, kMostTokens)
      .whole("coming", &Trace::coming, 1, kMostRequests)
      .whole("most_running", &Trace::most_running, 1, kMostBatch)
      .list("serving", &Trace::serving, moment_fields)
      .known_each(lab::kOneAStep)
      .list("requests", &Trace::requests, running_fields)
      .known_each(when_launched)
      .list("items", &Trace::items, item_fields)
      .whole("traced_item", &Trace::traced_item, 0,
             [](const Trace& t) { return static_cast<std::int64_t>(t.items.size()) - 1; })
      .list("gathers", &Trace::gathers, gather_fields)
      .known_each([](const Trace& trace, std::size_t) {
        return lab::When{trace.step_of(trace.traced_item), 0};
      })
      .object("result", &Trace::result, result_fields())
      .known(
          [](const Trace& trace) {
            return lab::When{trace.length(), 0};
          },
          [](const Trace&, const lab::Change&) {
            return result_fields().to_json(BrokenResult{"something else", 1, 2, -1, -1});
          });
}

}  // namespace

TILESTEP_TRACE_JSON("paged-kv trace", trace_fields())

}  // namespace tilestep::paged_kv

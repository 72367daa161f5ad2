// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kernels/attention/decode/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::decode {
namespace {

using lab::real, lab::whole;

// ---- tables of the trace ------------------------------------------------------------------------------

/// Tiles that blocks have taken up to and including a round.
int tiles_by(const Trace& trace, int round) {
  int tiles = 0;
  for (const ItemTrace& item : trace.items) {
    tiles += std::clamp(round - item.first_round, 0, item.tiles);
  }
  return tiles;
}

lab::Table step_table(const Trace& trace) {
  lab::Table table{"steps",
                   "One launch of the kernel, tile by tile",
                   {whole("step"), "act", lab::column("what", "what happens"),
                    whole("tiles", "tiles taken"), whole("busy", "blocks at work")}};
  for (int step = 1; step <= trace.length(); ++step) {
    const Act act = trace.act_of(step);
    const int tiles = tiles_by(trace, step), busy = tiles - tiles_by(trace, step - 1);
    const std::string what =
        act == Act::read
            ? fmt::format("{} {} a tile", lab::plural(busy, "block"), busy == 1 ? "takes" : "take")
        : act == Act::merge ? "parts are weighed and added"
                            : "when the blocks were at work";
    table.add({step, act, what, tiles, act == Act::read ? lab::Cell(busy) : lab::Cell()});
  }
  return table;
}

lab::Table item_table(const Trace& trace) {
  lab::Table table{
      "items",
      "The blocks' work items",
      {whole("item"), "request", whole("kv_head", "K/V head"), "heads", whole("split"),
       whole("splits", "of"), whole("first", "first token"), whole("tokens"), whole("tiles"),
       whole("block"), whole("begin", "", trace.clock_unit), whole("end", "", trace.clock_unit)}};
  for (std::size_t i = 0; i < trace.items.size(); ++i) {
    const ItemTrace& item = trace.items[i];
    table.add({i, fmt::format("R{}", item.request), item.kv_head,
               fmt::format("{}–{}", item.first_head, item.first_head + item.heads - 1), item.split,
               item.splits, item.first, item.tokens, item.tiles, item.block, item.begin, item.end});
  }
  return table;
}

lab::Table chosen_table(const Trace& trace) {
  lab::Table table{
      "chosen",
      fmt::format("Online softmax of request R{}, head {}, component {}", trace.request, trace.head,
                  trace.component),
      {whole("item"), whole("tile"), whole("tokens"), real("tile_max", "tile max", "", 3),
       real("m", "m", "", 3), real("rescale", "", "", 4), real("tile_sum", "tile sum", "", 3),
       real("l", "ℓ", "", 3), real("o", "O, undivided", "", 4)}};
  for (const StepTrace& step : trace.steps) {
    table.add({step.item, step.tile, step.tokens, step.tile_max, step.m_after, step.rescale,
               step.tile_sum, step.l, step.o});
  }
  return table;
}

lab::Table part_table(const Trace& trace) {
  lab::Table table{
      "parts",
      "The parts of the chosen head's answer, and their merge",
      {whole("split"), whole("item"), real("m", "m", "", 3), real("l", "ℓ", "", 3),
       real("o", "O, undivided", "", 4), real("weight", "weight in the merge", "", 4)}};
  for (const PartTrace& part : trace.parts) {
    table.add({trace.item_of(part).split, part.item, part.m, part.l, part.o, part.weight});
  }
  return table;
}

// ---- tables that are no trace --------------------------------------------------------------------------

/// Published models' caches.
lab::Table models_table() {
  lab::Table table{
      "models",
      "Cache of published models: layers · K/V heads · numbers per head, token · 2 bytes",
      {"model", "scheme", whole("layers"), whole("cached_heads", "K/V heads"),
       whole("stored", "numbers / head, token"), real("kib", "KV per token", "KiB", 1),
       real("gb", "of 131 072 tokens", "GB", 2), real("intensity", "", "FLOP/B", 1), "source"}};
  for (const Model& model : models()) {
    const double bytes = token_bytes(model, KvType::bf16);
    table.add({model.name, model.layer.scheme, model.layers, model.layer.cached_heads,
               model.layer.row.stored, bytes / 1024, bytes * kMostContext / 1e9,
               intensity(model.layer, KvType::bf16, Scales::token), model.source});
  }
  return table;
}

/// The errors of cache formats for the followed request.
lab::Table format_errors_table(const Run& run) {
  lab::Table table{"format_errors",
                   "Errors of cache formats for the chosen request, in double",
                   {"format", "scales", whole("bytes", "bytes / token, layer", "B"),
                    whole("scale_bytes", "and scales", "B"), real("key", "error of K", "%", 2),
                    real("score", "of the scores", "%", 2), real("output", "of O", "%", 2)}};
  if (run.excerpt.params.scheme == Scheme::mla) return table;
  const LayerShape layer = run.params.layer();
  for (const KvType type : all_of<KvType>()) {
    for (const Scales scales : all_of<Scales>()) {
      if (!is_quantized(type) && scales != Scales::token) continue;
      const FormatError error = format_error(run.inputs, run.chosen.request, type, scales);
      table.add({type, is_quantized(type) ? lab::Cell(scales) : lab::Cell(),
                 token_bytes(layer, type), scale_bytes(layer, type, scales), 100 * error.key,
                 100 * error.score, 100 * error.output});
    }
  }
  return table;
}

// ---- checks ---------------------------------------------------------------------------------------------

/// Each tile starts from the previous tile's maximum.
lab::Check check_chain(const Trace& trace) {
  int wrong = 0;
  float before = -INFINITY;
  int item = -1;
  for (const StepTrace& step : trace.steps) {
    if (step.item != item) before = -INFINITY;
    item = step.item;
    wrong += lab::same_bits(step.m_before, before) ? 0 : 1;
    before = step.m_after;
  }
  return lab::none_wrong(
      "recorded_chain", wrong,
      "Tiles of the chosen head that do not start from the previous tile's maximum.");
}

// ---- measurements, summary -----------------------------------------------------------------------------

void add_measurements(lab::Report& report, const Run& run) {
  const Trace& trace = run.trace;
  const LayerShape layer = run.params.layer();
  const KvType type = run.params.kv_dtype;
  const double scales = scale_bytes(layer, type, run.params.scales);
  const double stored = token_bytes(layer, type) + scales;
  report.add(lab::derived(
      "token_bytes", "", stored, "B",
      fmt::format("{} cached {} · {} numbers · {} bits/8{} per layer", layer.cached_heads,
                  layer.cached_heads == 1 ? "head" : "heads", layer.row.stored, bits_of(type),
                  scales > 0 ? fmt::format(" + {} B of scales", scales) : "")));
  const double point = intensity(layer, type, run.params.scales);
  report.add(lab::derived("intensity", "", point, "FLOP/B",
                          fmt::format("{} FLOP / {} B per token; an H200's ridge is at {:.0f}",
                                      token_flops(layer), stored, kRidge)));
  std::vector<std::string> asked;
  for (const LedgerRow& row : trace.ledger) {
    asked.push_back(fmt::format("{} {}", row.tensor, row.loaded + row.stored));
  }
  report.add(lab::traced("asked_bytes", "", trace.asked(), "B",
                         fmt::format("by all blocks of the launch: {}", fmt::join(asked, ", "))));
  report.add(lab::traced("tiles_taken", "", tiles_by(trace, trace.rounds()), "tiles",
                         fmt::format("by {}, the longest {} in sequence",
                                     lab::plural(trace.blocks, "block"), trace.rounds())));
  const double busy = trace.rounds() > 0 ? 100.0 * tiles_by(trace, trace.rounds()) /
                                               (static_cast<double>(trace.blocks) * trace.rounds())
                                         : 100.0;
  report.add(
      lab::traced("busy_blocks", "", busy, "%", "tiles / (blocks · tiles of the longest block)"));
}

/// "384 B", "16.4 KB".
std::string bytes_text(double bytes) {
  if (bytes < 10'000) return fmt::format("{:.4g} B", bytes);
  if (bytes < 1e7) return fmt::format("{:.1f} KB", bytes / 1e3);
  return bytes < 1e10 ? fmt::format("{:.1f} MB", bytes / 1e6)
                      : fmt::format("{:.1f} GB", bytes / 1e9);
}

std::string summary_of(const Run& run) {
  const Trace& trace = run.trace;
  if (trace.broken != Break::none) {
    std::string text = fmt::format("{}: {}", name_of(trace.broken), trace.result.outcome);
    if (trace.result.wrong > 0) {
      text += fmt::format(", {} of {} numbers of O are wrong", trace.result.wrong,
                          trace.result.elements);
    }
    if (trace.result.more_bytes > 0) {
      text += fmt::format(", {} more", bytes_text(static_cast<double>(trace.result.more_bytes)));
    }
    return text + ".";
  }
  const LayerShape layer = run.params.layer();
  const double point = intensity(layer, run.params.kv_dtype, run.params.scales);
  std::string text = fmt::format(
      "{} stores {} per token and layer and does {:.3g} FLOP per byte read, {} the ridge at {:.0f}",
      name_of(run.params.scheme),
      bytes_text(token_bytes(layer, run.params.kv_dtype) +
                 scale_bytes(layer, run.params.kv_dtype, run.params.scales)),
      point, point < kRidge ? "left of" : "right of", kRidge);
  const auto requests = static_cast<std::int64_t>(trace.tokens.size());
  text += fmt::format("; {} {} read by {}", lab::plural(requests, "request"),
                      requests == 1 ? "is" : "are", lab::plural(trace.blocks, "block"));
  if (!trace.shape.cut.empty()) text += "; " + trace.shape.cut;
  return text + ".";
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {step_table(trace), item_table(trace), chosen_table(trace), part_table(trace)};
}

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary = summary_of(run);
  for (lab::Table& table : tables_of(run.trace)) report.add(std::move(table));
  report.add(format_errors_table(run));
  report.add(models_table());
  add_measurements(report, run);
  add_checks(report, run.inputs, run.sound, run.exact);
  report.add(check_chain(run.trace));
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::decode

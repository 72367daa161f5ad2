#include "scenes/attention/decode/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/lab/source.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using decode::Break, decode::ItemTrace, decode::PartTrace, decode::StepTrace;
using words::counted, words::number;

StepAxis DecodeScene::loaded(const decode::Trace&) {
  params_ = decode::knob_table().params(report_.params);
  key_row_.reset();
  find_events();
  return {trace_.length(), 1, "step", {""}, "steps"};
}

// ---- against the reference ----------------------------------------------------------------------------

/// The largest m of the chosen head's parts.
double DecodeScene::most_m() const {
  double most = -std::numeric_limits<double>::infinity();
  for (const PartTrace& part : trace_.parts) most = std::max(most, static_cast<double>(part.m));
  return most;
}

bool DecodeScene::misweighed(const PartTrace& part) const {
  const double due = std::exp(static_cast<double>(part.m) - most_m());
  return trace_.parts.size() > 1 && std::isfinite(due) &&
         !words::close(static_cast<double>(part.weight), due);
}

// ---- words --------------------------------------------------------------------------------------------

std::string DecodeScene::sentence(Cursor cursor) const {
  if (cursor.tile <= 0) return cost_sentence();
  if (looking_back(cursor)) return time_sentence();
  if (merging(cursor)) {
    if (trace_.broken == Break::unmerged_splits) {
      return "Merge omitted: the first part stands for the whole.";
    }
    const bool all = std::none_of(trace_.parts.begin(), trace_.parts.end(),
                                  [this](const PartTrace& part) { return misweighed(part); });
    return !all ? "Merge: weights differ from e^(m − M), so the parts' scales mix."
                : "Merge: each part's ℓ and O get weight e^(m − M): online softmax again.";
  }
  int busy = 0;
  for (const ItemTrace& item : trace_.items) busy += at_work(item, cursor) ? 1 : 0;
  // mla's kernel has a tile for each of two warpgroups.
  const bool pairs = trace_.shape.scheme == decode::Scheme::mla;
  return fmt::format("Read: {} of {} take {} of {} tokens.", busy, counted(trace_.blocks, "block"),
                     pairs ? "up to two tiles" : "a tile", trace_.shape.tile / (pairs ? 2 : 1));
}

std::vector<picture::Symbol> DecodeScene::symbols(const View& view) const {
  // The merge names them differently.
  const std::vector<std::string> after =
      merging(view.cursor) ? std::vector<std::string>() : std::vector<std::string>{"after"};
  return {
      {"m",
       {"m", 0},
       4,
       "The chosen head's largest score so far, in one part of the keys. Weights are relative to "
       "it.",
       after},
      {"ℓ", {"l", 0}, 5, "The sum of that part's weights so far.", {}},
      {"O",
       {"o", 0},
       1,
       "That part's sum of weight × value so far, not yet divided by ℓ. One component is shown.",
       {"o"}}};
}

std::vector<std::string> DecodeScene::stage_knobs() const {
  return {"scheme", "splits", "kv_dtype"};
}

// ---- tables -------------------------------------------------------------------------------------------

Cursor DecodeScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "models") return {};  // published
  // All that the trace says without its clocks is known with the answer.
  if (table.id == "parts" || table.id == "chosen") {
    return std::min(Scene::known(table, row, column), Cursor{trace_.answered(), 0});
  }
  return Scene::known(table, row, column);
}

int DecodeScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id == "chosen" && reading(view.cursor)) {
    const StepTrace* step = step_now(view.cursor);
    return step == nullptr ? -1 : static_cast<int>(step - trace_.steps.data());
  }
  return Scene::table_row(table_id, view);
}

// ---- numbers beside the picture -------------------------------------------------------------------------

std::vector<Readout> DecodeScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  std::vector<Readout> all;
  const std::string kernel = "recorded by the kernel while it ran on " + report_.device.name;
  const auto derived = [&](const char* id, const char* label) {
    const lab::Measurement* m = report_.measurement(id);
    if (m == nullptr) return;
    all.push_back({id, label, words::significant(m->value, 3), m->unit, m->provenance, m->detail});
  };
  derived("token_bytes", "KV per token and layer");
  derived("intensity", "per byte read");
  // Always shown, so that knobs do not move while they are dragged.
  const bool part = !trace_.shape.cut.empty();
  all.push_back({"cut", "explained", part ? "a part" : "all", "", lab::Provenance::derived,
                 part ? trace_.shape.cut : "all requests, heads and tokens of these knobs"});
  if (!reading(cursor)) return all;
  const StepTrace* step = step_now(cursor);
  const auto show = [&](const char* id, const char* label, float StepTrace::*member, int digits) {
    all.push_back({id, label,
                   step == nullptr ? "–" : number(static_cast<double>(step->*member), digits), "",
                   lab::Provenance::traced, kernel});
    all.back().about = {id[0] == 'm'   ? picture::Name("m")
                        : id[0] == 'l' ? picture::Name("l")
                                       : picture::Name("o"),
                        0};
  };
  if (step != nullptr) {
    show("m", "maximum m", &StepTrace::m_after, 2);
    show("l", "sum ℓ", &StepTrace::l, 2);
    show("o", "O so far", &StepTrace::o, 3);
  }
  if (!at_end(cursor)) return all;
  if (looking_back(cursor)) {
    all.push_back({"at_work", "blocks at work", number(trace_.mean_at_work(), 1),
                   fmt::format("of {}", trace_.blocks),
                   trace_.clocked() ? lab::Provenance::traced : lab::Provenance::derived,
                   trace_.clocked()
                       ? "block times / launch time, by the clock of " + report_.device.name
                       : "tiles / longest block's tiles; no clock was read"});
  }
  const double off = std::abs(static_cast<double>(trace_.o) - trace_.exact_o);
  const bool wrong = (trace_.broken != Break::none && trace_.result.wrong > 0) || contradicted();
  all.push_back({"error", "error vs exact O", number(off, 4), "", lab::Provenance::derived,
                 fmt::format("|{} − {}|: against direct softmax in double",
                             number(static_cast<double>(trace_.o), 5), number(trace_.exact_o, 5)),
                 wrong ? Readout::wrong : Readout::good});
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark DecodeScene::source(const View& view) const {
  const char* const kernel = trace_.shape.scheme == decode::Scheme::mla
                                 ? "kernels/attention/decode/latent/latent.cu"
                                 : "kernels/attention/kv_cache/paged/paged.cu";
  const Cursor cursor = view.cursor;
  if (merging(cursor)) {
    constexpr const char* kMerge = "kernels/attention/kv_cache/paged/merge.cu";
    const auto lines = lab::source_marks(kMerge).lines({"weigh", "merge"});
    SourceMark mark = source_mark(kMerge, lines, 1);
    for (const PartTrace& part : trace_.parts) {
      mark.values[lines[0]] =
          fmt::format("weight = {}", number(static_cast<double>(part.weight), 3));
    }
    return mark;
  }
  const auto lines = lab::source_marks(kernel).lines({"scores", "softmax", "values", "output"});
  SourceMark mark = source_mark(kernel, lines, reading(cursor) ? 2 : -1);
  if (const StepTrace* step = reading(cursor) ? step_now(cursor) : nullptr) {
    mark.values[lines[0]] =
        fmt::format("tile max = {}", number(static_cast<double>(step->tile_max), 2));
    mark.values[lines[1]] =
        fmt::format("m = {}, l = {}", number(static_cast<double>(step->m_after), 2),
                    number(static_cast<double>(step->l), 2));
    mark.values[lines[2]] = fmt::format("o = {}", number(static_cast<double>(step->o), 3));
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(decode, DecodeScene)

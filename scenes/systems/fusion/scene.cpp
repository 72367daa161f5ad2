#include "scenes/systems/fusion/scene.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/lab/source.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using fusion::Lane, fusion::Move, fusion::Phase, fusion::Step, fusion::Traffic;
using words::counted, words::significant;

StepAxis FusionScene::loaded(const fusion::Trace&) {
  find_events();
  return {trace_.length(), fusion::kPhases, "step", {"read", "compute", "write"}, "steps"};
}

// ---- where the cursor is ----------------------------------------------------------------------------

bool FusionScene::moved(const Move& move, Cursor cursor) const {
  const Cursor at{move.step + 1, static_cast<int>(move.stored ? Phase::write : Phase::read)};
  return at <= cursor;
}
bool FusionScene::moves_now(const Move& move, Cursor cursor) const {
  return move.step == step(cursor) && phase(cursor) == (move.stored ? Phase::write : Phase::read);
}

double FusionScene::moved_by(const Lane& lane, Cursor cursor) const {
  std::int64_t bytes = 0;
  for (const Move& move : lane.moves) {
    if (is_counted(move.tensor) && moved(move, cursor)) bytes += move.bytes;
  }
  return static_cast<double>(bytes) / trace_.width;
}

int FusionScene::first_op(int kernel) const {
  const auto at = std::find_if(trace_.ops.begin(), trace_.ops.end(),
                               [kernel](const auto& op) { return op.kernel == kernel; });
  return static_cast<int>(at - trace_.ops.begin());
}

std::string FusionScene::operations(int kernel) const {
  std::string names;
  for (int op = 0; op < fusion::kOps; ++op) {
    if (trace_.ops[static_cast<std::size_t>(op)].kernel != kernel) continue;
    names += (names.empty() ? "" : " + ") + std::string(name_of(static_cast<fusion::Op>(op)));
  }
  return names;
}

FusionScene::Sums FusionScene::sums_of(int kernel) const {
  Sums sums;
  for (const fusion::OpTrace& op : trace_.ops) {
    if (op.kernel != kernel) continue;
    for (const Traffic& one : op.traffic) {
      (one.saved ? sums.saved : one.stored ? sums.written : sums.read) += one.bytes;
    }
  }
  return sums;
}

// ---- words --------------------------------------------------------------------------------------------

namespace {

std::string bytes_text(double bytes) {
  return significant(bytes, 3) + " B";
}

}  // namespace

std::string FusionScene::sentence(Cursor cursor) const {
  if (cursor.tile <= 0) {
    return fmt::format("A row of {} is to get a residual, a norm and 8 bits per number.",
                       counted(trace_.width, "number"));
  }
  if (!in_chain(cursor)) {
    const int at = kernel(cursor);
    const Sums sums = sums_of(at);
    const std::string what = operations(at);
    if (phase(cursor) == Phase::read)
      return fmt::format("Kernel {}, {}, reads {} per number.", at + 1, what,
                         bytes_text(sums.read));
    if (phase(cursor) == Phase::compute) {
      return sums.saved > 0 ? fmt::format("Kernel {}, {}, keeps {} per number on the chip.", at + 1,
                                          what, bytes_text(sums.saved))
                            : fmt::format("Kernel {}, {}, computes.", at + 1, what);
    }
    return fmt::format("Kernel {}, {}, writes {} per number.", at + 1, what,
                       bytes_text(sums.written));
  }
  const auto now = static_cast<Step>(step(cursor));
  const bool same =
      step(cursor) > 0 && trace_.fused.launch[static_cast<std::size_t>(step(cursor))] ==
                              trace_.fused.launch[static_cast<std::size_t>(step(cursor)) - 1];
  const std::string name = now == Step::add ? "Add" : now == Step::norm ? "Norm" : "Quantize";
  if (phase(cursor) == Phase::read) {
    if (now == Step::add) return "Add: x and the residual come from memory.";
    const char* what = now == Step::norm ? "h" : "n";
    return same ? fmt::format("{}: unfused, {} comes back from memory; fused, it is still there.",
                              name, what)
                : fmt::format("{}: {} comes back from memory in both.", name, what);
  }
  if (phase(cursor) == Phase::compute) {
    if (now == Step::add) return "Add: h = x + residual, the same in both.";
    if (now == Step::norm)
      return "Norm: n = h · gain / √(mean of h²), the same arithmetic in both.";
    return "Quantize: codes = n / scale, the largest number to 448.";
  }
  if (now == Step::add) return "Add: h goes to memory; the next layer needs it.";
  if (now == Step::norm) {
    const bool stays = trace_.fused.launch[2] == trace_.fused.launch[1];
    return stays ? "Norm: unfused, n goes to memory; fused, nothing does."
                 : "Norm: n goes to memory in both.";
  }
  const float scale = trace_.fused.stats.scale, right = trace_.unfused.stats.scale;
  if (trace_.result.wrong > 0 && scale != right) {  // codes may be the same nevertheless
    return fmt::format("Quantize: {}: codes times {}, unfused {}.", trace_.result.outcome,
                       significant(static_cast<double>(scale), 3),
                       significant(static_cast<double>(right), 3));
  }
  if (!trace_.result.outcome.empty())
    return fmt::format("Quantize: codes go to memory; {}.", trace_.result.outcome);
  return fmt::format("Quantize: codes go to memory. In all {} per number, unfused {}.",
                     bytes_text(moved_by(trace_.fused, cursor)),
                     bytes_text(moved_by(trace_.unfused, cursor)));
}

std::vector<picture::Symbol> FusionScene::symbols(const View&) const {
  return {{"h",
           {"tensor", 2},
           1,
           "The residual stream: x + residual, rounded to the rows' format.",
           {"held"}},
          {"n", {"tensor", 3}, 3, "The normed row: h · gain / √(mean of h² + ε).", {"n"}}};
}

std::vector<std::string> FusionScene::stage_knobs() const {
  return {"dtype", "batch", "break"};
}

// ---- tables ---------------------------------------------------------------------------------------------

Cursor FusionScene::known(const lab::Table& table, int row, int column) const {
  if (column == 0 && table.id != "score") return {};
  if (table.id == "chain") return {row + 1, fusion::kPhases - 1};
  if (table.id == "numbers") {
    if (column <= 2) return {};
    return {column - 2 > fusion::kChain ? fusion::kChain : column - 2,
            static_cast<int>(Phase::compute)};
  }
  if (table.id == "kernels") return {fusion::kChain + row + 1, fusion::kPhases - 1};
  if (table.id == "score" && row < 2) return {};
  return Scene::known(table, row, column);
}

int FusionScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id == "chain") return in_chain(view.cursor) ? step(view.cursor) : -1;
  if (table_id == "kernels") return in_chain(view.cursor) ? -1 : kernel(view.cursor);
  return -1;
}

// ---- numbers beside the picture -----------------------------------------------------------------------

std::vector<Readout> FusionScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  std::vector<Readout> all;
  const auto lane = [&](const char* id, const char* label, const Lane& of) {
    all.push_back(
        {id, label, significant(moved_by(of, cursor), 3), "B/number", lab::Provenance::traced,
         "read and written for the recorded row by now, by the kernels' own accesses on " +
             report_.device.name + "; beside the gain, which all rows share, and a scale per row"});
  };
  lane("unfused", "unfused", trace_.unfused);
  lane("fused", "fused", trace_.fused);
  if (cursor >= Cursor{fusion::kChain, static_cast<int>(Phase::compute)}) {
    all.push_back({"scale", "scale of the codes",
                   significant(static_cast<double>(trace_.fused.stats.scale), 3), "fused",
                   lab::Provenance::traced,
                   fmt::format("by the fused kernel; unfused {}",
                               significant(static_cast<double>(trace_.unfused.stats.scale), 3))});
    all.back().about = {"tensor", 4};  // of the codes
    if (trace_.fused.stats.scale != trace_.unfused.stats.scale) all.back().look = Readout::wrong;
  }
  const int seen = in_chain(cursor)                      ? 0
                   : cursor.phase == fusion::kPhases - 1 ? kernel(cursor) + 1
                                                         : kernel(cursor);
  double bytes = 0;
  for (int at = 0; at < seen; ++at) bytes += sums_of(at).read + sums_of(at).written;
  all.push_back({"launches", "block: launches", std::to_string(seen),
                 fmt::format("of {} ops", fusion::kOps), lab::Provenance::derived,
                 "kernels of the block by now"});
  all.push_back({"block_bytes", "block: moved", significant(bytes, 3), "B/number",
                 lab::Provenance::derived,
                 "per token and number of the width, beside weights and cache"});
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark FusionScene::source(const View& view) const {
  const bool inside = in_chain(view.cursor) && view.cursor.tile > 0;
  SourceMark mark = source_mark(fusion::kSourcePath, trace_.lines, inside ? step(view.cursor) : -1);
  // What each line has computed by now: the statistics are known once the row is quantized.
  const auto computed = [&](Step of) {
    return view.cursor >= Cursor{static_cast<int>(of) + 1, static_cast<int>(Phase::compute)};
  };
  const auto& lines = trace_.lines;
  if (!inside || trace_.fused.held.empty()) return mark;
  if (computed(Step::add))
    mark.values[lines[0]] = fmt::format("h[0] = {:.3g}", trace_.fused.held[0]);
  if (computed(Step::quantize)) {
    mark.values[lines[1]] = fmt::format("inverse = {:.3g}", trace_.fused.stats.inverse);
    mark.values[lines[2]] = fmt::format("code = {:.3g}", trace_.fused.codes[0]);
  }
  return mark;
}

std::optional<lab::Settings> FusionScene::dropped(const View&, const picture::Key& item,
                                                  const picture::Key& onto) const {
  if (!item.is({"seam"}) || onto != item || item.i < 0 || item.i >= fusion::kSeams)
    return std::nullopt;
  const lab::Settings settings = fusion::knob_table().knobs().completed(report_.params);
  return lab::Settings{
      {"fuse", fusion::with_turned(std::get<std::string>(settings.at("fuse")), item.i + 1)}};
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(fusion, FusionScene)

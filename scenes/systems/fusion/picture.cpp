// The picture of the lesson on fusion: a row in memory and in registers, unfused beside fused, and the bytes of both;
// then the decoder block's operations, their seams and what each reads and writes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/systems/fusion/scene.hpp"

namespace tilestep::scenes {

using namespace picture;
using fusion::Lane, fusion::Move, fusion::Phase, fusion::Step, fusion::Tensor, fusion::Traffic;
using words::counted, words::significant;

namespace {

/// Tensors that have a row in the picture of memory.
constexpr Tensor kDrawn[] = {Tensor::x, Tensor::residual, Tensor::sum, Tensor::normed,
                             Tensor::codes};
constexpr int kDrawnRows = 5;
constexpr double kMostBytes = 26;   ///< of the chain: three launches of FP32
constexpr double kMostOfAnOp = 45;  ///< of the block: SwiGLU of FP32
/// The rows in memory, then what other operations of the block write: the index that things are about, and their tones.
constexpr int kOther = kDrawnRows;
constexpr std::uint8_t kTones[] = {8, 10, 1, 3, 5, 9};

int index_of(Tensor tensor) {
  return static_cast<int>(std::find(std::begin(kDrawn), std::end(kDrawn), tensor) - kDrawn);
}
/// A tensor of the block by its name.
int index_of(const std::string& tensor) {
  if (tensor == "residual stream") return index_of(Tensor::sum);
  if (tensor == "normed") return index_of(Tensor::normed);
  return tensor == "codes" ? index_of(Tensor::codes) : kOther;
}

/// Guesses are written here.
Box gap() {
  return box({"gap"}, {}, {}, {.rank = 2, .weight = 0, .least_height = 0.8f});
}

/// At most five characters.
std::string number_text(double value) {
  const double size = std::abs(value);
  return words::number(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/// What a code stands for.
float decoded(const Lane& lane, int number) {
  return lane.codes[static_cast<std::size_t>(number)] * lane.stats.scale;
}

/// What a row of numbers says.
const std::vector<float>* numbers_of(const fusion::Trace& trace, const Lane& lane, Tensor tensor) {
  switch (tensor) {
    case Tensor::x:
      return &trace.x;
    case Tensor::residual:
      return &trace.residual;
    case Tensor::sum:
      return &lane.held;
    case Tensor::normed:
      return &lane.normed;
    default:
      return &lane.codes;
  }
}

}  // namespace

Extent FusionScene::extent() const {
  const int shown = trace_.shown();
  std::vector<std::string> ops;
  for (const fusion::Op op : all_of<fusion::Op>()) ops.emplace_back(name_of(op));
  return {{{.name = "number", .kind = Axis::band, .count = shown, .least_slot = 12},
           {.name = "tensor",
            .kind = Axis::band,
            .count = kDrawnRows,
            .names = {"x", "residual", "h", "n", "codes"},
            .align = 0,
            .least_slot = 12},
           {.name = "way",
            .kind = Axis::band,
            .count = 2,
            .names = {"unfused", "fused"},
            .least_slot = 10},
           {.name = "bytes",
            .high = kMostBytes,
            .fixed = true,
            .title = text("bytes per number"),
            .ticks = true},
           {.name = "op",
            .kind = Axis::band,
            .count = fusion::kOps,
            .names = std::vector<std::string>(fusion::kOps),
            .align = 0,
            .least_slot = 17},
           {.name = "name", .kind = Axis::band, .count = 1, .names = {""}},
           {.name = "turn", .kind = Axis::band, .count = 1, .names = {""}},
           {.name = "op_bytes",
            .high = kMostOfAnOp,
            .fixed = true,
            .title = text("bytes per number of the width and token"),
            .ticks = true}}};
}

Picture FusionScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Text headline{marked(sentence(cursor), symbols(view))};
  if (in_chain(cursor)) {
    return {std::move(headline), extent.axes,
            column({"fusion"},
                   {gap(),
                    row({"ways"}, {lane_box(false, cursor), lane_box(true, cursor)},
                        {.even = true, .weight = 3}),
                    traffic(cursor)},
                   {.even = true})};
  }
  // The score is what the last kernel is about.
  std::vector<std::string> subject = {"operations", "seams", "bands"};
  if (cursor.tile >= trace_.length()) subject.emplace_back("score_table");
  // Where not all operations have room, those around the current kernel are shown.
  std::vector<Axis> axes = extent.axes;
  for (Axis& axis : axes) {
    if (axis.name == Name("op")) axis.focus = first_op(kernel(cursor));
  }
  return {std::move(headline), std::move(axes),
          column({"fusion"},
                 {gap(),
                  row({"block"}, {operations_box(cursor), seams_box(), bands(cursor)},
                      {.close = true, .weight = 3, .least_height = 4}),
                  score(cursor)},
                 {.even = true}),
          std::move(subject)};
}

// ---- the chain ------------------------------------------------------------------------------------------

/// The tensors in memory: outlines are not there, or not yet.
Cells FusionScene::memory(const Lane& lane, bool is_fused, Cursor cursor) const {
  Cells cells{
      items(is_fused ? Name("fused_memory") : Name("unfused_memory"), kDrawnRows * trace_.shown())};
  cells.x = "number";
  cells.y = "tensor";
  cells.columns = trace_.shown();
  cells.items.per_row = trace_.shown();
  std::vector<int> tensors;
  for (int r = 0; r < kDrawnRows; ++r) {
    const Tensor tensor = kDrawn[r];
    bool there = tensor == Tensor::x || tensor == Tensor::residual, now = false;
    for (const Move& move : lane.moves) {
      if (move.tensor != tensor || cursor.tile < 1) continue;
      there = there || (move.stored && moved(move, cursor));
      now = now || moves_now(move, cursor);
    }
    const std::vector<float>& numbers = *numbers_of(trace_, lane, tensor);
    for (int i = 0; i < trace_.shown(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      cells.items.names.push_back(there ? number_text(static_cast<double>(numbers[at])) : "");
      cells.items.glyph.each.push_back(there ? kSolid : kHollow);
      cells.items.tone.each.push_back(kTones[r]);
      const bool wrong = there && is_fused && tensor == Tensor::codes &&
                         decoded(trace_.fused, i) != decoded(trace_.unfused, i);
      cells.items.state.each.push_back(wrong   ? State::wrong
                                       : now   ? State::current
                                       : there ? State::plain
                                               : State::to_come);
      tensors.push_back(r);
    }
  }
  cells.items.about = {{"tensor", {0, tensors}}};
  return cells;
}

/// What the blocks hold of the row: x once it is read, then h, n and codes.
Cells FusionScene::registers(const Lane& lane, bool is_fused, Cursor cursor) const {
  Cells cells{items(is_fused ? Name("fused_held") : Name("unfused_held"), trace_.shown())};
  cells.x = "number";
  const int at_step = step(cursor);
  const bool reads = phase(cursor) == Phase::read;
  constexpr Tensor kRead[] = {Tensor::x, Tensor::sum, Tensor::normed};
  constexpr Tensor kMade[] = {Tensor::sum, Tensor::normed, Tensor::codes};
  const bool there = at_step >= 0;
  const Tensor tensor = !there ? Tensor::x : reads ? kRead[at_step] : kMade[at_step];
  const auto launch = [&](int of) { return lane.launch[static_cast<std::size_t>(of)]; };
  const bool stays = at_step > 0 && launch(at_step) == launch(at_step - 1);
  const bool changes = phase(cursor) == Phase::compute || (reads && !stays);
  const std::vector<float>& numbers = *numbers_of(trace_, lane, tensor);
  for (int i = 0; there && i < trace_.shown(); ++i) {
    cells.items.names.push_back(
        number_text(static_cast<double>(numbers[static_cast<std::size_t>(i)])));
  }
  cells.items.glyph.all = there ? kSolid : kHollow;
  cells.items.tone.all = there ? kTones[index_of(tensor)] : std::uint8_t{0};
  cells.items.state.all = !there ? State::to_come : changes ? State::current : State::plain;
  cells.items.about = {{"tensor", {there ? index_of(tensor) : -1, {}}}};
  return cells;
}

Box FusionScene::lane_box(bool is_fused, Cursor cursor) const {
  const Lane& lane = is_fused ? trace_.fused : trace_.unfused;
  const std::string launches = counted(lane.launches(), "launch", "launches");
  constexpr float kNames = 4.2f;
  Box memory_box = labelled(
      is_fused ? Key{"fused_memory_box"} : Key{"unfused_memory_box"},
      box(is_fused ? Key{"fused_rows"} : Key{"unfused_rows"}, {memory(lane, is_fused, cursor)}, {},
          {.least_height = 2.6f, .left = kNames}),
      text((is_fused ? "fused: " : "unfused: ") + launches, is_fused ? "fused" : "unfused"),
      {.weight = 5, .least_height = 3.6f, .place = Place::device_memory});
  const char* const held = trace_.in_shared ? "held by its blocks" : "held by its threads";
  Box held_box = labelled(
      is_fused ? Key{"fused_held_box"} : Key{"unfused_held_box"},
      box(is_fused ? Key{"fused_registers"} : Key{"unfused_registers"},
          {registers(lane, is_fused, cursor)}, {}, {.least_height = 0.7f, .left = kNames}),
      text(fmt::format("{}: first {} of {}", held, trace_.shown(), trace_.width), held, "held"),
      {.rank = 1,
       .weight = 1,
       .least_height = 1.7f,
       .place = trace_.in_shared ? Place::shared_memory : Place::registers});
  return column(is_fused ? Key{"fused_way"} : Key{"unfused_way"},
                {std::move(memory_box), std::move(held_box)}, {.weight = 1, .least_width = 12});
}

/// The bytes of both ways on one scale, tensor by tensor in the order in which they moved.
Box FusionScene::traffic(Cursor cursor) const {
  SpanList list("moved", "bytes", "way", "tensor");
  std::vector<Mark> marks;
  for (const int way : {0, 1}) {
    const Lane& lane = way == 0 ? trace_.unfused : trace_.fused;
    double at = 0;
    for (std::size_t i = 0; i < lane.moves.size(); ++i) {
      const Move& move = lane.moves[i];
      if (!is_counted(move.tensor) || cursor.tile < 1 || !moved(move, cursor)) continue;
      const double bytes = static_cast<double>(move.bytes) / trace_.width;
      list.add({way, at, at + bytes, moves_now(move, cursor) ? State::current : State::plain,
                kTones[index_of(move.tensor)], std::string(name_of(move.tensor)),
                index_of(move.tensor), static_cast<int>(i) + 32 * way, 1});
      at += bytes;
    }
    if (at > 0)
      marks.emplace_back(
          lane_end({"way_end", way}, "bytes", "way", at, text(significant(at, 3) + " B")));
  }
  marks.insert(marks.begin(), list.made());
  return labelled(
      {"traffic"},
      box({"traffic_rows"}, std::move(marks), {}, {.least_height = 2, .left = 4.6f, .right = 4}),
      text("bytes to and from memory, per number of the row", "bytes per number", "bytes"),
      {.weight = 1, .least_width = 12, .least_height = 3.4f});
}

// ---- the block --------------------------------------------------------------------------------------------

/// The operations; a kernel's further ones begin with a plus.
Box FusionScene::operations_box(Cursor cursor) const {
  Cells cells{items("operation", fusion::kOps)};
  cells.x = "name";
  cells.y = "op";
  cells.columns = 1;
  std::vector<int> kernels;
  const int now = kernel(cursor);
  for (int op = 0; op < fusion::kOps; ++op) {
    const int of = trace_.ops[static_cast<std::size_t>(op)].kernel;
    const bool goes_on = op > 0 && trace_.ops[static_cast<std::size_t>(op) - 1].kernel == of;
    cells.items.names.push_back((goes_on ? "+ " : "") +
                                std::string(name_of(static_cast<fusion::Op>(op))));
    cells.items.state.each.push_back(of == now  ? State::current
                                     : of < now ? State::done
                                                : State::to_come);
    kernels.push_back(of);
  }
  cells.items.about = {{"kernel", {0, kernels}}};
  Box made = box({"operations"}, {std::move(cells)}, {},
                 {.weight = 1, .least_width = 7, .least_height = 4.2f});
  return labelled({"operations_box"}, std::move(made), text("operation", "op"),
                  {.weight = 0, .least_width = 7});
}

/// Between an operation and the one below it.
Box FusionScene::seams_box() const {
  Cells cells{items("seam", fusion::kSeams)};
  cells.x = "turn";
  cells.y = "op";
  cells.columns = 1;
  fusion::Seams fused{};
  for (int i = 0; i < fusion::kSeams; ++i) {
    fused[static_cast<std::size_t>(i)] = trace_.seams[static_cast<std::size_t>(i)].fused;
  }
  for (int i = 0; i < fusion::kSeams; ++i) {
    const auto at = static_cast<std::size_t>(i);
    fusion::Seams with = fused;
    with[at] = true;
    bool may = true;
    for (const fusion::Group& group : fusion::groups_of(with))
      may = may && fusion::why_not(group).empty();
    const bool refused = !trace_.seams[at].refused.empty();
    cells.items.names.push_back(fused[at] ? "fused" : may ? "fuse" : "–");
    cells.items.glyph.each.push_back(fused[at] ? kSolid : kHollow);
    cells.items.flags.each.push_back(static_cast<std::uint8_t>(fused[at] ? kPicked : kNone));
    cells.items.state.each.push_back(refused            ? State::wrong
                                     : may || fused[at] ? State::plain
                                                        : State::to_come);
  }
  cells.items.act = {Act::set, "seam"};
  cells.items.about = {{"seam", {0, numbers(fusion::kSeams)}}};
  return labelled(
      {"seams_box"},
      box({"seams"}, {std::move(cells)}, {}, {.weight = 1, .least_width = 4, .least_height = 4.2f}),
      text("click", "click"), {.weight = 0, .least_width = 4.5f});
}

/// What each operation reads and writes, as wide as its bytes; outlines stay on the chip.
Box FusionScene::bands(Cursor cursor) const {
  SpanList list("band", "op_bytes", "op", "tensor");
  std::vector<int> kernels;
  const int now = kernel(cursor);
  for (int op = 0; op < fusion::kOps; ++op) {
    const fusion::OpTrace& one = trace_.ops[static_cast<std::size_t>(op)];
    if (one.kernel > now) continue;
    double at = 0;
    for (std::size_t i = 0; i < one.traffic.size(); ++i) {
      const Traffic& each = one.traffic[i];
      const Phase when = each.saved ? Phase::compute : each.stored ? Phase::write : Phase::read;
      const double begin = at;
      at += each.bytes;
      if (one.kernel == now && when > phase(cursor)) continue;
      const bool current = one.kernel == now && when == phase(cursor);
      list.add({.lane = op,
                .begin = begin,
                .end = at,
                .state = each.saved ? State::to_come
                         : current  ? State::current
                                    : State::plain,
                .tone = kTones[index_of(each.tensor)],
                .name = each.saved ? "" : each.tensor,
                .about = index_of(each.tensor),
                .id = op * 4 + static_cast<int>(i),
                .lanes = 1,
                .flags = each.saved ? kWas : kNone});
      kernels.push_back(one.kernel);
    }
  }
  Spans spans = list.made();
  spans.items.about.push_back({"kernel", {0, kernels}});
  return labelled(
      {"bands_box"},
      box({"bands"}, {std::move(spans)}, {}, {.weight = 1, .least_height = 4.2f, .right = 1}),
      text("read, then written; outlines stay on the chip", "outlines stay on the chip", "traffic"),
      {.weight = 1, .least_width = 12, .place = Place::device_memory});
}

/// What the kernels so far cost, beside the block without a fusion; at the end beside the best.
Box FusionScene::score(Cursor cursor) const {
  Ledger table{items("score", 0), {}, {}};
  table.columns = {text("launches"), text("bytes"), text("µs, predicted", "µs")};
  const auto add = [&](const char* name, const fusion::Score& score) {
    table.rows.push_back(text(name));
    table.items.names.push_back(std::to_string(score.launches));
    table.items.names.push_back(significant(score.bytes, 4));
    table.items.names.push_back(words::number(score.microseconds(trace_.width, trace_.batch), 1));
  };
  const bool written = phase(cursor) == Phase::write;
  fusion::Score so_far;
  for (int at = 0; at < kernel(cursor) + (written ? 1 : 0); ++at) {
    so_far.bytes += sums_of(at).read + sums_of(at).written;
    ++so_far.launches;
  }
  const bool ends = cursor.tile >= trace_.length() && written;
  add("unfused", trace_.none);
  add(ends ? "yours" : "yours so far", so_far);
  if (ends) {
    add("best", trace_.best);
  } else {
    table.rows.push_back(text("best"));
    table.items.names.insert(table.items.names.end(), 3, "–");
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = 3;
  return labelled({"score_box"},
                  box({"score_table"}, {std::move(table)}, {}, {.least_height = 3.6f}),
                  text(fmt::format("score: {} of {} numbers, beside weights and cache (derived: {} "
                                   "TB/s, {} µs a launch)",
                                   counted(trace_.batch, "token"), trace_.width,
                                   significant(fusion::kBytesPerMicrosecond / 1e6, 2),
                                   significant(fusion::kMicrosecondsPerLaunch, 2)),
                       "score: " + counted(trace_.batch, "token")),
                  {.rank = 1, .weight = 1, .least_height = 4.8f});
}

// ---- explanations -------------------------------------------------------------------------------------------

std::string FusionScene::explain(const View& view, const Key& key) const {
  if (key.is({"seam"}) && key.i >= 0 && key.i < fusion::kSeams) {
    const auto at = static_cast<std::size_t>(key.i);
    const auto here = static_cast<fusion::Op>(key.i), next = static_cast<fusion::Op>(key.i + 1);
    std::string said = fmt::format("seam {}: {} and {}", key.i + 1, name_of(here), name_of(next));
    if (trace_.seams[at].fused) return said + "\nfused: click to part them";
    fusion::Seams with{};
    for (int i = 0; i < fusion::kSeams; ++i) {
      with[static_cast<std::size_t>(i)] = trace_.seams[static_cast<std::size_t>(i)].fused;
    }
    const fusion::Score before = fusion::score_of(with, trace_.dtype);
    with[at] = true;
    for (const fusion::Group& group : fusion::groups_of(with)) {
      if (!fusion::why_not(group).empty())
        return said + "\ncannot be fused: " + fusion::why_not(group);
    }
    const fusion::Score now = fusion::score_of(with, trace_.dtype);
    return said + fmt::format("\nfused: a launch and {} B per number less, {:.1f} µs (derived)",
                              significant(before.bytes - now.bytes, 3),
                              before.microseconds(trace_.width, trace_.batch) -
                                  now.microseconds(trace_.width, trace_.batch));
  }
  if (key.is({"operation"}) && key.i >= 0 && key.i < fusion::kOps) {
    const int of = trace_.ops[static_cast<std::size_t>(key.i)].kernel;
    return fmt::format("{}\nkernel {}: {}", name_of(static_cast<fusion::Op>(key.i)), of + 1,
                       operations(of));
  }
  if (key.is({"band"}) && key.i >= 0 && key.i / 4 < fusion::kOps && key.i / 4 >= 0) {
    const fusion::OpTrace& op = trace_.ops[static_cast<std::size_t>(key.i / 4)];
    const auto i = static_cast<std::size_t>(key.i % 4);
    if (i >= op.traffic.size() || op.kernel > kernel(view.cursor)) return {};
    const Traffic& one = op.traffic[i];
    return fmt::format("{}: {} B per number {}", one.tensor, significant(one.bytes, 3),
                       one.saved    ? "stay on the chip"
                       : one.stored ? "written"
                                    : "read");
  }
  if (key.is({"moved"})) {
    const Lane& lane = key.i < 32 ? trace_.unfused : trace_.fused;
    const auto i = static_cast<std::size_t>(key.i % 32);
    if (key.i < 0 || i >= lane.moves.size() || !moved(lane.moves[i], view.cursor)) return {};
    const Move& move = lane.moves[i];
    return fmt::format("{}: {} {}, launch {}", name_of(move.tensor), counted(move.bytes, "byte"),
                       move.stored ? "written" : "read",
                       lane.launch[static_cast<std::size_t>(move.step)] + 1);
  }
  return {};
}

}  // namespace tilestep::scenes

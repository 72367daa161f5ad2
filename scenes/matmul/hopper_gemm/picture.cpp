// The picture of the Hopper lesson: its axes and boxes, and the ring of stages as it is now.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using hopper_gemm::What;
using words::counted;

namespace {

constexpr float kLeft = 3.2f;  ///< margin for the row names, in line heights

std::uint8_t flag(bool picked) {
  return picked ? kPicked : kNone;
}

std::string name_of_half(int half) {
  return half < 0 ? std::string() : std::string(1, static_cast<char>('a' + half));
}

const char* name_of_state(StageNow::State state, bool little_room = false) {
  switch (state) {
    case StageNow::empty:
      return little_room ? "–" : "empty";
    case StageNow::filling:
      return little_room ? "fill" : "filling";
    case StageNow::full:
      return "full";
    case StageNow::in_use:
      return little_room ? "used" : "in use";
    case StageNow::released:
      break;
  }
  return "free";
}

}  // namespace

// ---- axes and boxes ------------------------------------------------------------------------------

Extent HopperGemmScene::extent() const {
  std::vector<std::string> stages = {"stage 0"};
  for (int s = 1; s < trace_.stages; ++s) stages.push_back(std::to_string(s));
  const auto band = [](Name name, int count, float align, float least = 0) {
    return Axis{
        .name = name, .kind = Axis::band, .count = count, .align = align, .least_slot = least};
  };
  Axis banks = band("bank", 8, 0.5f);
  banks.ticks = true;
  banks.title = text("bank");
  for (int g = 0; g < 8; ++g) banks.names.push_back(std::to_string(4 * g));
  Axis plain_banks = banks;
  plain_banks.name = "plain_bank";
  return {
      {beats_.axis("order"), timed_.empty() ? traced_lanes() : timed_lanes(),
       Axis{.name = "cycles",
            .high = kCycles,
            .fixed = true,
            .title = text("cycles"),
            .ticks = true},
       Axis{.name = "rate", .high = kRate, .fixed = true, .title = text("TFLOP/s"), .ticks = true},
       Axis{.name = "stage",
            .kind = Axis::band,
            .count = trace_.stages,
            .ticks = true,
            .names = std::move(stages),
            .least_slot = 3},
       Axis{.name = "bytes", .high = rounded(0, std::max(trace_.stage_bytes, 1)).second},
       band("down", std::max(trace_.tiles_down, 1), 0),
       band("across", std::max(trace_.tiles_across, 1), 0), band("deep", k_tiles(), 1),
       band("added", k_tiles(), 0, 4), banks, plain_banks, band("row", 8, 0.5f),
       band("part_across", std::max(trace_.columns / 8, 1), 0.5f),
       band("part_down", std::max(trace_.rows / 8, 1), 0.5f),
       Axis{.name = "line",
            .kind = Axis::band,
            .count = 8,
            .group = box_bytes() / 16,
            .least_slot = 0}}};
}

Picture HopperGemmScene::picture(const Extent& extent, const View& view) const {
  const HopperMoment now = moment(view.cursor);
  const int k = followed(view, now);
  std::vector<Axis> axes = extent.axes;
  if (now.events > 0) axes.front() = beats_.axis("order", beats_.at(now.events));
  const bool wrong = judged(now) && !trace_.wrong.empty();
  Box above = timed_.empty() ? lanes(now, k) : in_cycles(now),
      below = wrong ? fragments() : swizzle(view);
  Box left = column({"left"}, {std::move(above), std::move(below)}, {.weight = 1.5f});
  // Device memory above shared memory above registers: data moves down.
  Box right = column({"right"}, {matrices(now, k), ring(now, view), sums(now)},
                     {.flow = Layout::either, .rank = 3});
  std::vector<std::string> subject = {"stage_bytes", "sums"};
  if (at_end(now) && !timed_.empty()) subject = {"lanes", "rates"};  // how long it took
  if (wrong) subject = {"parts", "named"};
  return {{marked(sentence(now), symbols(view)), {{brief(now)}}},
          std::move(axes),
          row({"all"}, {std::move(left), std::move(right)}),
          std::move(subject)};
}

// ---- the ring ------------------------------------------------------------------------------------

/// Items for the stages, `parts` for each, in the tones of the k-tiles that they hold.
Items HopperGemmScene::of_stages(const HopperMoment& now, Name name, int parts) const {
  Items made = items(name, trace_.stages * parts);
  if (parts > 1) made.per_row = parts;
  std::vector<int> stages, k_tiles;
  for (int s = 0; s < trace_.stages; ++s) {
    const StageNow& stage = now.stages[s];
    const bool holds = stage.k_tile >= 0;
    for (int part = 0; part < parts; ++part) {
      made.state.each.push_back(!holds                              ? State::to_come
                                : stage.state == StageNow::released ? State::to_come
                                : stage.state == StageNow::filling  ? State::done
                                                                    : State::plain);
      made.tone.each.push_back(now.tone_of(stage.k_tile));
      stages.push_back(s);
      k_tiles.push_back(stage.k_tile);
    }
  }
  made.about = {{"k-tile", {-1, k_tiles}}, {"stage", {-1, stages}}};
  return made;
}

/// Each stage's announced bytes, dim, and its landed bytes.
Box HopperGemmScene::stage_bytes(const HopperMoment& now) const {
  Bars announced{of_stages(now, "announced"), "stage", "bytes"},
      landed{of_stages(now, "landed"), "stage", "bytes"};
  landed.items.format = {Format::integer};
  announced.items.state = {State::to_come};
  for (int s = 0; s < trace_.stages; ++s) {
    const StageNow& stage = now.stages[s];
    const KTileLife& life = now.life(stage.k_tile);
    const bool holds = stage.k_tile >= 0;
    const int all = !holds ? 0 : has_tma() ? life.announced : trace_.stage_bytes;
    const bool there = holds && stage.state != StageNow::filling;
    const int so_far = there ? all : life.arrived;
    announced.items.value.each.push_back(static_cast<float>(all));
    landed.items.value.each.push_back(holds ? static_cast<float>(so_far) : NAN);
    const bool here = now.last != nullptr && now.last->lane <= 0 && now.last->stage == s &&
                      (now.last->what == What::lands || now.last->what == What::expects);
    if (here) landed.items.state.each[s] = State::current;
  }
  return box({"stage_bytes"}, {announced, landed}, text("bytes"),
             {.rank = 3, .least_height = 1.8f, .most_height = 6, .left = kLeft});
}

/// Whether the last event was one of these, at this stage.
bool HopperGemmScene::at_stage(const HopperMoment& now, int stage,
                               std::initializer_list<What> whats) const {
  return now.last != nullptr && now.last->what < What::stores && now.last->stage == stage &&
         std::count(whats.begin(), whats.end(), now.last->what) > 0;
}

/// A stage's contents: the boxes of A and of B, which come from the matrices. In a cluster B has two halves, a and b;
/// this block requests one of them.
Items HopperGemmScene::stage_parts(const HopperMoment& now) const {
  const int halves = std::max(trace_.cluster, 1), per_stage = 1 + halves;
  Items parts = of_stages(now, "part", per_stage);
  parts.act = {Act::pick, "k-tile"};
  for (int i = 0; i < parts.count; ++i) {
    const int s = i / per_stage, half = i % per_stage - 1;
    const StageNow& stage = now.stages[s];
    const int k = stage.k_tile, per_tile = std::max(k_tiles(), 1);
    const hopper_gemm::BlockTile& at = tile(k / per_tile);
    const bool is_a = half < 0, own = is_a || half == at.row % halves;
    const bool copied = own && at_stage(now, s, {What::copies});
    const std::string letter = is_a ? "A" : "B";
    parts.names.push_back(k < 0               ? letter
                          : trace_.stages > 5 ? std::to_string(k)
                          : halves > 1        ? fmt::format("{}{}{}", letter, k, name_of_half(half))
                                              : fmt::format("{} {}", letter, k));
    const bool asked = !has_tma() || now.life(k).when(What::copies) != kNever;
    if (!asked) parts.state.each[i] = State::to_come;  // announced, and nothing more
    if (copied) parts.state.each[i] = State::current;
    if (stage.overwritten || stage.read_early) parts.state.each[i] = State::wrong;
    const Key from = is_a ? Key{"A", at.row, k % per_tile} : Key{"B", k % per_tile, at.column};
    parts.ways.push_back(copied ? Way{from, {}, is_a ? 0 : 1, true} : Way{});
  }
  return parts;
}

/// The half of B that TMA also writes to the other block's stages, from its request on. The rest of their contents is
/// not recorded.
Items HopperGemmScene::multicast(const HopperMoment& now) const {
  const int per_stage = 1 + trace_.cluster;
  Items made = of_stages(now, "multicast", per_stage);
  for (int i = 0; i < made.count; ++i) {
    const int s = i / per_stage, k = now.stages[s].k_tile, half = i % per_stage - 1;
    const bool there = now.life(k).when(What::copies) != kNever &&
                       half == tile(k / std::max(k_tiles(), 1)).row % trace_.cluster;
    made.names.push_back(there ? fmt::format("B{}{}", k, name_of_half(half)) : "");
    made.state.each[i] = !there                             ? State::to_come
                         : at_stage(now, s, {What::copies}) ? State::current
                                                            : State::done;
    if (!there) made.tone.each[i] = 0;
  }
  return made;
}

/// The copy engine's arrows, from the request until the bytes have landed: from the boxes in device memory to the
/// stage, and in a cluster from B to the other block's stage.
Links HopperGemmScene::on_their_way(const HopperMoment& now) const {
  Links ways{items("tma", 0)};
  const KTileLife& life = now.life(now.k_tile);
  if (life.when(What::copies) == kNever || life.when(What::flips) != kNever) return ways;
  const int per_tile = std::max(k_tiles(), 1), deep = now.k_tile % per_tile;
  const hopper_gemm::BlockTile& at = tile(now.k_tile / per_tile);
  const int stage = life.stage, half = at.row % std::max(trace_.cluster, 1);
  ways.items.tone = {now.tone_of(now.k_tile)};
  ways.items.glyph = {1};
  ways.items.about = {{"k-tile", {now.k_tile}}};
  ways.from = {{{"A", at.row, deep}}, {{"B", deep, at.column}}};
  ways.to = {{{"part", stage, 0}}, {{"part", stage, 1 + half}}};
  if (trace_.cluster > 1) {
    ways.from.push_back({{"B", deep, at.column}});
    ways.to.push_back({{"multicast", stage, 1 + half}});
  }
  ways.items.count = static_cast<int>(ways.from.size());
  return ways;
}

Items HopperGemmScene::stage_states(const HopperMoment& now, const View& view) const {
  Items states = of_stages(now, "stage_state");
  states.tone = {};
  states.act = {Act::pick, "stage"};
  for (int s = 0; s < trace_.stages; ++s) {
    const StageNow& stage = now.stages[s];
    states.names.emplace_back(name_of_state(stage.state, trace_.stages > 5));
    State& state = states.state.each[s];
    if (at_stage(now, s, {What::issues, What::commits, What::waited})) state = State::current;
    if (stage.overwritten || stage.read_early) state = State::wrong;
    states.flags.each.push_back(flag(view.pick("stage", -1) == s));
  }
  return states;
}

/// The completed phases of the full barriers, or of the empty ones.
Items HopperGemmScene::phases(const HopperMoment& now, bool of_full) const {
  Items made = of_stages(now, of_full ? Name("full_barrier") : Name("empty_barrier"));
  made.tone = {};
  for (int s = 0; s < trace_.stages; ++s) {
    const int phase = of_full ? now.stages[s].full_phases : now.stages[s].empty_phases;
    const bool here = of_full ? at_stage(now, s, {What::expects, What::flips, What::waits_full})
                              : at_stage(now, s, {What::releases, What::waits_empty});
    made.names.push_back(trace_.stages <= 4 ? fmt::format("phase {}", phase)
                                            : std::to_string(phase));
    made.state.each[s] = here ? State::current : phase > 0 ? State::plain : State::to_come;
  }
  return made;
}

Box HopperGemmScene::ring(const HopperMoment& now, const View& view) const {
  const auto row = [](Key key, const char* label, Items of, int rank, int parts = 1) {
    Cells cells{std::move(of)};
    cells.parts = parts;
    cells.x = "stage";
    return box(
        key, {cells}, text(label),
        {.rank = rank, .weight = 0.6f, .least_width = 12, .least_height = 1.05f, .left = kLeft});
  };
  Box holds = row({"holds"}, "holds", stage_parts(now), 0, 1 + std::max(trace_.cluster, 1));
  if (has_tma()) holds.marks.emplace_back(on_their_way(now));
  Box made = column(
      {"ring"},
      {stage_bytes(now), std::move(holds), row({"states"}, "state", stage_states(now, view), 5)},
      {.close = true});
  if (trace_.cluster > 1) {
    made.boxes.insert(made.boxes.begin() + 2,
                      row({"others"}, "other's", multicast(now), 1, 1 + trace_.cluster));
  }
  if (has_tma()) {
    made.boxes.push_back(row({"full_barriers"}, "full", phases(now, true), 4));
  }
  if (has_producer()) {
    made.boxes.push_back(row({"empty_barriers"}, "empty", phases(now, false), 4));
  }
  const std::string size =
      fmt::format("{} of {} B", counted(trace_.stages, "stage"), trace_.stage_bytes);
  made.label = text(size, "ring");
  made.place = Place::shared_memory;
  return made;
}

// ---- what hovering shows -------------------------------------------------------------------------

std::string HopperGemmScene::explain_k_tile(const HopperMoment& now, int number) const {
  const auto found = now.lives.find(number);
  if (found == now.lives.end()) return fmt::format("k-tile {}", number);
  const KTileLife& life = found->second;
  std::string said = fmt::format("k-tile {}, in stage {}", number, life.stage);
  const auto at = [&](const std::string& what, int event) {
    if (event != kNever) said += fmt::format("\n{} at event {}", what, event);
  };
  at(has_tma() ? "announced" : "copies begin", life.when(What::expects));
  at(has_tma() ? "copies issued" : "copied", life.when(What::copies));
  at("first bytes landed", life.when(What::lands));
  at(emulated() ? "all landed" : "seen complete", life.when(What::flips));
  for (int c = 0; c < trace_.consumers; ++c) {
    at(fmt::format("{} issues products", consumer(c)), life.when(What::issues, c));
    at(fmt::format("{} has them", consumer(c)), life.when(What::waited, c));
    at(fmt::format("{} releases it", consumer(c)), life.when(What::releases, c));
  }
  return said;
}

std::string HopperGemmScene::explain_stage(const HopperMoment& now, int number) const {
  if (number < 0 || number >= std::ssize(now.stages)) return {};
  const StageNow& stage = now.stages[number];
  std::string said = fmt::format("stage {}: {}", number, name_of_state(stage.state));
  if (stage.k_tile >= 0) said += fmt::format(", k-tile {}", stage.k_tile);
  said += fmt::format("\nA {}\nB {}", layout_of(true).text(), layout_of(false).text());
  if (has_tma()) {
    said += fmt::format("\nfull barrier: {} ended, the current one has parity {}",
                        counted(stage.full_phases, "phase"), stage.full_phases % 2);
  }
  if (has_producer()) {
    said += fmt::format("\nempty barrier: {} ended; {} of {} consumers have released k-tile {}",
                        counted(stage.empty_phases, "phase"), stage.released_by, trace_.readers(),
                        std::max(stage.k_tile, 0));
    if (trace_.cluster > 1) said += "\nthe neighbouring block's are not recorded";
  }
  if (stage.read_early) said += "\nmultiplied before all its bytes had landed";
  if (stage.overwritten) said += "\nfilled again before all had released it";
  return said;
}

std::string HopperGemmScene::explain(const View& view, const Key& key) const {
  const HopperMoment now = moment(view.cursor);
  if (key.is({"copy", "held", "wait_empty"})) return explain_k_tile(now, key.i);
  if (key.is({"wait_full", "product"})) return explain_k_tile(now, key.i / 2);
  if (key.is({"storing"})) {
    return fmt::format("{} stores tile {} of C", consumer(key.i % 2), key.i / 2);
  }
  if (key.is({"multicast"})) {
    return "the same stage of the cluster's other block: this block's copies write to it "
           "too";
  }
  if (key.is({"part", "stage_state", "full_barrier", "empty_barrier", "announced", "landed"})) {
    return explain_stage(now, key.i);
  }
  for (const TimedRing& ring : timed_) {
    if (key.i / kTimed != ring.stages || !key.name.text().starts_with("timed_")) continue;
    return fmt::format("k-tile {} with {}: {:.0f} cycles measured, {:.0f} of them products\n{}",
                       key.i % kTimed, counted(ring.stages, "stage"), ring.cycles, products_,
                       bench_->table("stages_measured")->title);
  }
  return explain_tiles(now, key);
}

}  // namespace tilestep::scenes

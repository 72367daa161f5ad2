// The picture of the Hopper lesson: over time who copies, what is in the stages and who multiplies; below it
// the ring of stages as it is now.
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

constexpr float kLeft = 5.4f;    ///< margin for the lanes' names, in heights of a line
constexpr float kLane = 0.98f;   ///< least height of a lane, in heights of a line
constexpr int kMostOnPage = 12;  ///< k-tiles that the lanes show side by side

std::uint8_t flag(bool picked) {
  return picked ? kPicked : kNone;
}

/// Spans of one kind: a bar from clock to clock, each about a k-tile.
class Bars_ {
 public:
  Bars_(Name name, double from, double now) : from_(from) {
    spans_.items = items(name, 0);
    spans_.x = "time";
    spans_.lanes = "lane";
    spans_.now = now;
    spans_.items.act = {Act::pick, "k-tile"};
  }
  /// Nothing if it has not begun, or was over before what is shown.
  void add(int key, int lane, std::int64_t begin, std::int64_t end, State state, int k_tile,
           bool picked, std::string name = {}) {
    if (end != kNever && end < begin) return;  // of a broken kernel: over before it began
    const double to =
        end == kNever ? spans_.now : std::min<double>(static_cast<double>(end), spans_.now);
    if (begin == kNever || static_cast<double>(begin) > spans_.now || to < from_) return;
    ++spans_.items.count;
    spans_.items.ids.push_back(key);
    spans_.lane.push_back(lane);
    spans_.begin.push_back(static_cast<double>(begin));
    spans_.end.push_back(std::max(to, static_cast<double>(begin)));
    const bool hatched = state == State::wasted || k_tile < 0;
    spans_.items.state.each.push_back(state);
    spans_.items.tone.each.push_back(hatched ? std::uint8_t{0} : k_tile_tone(k_tile));
    spans_.items.flags.each.push_back(flag(picked));
    // Who begins before the one on its lane has ended has no room for its number.
    double& taken = taken_.try_emplace(lane, from_).first->second;
    spans_.items.names.push_back(spans_.begin.back() < taken ? std::string() : std::move(name));
    taken = std::max(taken, spans_.end.back());
    about_.push_back(k_tile);
  }
  Spans done() {
    spans_.items.about = {{"k-tile", {-1, about_}}};
    return std::move(spans_);
  }

 private:
  Spans spans_;
  double from_;
  std::map<int, double> taken_;  ///< until when, by lane
  std::vector<int> about_;
};

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

// ---- where things stand --------------------------------------------------------------------------

Extent HopperGemmScene::extent() const {
  std::vector<std::string> lanes = {has_producer() ? "producer" : "copies"};
  for (int s = 0; s < trace_.stages; ++s) lanes.push_back(fmt::format("stage {}", s));
  for (int c = 0; c < trace_.consumers; ++c) {
    lanes.push_back(consumer(c));
    if (has_wgmma()) lanes.push_back(fmt::format("wgmma {}", c));
  }
  std::int64_t last = 1;
  for (const hopper_gemm::Event& event : trace_.events) last = std::max(last, event.clock);
  std::vector<std::string> stages;
  for (int s = 0; s < trace_.stages; ++s) stages.push_back(fmt::format("stage {}", s));
  const auto band = [](Name name, int count, float align, float least = 0) {
    return Axis{
        .name = name, .kind = Axis::band, .count = count, .align = align, .least_slot = least};
  };
  std::vector<std::string> banks;
  for (int g = 0; g < 8; ++g) banks.push_back(std::to_string(4 * g));
  const auto lane_count = static_cast<int>(lanes.size());
  return {{Axis{.name = "time",
                .high = rounded(0, static_cast<double>(last)).second,
                .title = !clocked_    ? text("events k-tile by k-tile, no clock", "events")
                         : emulated() ? text("words: order, not time", "words")
                                      : text("cycles"),
                .ticks = true},
           Axis{.name = "lane",
                .kind = Axis::band,
                .count = lane_count,
                .names = std::move(lanes),
                .least_slot = 3},
           Axis{.name = "stage",
                .kind = Axis::band,
                .count = trace_.stages,
                .ticks = true,
                .names = std::move(stages),
                .least_slot = 3},
           Axis{.name = "bytes", .high = rounded(0, std::max(trace_.stage_bytes, 1)).second},
           band("down", std::max(trace_.tiles_down, 1), 0),
           band("across", std::max(trace_.tiles_across, 1), 0), band("deep", k_tiles(), 1),
           band("added", k_tiles(), 0, 4),
           Axis{.name = "bank",
                .kind = Axis::band,
                .count = 8,
                .title = text("bank"),
                .ticks = true,
                .names = std::move(banks),
                .least_slot = 0},
           Axis{.name = "line",
                .kind = Axis::band,
                .count = 8,
                .group = box_bytes() / 16,
                .least_slot = 0}}};
}

/// A page of the time: where there are more k-tiles than find room side by side.
Axis HopperGemmScene::time_axis(const HopperMoment& now) const {
  Axis axis = extent().axes.front();
  const int pages = (all_k_tiles() + kMostOnPage - 1) / kMostOnPage;
  if (pages < 2) return axis;
  const double length = std::ceil(axis.high / pages);
  const double page = std::floor(static_cast<double>(now.now) / length);
  axis.low = page * length;
  axis.high = axis.low + length;
  return axis;
}

Picture HopperGemmScene::picture(const Extent& extent, const View& view) const {
  const HopperMoment now = moment(view.cursor);
  const int k = followed(view, now);
  std::vector<Axis> axes = extent.axes;
  const Axis time = time_axis(now);
  axes.front().low = time.low;
  axes.front().high = time.high;
  Box left = column({"left"}, {lanes(now, k), ring(now, view)}, {.weight = 1.5f});
  Box right = column({"right"},
                     {matrices(now, k), sums(now),
                      judged(now) && !trace_.wrong.empty() ? fragments() : swizzle(view)},
                     {.rank = 1});
  return {{marked(sentence(now), symbols(view)), {{brief(now)}}},
          std::move(axes),
          row({"all"}, {std::move(left), std::move(right)})};
}

// ---- over time -----------------------------------------------------------------------------------

/// What the last event was about is current.
State HopperGemmScene::lit(const HopperMoment& now, int k_tile, std::initializer_list<What> whats,
                           int lane, State otherwise) const {
  if (now.last == nullptr || now.last->number != k_tile) return otherwise;
  const bool here = lane <= 0 ? now.last->lane <= 0 : now.last->lane == lane;
  return here && std::count(whats.begin(), whats.end(), now.last->what) > 0 ? State::current
                                                                            : otherwise;
}

/// Who copies, and what is in each stage: dim while it is on its way, full once it is there.
std::vector<Mark> HopperGemmScene::copies_over_time(const HopperMoment& now, int followed) const {
  const double at = static_cast<double>(now.now), from = time_axis(now).low;
  Bars_ waits("wait_empty", from, at), issue("issue", from, at), copy("copy", from, at),
      landing("landing", from, at), held("held", from, at);
  for (const auto& [k, life] : now.lives) {
    const bool picked = k == followed;
    const std::string name = std::to_string(k);
    const int lane = 1 + life.stage;
    waits.add(k, 0, life.waits_empty, life.expects, State::wasted, k, false);
    issue.add(k, 0, life.expects, life.copies, lit(now, k, {What::expects}, 0, State::plain), k,
              picked, name);
    std::int64_t there = has_tma() ? life.flips : life.copies;
    std::int64_t gone = all_released(life) ? 0 : kNever;
    for (int c = 0; c < trace_.consumers; ++c) {
      if (gone != kNever) gone = std::max(gone, life.releases[c]);
      // Who watches may see it late: it was there when it was used.
      if (there == kNever && !broken()) there = life.issues[c];
    }
    // A barrier of a broken kernel may flip for bytes that were not announced.
    if (there != kNever) there = std::max(there, life.copies);
    if (has_tma()) {
      // Bytes that come when the phase is over already count for the next one.
      const bool some = life.copies != kNever && life.lands != kNever;
      const std::int64_t lands = some ? std::max(life.lands, life.copies) : kNever;
      copy.add(k, lane, life.copies, lands != kNever ? lands : there,
               lit(now, k, {What::copies}, 0, State::to_come), k, picked, name);
      landing.add(k, lane, lands, there, lit(now, k, {What::lands}, 0, State::done), k, picked,
                  name);
    }
    const State state = has_tma() ? lit(now, k, {What::flips}, 0, State::plain)
                                  : lit(now, k, {What::copies}, 0, State::plain);
    held.add(k, lane, there, gone, state, k, picked, name);
  }
  return {waits.done(), issue.done(), copy.done(), landing.done(), held.done()};
}

/// A thread of each warpgroup that multiplies, and below it the products that it has under way.
std::vector<Mark> HopperGemmScene::products_over_time(const HopperMoment& now, int followed) const {
  const double at = static_cast<double>(now.now), from = time_axis(now).low;
  const int first = 1 + trace_.stages, each = has_wgmma() ? 2 : 1;
  Bars_ waits("wait_full", from, at), issuing("issuing", from, at), product("product", from, at),
      storing("storing", from, at);
  for (const auto& [k, life] : now.lives) {
    const auto before = now.lives.find(k - 1);
    for (int c = 0; c < trace_.consumers; ++c) {
      const int key = 2 * k + c, row = first + each * c;
      const bool picked = k == followed;
      const std::string name = std::to_string(k);
      waits.add(key, row, life.waits_full[c], life.issues[c], State::wasted, k, false);
      issuing.add(key, row, life.issues[c], has_wgmma() ? life.commits[c] : life.waited[c],
                  lit(now, k, {What::issues, What::commits}, c + 1, State::plain), k, picked, name);
      if (!has_wgmma() || life.issues[c] == kNever) continue;
      // The tensor cores take one after the other: what is queued has no bar yet.
      std::int64_t begin = life.issues[c];
      if (before != now.lives.end() && before->second.issues[c] != kNever) {
        if (before->second.waited[c] == kNever) continue;
        begin = std::max(begin, before->second.waited[c]);
      }
      product.add(key, row + 1, begin, life.waited[c],
                  lit(now, k, {What::waited}, c + 1, State::plain), k, picked, name);
    }
  }
  for (const auto& [tile, clocks] : now.stores) {
    const auto stored = now.stored.find(tile);
    for (int c = 0; c < trace_.consumers; ++c) {
      const std::int64_t end = stored == now.stored.end() ? kNever : stored->second[c];
      storing.add(2 * tile + c, first + each * c, clocks[c], end, State::plain, -1, false, "C");
    }
  }
  return {waits.done(), issuing.done(), product.done(), storing.done()};
}

/// Bars that grow up to the cursor: waiting is hatched, the rest has its k-tile's tone.
Box HopperGemmScene::lanes(const HopperMoment& now, int followed) const {
  std::vector<Mark> marks = copies_over_time(now, followed);
  for (Mark& mark : products_over_time(now, followed)) marks.push_back(std::move(mark));
  if (now.last != nullptr) {
    marks.emplace_back(Rule{{"now"}, "time", static_cast<double>(now.now), State::current});
  }
  // Each lane has room for its name and the numbers in its bars, where there are not too many.
  const int lanes = 1 + trace_.stages + trace_.consumers * (has_wgmma() ? 2 : 1);
  const float least = std::clamp(kLane * static_cast<float>(lanes), 5.0f, 6.2f);
  return box({"lanes"}, std::move(marks), {},
             {.weight = 1.6f, .least_width = 11, .least_height = least, .left = kLeft});
}

// ---- the ring ------------------------------------------------------------------------------------

/// Items of the stages, `parts` of each, in the tones of the k-tiles that they hold.
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
      made.tone.each.push_back(holds ? k_tile_tone(stage.k_tile) : std::uint8_t{0});
      stages.push_back(s);
      k_tiles.push_back(stage.k_tile);
    }
  }
  made.about = {{"k-tile", {-1, k_tiles}}, {"stage", {-1, stages}}};
  return made;
}

/// What is announced of each stage, dim, and what has landed of it.
Box HopperGemmScene::stage_bytes(const HopperMoment& now) const {
  Bars announced{of_stages(now, "announced"), "stage", "bytes"},
      landed{of_stages(now, "landed"), "stage", "bytes"};
  landed.items.format = {Format::integer};
  announced.items.state = {State::to_come};
  for (int s = 0; s < trace_.stages; ++s) {
    const StageNow& stage = now.stages[s];
    const auto life = now.lives.find(stage.k_tile);
    const bool holds = life != now.lives.end();
    const int all = !holds ? 0 : has_tma() ? life->second.announced : trace_.stage_bytes;
    const bool there = holds && stage.state != StageNow::filling;
    const int so_far = !holds ? 0 : there ? all : life->second.arrived;
    announced.items.value.each.push_back(static_cast<float>(all));
    landed.items.value.each.push_back(holds ? static_cast<float>(so_far) : NAN);
    const bool here = now.last != nullptr && now.last->lane <= 0 && now.last->stage == s &&
                      (now.last->what == What::lands || now.last->what == What::expects);
    if (here) landed.items.state.each[s] = State::current;
  }
  return box({"stage_bytes"}, {announced, landed}, text("bytes"),
             {.rank = 3, .weight = 1, .least_height = 1.8f, .left = kLeft});
}

/// Whether the last event was one of these, of a stage.
bool HopperGemmScene::at_stage(const HopperMoment& now, int stage,
                               std::initializer_list<What> whats) const {
  return now.last != nullptr && now.last->what < What::stores && now.last->stage == stage &&
         std::count(whats.begin(), whats.end(), now.last->what) > 0;
}

/// What a stage holds: the boxes of A and of B, which come from the matrices.
Items HopperGemmScene::stage_parts(const HopperMoment& now) const {
  Items parts = of_stages(now, "part", 2);
  parts.act = {Act::pick, "k-tile"};
  for (int i = 0; i < parts.count; ++i) {
    const StageNow& stage = now.stages[i / 2];
    const int k = stage.k_tile, per_tile = std::max(k_tiles(), 1);
    const bool is_a = i % 2 == 0, copied = at_stage(now, i / 2, {What::copies});
    const char* letter = is_a ? "A" : "B";
    parts.names.push_back(k < 0               ? letter
                          : trace_.stages > 5 ? std::to_string(k)
                                              : fmt::format("{} {}", letter, k));
    if (copied || at_stage(now, i / 2, {What::expects})) parts.state.each[i] = State::current;
    if (stage.overwritten || stage.read_early) parts.state.each[i] = State::wrong;
    const hopper_gemm::BlockTile& at = tile(k / per_tile);
    const Key from = is_a ? Key{"A", at.row, k % per_tile} : Key{"B", k % per_tile, at.column};
    parts.ways.push_back(copied ? Way{from, {}, is_a ? 0 : 1, true} : Way{});
  }
  return parts;
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

/// The phases of the full barriers, or of the empty ones, that have ended.
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
    return box(key, {cells}, text(label),
               {.rank = rank, .weight = 0, .least_height = 1.05f, .left = kLeft});
  };
  Box made = column({"ring"},
                    {stage_bytes(now), row({"holds"}, "holds", stage_parts(now), 0, 2),
                     row({"states"}, "state", stage_states(now, view), 5)},
                    {.close = true, .weight = 0.3f});
  if (has_tma()) {
    made.boxes.push_back(row({"full_barriers"}, "full", phases(now, true), 4));
  }
  if (has_producer()) {
    made.boxes.push_back(row({"empty_barriers"}, "empty", phases(now, false), 4));
  }
  const std::string size =
      fmt::format("{} of {} B", counted(trace_.stages, "stage"), trace_.stage_bytes);
  made.label = text(fmt::format("the ring: {} in shared memory", size), size, "ring");
  return made;
}

// ---- what the pointer is told --------------------------------------------------------------------

std::string HopperGemmScene::explain_k_tile(const HopperMoment& now, int number) const {
  const auto found = now.lives.find(number);
  if (found == now.lives.end()) return fmt::format("k-tile {}", number);
  const KTileLife& life = found->second;
  std::string said = fmt::format("k-tile {}, in stage {}", number, life.stage);
  const char* unit = emulated() ? "word" : "cycle";
  const auto at = [&](const std::string& what, std::int64_t clock) {
    if (clock != kNever) said += fmt::format("\n{} at {} {}", what, unit, clock);
  };
  at(has_tma() ? "announced" : "copies begin", life.expects);
  at(has_tma() ? "copies issued" : "copied", life.copies);
  at("first bytes landed", life.lands);
  at(emulated() ? "all landed" : "seen to be there", life.flips);
  for (int c = 0; c < trace_.consumers; ++c) {
    at(fmt::format("{} issues products", consumer(c)), life.issues[c]);
    at(fmt::format("{} has them", consumer(c)), life.waited[c]);
    at(fmt::format("{} gives it back", consumer(c)), life.releases[c]);
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
    said += fmt::format("\nfull barrier: {} ended, the one under way has parity {}",
                        counted(stage.full_phases, "phase"), stage.full_phases % 2);
  }
  if (has_producer()) {
    said += fmt::format("\nempty barrier: {} ended; {} of {} consumers have given k-tile {} back",
                        counted(stage.empty_phases, "phase"), stage.released_by, trace_.consumers,
                        std::max(stage.k_tile, 0));
    if (trace_.cluster > 1) said += "\nthose of the neighbour's block are not recorded";
  }
  if (stage.read_early) said += "\nmultiplied before all of its bytes had come";
  if (stage.overwritten) said += "\nfilled again before all had given it back";
  return said;
}

std::string HopperGemmScene::explain(const View& view, const Key& key) const {
  const HopperMoment now = moment(view.cursor);
  if (key.is({"issue", "copy", "landing", "held", "wait_empty"})) return explain_k_tile(now, key.i);
  if (key.is({"wait_full", "issuing", "product"})) return explain_k_tile(now, key.i / 2);
  if (key.is({"storing"})) {
    return fmt::format("{} stores tile {} of C", consumer(key.i % 2), key.i / 2);
  }
  if (key.is({"part", "stage_state", "full_barrier", "empty_barrier", "announced", "landed"})) {
    return explain_stage(now, key.i);
  }
  if (key.is({"plain_turn", "swizzled_turn"})) {
    return explain_turns(view, key.i, key.is({"swizzled_turn"}));
  }
  return explain_tiles(now, key);
}

}  // namespace tilestep::scenes

// The ring over time: in the order of the trace, or in cycles as the bench measured them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using hopper_gemm::What;
using words::counted;

namespace {

constexpr float kNames = 5.4f;  ///< margin for the lane names, in line heights
constexpr float kLane = 0.98f;  ///< least height of a lane, in line heights

/// Spans of one kind: a bar from here to there, each about a k-tile.
struct Lanes : SpanList {
  explicit Lanes(Name name, Name x = "order") : SpanList(name, x, "lane", "k-tile") {
    spans.items.act = {Act::pick, "k-tile"};
  }
  /// A bar that begins before its predecessor ends has no room for its number.
  void put(Bar bar) {
    double& taken = taken_.try_emplace(bar.lane, 0).first->second;
    if (bar.begin < taken) bar.name.clear();
    taken = std::max(taken, bar.end);
    add(std::move(bar));
  }

 private:
  std::map<int, double> taken_;  ///< until when, by lane
};

}  // namespace

// ---- in order ------------------------------------------------------------------------------------

/// The producer, the stages, and the consumers.
Axis HopperGemmScene::traced_lanes() const {
  Axis lanes{.name = "lane", .kind = Axis::band, .least_slot = 3};
  if (has_producer()) lanes.names = {"producer"};
  for (int s = 0; s < trace_.stages; ++s) lanes.names.push_back(fmt::format("stage {}", s));
  for (int c = 0; c < trace_.consumers; ++c) {
    lanes.names.push_back(consumer(c));
    if (has_wgmma()) lanes.names.push_back(fmt::format("wgmma {}", c));
  }
  lanes.count = static_cast<int>(lanes.names.size());
  return lanes;
}

/// The subject of the last event is current.
State HopperGemmScene::lit(const HopperMoment& now, int k_tile, std::initializer_list<What> whats,
                           int lane, State otherwise) const {
  if (now.last == nullptr || now.last->number != k_tile) return otherwise;
  const bool here = lane <= 0 ? now.last->lane <= 0 : now.last->lane == lane;
  return here && std::count(whats.begin(), whats.end(), now.last->what) > 0 ? State::current
                                                                            : otherwise;
}

/// The activities until the cursor, from event to event. Waits are hatched, copies in flight dim.
HopperGemmScene::Activities HopperGemmScene::activities(const HopperMoment& now) const {
  Activities all;
  const int stages = has_producer() ? 1 : 0, first = stages + trace_.stages,
            each = has_wgmma() ? 2 : 1;
  const auto add = [&](Name what, int key, int lane, int begin, int end, State state, int k) {
    // A broken kernel's may end before they began.
    if (begin == kNever || (end != kNever && end < begin)) return;
    const bool waits = state == State::wasted;
    const std::string name = waits ? "" : k < 0 ? "C" : std::to_string(k);
    all.emplace_back(
        what, SpanList::Bar{lane, double(begin), end == kNever ? double(INFINITY) : end, state,
                            waits ? std::uint8_t{0} : now.tone_of(k), name, k, key});
  };
  for (const auto& [k, life] : now.lives) {
    int there = has_tma() ? life.when(What::flips) : life.when(What::copies), gone = kNever;
    for (int c = 0; c < trace_.consumers; ++c) {
      if (all_released(life)) gone = std::max(gone, life.when(What::releases, c));
      // The watching thread may see it late: by its use it had arrived.
      const int used = life.when(What::issues, c);
      if (!broken() && used != kNever && (there == kNever || used < there)) there = used;
    }
    // A barrier of a broken kernel may flip for bytes that were not announced.
    if (there != kNever) there = std::max(there, life.when(What::copies));
    add("wait_empty", k, 0, life.when(What::waits_empty), life.when(What::expects), State::wasted,
        k);
    if (has_tma()) {
      add("copy", k, stages + life.stage, life.when(What::copies), there,
          lit(now, k, {What::copies, What::lands, What::flips}, 0, State::to_come), k);
    }
    add("held", k, stages + life.stage, there, gone, lit(now, k, {What::copies}, 0, State::plain),
        k);
    const KTileLife& before = now.life(k - 1);
    for (int c = 0; c < trace_.consumers; ++c) {
      const int lane = first + each * c;
      add("wait_full", 2 * k + c, lane, life.when(What::waits_full, c), life.when(What::issues, c),
          State::wasted, k);
      // The tensor cores run one after another: a queued product has not begun.
      int begin = life.when(What::issues, c);
      if (has_wgmma() && begin != kNever && before.when(What::issues, c) != kNever) {
        const int done = before.when(What::waited, c);
        begin = done == kNever ? kNever : std::max(begin, done);
      }
      add("product", 2 * k + c, lane + each - 1, begin, life.when(What::waited, c),
          lit(now, k, {What::issues, What::commits, What::waited}, c + 1, State::plain), k);
    }
  }
  for (const auto& [tile, begun] : now.stores) {
    const auto stored = now.stored.find(tile);
    for (int c = 0; c < trace_.consumers; ++c) {
      const int end = stored == now.stored.end() ? kNever : stored->second[c];
      add("storing", 2 * tile + c, first + each * c, begun[c], end, State::plain, -1);
    }
  }
  return all;
}

/// The order of the whole trace in beats. Waits end none, since they only wait for the others.
void HopperGemmScene::find_beats() {
  std::vector<std::pair<double, double>> things;
  for (const auto& [what, each] : activities(moment({trace_.steps(), 0}))) {
    if (each.state != State::wasted) things.emplace_back(each.begin, each.end);
  }
  // One each for a k-tile's copy, stay in a stage and products, and for each stored part of C, at most.
  const int tiles = std::max(static_cast<int>(trace_.tiles.size()), 1);
  beats_ = Beats(things, all_k_tiles() * (2 + trace_.readers()) + tiles * trace_.consumers);
}

/// What went on in each beat, up to the cursor.
Box HopperGemmScene::lanes(const HopperMoment& now, int followed) const {
  const int at = beats_.at(now.events);
  std::map<Name, Lanes> bars = {{Name("held"), Lanes("held")}};  // says what the lanes are called
  for (auto& [what, each] : activities(now)) {
    const bool waits = each.state == State::wasted;
    std::tie(each.begin, each.end) = waits ? beats_.waits(each.begin, each.end, now.events)
                                           : beats_.of(each.begin, each.end, now.events);
    if (!waits && each.about == followed) each.flags = kPicked;
    if (each.begin < each.end) bars.try_emplace(what, what).first->second.put(std::move(each));
  }
  std::vector<Mark> marks;
  for (auto& [name, each] : bars) marks.emplace_back(each.made(at + 1));
  // Each lane has room for its name and its bars' numbers, unless there are too many lanes.
  const auto lanes = static_cast<float>(traced_lanes().count);
  return box({"lanes"}, std::move(marks), {},
             {.weight = 1.6f,
              .least_width = 11,
              .least_height = std::clamp(kLane * lanes, 5.0f, 6.2f),
              .left = kNames});
}

// ---- in cycles -----------------------------------------------------------------------------------

/// The rings timed by the bench, with one stage, two and the run's number, if it timed this kernel's case.
void HopperGemmScene::find_timed() {
  timed_.clear();
  bench_ = measured::bench_of(report_, lesson(), "stages_measured");
  const bool is_case = has_tma() && trace_.cluster <= 1 && trace_.tiles.size() < 2 && !broken() &&
                       trace_.dtype == hopper_gemm::DataType::bf16 && trace_.swizzle == 128 &&
                       trace_.readers() == 2;
  if (bench_ == nullptr || !is_case) return;
  // Four wgmma from each of two consumers, without any overlap.
  const auto one = number_with(*bench_, "instruction_roofs", {{"tile", "64x256"}}, "tensor_cycles");
  products_ = 8 * one.value_or(0);
  for (const int stages : std::set{1, std::min(2, trace_.stages), trace_.stages}) {
    const auto in = [&](const char* column) {
      return number_with(*bench_, "stages_measured", {{"stages", std::to_string(stages)}}, column);
    };
    if (!one || !in("cycles") || !in("tflops")) return timed_.clear();
    const int lane = timed_.empty() ? 0 : timed_.back().lane + timed_.back().stages + 3;
    timed_.push_back({stages, lane, *in("cycles"), *in("tflops")});
  }
}

/// The lanes of the rings, one below the other: stages, and the tensor cores, twice as thick.
Axis HopperGemmScene::timed_lanes() const {
  const TimedRing& last = timed_.back();
  Axis lanes{
      .name = "lane", .kind = Axis::band, .count = last.lane + last.stages + 2, .least_slot = 3};
  lanes.names.resize(static_cast<std::size_t>(lanes.count));
  for (const TimedRing& ring : timed_) {
    // With little room, only names at multiples of two or four are shown.
    lanes.names[std::min((ring.lane + 3) / 4 * 4, ring.lane + ring.stages - 1)] =
        counted(ring.stages, "stage");
    lanes.names[(ring.lane + ring.stages + 1) / 2 * 2] = "tensor cores";
  }
  return lanes;
}

/// The trace's k-tiles so far, with each number of stages: a stage is requested when it is released and multiplied
/// at the measured pace. The time of a product alone is known; the rest is idle.
Box HopperGemmScene::in_cycles(const HopperMoment& now) const {
  const double alone = timed_.front().cycles - products_;  // a copy's: one stage overlaps nothing
  Lanes copies("timed_copy", "cycles"), idle("timed_idle", "cycles"),
      products("timed_product", "cycles"), rates("rate", "rate");
  std::vector<Mark> marks;
  const int lane = now.last == nullptr ? 0 : now.last->lane;
  for (const TimedRing& ring : timed_) {
    const auto begins = [&](int k) { return alone + k * ring.cycles; };
    const auto multiplied = [&](int k) { return now.life(k).when(What::issues) != kNever; };
    const int cores = ring.lane + ring.stages;
    double until = 0;
    for (int k = 0; k < kTimed && begins(k) + products_ <= kCycles; ++k) {
      if (now.life(k).when(What::copies) == kNever) break;
      // With more than one stage it is released when the next one's products are issued.
      const int before = k - ring.stages, frees = ring.stages == 1 ? before : before + 1;
      if (before >= 0 && !multiplied(frees)) break;
      const double asked = before < 0 ? 0 : begins(frees) + (ring.stages == 1 ? products_ : 0);
      const int key = ring.stages * kTimed + k;
      const std::string name = std::to_string(k);
      copies.put({ring.lane + k % ring.stages, asked, begins(k),
                  lit(now, k, {What::expects, What::copies, What::lands, What::flips}, 0,
                      multiplied(k) ? State::done : State::to_come),
                  now.tone_of(k), name, k, key, 1});
      if (!multiplied(k)) continue;
      idle.put({cores, until, begins(k), State::wasted, 0, "", k, key, 2});
      until = begins(k) + products_;
      products.put({cores, begins(k), until,
                    lit(now, k, {What::issues, What::commits, What::waited}, lane, State::plain),
                    now.tone_of(k), name, k, key, 2});
    }
    if (until <= 0) continue;
    marks.emplace_back(Curve{.key = {"a_k_tile", ring.stages},
                             .x = {until, until},
                             .y = {cores + 1.0, cores + 1.0},
                             .ax = "cycles",
                             .ay = "lane",
                             .end = text(fmt::format("{:.0f}", ring.cycles))});
    rates.put({cores, 0, ring.tflops, State::plain, 0, fmt::format("{:.0f}", ring.tflops), -1,
               ring.stages, 2});
  }
  for (Lanes* each : {&idle, &products, &copies}) marks.emplace_back(each->made(kCycles));
  Box made =
      row({"by_stages"},
          {box({"lanes"}, std::move(marks), text("copies, products", "copies"),
               {.weight = 3, .least_width = 5, .least_height = 4.4f, .left = 6.2f, .right = 3.2f}),
           box({"rates"}, {rates.made(kRate)}, text("measured"),
               {.rank = 1, .least_width = 5, .least_height = 4.4f})},
          {.weight = 4});
  made.label =
      text(fmt::format("derived, {}; right: cycles/k-tile", measured::where_measured(*bench_)),
           "cycles by stages, derived", "derived");
  return made;
}

}  // namespace tilestep::scenes

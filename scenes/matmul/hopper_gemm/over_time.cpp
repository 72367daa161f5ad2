// The ring over time: in the order of the trace, or in cycles as the bench measured them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using hopper_gemm::What;
using words::counted;

namespace {

constexpr float kNames = 5.4f;   ///< margin for the lane names, in line heights
constexpr float kLane = 0.98f;   ///< least height of a lane, in line heights
constexpr int kMostOnPage = 12;  ///< k-tiles that the lanes show side by side

/// Spans of one kind: a bar from here to there, each about a k-tile.
class Bars_ {
 public:
  Bars_(const HopperMoment& moment, Name name, double from, double now, Name x = "order")
      : moment_(moment), from_(from) {
    spans_.items = items(name, 0);
    spans_.x = x;
    spans_.lanes = "lane";
    spans_.now = now;
    spans_.items.act = {Act::pick, "k-tile"};
  }
  /// Adds nothing if it has not begun, or ended before the shown range.
  void add(int key, int lane, double begin, double end, State state, int k_tile, bool picked,
           std::string name = {}) {
    if (end != kNever && end < begin) return;  // a broken kernel: ended before it began
    const double to = end == kNever ? spans_.now : std::min(end, spans_.now);
    if (begin == kNever || begin > spans_.now || to < from_) return;
    ++spans_.items.count;
    spans_.items.ids.push_back(key);
    spans_.lane.push_back(lane);
    spans_.begin.push_back(begin);
    spans_.end.push_back(std::max(to, begin));
    const bool hatched = state == State::wasted || k_tile < 0;
    spans_.items.state.each.push_back(state);
    spans_.items.tone.each.push_back(hatched ? std::uint8_t{0} : moment_.tone_of(k_tile));
    spans_.items.flags.each.push_back(picked ? kPicked : kNone);
    // A bar that begins before its predecessor ends has no room for its number.
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
  const HopperMoment& moment_;
  Spans spans_;
  double from_;
  std::map<int, double> taken_;  ///< until when, by lane
  std::vector<int> about_;
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

/// A page of the events, if there are more k-tiles than fit side by side.
Axis HopperGemmScene::order_axis(const HopperMoment& now) const {
  Axis axis{.name = "order", .high = std::max(1.0, double(trace_.steps())), .ticks = true};
  axis.title = text("events in order, no time", "events");
  const int pages = (all_k_tiles() + kMostOnPage - 1) / kMostOnPage;
  if (pages < 2) return axis;
  const double length = std::ceil(axis.high / pages);
  axis.low = std::floor(now.events / length) * length;
  axis.high = axis.low + length;
  return axis;
}

/// The subject of the last event is current.
State HopperGemmScene::lit(const HopperMoment& now, int k_tile, std::initializer_list<What> whats,
                           int lane, State otherwise) const {
  if (now.last == nullptr || now.last->number != k_tile) return otherwise;
  const bool here = lane <= 0 ? now.last->lane <= 0 : now.last->lane == lane;
  return here && std::count(whats.begin(), whats.end(), now.last->what) > 0 ? State::current
                                                                            : otherwise;
}

/// Bars that grow up to the cursor: waits are hatched, copies in flight dim.
Box HopperGemmScene::lanes(const HopperMoment& now, int followed) const {
  const double at = now.events, from = order_axis(now).low;
  const auto bars = [&](Name name) { return Bars_(now, name, from, at); };
  Bars_ empty = bars("wait_empty"), copy = bars("copy"), held = bars("held"),
        full = bars("wait_full"), product = bars("product"), storing = bars("storing");
  const int stages = has_producer() ? 1 : 0, first = stages + trace_.stages,
            each = has_wgmma() ? 2 : 1;
  for (const auto& [k, life] : now.lives) {
    const bool picked = k == followed;
    const std::string name = std::to_string(k);
    int there = has_tma() ? life.flips : life.copies, gone = all_released(life) ? 0 : kNever;
    for (int c = 0; c < trace_.consumers; ++c) {
      if (gone != kNever) gone = std::max(gone, life.releases[c]);
      // The watching thread may see it late: by its use it had arrived.
      if (there == kNever && !broken()) there = life.issues[c];
    }
    // A barrier of a broken kernel may flip for bytes that were not announced.
    if (there != kNever) there = std::max(there, life.copies);
    const State arrives = lit(now, k, {What::copies, What::flips}, 0, State::plain);
    empty.add(k, 0, life.waits_empty, life.expects, State::wasted, k, false);
    if (has_tma()) {
      copy.add(k, stages + life.stage, life.copies, there,
               lit(now, k, {What::copies, What::lands}, 0, State::to_come), k, picked, name);
    }
    held.add(k, stages + life.stage, there, gone, arrives, k, picked, name);
    const auto before = now.lives.find(k - 1);
    for (int c = 0; c < trace_.consumers; ++c) {
      const int lane = first + each * c;
      full.add(2 * k + c, lane, life.waits_full[c], life.issues[c], State::wasted, k, false);
      // The tensor cores run one after another: a queued product has no bar yet.
      int begin = life.issues[c];
      if (has_wgmma() && begin != kNever && before != now.lives.end() &&
          before->second.issues[c] != kNever) {
        begin =
            before->second.waited[c] == kNever ? kNever : std::max(begin, before->second.waited[c]);
      }
      product.add(2 * k + c, lane + each - 1, begin, life.waited[c],
                  lit(now, k, {What::issues, What::commits, What::waited}, c + 1, State::plain), k,
                  picked, name);
    }
  }
  for (const auto& [tile, begun] : now.stores) {
    const auto stored = now.stored.find(tile);
    for (int c = 0; c < trace_.consumers; ++c) {
      const int end = stored == now.stored.end() ? kNever : stored->second[c];
      storing.add(2 * tile + c, first + each * c, begun[c], end, State::plain, -1, false, "C");
    }
  }
  // Each lane has room for its name and its bars' numbers, unless there are too many lanes.
  const float least =
      std::clamp(kLane * static_cast<float>(first + each * trace_.consumers), 5.0f, 6.2f);
  return box({"lanes"},
             {empty.done(), copy.done(), held.done(), full.done(), product.done(), storing.done(),
              Rule{{"now"}, "order", at, State::current}},
             {}, {.weight = 1.6f, .least_width = 11, .least_height = least, .left = kNames});
}

// ---- in cycles -----------------------------------------------------------------------------------

/// The rings timed by the bench, with one stage, two and the run's number, if it timed this kernel's case.
void HopperGemmScene::find_timed() {
  timed_.clear();
  bench_ = measured::bench_of(report_, lesson(), "stages_measured");
  const bool is_case = has_tma() && trace_.cluster <= 1 && trace_.tiles.size() < 2 && !broken() &&
                       trace_.dtype == hopper_gemm::DataType::bf16 && trace_.swizzle == 128 &&
                       trace_.readers() == 2 && params_.data == hopper_gemm::Data::random;
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
  const auto bars = [&](Name name) { return Bars_(now, name, 0, kCycles, "cycles"); };
  Bars_ copies = bars("timed_copy"), idle = bars("timed_idle"), products = bars("timed_product"),
        rates(now, "rate", 0, kRate, "rate");
  std::vector<Mark> marks;
  const int lane = now.last == nullptr ? 0 : now.last->lane;
  for (const TimedRing& ring : timed_) {
    const auto begins = [&](int k) { return alone + k * ring.cycles; };
    const auto multiplied = [&](int k) {
      const auto life = now.lives.find(k);
      return life != now.lives.end() && life->second.issues[0] != kNever;
    };
    const int cores = ring.lane + ring.stages;
    double until = 0;
    for (int k = 0; k < kTimed && begins(k) + products_ <= kCycles; ++k) {
      const auto life = now.lives.find(k);
      if (life == now.lives.end() || life->second.copies == kNever) break;
      // With more than one stage it is released when the next one's products are issued.
      const int before = k - ring.stages, frees = ring.stages == 1 ? before : before + 1;
      if (before >= 0 && !multiplied(frees)) break;
      const double asked = before < 0 ? 0 : begins(frees) + (ring.stages == 1 ? products_ : 0);
      const int key = ring.stages * kTimed + k;
      copies.add(key, ring.lane + k % ring.stages, asked, begins(k),
                 lit(now, k, {What::expects, What::copies, What::lands, What::flips}, 0,
                     multiplied(k) ? State::done : State::to_come),
                 k, false, std::to_string(k));
      if (!multiplied(k)) continue;
      idle.add(key, cores, until, begins(k), State::wasted, k, false);
      until = begins(k) + products_;
      products.add(key, cores, begins(k), until,
                   lit(now, k, {What::issues, What::commits, What::waited}, lane, State::plain), k,
                   false, std::to_string(k));
    }
    if (until <= 0) continue;
    marks.emplace_back(Curve{.key = {"a_k_tile", ring.stages},
                             .x = {until, until},
                             .y = {cores + 1.0, cores + 1.0},
                             .ax = "cycles",
                             .ay = "lane",
                             .end = text(fmt::format("{:.0f}", ring.cycles))});
    rates.add(ring.stages, cores, 0, ring.tflops, State::plain, -1, false,
              fmt::format("{:.0f}", ring.tflops));
  }
  const auto filling = [](Spans spans, std::uint8_t lanes) {
    spans.items.glyph = {lanes};
    return spans;
  };
  for (Bars_* each : {&idle, &products}) marks.emplace_back(filling(each->done(), 2));
  marks.emplace_back(filling(copies.done(), 1));
  Box made =
      row({"by_stages"},
          {box({"lanes"}, std::move(marks), text("copies, products", "copies"),
               {.weight = 3, .least_width = 5, .least_height = 5, .left = 6.2f, .right = 3.2f}),
           box({"rates"}, {filling(rates.done(), 2)}, text("measured"),
               {.rank = 1, .least_width = 5, .least_height = 5})},
          {.weight = 4});
  made.label =
      text(fmt::format("derived, {}; right: cycles/k-tile", measured::where_measured(*bench_)),
           "cycles by stages, derived", "derived");
  return made;
}

}  // namespace tilestep::scenes
